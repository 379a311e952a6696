"""Token edges by hand: ``Token``, ``ExcludeToken``, ``TokenTagDispatch`` in our own engine.

What may come next in small grammars, written down; all that a matcher can do, over tokens that are
taken whole; what is refused. Random grammars are in ``test_token_edges_masks.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

pytest.importorskip("tokfold._core")

import tokfold
from engine.token_edge_samples import (
    AAB,
    AB,
    COMMA,
    END,
    MANY,
    NAMED,
    NONE,
    ONE,
    OTHER,
    SPECIALS,
    STOP,
    TAG,
    TOKENS,
    TWIN,
    WHOLE,
    A,
    B,
    C,
    text_of,
)
from oracles.tokens import TokenOracle, Tokens, readings
from strategies.engine import allowed_tokens, check_ended, compiled_with, mask_of
from strategies.printed import read_printed

SIZE = len(TOKENS)
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP], special_token_ids=SPECIALS)
MODES = ["never", "now"]
NO_TOKEN = f"ExcludeToken({', '.join(map(str, sorted(WHOLE)))})"


def compiled_of(text: str, classes="never", **options) -> tokfold.CompiledGrammar:
    return tokfold.compile(tokfold.Grammar.from_ebnf(text), VOCABULARY, classes=classes, **options)


def matcher_of(text: str, classes="never", ids: Sequence[int] = (), **options) -> tokfold.Matcher:
    """A matcher after some tokens."""
    matcher = tokfold.Matcher(compiled_of(text, classes), **options)
    for token in ids:
        assert matcher.accept_token(token), (text, ids, token)
    return matcher


def next_of(matcher: tokfold.Matcher) -> set[int]:
    """What may come next, by the mask; forks say the same."""
    size = len(matcher.compiled.vocabulary)
    bits = mask_of(matcher, size)[0]
    assert [matcher.fork().accept_token(token) for token in range(size)] == bits
    return set(allowed_tokens(bits))


def of_row(row: np.ndarray) -> set[int]:
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


class TestNamed:
    @pytest.mark.parametrize("name", NAMED)
    def test_the_oracle(self, name):
        """What was written down holds, and reading both ways at once is what it should be."""
        text, expected = NAMED[name]
        tokens = Tokens(TOKENS, (STOP,), SPECIALS)
        oracle = TokenOracle(read_printed(text), tokens)
        for ids, allowed in expected.items():
            state = oracle.follow(ids)
            assert state is not None
            assert {t for t, bit in enumerate(oracle.mask(state)) if bit} == allowed, ids
            if len(ids) > 3:
                continue
            for token in [t for t in range(SIZE) if t != STOP]:
                viable = False
                for letters in readings(tokens, (*ids, token)):
                    alone = oracle.initial()
                    for letter in letters:
                        alone = alone.step(letter)
                    viable |= alone.viable
                assert viable is oracle.viable((*ids, token)) is (token in allowed)

    @pytest.mark.parametrize("classes", MODES)
    @pytest.mark.parametrize("name", NAMED)
    def test_masks(self, name, classes):
        text, expected = NAMED[name]
        for ids, allowed in expected.items():
            matcher = matcher_of(text, classes, ids)
            assert next_of(matcher) == allowed, (len(ids), ids[:4])
            assert matcher.is_accepting is (STOP in allowed)
            assert matcher.text == text_of(ids)
            assert matcher.num_steps == len(ids)

    @pytest.mark.parametrize("name", NAMED)
    def test_printed_and_read_again(self, name):
        text, expected = NAMED[name]
        printed = str(tokfold.Grammar.from_ebnf(text))
        assert str(tokfold.Grammar.from_ebnf(printed)) == printed
        for ids, allowed in expected.items():
            assert next_of(matcher_of(printed, "never", ids)) == allowed

    @pytest.mark.parametrize("name", NAMED)
    def test_states(self, name):
        """Saved, and restored where the grammar was compiled otherwise, it goes on alike."""
        text, expected = NAMED[name]
        for ids, allowed in expected.items():
            state = matcher_of(text, "never", ids).state
            read = tokfold.MatcherState.from_bytes(state.to_bytes())
            assert read == state
            for classes in MODES:
                restored = tokfold.Matcher.from_state(compiled_of(text, classes), read)
                assert restored.state == state
                assert next_of(restored) == allowed
                assert restored.num_steps == 0

    @pytest.mark.parametrize("name", NAMED)
    def test_made_ahead_of_time(self, name):
        text, expected = NAMED[name]
        compiled = compiled_of(text, "now")
        compiled.warm()
        for ids, allowed in expected.items():
            matcher = tokfold.Matcher(compiled)
            assert matcher.accept_tokens(ids) == len(ids)
            assert next_of(matcher) == allowed


@pytest.mark.parametrize("classes", MODES)
class TestTagDispatch:
    """Free text and token edges in one grammar."""

    TEXT = 'root ::= TagDispatch(("c", r))\nr ::= Token(3) "a"* Token(4)\n'

    def test_in_the_rule_of_a_tag(self, classes):
        textual = WHOLE - set(SPECIALS)
        assert next_of(matcher_of(self.TEXT, classes)) == textual | {STOP}
        assert next_of(matcher_of(self.TEXT, classes, [C])) == {TAG}
        assert next_of(matcher_of(self.TEXT, classes, [C, TAG])) == {A, TWIN, END}
        assert next_of(matcher_of(self.TEXT, classes, [B, C, TAG, A, END])) == textual | {STOP}

    def test_dispatch_of_tokens_in_the_rule_of_a_tag(self, classes):
        text = 'root ::= TagDispatch(("c", r))\nr ::= TokenTagDispatch((3, s)) Token(4)\ns ::= ","'
        textual = WHOLE - set(SPECIALS)
        assert next_of(matcher_of(text, classes, [C])) == WHOLE
        assert next_of(matcher_of(text, classes, [C, B, TAG])) == {COMMA}
        # The free tokens hold the end token too; so both are possible after it.
        assert next_of(matcher_of(text, classes, [C, END])) == WHOLE | textual | {STOP}

    def test_dispatch_of_texts_in_the_rule_of_a_token(self, classes):
        text = "root ::= TokenTagDispatch((3, r), excludes=(4))\nr ::= f Token(4)\n"
        text += 'f ::= TagDispatch(("c", s), excludes=("b",))\ns ::= Token(2)'
        inside = {A, TWIN, C, COMMA, 11, 12, END}
        assert next_of(matcher_of(text, classes)) == (WHOLE - {END}) | {STOP}
        assert next_of(matcher_of(text, classes, [AB, TAG])) == inside
        assert next_of(matcher_of(text, classes, [AB, TAG, A, C])) == {AB}
        assert next_of(matcher_of(text, classes, [TAG, C, AB])) == inside
        assert next_of(matcher_of(text, classes, [TAG, C, AB, END])) == (WHOLE - {END}) | {STOP}


@pytest.mark.parametrize("classes", MODES)
class TestMatcher:
    def test_bytes_are_never_taken_whole(self, classes):
        text = 'root ::= "a" Token(2) | Token(0) "b" | Token(3)'
        matcher = matcher_of(text, classes)
        for data in (b"ab", b"aab", b"<t>", b"b"):
            assert not matcher.accept_bytes(data)
        assert matcher.num_steps == 0
        assert matcher.accept_string("a")
        assert next_of(matcher) == {AB}
        assert matcher.accept_token(AB)
        assert matcher.is_accepting
        assert matcher.text == b"aab"

    def test_after_bytes_a_token_begins(self, classes):
        """Wherever bytes end, also inside of what is a token."""
        matcher = matcher_of('root ::= "ab" Token(1)', classes)
        assert next_of(matcher) == {A, TWIN, AB}
        assert matcher.accept_bytes(b"a")
        assert next_of(matcher) == {B}
        assert matcher.accept_bytes(b"b")
        assert next_of(matcher) == {B}
        assert not matcher.accept_bytes(b"b")

    def test_rollback_forks_and_reset(self, classes):
        text, expected = NAMED["free tokens"]
        matcher = matcher_of(text, classes)
        states = [matcher.state]
        path = [B, TAG, AB, END, TAG, C]
        for token in path:
            assert matcher.accept_token(token)
            states.append(matcher.state)
        fork = matcher.fork()
        for count in range(len(path) + 1):
            other = matcher.fork()
            other.rollback(count)
            assert other.state == states[len(path) - count]
            assert other.text == text_of(tuple(path[: len(path) - count]))
            assert other.accept_tokens(path[len(path) - count :]) == count
            assert other.state == states[-1]
        matcher.reset()
        assert next_of(matcher) == expected[()]
        assert fork.state == states[-1]
        assert not matcher.accept_token(NONE)
        assert matcher.state == states[0]

    def test_a_stop_token_ends_the_text(self, classes):
        matcher = matcher_of("root ::= Token(3) ExcludeToken()*", classes, [TAG, TAG])
        assert next_of(matcher) == WHOLE | {STOP}
        assert matcher.accept_token(STOP)
        assert matcher.is_terminated
        check_ended(matcher)
        matcher.rollback()
        assert next_of(matcher) == WHOLE | {STOP}

    def test_the_text_ends_by_itself(self, classes):
        matcher = matcher_of(
            'root ::= "a" Token(3)', classes, [A], terminate_without_stop_token=True
        )
        assert not matcher.is_terminated
        assert matcher.accept_token(TAG)
        assert matcher.is_terminated

    def test_stop_tokens_of_a_matcher(self, classes):
        """Those given there are taken whole where they complete the text, and nowhere else."""
        text = "root ::= Token(3, 8) ExcludeToken(0)*"
        matcher = matcher_of(text, classes, stop_token_ids=[C, TAG])
        assert next_of(matcher) == {C, TAG}
        assert matcher.accept_token(TAG)
        assert matcher.is_terminated
        matcher = matcher_of("root ::= Token(3, 8) Token(1)", classes, stop_token_ids=[C, TAG])
        assert next_of(matcher) == set()
        matcher = matcher_of(text, classes, stop_token_ids=[C])
        assert next_of(matcher) == {TAG, C}
        assert matcher.accept_token(TAG)
        assert next_of(matcher) == WHOLE - {A}  # `c` among them, which ends the text
        ended = matcher.fork()
        assert ended.accept_token(C)
        assert ended.is_terminated
        assert matcher.accept_token(AB)
        assert not matcher.is_terminated
        matcher = matcher_of(text, classes, [TAG], stop_token_ids=[])
        assert next_of(matcher) == WHOLE - {A}

    def test_prefixes(self, classes):
        matcher = matcher_of("root ::= Token(3) [a-c]+ Token(4)", classes)
        assert matcher.accept_tokens([A, TAG]) == 0
        assert matcher.accept_tokens([TAG, AB, C, TAG, END]) == 3
        assert matcher.text == b"<t>abc"
        assert matcher.accept_tokens([END, STOP]) == 2
        assert matcher.is_terminated

    def test_drafts(self, classes):
        matcher = matcher_of("root ::= Token(3) [a-c]+ Token(4)", classes, [TAG])
        before = matcher.state
        tokens = [AB, END, STOP, TAG, A, END, NONE]
        parents = [-1, 0, 1, 0, 3, 4, 0]
        rows = tokfold.allocate_bitmask(len(tokens) + 1, SIZE)
        said = matcher.fill_bitmask_draft(tokens, rows, parents)
        assert said.tolist() == [True, True, True, False, False, False, False]
        letters = {A, B, AB, TWIN, C, AAB}
        expected = [letters, letters | {END}, {STOP}, set(), set(), set(), set(), set()]
        assert [of_row(row) for row in rows] == expected
        assert matcher.state == before

    @pytest.mark.parametrize("threads", [None, 1, 3])
    def test_batches(self, classes, threads):
        matchers, expected = [], []
        for text, places in NAMED.values():
            compiled = compiled_of(text, classes)
            for ids, allowed in places.items():
                matchers.append(tokfold.Matcher(compiled))
                matchers[-1].accept_tokens(ids)
                expected.append(set(allowed))
        rows = tokfold.allocate_bitmask(len(matchers), SIZE)
        tokfold.fill_bitmask_batch(matchers, rows, threads=threads)
        assert [of_row(row) for row in rows] == expected
        random = Random(1)
        tokens = [random.choice(sorted(allowed)) for allowed in expected]
        others = [random.randrange(SIZE) for _ in expected]
        taken = tokfold.accept_token_batch([m.fork() for m in matchers], others, threads)
        assert taken.tolist() == [o in allowed for o, allowed in zip(others, expected, strict=True)]
        assert tokfold.accept_token_batch(matchers, tokens, threads).all()
        tokfold.rollback_batch(matchers, [1] * len(matchers), threads)
        tokfold.fill_bitmask_batch(matchers, rows, threads=threads)
        assert [of_row(row) for row in rows] == expected

    @pytest.mark.parametrize(
        ("text", "ids", "forced"),
        [
            ('root ::= "ab" Token(0) "c" "," Token(1)', [], b"ab"),
            ('root ::= "ab" Token(0) "c" "," Token(1)', [AB], b""),
            ('root ::= "ab" Token(0) "c" "," Token(1)', [AB, A], b"c,"),
            ('root ::= "ab" Token(0) "c" "," Token(1)', [AB, A, C, COMMA], b""),
            ('root ::= "ab" | Token(8)', [], b""),
            ('root ::= "ab" | Token(2)', [], b""),  # of the same bytes, and yet a choice
            ('root ::= "ab" | Token(2) "a"', [A], b"b"),
            ('root ::= "a" (Token(1) | "b") "c"', [], b"a"),
            ('root ::= "a" (Token(1) | "b") "c"', [A, B], b"c"),
            ('root ::= "a" Token(3)? "b"', [], b"a"),
            ('root ::= "a" (Token(3){20})? "b"', [], b"a"),
            ("root ::= Token(3){20}", [], b""),
            ("root ::= TokenTagDispatch((3, r), excludes=(0)) Token(4)\nr ::= \"ab\"", [], b""),
            ("root ::= TokenTagDispatch((3, r), excludes=(0)) Token(4)\nr ::= \"ab\"", [3], b"ab"),
            ('root ::= "a" x "c"\nx ::= "b" | Token(3) x', [], b"a"),
            ('root ::= "a" x "c"\nx ::= "b" | Token(3) | x "b"', [A], b""),
            (f'root ::= "a" ({NO_TOKEN} | "b") "c"', [], b"abc"),
        ],
    )  # fmt: skip
    def test_forced_bytes(self, classes, text, ids, forced):
        assert matcher_of(text, classes, ids).forced_bytes() == forced

    def test_expected_bytes(self, classes):
        assert matcher_of('root ::= Token(0) "b"', classes).expected_bytes == b""
        assert matcher_of('root ::= Token(0) "b" | "c"', classes).expected_bytes == b"c"
        assert matcher_of('root ::= Token(0) "b" | "c"', classes, [A]).expected_bytes == b"b"

    def test_equal_places_are_equal_states(self, classes):
        text = 'root ::= (Token(0) | "a" | Token(3)) "b"'
        matchers = [matcher_of(text, classes, ids) for ids in ([A], [TWIN], [TAG])]
        assert len({matcher.state for matcher in matchers}) == 1

    def test_explanations(self, classes):
        matcher = matcher_of('root ::= "a" Token(2) | "a" "c"', classes)
        for ids in ([], [A], [A, AB]):
            at = matcher.fork()
            assert at.accept_tokens(ids) == len(ids)
            allowed = next_of(at)
            for token in range(SIZE):
                found = at.explain(token)
                assert found.allowed is (token in allowed)
                assert found.token == TOKENS[token]
        assert matcher.accept_token(A)
        assert "whole" in matcher.explain(AB).reason
        assert "whole" not in matcher.explain(C).reason


class TestClasses:
    def classes_of(self, text: str, **options) -> tokfold.TokenClasses:
        return tokfold.compile_classes(tokfold.Grammar.from_ebnf(text), VOCABULARY, **options)

    def test_named_tokens_stand_alone(self):
        """Of two tokens with the same bytes one is taken whole, so they are not alike."""
        classes = self.classes_of('root ::= Token(0) "b" | "ab"')
        assert classes.class_of[A] != classes.class_of[TWIN] != -1
        classes = self.classes_of('root ::= Token(1) "b" | "ab"')
        assert classes.class_of[A] == classes.class_of[TWIN] != -1

    def test_special_tokens_have_classes_where_they_are_taken(self):
        classes = self.classes_of("root ::= Token(3) [a-z]*")
        assert classes.class_of[TAG] >= 0
        assert classes.class_of[END] == classes.class_of[NONE] == -1
        classes = self.classes_of("root ::= ExcludeToken(3) [a-z]*")
        assert classes.class_of[END] >= 0
        assert classes.class_of[TAG] == classes.class_of[NONE] == -1

    def test_tokens_of_one_set_are_one_class(self):
        classes = self.classes_of('root ::= Token(3, 4) "," | Token(9)')
        assert classes.class_of[TAG] == classes.class_of[END] != classes.class_of[COMMA]

    def test_what_is_taken_only_whole_is_one_class(self):
        """Free text of tokens tells no bytes apart."""
        classes = self.classes_of("root ::= TokenTagDispatch()")
        assert len(set(classes.class_of[sorted(WHOLE)].tolist())) == 1

    @pytest.mark.parametrize("name", NAMED)
    def test_files(self, name, tmp_path):
        text, expected = NAMED[name]
        grammar = tokfold.Grammar.from_ebnf(text)
        classes = self.classes_of(text)
        classes.save(tmp_path / "classes")
        loaded = tokfold.TokenClasses.load(
            tmp_path / "classes", grammar=grammar, vocabulary=VOCABULARY
        )
        assert loaded == classes
        compiled = tokfold.compile(grammar, VOCABULARY, classes=loaded)
        for ids, allowed in expected.items():
            matcher = tokfold.Matcher(compiled)
            assert matcher.accept_tokens(ids) == len(ids)
            assert next_of(matcher) == allowed

    def test_grammars_that_differ_in_ids_are_not_one_in_caches(self, tmp_path):
        texts = [f'root ::= Token({i}) "b" | "c"' for i in (0, 2, 3, 4)]
        texts += [f'root ::= ExcludeToken({i}) "b" | "c"' for i in (0, 2, 3, 4)]
        texts += [f'root ::= TokenTagDispatch((3, r), excludes=({i}))\nr ::= "a"' for i in (0, 4)]
        fresh = [self.classes_of(text) for text in texts]
        for _ in range(2):
            cached = [self.classes_of(text, cache_dir=tmp_path) for text in texts]
            assert cached == fresh
        with tokfold.GrammarCompiler(VOCABULARY) as compiler:
            for _ in range(2):
                for text in texts:
                    matcher = tokfold.Matcher(compiler.compile_grammar(text))
                    assert next_of(matcher) == next_of(matcher_of(text))


class TestOneGrammarOverManyVocabularies:
    """Which ids can be taken is a matter of the vocabulary, not of the grammar."""

    GRAMMAR = tokfold.Grammar.from_ebnf('root ::= ExcludeToken(0) | Token(1) "a" | "b"')

    @pytest.mark.parametrize("classes", MODES)
    def test_stop_and_special_tokens(self, classes):
        tokens = [b"a", b"b", b"c", b"b", b""]
        for stops, specials, expected in [
            ((), (), {1, 2, 3}),
            ((2,), (), {1, 3}),
            ((3,), (2,), {1, 2}),
            ((), (1, 3), {1, 2, 3}),
            ((0,), (), {1, 2, 3}),
        ]:
            vocabulary = tokfold.Vocabulary(tokens, stops, specials)
            compiled = tokfold.compile(
                self.GRAMMAR,
                vocabulary,
                classes=classes,
                options=tokfold.CompileOptions(check_tokens=False),
            )
            assert next_of(tokfold.Matcher(compiled)) == expected
            plain = vocabulary.replace(special_token_ids=())
            compiled = tokfold.compile(
                self.GRAMMAR,
                plain,
                classes=classes,
                options=tokfold.CompileOptions(check_tokens=False),
            )
            assert next_of(tokfold.Matcher(compiled)) == expected

    @pytest.mark.parametrize("classes", MODES)
    def test_padding(self, classes):
        vocabulary = tokfold.Vocabulary([b"a", b"b"], size=70)
        compiled = tokfold.compile(
            self.GRAMMAR,
            vocabulary,
            classes=classes,
            options=tokfold.CompileOptions(check_tokens=False),
        )
        assert next_of(tokfold.Matcher(compiled)) == {1}


class TestErrors:
    @pytest.mark.parametrize("token", [STOP, NONE, SIZE, 2**31 - 1])
    @pytest.mark.parametrize(
        ("text", "construct", "line", "column"),
        [
            ("root ::= Token({})", "Token", 1, 10),
            ('root ::= "a" |\n  Token(0, {}, 1)', "Token", 2, 3),
            ('root ::= "a"\n | TokenTagDispatch(({}, r))\nr ::= "b"', "TokenTagDispatch", 2, 4),
            ('root ::= "a" r?\nr ::= (Token({})){{20}}', "Token", 2, 8),
        ],
    )  # fmt: skip
    def test_what_can_never_be_taken_is_refused(self, text, construct, line, column, token):
        if token == STOP and construct == "Token":
            assert tokfold.compile(text.format(token), VOCABULARY, classes="now")
            return  # it ends a text, or what it stands in has none
        grammar = tokfold.Grammar.from_ebnf(text.format(token))
        for use in (
            lambda: tokfold.compile(grammar, VOCABULARY, classes="never"),
            lambda: tokfold.compile(grammar, VOCABULARY, classes="now"),
            lambda: tokfold.compile_classes(grammar, VOCABULARY),
        ):
            with pytest.raises(tokfold.UnsupportedGrammarError) as caught:
                use()
            assert caught.value.construct == construct
            assert (caught.value.line, caught.value.column) == (line, column)
            assert str(token) in str(caught.value)

    def test_it_may_be_excluded(self):
        free = 'root ::= TokenTagDispatch((3, r), excludes=(7, 6))\nr ::= "b"'
        assert next_of(matcher_of("root ::= ExcludeToken(7, 6)")) == WHOLE
        assert next_of(matcher_of(free)) == WHOLE | {STOP}

    @pytest.mark.parametrize(
        "text",
        [
            f"root ::= {NO_TOKEN}",
            "root ::= Token(0) root",
            f'root ::= Token(0) {NO_TOKEN} "a"',
        ],
    )
    def test_no_text_at_all(self, text):
        with pytest.raises(tokfold.UnsupportedGrammarError, match="the language is empty"):
            compiled_of(text)

    @pytest.mark.parametrize(
        "text",
        [
            "root ::= Token()",
            "root ::= Token(-1)",
            'root ::= Token("a")',
            "root ::= ExcludeToken(2147483648)",
            'root ::= TokenTagDispatch((3, r), excludes=(3))\nr ::= "a"',
            'root ::= TokenTagDispatch(("a", r))\nr ::= "a"',
            "root ::= TokenTagDispatch((3, r))",
        ],
    )
    def test_syntax(self, text):
        with pytest.raises(tokfold.GrammarSyntaxError):
            tokfold.Grammar.from_ebnf(text)

    def test_text_alone_knows_no_tokens(self):
        with pytest.raises(tokfold.UnsupportedGrammarError):
            tokfold.recognize(tokfold.Grammar.from_ebnf('root ::= "a" | Token(1)'), "a")


@pytest.mark.parametrize("classes", MODES)
def test_the_spelling_of_llama_cpp(classes):
    matcher = matcher_of("root ::= <[3]> (!<[4]>)* <[4]>", classes)
    assert next_of(matcher) == {TAG}
    assert matcher.accept_tokens([TAG, B, C]) == 3
    assert next_of(matcher) == WHOLE
    assert matcher.accept_token(END)
    assert next_of(matcher) == {STOP}


# ----------------------------------------------------------------------- pools


LARGE = tokfold.Vocabulary(MANY, stop_token_ids=[len(MANY) - 1], special_token_ids=[2_500, 2_501])
PARTS = """
string ::= "\\"" [^"\\\\]* "\\""
value ::= string | "[" (value ("," value)*)? "]" | MARK
inside ::= [^"\\\\] inside | MARK | "\\"" string
"""
ROOTS = [
    "value",
    "inside",
    'MARK string MARK | "a" value',
    "(MARK | string){3,40} value",
    "MARK{18,30} string?",
    "[^\\u0000]* MARK",
    "root MARK | string",
    "TokenTagDispatch((TAG, value), excludes=(OTHER)) MARK",
]
MARKS = [f"Token({ONE})", f"Token({OTHER})", f"ExcludeToken({ONE})", f"Token({ONE}, {OTHER})"]
MARKS += ["Token(2500)", "ExcludeToken(2500)", f"Token({ONE}) Token({OTHER})"]


def texts_for_pools() -> list[str]:
    """Grammars that share most parts and differ in ids."""
    texts = []
    for root in ROOTS:
        for mark in MARKS:
            text = f"root ::= {root}\n{PARTS}".replace("TAG,", "2501,").replace("OTHER", str(OTHER))
            texts.append(text.replace("MARK", f"({mark})"))
    return texts


def large_of(text: str, pool: tokfold.MaskPool | None, classes="never") -> tokfold.CompiledGrammar:
    grammar = tokfold.Grammar.from_ebnf(text)
    return compiled_with(grammar, LARGE, classes=classes, pool=pool)


def walk_alike(ways: Sequence[tokfold.CompiledGrammar], random: Random, steps: int) -> None:
    """All ways have the same bits along one random walk."""
    matchers = [tokfold.Matcher(way) for way in ways]
    for _ in range(steps):
        bits, *others = (mask_of(matcher, len(MANY))[0] for matcher in matchers)
        assert all(other == bits for other in others)
        allowed = allowed_tokens(bits)[:-1]
        if not allowed:
            break
        named = [token for token in (ONE, OTHER, 2_500, 2_501, 34) if token in allowed]
        token = random.choice(named if named and random.random() < 0.6 else allowed)
        assert all(matcher.accept_token(token) for matcher in matchers), token


class TestPools:
    def test_ids_are_not_mistaken_for_each_other(self, tmp_path):
        """One pool for all grammars, in any order, held, saved and loaded."""
        random = Random(5)
        texts = texts_for_pools()
        shared, saved = tokfold.MaskPool(LARGE), tokfold.MaskPool(LARGE)
        for text in random.sample(texts, 14):
            walk_alike([large_of(text, saved)], random, 3)
        saved.save(tmp_path / "pool")
        random.shuffle(texts)
        for text in texts:
            loaded = tokfold.MaskPool(LARGE)
            loaded.load(tmp_path / "pool")
            walk_alike([large_of(text, pool) for pool in (None, shared, loaded)], random, 4)
        assert shared.counters()["hits"] > 0

    def test_classes_have_the_same_bits(self):
        random = Random(6)
        for text in random.sample(texts_for_pools(), 10):
            ways = [large_of(text, None), large_of(text, None, "now")]
            walk_alike(ways, random, 4)

    def test_what_has_no_token_edges_is_shared(self):
        """A string is a string, also beside token edges."""
        pool = tokfold.MaskPool(LARGE)
        for text in ("root ::= string\n" + PARTS.replace("MARK", '"x"'), texts_for_pools()[0]):
            matcher = tokfold.Matcher(large_of(text, pool))
            assert matcher.accept_bytes(b'"a')
            before = pool.counters()["hits"]
            mask_of(matcher, len(MANY))
        assert pool.counters()["hits"] > before
