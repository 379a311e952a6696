"""Rules of at most so many tokens: the option ``max_tokens``."""

from __future__ import annotations

from random import Random

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from oracles.bounded import BEGIN, in_tokens
from oracles.earley import Oracle
from oracles.model import Choice, Empty, Grammar, Literal, Ref, Repeat, Seq, to_ebnf
from strategies.engine import compiled_with, mask_of
from strategies.grammars import build_grammar
from strategies.profiles import CASES, examples
from tokfold import Matcher, Vocabulary
from tokfold.errors import UnsupportedGrammarError

LETTERS = ["a", "b", "c", "é"]
TOKENS = [
    *(letter.encode() for letter in LETTERS),
    *((left + right).encode() for left in LETTERS for right in LETTERS),
    *(b"abc", b"bca", b"aaa", b"abab", b"cab", b"\xc3", b"\xa9", b"a\xc3", b"\xa9b", b"\xa9\xc3"),
]
STOP = len(TOKENS)
VOCABULARY = Vocabulary([*TOKENS, b"</s>"], stop_token_ids=[STOP])

Case = tuple[Grammar, str, list[str], int, Random]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    random = draw(st.randoms(use_true_random=False, note_method_calls=False))
    texts = ["a", "b", "ab", "c"]
    if draw(st.booleans()):
        grammar, name = build_grammar(random, rules=draw(st.integers(1, 3)), texts=texts), ""
    else:
        parts = draw(
            st.lists(
                st.sampled_from([*map(Literal, map(str.encode, texts)), Ref("t")]),
                min_size=1,
                max_size=4,
            )
        )
        name = "t"
        grammar = Grammar({"root": Repeat(Seq((*parts, Ref("t"))), 0, 2), "t": Empty()}, "root")
    name = name or draw(st.sampled_from(list(grammar.rules)))
    text = st.text(draw(st.sampled_from(["ab", "abc", "aé"])), max_size=5)
    words = draw(st.lists(text, min_size=1, max_size=10, unique=True))
    return grammar, name, words, draw(st.sampled_from([0, 1, 1, 2, 2, 3, 4])), random


def grammar_text(grammar: Grammar, name: str, words: list[str], most: int) -> str:
    body = Choice(tuple(Literal(word.encode()) if word else Empty() for word in words))
    lines = to_ebnf(Grammar({**grammar.rules, name: body}, grammar.root)).splitlines()
    place = list(grammar.rules).index(name)
    lines[place] = lines[place].replace(" ::=", f"[max_tokens={most}] ::=", 1)
    return "\n".join(lines)


@examples(1_000)
@given(cases())
def test_random_grammars(case: Case) -> None:
    """Every bit along walks, against a grammar in which begins of tokens are letters."""
    grammar, name, words, most, random = case
    text = grammar_text(grammar, name, words, most)
    oracle = Oracle(in_tokens(grammar, name, [word.encode() for word in words], most))
    try:
        classes = random.choice(["never", "now"])
        compiled = compiled_with(tokfold.Grammar.from_ebnf(text), VOCABULARY, classes=classes)
    except UnsupportedGrammarError as error:
        if error.construct != "max_tokens" and oracle.productive:
            raise
        CASES["rules in tokens: refused"] += 1
        return
    matcher, state = Matcher(compiled), oracle.initial(prune=True)
    read: list[int] = []
    for _ in range(8):
        found, _ = mask_of(matcher, STOP + 1)
        expected = [state.feed(bytes([BEGIN]) + token).viable for token in TOKENS]
        assert found == [*expected, state.accepting], (text, [TOKENS[one] for one in read])
        CASES["rules in tokens: masks"] += 1
        allowed = [place for place in range(STOP) if found[place]]
        refused = [place for place in range(STOP) if not found[place]]
        if refused:
            assert not matcher.accept_token(random.choice(refused))
        if not allowed:
            return
        read.append(random.choice(allowed))
        assert matcher.accept_token(read[-1])
        state = state.feed(bytes([BEGIN]) + TOKENS[read[-1]])


LETTER = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"(a", b"ab", b"b)", b"</s>"], stop_token_ids=[259]
)


def allowed(matcher: Matcher, *tokens: bytes) -> list[bool]:
    """Which of some tokens are allowed, by the mask and by reading them."""
    mask, _ = mask_of(matcher, len(matcher.compiled.vocabulary))
    ids = [matcher.compiled.vocabulary.token_bytes.index(token) for token in tokens]
    found = [mask[id] for id in ids]
    assert found == [matcher.fork().accept_token(id) for id in ids]
    return found


def reader(text: str, vocabulary: Vocabulary = LETTER, classes: str = "now") -> Matcher:
    return Matcher(compiled_with(tokfold.Grammar.from_ebnf(text), vocabulary, classes=classes))


def read(matcher: Matcher, *tokens: bytes) -> Matcher:
    known = matcher.compiled.vocabulary.token_bytes
    assert all(matcher.accept_token(known.index(token)) for token in tokens)
    return matcher


def test_a_token_counts_where_it_begins_in_the_rule() -> None:
    text = 'root ::= "(" t ")" \nt[max_tokens=2] ::= [ab]*'
    assert allowed(read(reader(text), b"(", b"ab", b"a"), b"a", b"b)", b")") == [False, False, True]
    # "(a" begins before the rule, and "b)" in it.
    assert allowed(read(reader(text), b"(a", b"a"), b"a", b"b)", b")") == [True, True, True]
    assert allowed(read(reader(text), b"(a", b"a", b"a"), b"a", b"b)", b")") == [False, False, True]


def test_the_nearest_end_is_as_many_tokens_away_as_it_takes() -> None:
    pattern = 'root ::= t "!"\nt[max_tokens=1] ::= "(" [ab]* "b)"'
    matcher = read(reader(pattern), b"(")
    assert allowed(matcher, b"a", b"b", b"b)", b"ab") == [False, True, True, False]
    assert allowed(read(matcher, b"b"), b")", b"b", b"!") == [True, False, False]
    assert read(matcher, b")", b"!").is_accepting
    # A character that is begun is read to its end, and none begins.
    free = 'root ::= t "!"\nt[max_tokens=1] ::= [^!]*'
    matcher = read(reader(free), b"\xf0")
    assert allowed(matcher, b"\x9f", b"a", b"!") == [True, False, False]
    matcher = read(matcher, b"\x9f", b"\x98", b"\x80")
    assert allowed(matcher, b"a", b"\xf0", b"!") == [False, False, True]


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize(
    ("before", "tokens"),
    [("(", [b"("]), ("(ab", [b"(a", b"b"]), ("((", [b"(", b"("]), ("((", [b"(("]), ("(", [b"(x"])],
)
def test_any_token_may_stand_before_the_rule(most: int, before: str, tokens: list[bytes]) -> None:
    """Also one of a single byte, and one that begins before the rule and reads into it."""
    vocabulary = Vocabulary(
        [*LETTER.token_bytes[:-1], b"((", b"(x", b"xy", b"</s>"], stop_token_ids=[262]
    )
    # The rule reads many bytes, so that its masks are shared by all who call it.
    text = f'root ::= "{before}" t ")"\nt[max_tokens={most}] ::= [^)]+'
    for classes in ("never", "now"):
        matcher = read(reader(text, vocabulary, classes), *tokens)
        for _ in range(most):
            assert allowed(matcher, b"xy", b"x") == [True, True]
            read(matcher, b"xy")
        assert allowed(matcher, b"xy", b"x", b")") == [False, False, True]


@st.composite
def wide_and_narrow(draw: st.DrawFn) -> tuple[str, str]:
    """Two spellings of a grammar: with sets of few letters, and of all but few."""
    parts = ["[ab]", "[ab]+", "[ab]*", '"ab"', '("a" | "b" "c")', "[abc]", '("cb")?', "[ab]{2,3}"]
    body = " ".join(draw(st.lists(st.sampled_from(parts), min_size=1, max_size=3)))
    root = draw(
        st.sampled_from(['"_" t "!"', '("_" | "a_") t "!"', '"__" t', '"_" t "_" t "!"', 't "!"'])
    )
    most = draw(st.integers(1, 3))
    narrow = f"root ::= {root}\nt[max_tokens={most}] ::= {body}"
    wide = narrow.replace("[ab]", "[^c!_\\xff]").replace("[abc]", "[^!_\\xff]")
    return narrow, wide


@examples(300)
@given(wide_and_narrow(), st.randoms(use_true_random=False, note_method_calls=False))
def test_wide_rules_count_as_narrow_ones(texts: tuple[str, str], random: Random) -> None:
    """Every bit along walks, with and without classes and a budget of the text."""
    tokens = [
        *(b"a", b"b", b"c", b"_", b"!", b"ab", b"_a", b"__", b"a_a", b"b!", b"cb", b"_ab", b"aaa"),
        *(b"b_", b"!_", b"</s>"),
    ]
    vocabulary = Vocabulary(tokens, stop_token_ids=[len(tokens) - 1])
    left = random.choice([None, 6, 12])
    matchers = []
    for text in texts:
        for classes in ("never", "now"):
            compiled = compiled_with(tokfold.Grammar.from_ebnf(text), vocabulary, classes=classes)
            try:
                matchers.append(Matcher(compiled, max_tokens=left))
            except tokfold.TokenBudgetError:
                matchers.append(None)
    assert len({matcher is None for matcher in matchers}) == 1
    while all(matchers):
        masks = [mask_of(matcher, len(tokens))[0] for matcher in matchers]
        assert all(mask == masks[0] for mask in masks), texts
        CASES["rules in tokens: wide"] += 1
        for token in range(len(tokens) - 1):
            found = {matcher.fork().accept_token(token) for matcher in matchers}
            assert found == {masks[0][token]}, (texts, token)
        allowed = [token for token in range(len(tokens) - 1) if masks[0][token]]
        if not allowed:
            break
        token = random.choice(allowed)
        assert all(matcher.accept_token(token) for matcher in matchers)
    if all(matchers) and left is not None:
        assert all(matcher.is_accepting for matcher in matchers)


def test_classes_know_that_tokens_are_spent_beside_whole_tokens() -> None:
    tokens = [b"<", b"a", b"b", b"aa", b"aaa", b"!", b"<S>", b"</s>"]
    vocabulary = Vocabulary(tokens, stop_token_ids=[7], special_token_ids=[6])
    text = 'root ::= p "!" Token(6)\np[max_tokens=1] ::= "<" [ab] [ab]+'
    for classes in ("never", "now"):
        matcher = read(reader(text, vocabulary, classes), b"<")
        assert allowed(matcher, b"a", b"b", b"aa", b"aaa", b"!") == [True, True, True, False, False]
        assert allowed(read(matcher, b"aa", b"!"), b"!") == [False]


OTHERS = [
    '"abc" "!"',
    '("ab" | "b"){2,3}',
    '[ab]* "c"',
    '"(" ("yes" | "no") ")"',
    "[0-9]{1,9}",
    '("a" | root)',
]


@pytest.mark.parametrize("seed", range(40))
def test_classes_know_what_is_read_beside_a_rule(seed: int) -> None:
    """Another reading may be all that is alive where the budget of the rule is spent."""
    random = Random(seed)
    other = random.sample(OTHERS, random.randint(1, 2))
    rule = random.choice(["[abc!]*", "[^c]*", '([ab] | "(")* "!"?', '"ab"* "c"', "[a-z0-9()!]*"])
    parts = [*other, random.choice(["t", 't "!"', '"a" t', "t t"])]
    random.shuffle(parts)
    text = f"root ::= {' | '.join(parts)}\nt[max_tokens={random.randint(1, 3)}] ::= {rule}"
    words = [
        b"a",
        b"b",
        b"c",
        b"!",
        b"(",
        b")",
        b"ab",
        b"bc",
        b"yes",
        b"no",
        b"abc",
        b"1",
        b"23",
        b"(a",
    ]
    vocabulary = Vocabulary([*words, b"</s>"], stop_token_ids=[len(words)])
    grammar = tokfold.Grammar.from_ebnf(text)
    for _ in range(6):
        plain, folded = (
            Matcher(compiled_with(grammar, vocabulary, classes=classes))
            for classes in ("never", "now")
        )
        for _ in range(8):
            found, _ = mask_of(folded, len(vocabulary))
            assert found == mask_of(plain, len(vocabulary))[0], (text, plain.text)
            accepted = [plain.fork().accept_token(token) for token in range(len(vocabulary))]
            assert found == accepted, (text, plain.text)
            ways = [place for place, allows in enumerate(found[:-1]) if allows]
            if not ways:
                break
            token = random.choice(ways)
            assert plain.accept_token(token)
            assert folded.accept_token(token)


def test_without_a_token_there_are_the_shortest_texts() -> None:
    text = 'root ::= t "!"\nt[max_tokens=0] ::= "(" [ab]* "b)" | "a" [ab]{2,4}'
    assert allowed(reader(text), b"(", b"(a", b"a", b"b") == [True, False, True, False]
    matcher = read(reader(text), b"a", b"ab")
    assert allowed(matcher, b"a", b"!") == [False, True]
    empty = 'root ::= t "!"\nt[max_tokens=0] ::= [ab]*'
    assert allowed(reader(empty), b"a", b"!") == [False, True]


def test_each_call_has_the_budget_again() -> None:
    text = 'root ::= (t "!")+\nt[max_tokens=1] ::= [ab]*'
    matcher = reader(text)
    for _ in range(3):
        assert allowed(matcher, b"a", b"ab", b"!") == [True, True, True]
        assert allowed(read(matcher, b"ab"), b"a", b"!") == [False, True]
        read(matcher, b"!")


@examples(200)
@given(cases(), st.integers(0, 2**32))
def test_every_way_to_a_place_keeps_count(case: Case, seed: int) -> None:
    """Forks, rollbacks, drafts, saved states, batches, beside a matcher that reads all again."""
    grammar, name, words, most, _ = case
    random = Random(seed)
    try:
        text = grammar_text(grammar, name, words, most)
        compiled = compiled_with(tokfold.Grammar.from_ebnf(text), VOCABULARY, classes="now")
    except UnsupportedGrammarError:
        return
    path: list[int] = []
    saved, matcher = 0, Matcher(compiled)
    for _ in range(12):
        plain = Matcher(compiled)
        assert all(map(plain.accept_token, path))
        mask, _ = mask_of(plain, STOP + 1)
        assert mask_of(matcher, STOP + 1)[0] == mask, (text, path)
        ids = [token for token in range(STOP) if mask[token]]
        way = random.choice(["on", "on", "back", "fork", "saved", "draft", "batch"])
        if way == "back" and len(path) > saved:
            count = random.randrange(1, len(path) - saved + 1)
            if random.random() < 0.5:
                matcher = matcher.fork()
            matcher.rollback(count)
            del path[-count:]
        elif way == "fork":
            matcher, other = matcher.fork(), matcher
            if ids:
                assert other.accept_token(random.choice(ids))
        elif way == "saved":
            matcher = Matcher.from_state(compiled, matcher.state)
            saved = len(path)  # nothing before can be taken back
        elif ids:
            token = random.choice(ids)
            if way == "draft":
                assert matcher.accept_tokens([token]) == 1
            elif way == "batch":
                assert tokfold.accept_token_batch([matcher], [token]).all()
            else:
                assert matcher.accept_token(token)
            path.append(token)
        CASES["rules in tokens: places"] += 1


def test_the_size_of_the_budget_costs_nothing() -> None:
    sizes = []
    for most in (100, 4_000_000_000 // 2):
        text = f'root ::= t ";"\nt[max_tokens={most}] ::= TagDispatch(excludes=("</think>"))'
        compiled = compiled_with(tokfold.Grammar.from_ebnf(text), VOCABULARY, classes="never")
        sizes.append(compiled.num_bytes)
    assert sizes[0] == sizes[1]


REFUSED = [
    ('root ::= t\nt[max_tokens=3] ::= "(" t ")" | "a"', '"t" calls itself before its end'),
    ('root ::= t\nt[max_tokens=3] ::= u "!"\nu[max_tokens=2] ::= [ab]*', 'it has the rule "u"'),
    ("root ::= t\nt[max_tokens=3, max_chars=5] ::= [ab]*", "both max_tokens and max_chars"),
    ("root ::= t\nt[max_tokens=3] ::= Token(97)*", "it has the macro Token"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnsupportedGrammarError, match=why) as caught:
        tokfold.compile(tokfold.Grammar.from_ebnf(text), LETTER)
    assert (caught.value.construct, caught.value.line) == ("max_tokens", 2)


def test_what_does_not_see_tokens() -> None:
    grammar = tokfold.Grammar.from_ebnf('root ::= "(" t ")"\nt[max_tokens=2] ::= [ab]*')
    compiled = compiled_with(grammar, LETTER, classes="never")
    with pytest.raises(UnsupportedGrammarError, match="max_tokens"):
        compiled_with(grammar, LETTER, engine="chart")
    # What is read by bytes has no tokens.
    assert tokfold.recognize(grammar, "(abababab)").complete
    matcher = Matcher(compiled)
    assert matcher.accept_bytes(b"(ababab")
    assert allowed(read(matcher, b"a"), b"a", b")") == [True, True]
    assert allowed(read(matcher, b"a"), b"a", b")") == [False, True]


def test_a_budget_beside_unique_items() -> None:
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    parts = [
        {"type": "any_text", "max_tokens": 2, "excludes": ["["]},
        {"type": "json_schema", "json_schema": schema},
    ]
    tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": parts}}
    with pytest.raises(UnsupportedGrammarError, match="uniqueItems"):
        tokfold.compile(tokfold.Grammar.from_structural_tag(tag), LETTER)


def test_lark_has_the_same_option() -> None:
    lark = 'start: "(" body ")"\nbody[max_tokens=2]: /[ab]*/\n'
    compiled = compiled_with(tokfold.Grammar.from_lark(lark), LETTER, classes="now")
    assert allowed(read(Matcher(compiled), b"(", b"ab", b"a"), b"a", b")") == [False, True]


def test_what_is_open_has_the_names_that_were_written() -> None:
    text = 'root ::= "(" t ")"\nt[max_tokens=2] ::= ("a" | "é")*'
    matcher = read(reader(text), b"(", b"a", b"\xc3")
    found = matcher.explain(LETTER.token_bytes.index(b"a"))
    assert (found.open_rules, found.innermost_rules) == (("root", "t"), ("t",))


SPENT = "the tokens of the rule t (max_tokens={}) are spent, so its text goes to its nearest end"


@pytest.mark.parametrize(
    ("text", "tokens", "token", "spent"),
    [
        ('root ::= "(" t ")"\nt[max_tokens=2] ::= [ab]*', [b"(", b"a", b"a"], b"a", 2),
        ('root ::= "(" t ")"\nt[max_tokens=2] ::= [ab]*', [b"(", b"a", b"a"], b"ab", 2),
        ('root ::= "(" t ")"\nt[max_tokens=2] ::= [ab]*', [b"(", b"a", b"a"], b"c", None),
        ('root ::= "(" t ")"\nt[max_tokens=2] ::= [ab]*', [b"(", b"a"], b"(", None),
        ('root ::= "(" t ")"\nt[max_tokens=0] ::= [ab]*', [b"("], b"b", None),  # it has no others
        ('root ::= "(" t ")"\nt[lazy, max_tokens=1] ::= [ab]* ";"', [b"(", b"b"], b"b", 1),
        ('root ::= "(" u ")"\nu ::= t | "x"\nt[max_tokens=1] ::= [a]+', [b"(", b"a"], b"ab", 1),
        ('root ::= "(" t ")"\nt[max_chars=1] ::= [ab]*', [b"(", b"a"], b"a", None),
        ('root ::= t\nt ::= "[max_tokens=2] ::= " | "a"', [b"a"], b"a", None),
    ],
)
def test_why_a_token_is_not_allowed(text, tokens, token, spent) -> None:
    """A rule whose tokens are spent is named, where the rule alone is what stands against it."""
    matcher = read(reader(text), *tokens)
    said = matcher.explain(LETTER.token_bytes.index(token))
    assert not said.allowed
    assert ("max_tokens" in said.reason) is (spent is not None)
    if spent is not None:
        assert said.reason.endswith(f"cannot be: {SPENT.format(spent)}")
    restored = Matcher.from_state(matcher.compiled, matcher.state)
    found = restored.explain(LETTER.token_bytes.index(token))
    assert found.reason == said.reason.partition(":")[0]


@examples(300)
@given(cases())
def test_random_explanations(case: Case) -> None:
    """Of each token along walks: as the mask says, and as the grammar without the bound reads."""
    grammar, name, words, most, random = case
    most = max(1, most)  # with 0 a rule has its shortest texts alone
    text = grammar_text(grammar, name, words, most)
    free = tokfold.Grammar.from_ebnf(text.replace(f"[max_tokens={most}]", ""))
    try:
        compiled = compiled_with(tokfold.Grammar.from_ebnf(text), VOCABULARY, classes="never")
    except UnsupportedGrammarError:
        return
    matcher = Matcher(compiled)
    for _ in range(5):
        found, _ = mask_of(matcher, STOP + 1)
        for token, may in zip(range(STOP), found, strict=False):
            said = matcher.explain(token)
            assert said.allowed is may
            read = matcher.text + TOKENS[token][: said.read + 1]
            can_be = tokfold.recognize(free, read).read == len(read)
            # Where another parse has left the rule, the byte is said to be none that may come.
            is_within = name in said.innermost_rules
            assert ("are spent" in said.reason) is (can_be and not may and is_within)
            CASES["rules in tokens: explanations"] += 1
        going_on = [token for token in range(STOP) if found[token]]
        if not going_on:
            return
        assert matcher.accept_token(random.choice(going_on))
