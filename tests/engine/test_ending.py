"""Texts that end in time: every bit against a search of all token sequences."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
import tokfold
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies.engine import (
    PlainMatcher,
    Setting,
    compiled_ways,
    compiled_with,
    mask_of,
    plain_matcher,
    settings_of_matchers,
)
from strategies.profiles import CASES, examples

MOST = 3
"""Tokens that the search goes deep; more take it too long."""

BYTES = [bytes([byte]) for byte in range(256)]
STOP = 258
VOCABULARY = tokfold.Vocabulary([*BYTES, b"true", b"[[", b"</s>"], stop_token_ids=[STOP])
LISTS = tokfold.Grammar.from_ebnf('root ::= "[" (root ("," root)*)? "]" | "true"')


class Search:
    """Whether a text can end within some tokens, by trying all of them."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self._known = setting, {}

    def within(self, plain: PlainMatcher, left: int) -> bool:
        key = plain.text, left
        if key not in self._known:
            self._known[key] = self._search(plain, left)
        return self._known[key]

    def _search(self, plain: PlainMatcher, left: int) -> bool:
        needs_stop = bool(self.setting.stops_in_force) and not self.setting.when_complete
        if plain.accepting and left >= needs_stop:
            return True
        if left <= 0:
            return False
        tokens = range(len(self.setting.tokens))
        return any(self.allows(plain, left, t) for t in tokens if not self._is_stop(t))

    def allows(self, plain: PlainMatcher, left: int, token: int) -> bool:
        after = plain.fork()
        if left < 1 or not after.accept_token(token):
            return False
        return self._is_stop(token) or self.within(after, left - 1)

    def mask(self, plain: PlainMatcher, left: int) -> list[bool]:
        return [self.allows(plain, left, token) for token in range(len(self.setting.tokens))]

    def nearing(self, plain: PlainMatcher, left: int, prefer_end: int) -> list[bool]:
        """The same, where the last tokens may not take the text further from its end."""
        expected = self.mask(plain, left)
        if left > prefer_end:
            return expected
        needed = next(least for least in range(left + 1) if self.within(plain, least))
        return [is_in and self.allows(plain, needed + 1, t) for t, is_in in enumerate(expected)]

    def fewest(self, plain: PlainMatcher) -> int | None:
        return next((left for left in range(MOST + 1) if self.within(plain, left)), None)

    def _is_stop(self, token: int) -> bool:
        return token in self.setting.stops_in_force


@examples(120)
@given(settings_of_matchers(max_rules=3, max_size=7), st.randoms(use_true_random=False))
def test_every_bit_and_every_least_budget(setting: Setting, random: Random) -> None:
    ways = compiled_ways(setting)
    assume(ways is not None)
    others = set(setting.override or ()) - {*setting.stops, *setting.specials}
    assume(not any(setting.tokens[token] for token in others))  # refused; see below
    search = Search(setting)
    needed = search.fewest(plain_matcher(setting))
    for compiled in ways[:3]:
        for budget in range(MOST + 1):
            if needed is None or budget < needed:
                with pytest.raises(tokfold.TokenBudgetError) as caught:
                    tokfold.Matcher(compiled, max_tokens=budget, **setting.options)
                assert caught.value.tokens_left == budget
                assert needed in {None, caught.value.needed}
                continue
            prefer_end = random.choice([0, random.randint(1, MOST)])
            matcher = tokfold.Matcher(
                compiled, max_tokens=budget, prefer_end=prefer_end, **setting.options
            )
            unbounded = tokfold.Matcher(compiled, **setting.options)
            check_walk(search, matcher, unbounded, budget, random)


def check_walk(
    search: Search,
    matcher: tokfold.Matcher,
    unbounded: tokfold.Matcher,
    budget: int,
    random: Random,
) -> None:
    plain = plain_matcher(search.setting)
    size = len(search.setting.tokens)
    for left in range(budget, -1, -1):
        assert matcher.tokens_left == left
        assert search.within(plain, left)
        if matcher.is_terminated:
            assert plain.accepting
            return
        bitmask = tokfold.allocate_bitmask(1, size)
        unbounded.fill_bitmask(bitmask, tokens_left=left)
        bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:size]
        assert bits.astype(bool).tolist() == search.mask(plain, left)
        expected = search.nearing(plain, left, matcher.prefer_end)
        assert mask_of(matcher, size)[0] == expected
        CASES["bits of masks that end in time"] += size
        allowed = [token for token in range(size) if expected[token]]
        if not allowed:
            assert plain.accepting
            return
        for token in set(range(size)) - set(allowed):
            assert not matcher.accept_token(token)
        token = random.choice(allowed)
        for each in (matcher, unbounded, plain):
            assert each.accept_token(token)
        if plain.ended:
            assert matcher.is_terminated
            return


def compiled_of(grammar: tokfold.Grammar = LISTS, **options) -> tokfold.CompiledGrammar:
    return compiled_with(grammar, VOCABULARY, **options)


def allowed_of(matcher: tokfold.Matcher, **options) -> list[bytes | int]:
    bitmask = tokfold.allocate_bitmask(1, len(VOCABULARY))
    matcher.fill_bitmask(bitmask, **options)
    tokens = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little"))
    return [VOCABULARY[int(token)] for token in tokens]


def test_the_last_tokens_close_the_text() -> None:
    matcher = tokfold.Matcher(compiled_of(), max_tokens=8)
    for token, allowed in ((257, 4), (257, 5)):
        assert len(allowed_of(matcher)) == allowed
        assert matcher.accept_token(token)
    assert matcher.tokens_left == 6
    assert matcher.shortest() == tokfold.Shortest(tokens=4, bytes=4)
    assert matcher.closing_tokens() == [ord("]")] * 4
    assert sorted(allowed_of(matcher)) == [b"]", b"true"]
    for token in matcher.closing_tokens():
        assert matcher.accept_token(token)
    assert matcher.tokens_left == 2
    assert allowed_of(matcher) == [b"</s>"]
    assert matcher.accept_token(STOP)
    assert matcher.is_terminated
    assert matcher.tokens_left == 1


def test_what_is_too_little_is_said_with_the_least() -> None:
    with pytest.raises(tokfold.TokenBudgetError, match=r"shortest completion .* takes 2") as caught:
        tokfold.Matcher(compiled_of(), max_tokens=1)
    assert (caught.value.needed, caught.value.tokens_left) == (2, 1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.needed, again.tokens_left) == (str(caught.value), 2, 1)
    matcher = tokfold.Matcher(compiled_of())
    with pytest.raises(tokfold.TokenBudgetError):
        matcher.fill_bitmask(tokfold.allocate_bitmask(1, len(VOCABULARY)), tokens_left=1)
    assert matcher.accept_string("[true]")


@pytest.mark.parametrize(("wrong", "error"), [(-1, ValueError), ("4", TypeError), (1.5, TypeError)])
def test_wrong_budgets(wrong, error) -> None:
    compiled = compiled_of()
    with pytest.raises(error, match="max_tokens"):
        tokfold.Matcher(compiled, max_tokens=wrong)
    with pytest.raises(error, match="tokens_left"):
        allowed_of(tokfold.Matcher(compiled), tokens_left=wrong)


def test_forks_and_rollbacks_count_for_themselves() -> None:
    matcher = tokfold.Matcher(compiled_of(), max_tokens=9)
    assert matcher.accept_token(257)
    fork = matcher.fork()
    assert fork.accept_tokens([257, 256]) == 2
    assert (matcher.tokens_left, fork.tokens_left) == (8, 6)
    fork.rollback(2)
    assert fork.tokens_left == 8
    assert allowed_of(fork) == allowed_of(matcher)
    fork.reset()
    assert fork.tokens_left == 9
    # Two that open two lists each would need two more to close those.
    assert matcher.accept_tokens([257, 257, 257]) == 1


def test_states_begin_a_count_of_their_own() -> None:
    compiled = compiled_of()
    matcher = tokfold.Matcher(compiled, max_tokens=9)
    assert matcher.accept_token(257)
    state = matcher.state
    assert compiled.shortest(state) == matcher.shortest() == (2, 2)
    assert tokfold.Matcher.from_state(compiled, state).tokens_left is None
    restored = tokfold.Matcher.from_state(compiled, state, max_tokens=3)
    assert allowed_of(restored) == [b"]"]
    with pytest.raises(tokfold.TokenBudgetError):
        tokfold.Matcher.from_state(compiled, state, max_tokens=2)
    unbounded = tokfold.Matcher(compiled)
    assert unbounded.accept_token(257)
    assert unbounded.state == state, "a budget is no part of a state"


def test_batches_beside_matchers_without_a_budget() -> None:
    compiled = compiled_of()
    matchers = [tokfold.Matcher(compiled, max_tokens=n) for n in (2, 3, 50)]
    matchers.append(tokfold.Matcher(compiled))
    bitmask = tokfold.allocate_bitmask(4, len(VOCABULARY))
    tokfold.fill_bitmask_batch(matchers, bitmask)
    alone = tokfold.allocate_bitmask(4, len(VOCABULARY))
    for row, matcher in enumerate(matchers):
        matcher.fill_bitmask(alone, row)
    assert (bitmask == alone).all()
    assert (bitmask[2] == bitmask[3]).all()
    assert (bitmask[0] != bitmask[3]).any()
    assert tokfold.accept_token_batch(matchers, [256, 257, 257, 257]).tolist() == [
        True,
        False,
        True,
        True,
    ]


def test_rows_of_classes_end_in_time_too() -> None:
    compiled = compiled_of(classes="now")
    classes = compiled.classes
    assert classes is not None
    unfolder = tokfold.Unfolder(classes)
    for budget in range(2, 9):
        matcher = tokfold.Matcher(compiled, max_tokens=budget)
        random = Random(budget)
        while not matcher.is_terminated:
            row = tokfold.allocate_bitmask(1, len(classes))
            matcher.fill_class_bitmask(row)
            unfolded = tokfold.allocate_bitmask(1, len(VOCABULARY))
            unfolder.unfold(row[0], unfolded[0])
            bitmask = tokfold.allocate_bitmask(1, len(VOCABULARY))
            matcher.fill_bitmask(bitmask)
            assert (unfolded == bitmask).all()
            allowed = allowed_of(matcher)
            assert matcher.accept_token(VOCABULARY.token_bytes.index(random.choice(allowed)))


def test_auto_that_reads_on_a_chart_ends_in_time_as_stacks_do() -> None:
    ambiguous = tokfold.Grammar.from_ebnf('root ::= e "."\ne ::= e e | "a" | "aa" | ""')
    grammar = tokfold.Grammar.from_ebnf('root ::= e "."\ne ::= ("a" | "aa" | "(" e ")")*')
    for each in (grammar, ambiguous):
        on_stack, *others = (compiled_of(each, engine=name) for name in ("stack", "auto", "chart"))
        for budget in range(2, 9):
            one = tokfold.Matcher(on_stack, max_tokens=budget)
            rest = [tokfold.Matcher(other, max_tokens=budget) for other in others]
            random = Random(budget)
            while not one.is_terminated:
                allowed = allowed_of(one)
                for other in rest:
                    assert allowed_of(other) == allowed
                    assert (other.tokens_left, other.shortest()) == (
                        one.tokens_left,
                        one.shortest(),
                    )
                    assert other.closing_tokens() == one.closing_tokens()
                    assert other.fork().closing_tokens() == one.closing_tokens()
                token = VOCABULARY.token_bytes.index(random.choice(allowed))
                refused = [
                    token
                    for token, text in enumerate(VOCABULARY.token_bytes)
                    if text not in allowed
                ]
                for matcher in (one, *rest):
                    assert not any(matcher.accept_token(other) for other in refused)
                    assert matcher.accept_token(token)
            assert all(other.is_terminated for other in rest)


NAMED = {"properties": {"a": {"type": "string", "minLength": 3}}, "required": ["a"]}
AMBIGUOUS = tokfold.Grammar.from_ebnf('root ::= e ";"?\ne ::= e e | "[" e "]" | "ab" | "a" | ""')


def test_closing_bytes_of_a_deep_text() -> None:
    """Bytes that are tried leave no steps behind, so that the text need not be read again."""
    vocabulary = tokfold.Vocabulary([*BYTES, b"</s>"], stop_token_ids=256)
    matcher = tokfold.Matcher(tokfold.compile(True, vocabulary, classes="never"))
    depth = 70_000  # past that the bytes that were tried filled the tables
    assert matcher.accept_string("[" * depth)
    within = tokfold.Interrupt(milliseconds=120_000)  # it takes a second
    assert matcher.closing_bytes(2 * depth, interrupt=within) == b"]" * depth
    assert matcher.num_steps == 1
    assert matcher.accept_string("]" * depth)
    assert matcher.is_accepting


def test_closing_bytes_are_a_shortest_completion() -> None:
    for schema, text, closed in (
        ({"type": "array", "items": {"const": 1}}, "[1, ", b"1]"),
        (NAMED, '{"a":"é', None),
        ({"type": "string", "minLength": 4, "pattern": "^(ab|é)*$"}, '"a', None),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}, '["a",', b'"b"]'),
        ({"const": 1}, "1", b""),
        ({"enum": ["z", "y", "x"]}, '"', b'x"'),  # the lowest of those with the fewest
    ):
        matcher = tokfold.Matcher(compiled_of(tokfold.Grammar.from_json_schema(schema)))
        assert matcher.accept_string(text)
        found = matcher.closing_bytes()
        assert closed is None or found == closed
        assert len(found) == matcher.shortest().bytes
        assert matcher.text == text.encode()
        assert matcher.closing_bytes(1) == found[:1]
        assert matcher.accept_bytes(found)
        assert matcher.is_accepting
    whole = tokfold.compile("root ::= Token(257)", VOCABULARY)
    with pytest.raises(tokfold.UnsupportedGrammarError, match="no bytes write"):
        tokfold.Matcher(whole).closing_bytes()


@given(st.data())
def test_closing_bytes_of_any_beginning(data: st.DataObject) -> None:
    on_stack, on_chart = (compiled_of(AMBIGUOUS, engine=name) for name in ("stack", "chart"))
    matcher, other = tokfold.Matcher(on_stack), tokfold.Matcher(on_chart)
    for _ in range(data.draw(st.integers(0, 6))):
        if not (expected := [*matcher.expected_bytes]):
            break
        byte = data.draw(st.sampled_from(expected))
        assert matcher.accept_bytes(bytes([byte]))
        assert other.accept_bytes(bytes([byte]))
    found = matcher.closing_bytes()
    assert len(found) == matcher.shortest().bytes
    assert other.closing_bytes() == found
    assert matcher.accept_bytes(found)
    assert matcher.is_accepting


def outcome(ask: Callable[[], object]) -> object:
    """What a call returns, or the error that it raises."""
    try:
        return ask()
    except tokfold.TokfoldError as error:
        return type(error), str(error)


def draft(matcher: tokfold.Matcher, tokens: list[int]) -> object:
    rows = tokfold.allocate_bitmask(len(tokens) + 1, len(VOCABULARY))
    return matcher.fill_bitmask_draft(tokens, rows).tolist(), rows.tolist()


def test_a_chart_keeps_to_a_budget_in_bytes_drafts_and_after_a_rollback() -> None:
    ambiguous = tokfold.Grammar.from_ebnf('root ::= e "."\ne ::= e e | "[" e "]" | "a" | ""')
    on_stack, on_chart = (compiled_of(ambiguous, engine=name) for name in ("stack", "chart"))
    matchers = [tokfold.Matcher(compiled, max_tokens=7) for compiled in (on_stack, on_chart)]
    random = Random(5)
    taken = []
    for _ in range(200):
        text = bytes(random.choices(b"[[]a.", k=random.randrange(1, 5)))
        tokens = random.choices([91, 93, 97, 46], k=4)
        count = random.randrange(matchers[0].num_steps + 1)
        if matchers[0].num_steps < 8 and random.random() < 0.8:
            count = 0
        for ask in (
            lambda matcher, text=text: matcher.accept_bytes(text),
            lambda matcher, tokens=tokens: draft(matcher, tokens),
            lambda matcher: allowed_of(matcher, tokens_left=4),
            lambda matcher, tokens=tokens: matcher.accept_token(tokens[0]),
            lambda matcher, count=count: matcher.rollback(count),
            lambda matcher: (matcher.num_steps, matcher.tokens_left, matcher.shortest()),
        ):
            one, two = (outcome(lambda m=m, ask=ask: ask(m)) for m in matchers)
            assert one == two
            taken.append(one)
    assert sum(one is False for one in taken) > 100
    assert sum(one is True for one in taken) > 100
    assert any(isinstance(one, tuple) and one[0] is tokfold.TokenBudgetError for one in taken)


def test_stop_tokens_that_are_text_refuse_by_name() -> None:
    """The tokens are counted with those of the vocabulary."""
    matcher = tokfold.Matcher(compiled_of(), stop_token_ids=[256])
    with pytest.raises(tokfold.UnsupportedGrammarError, match=r"token 256 ends .*replace"):
        allowed_of(matcher, tokens_left=9)
    with pytest.raises(tokfold.UnsupportedGrammarError, match=r"token 256 ends .*replace"):
        matcher.shortest()
    assert b"[" in allowed_of(matcher)
    other = VOCABULARY.replace(stop_token_ids=[256])
    compiled = tokfold.compile(LISTS, other)
    assert tokfold.Matcher(compiled, max_tokens=3).shortest() == (2, 2)


def test_bytes_where_tokens_are_taken_whole() -> None:
    vocabulary = tokfold.Vocabulary(
        [b"a", b"b", b"<x>", b"</s>"], stop_token_ids=[3], special_token_ids=[2]
    )
    for text, shortest in (
        ('root ::= "a" Token(2) "b"', (3, None)),
        ('root ::= "a" Token(2) | "abababab"', (2, 8)),
        ('root ::= "a" ("b" | Token(2))', (2, 2)),
    ):
        assert tokfold.compile(text, vocabulary).shortest() == shortest


def words_of_json(random: Random) -> tokfold.Vocabulary:
    """All bytes, and 4,000 tokens of the signs of JSON."""
    words: set[bytes] = set()
    while len(words) < 4_000:
        words.add(bytes(random.choices(b'abcdef{}[]",: 0123456789', k=random.randint(2, 5))))
    return tokfold.Vocabulary([*BYTES, *sorted(words), b"</s>"], stop_token_ids=[4_256])


@pytest.mark.parametrize("is_unique", [False, True])
def test_without_classes_some_are_made_for_the_end(is_unique: bool) -> None:
    """Rows over all tokens take ten times the work that is allowed here."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "string"}, "uniqueItems": is_unique},
            "b": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]},
        },
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    vocabulary, limits = words_of_json(Random(3)), tokfold.Limits(max_mask_work=10_000)
    compiled = tokfold.compile(schema, vocabulary, limits, classes="never")
    cancelled = tokfold.Interrupt()
    cancelled.cancel()
    with pytest.raises(tokfold.CancelledError):
        compiled.shortest(interrupt=cancelled)
    matcher = tokfold.Matcher(compiled)
    shortest = matcher.shortest()
    assert not compiled.has_classes
    assert len(matcher.closing_tokens()) == shortest.tokens
    assert matcher.accept_bytes(b'{"a":["b","c"],"b":[1')
    row = tokfold.allocate_bitmask(1, len(vocabulary))
    for left in range(2, 5):
        matcher.fill_bitmask(row, tokens_left=left)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        ends = [
            matcher.fork().accept_token(int(token)) and _ends_within(matcher, int(token), left - 2)
            for token in range(len(vocabulary) - 1)
        ]
        assert allowed.tolist() == np.flatnonzero(ends).tolist()


def test_a_compiled_grammar_prepares_with_more_work_than_a_mask_has() -> None:
    schema = {"properties": {name: {"type": "string"} for name in "abcdef"}, "required": ["f"]}
    vocabulary, limits = words_of_json(Random(3)), tokfold.Limits(max_mask_work=300)
    with pytest.raises(tokfold.LimitExceededError, match="max_mask_work = 300"):
        tokfold.Matcher(tokfold.compile(schema, vocabulary, limits, classes="never")).shortest()
    compiled = tokfold.compile(schema, vocabulary, limits, classes="never")
    shortest = compiled.shortest()
    matcher = tokfold.Matcher(compiled, max_tokens=shortest.tokens + 1)
    assert matcher.shortest() == shortest
    assert len(matcher.closing_tokens()) == shortest.tokens
    # Classes that come later ask for nothing that would have to be made in a mask.
    compiled.take_classes(tokfold.compile_classes(compiled.grammar, vocabulary))
    later = tokfold.Matcher(compiled, max_tokens=shortest.tokens + 1)
    assert compiled.has_classes
    assert later.shortest() == shortest
    assert len(later.closing_tokens()) == shortest.tokens


def test_long_automata_and_counted_letters_take_little() -> None:
    """A row for each state and each beginning of a token takes a hundred times the work."""
    schema = {
        "type": "object",
        "properties": {
            "host": {"type": "string", "format": "hostname"},
            "note": {"type": "string", "minLength": 40, "maxLength": 90},
        },
        "required": ["host", "note"],
        "additionalProperties": False,
    }
    limits = tokfold.Limits(max_mask_work=150_000, max_memo_bytes=2 << 20)
    compiled = tokfold.compile(schema, words_of_json(Random(3)), limits, classes="never")
    matcher = tokfold.Matcher(compiled)
    for text in (b'{"host":"', b"ab-c.", b'f","note":"' + b"a " * 18):
        assert matcher.accept_bytes(text)
        assert len(matcher.closing_tokens()) == matcher.shortest().tokens


def test_structural_tags_have_classes_for_the_end() -> None:
    """The engine links their tools without a look at the whole, which it takes for the end."""
    tool = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    tags = [
        {
            "type": "tag",
            "begin": f"<f{number}>",
            "content": {"type": "json_schema", "json_schema": tool},
            "end": "</f>",
        }
        for number in range(3)
    ]
    tag = {
        "type": "structural_tag",
        "format": {"type": "triggered_tags", "triggers": ["<f"], "tags": tags},
    }
    vocabulary = words_of_json(Random(3))
    limits = tokfold.Limits(max_mask_work=10_000)
    compiled = tokfold.compile(tag, vocabulary, limits, classes="never")
    assert compiled.grammar._linkable is not None
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b'text <f1>{"a": "b')
    assert len(matcher.closing_tokens()) == matcher.shortest().tokens
    with_classes = tokfold.Matcher(tokfold.compile(tag, vocabulary, classes="now"))
    assert with_classes.accept_bytes(b'text <f1>{"a": "b')
    rows = tokfold.allocate_bitmask(2, len(vocabulary))
    least = len(matcher.closing_tokens()) + 1
    for left in range(least, least + 5):
        matcher.fill_bitmask(rows, 0, tokens_left=left)
        with_classes.fill_bitmask(rows, 1, tokens_left=left)
        assert (rows[0] == rows[1]).all(), left
        assert rows.any(), left


def _ends_within(matcher: tokfold.Matcher, token: int, tokens: int) -> bool:
    """Whether so many tokens complete the text behind one."""
    after = matcher.fork()
    after.accept_token(token)
    found = after.shortest().tokens
    return found is not None and found <= tokens


def test_why_a_token_is_too_late() -> None:
    matcher = tokfold.Matcher(compiled_of(), max_tokens=4)
    assert matcher.accept_token(ord("["))
    late = matcher.explain(257)
    assert not late.allowed
    assert "not in time: 3 tokens are left" in late.reason
    assert "not in time" not in matcher.explain(ord("x")).reason
    assert matcher.explain(ord("]")).allowed
    assert "not complete" in matcher.explain(STOP).reason


@pytest.mark.parametrize("compiled_so", [False, True])
@pytest.mark.parametrize("begun_so", [None, False, True])
@pytest.mark.parametrize("stops", [None, [3], [2], []])
def test_explanations_however_a_text_ends(compiled_so, begun_so, stops) -> None:
    """Each token is explained, and is late exactly where the grammar alone allows it."""
    vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
    ending = {"stop_token_ids": stops, "terminate_without_stop_token": begun_so}
    for text in ('root ::= "ab"', 'root ::= "a" "b"*', 'root ::= "a" root? "b"', '"ab"'):
        grammar = tokfold.Grammar.from_ebnf(text if "::=" in text else f"root ::= {text}?")
        options = tokfold.CompileOptions(terminate_without_stop_token=compiled_so)
        compiled = tokfold.compile(grammar, vocabulary, classes="never", options=options)
        for seed in range(12):
            draw = Random(seed)
            budget = {"max_tokens": draw.randint(1, 5), "prefer_end": draw.randint(0, 3)}
            try:
                matcher = tokfold.Matcher(compiled, **ending, **budget)
            except (tokfold.TokenBudgetError, tokfold.UnsupportedGrammarError):
                continue
            free = tokfold.Matcher(compiled, **ending)
            while not matcher.is_terminated:
                row, could = mask_of(matcher, 4)[0], mask_of(free, 4)[0]
                for token in range(4):
                    said = matcher.explain(token)
                    assert said.allowed is row[token]
                    is_late = could[token] and not row[token]
                    is_late = is_late and token not in matcher.stop_token_ids
                    assert (
                        said.reason.startswith("the text can be completed after it, but") is is_late
                    )
                    CASES["explanations within budgets"] += 1
                if not any(row):
                    break
                token = draw.choice([token for token in range(4) if row[token]])
                assert matcher.accept_token(token) is free.accept_token(token) is True


def test_texts_of_schemas_end_in_time() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "ages": {"type": "array", "maxItems": 3}},
        "required": ["name", "ages"],
        "additionalProperties": False,
    }
    grammar = tokfold.Grammar.from_json_schema(schema)
    compiled = compiled_of(grammar)
    least = tokfold.Matcher(compiled).shortest()
    shortest = tokfold.Matcher(compiled, max_tokens=least.tokens + 1).closing_tokens()
    assert VOCABULARY.decode(shortest) == b'{"name":"","ages":[]}'
    assert len(shortest) == least.tokens == least.bytes
    for seed in range(40):
        random = Random(seed)
        matcher = tokfold.Matcher(compiled, max_tokens=least.tokens + 1 + seed)
        tokens: list[int] = []
        while not matcher.is_terminated:
            bitmask = tokfold.allocate_bitmask(1, len(VOCABULARY))
            matcher.fill_bitmask(bitmask)
            allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little"))
            tokens.append(int(random.choice(allowed)))
            assert matcher.accept_token(tokens[-1])
        assert len(tokens) <= least.tokens + 1 + seed
        assert tokfold.recognize(grammar, VOCABULARY.decode(tokens[:-1])).accepted


def test_a_processor_of_llama_cpp_cuts_no_text() -> None:
    from tokfold.llama_cpp import GrammarLogitsProcessor

    compiled = compiled_of()
    random = np.random.default_rng(3)
    for max_tokens in range(2, 20):
        constrain = GrammarLogitsProcessor(compiled, max_tokens=max_tokens)
        tokens = [7]
        while tokens[-1] != STOP:
            scores = random.standard_normal(len(VOCABULARY)).astype(np.single)
            tokens.append(int(constrain(np.array(tokens, dtype=np.intc), scores).argmax()))
            constrain.check()
        assert len(tokens) - 1 <= max_tokens
        assert tokfold.recognize(LISTS, VOCABULARY.decode(tokens[1:-1])).accepted


def test_processors_refuse_what_does_not_fit_at_once() -> None:
    from tokfold.llama_cpp import GrammarLogitsProcessor

    with pytest.raises(tokfold.TokenBudgetError, match="takes 2"):
        GrammarLogitsProcessor(compiled_of(), max_tokens=1)
    pytest.importorskip("lark")
    from tokfold.mask_store import MaskStore, read_lark

    store = MaskStore(read_lark('start: "a"'), VOCABULARY)
    with pytest.raises(tokfold.UnsupportedGrammarError, match="a mask store does not count"):
        GrammarLogitsProcessor(store, max_tokens=9)


LANGUAGE = r"""
start: (func | decl)+
func: type NAME "(" [param ("," param)*] ")" block
param: type NAME
decl: type NAME ["=" expr] ";"
type: "int" | "char"
block: "{" stmt* "}"
stmt: decl | block | "if" "(" expr ")" stmt ["else" stmt] | "return" [expr] ";" | expr ";" | ";"
expr: rel (("=="|"!=") rel)*
rel: add (("<"|">"|"<="|">=") add)*
add: mul (("+"|"-") mul)*
mul: unary (("*"|"/"|"%") unary)*
unary: ("-"|"!"|"*"|"&") unary | postfix
postfix: primary ("(" [expr ("," expr)*] ")" | "[" expr "]")*
primary: NAME | NUMBER | "(" expr ")"
NAME: /[a-z_][a-z0-9_]*/
NUMBER: /[0-9]+/
COMMENT: /\/\*([^*]|\*[^\/])*\*\//
%import common.WS
%ignore WS
%ignore COMMENT
"""
PARTS = ["a", "x1", " ", "\n", "(", ")", "{", "}", ";", "=", "+", "*", "/*", "*/", ",", "int", "if"]


def test_a_table_may_take_more_work_than_a_mask() -> None:
    """Tokens span levels of a language, so that its table takes the work of many masks."""
    pairs = {(one + two).encode() for one in PARTS for two in PARTS}
    triples = {
        (one + two + three).encode() for one in PARTS[4:] for two in PARTS for three in PARTS[2:9]
    }
    tokens = sorted({*(bytes([byte]) for byte in range(256)), *pairs, *triples})
    vocabulary = tokfold.Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)])
    grammar = tokfold.Grammar.from_lark(LANGUAGE)
    work = 1_000
    for limit in (work, work // 100):
        limits = tokfold.Limits(max_mask_work=limit)
        compiled = tokfold.compile(grammar, vocabulary, classes="never", limits=limits)
        if limit < work:
            with pytest.raises(tokfold.LimitExceededError, match="16 times as much work") as error:
                tokfold.Matcher(compiled, max_tokens=12)
            assert (error.value.limit, error.value.value) == ("max_mask_work", limit)
            continue
        matcher = tokfold.Matcher(compiled, max_tokens=12)
        assert matcher.accept_tokens(vocabulary.encode_greedy(b"int f() {"))
        row = tokfold.bitmask.allocate_bitmask(1, len(vocabulary))
        matcher.fill_bitmask(row)
        assert matcher.accept_tokens(matcher.closing_tokens())
        assert matcher.is_accepting


WORDS = [b"a", b"b", b"[", b"]", b"<", b"{", b"}", b"1", b",", b"[]", b"ab", b"<<", b"]<"]
LEAVES = [
    {"type": "grammar", "grammar": 'root ::= r\nr ::= "[" s | "]"\ns ::= "a" r | "]"'},
    {"type": "grammar", "grammar": 'root ::= r\nr ::= "a" r | "b" r | "]"'},
    {"type": "json_schema", "json_schema": {"items": {"const": 1}, "maxItems": 2, "type": "array"}},
    {"type": "json_schema", "json_schema": {"type": "object", "properties": {}}},
    {"type": "regex", "pattern": "a+b|<a"},
    {"type": "const_string", "value": "<<<<<"},
    {"type": "const_string", "value": "[["},
    {"type": "any_text", "max_chars": 2},
]


def fewest(matcher: tokfold.Matcher, most: int) -> int:
    """The tokens to the nearest end, by looking at all texts of so many; else one more."""
    level = [matcher]
    for count in range(most + 1):
        if any(one.is_accepting for one in level):
            return count
        forks = [(one.fork(), token) for one in level for token in range(len(WORDS))]
        level = [fork for fork, token in forks if fork.accept_token(token)]
    return most + 1


@pytest.mark.parametrize("seed", range(40))
def test_parts_that_go_over_to_others(seed: int) -> None:
    """A part may do nothing but call another, beside other ways from the same place."""
    random = Random(seed)
    vocabulary = tokfold.Vocabulary([*WORDS, b"</s>"], stop_token_ids=[len(WORDS)])

    def drawn(depth: int) -> dict[str, object]:
        if not depth or random.random() < 0.3:
            return random.choice(LEAVES)
        elements = [drawn(depth - 1) for _ in range(random.randint(1, 3))]
        kind = random.choice(["or", "or", "sequence", "optional", "tag"])
        if kind == "optional":
            return {"type": kind, "content": elements[0]}
        if kind == "tag":
            return {
                "type": kind,
                "begin": "",
                "content": elements[0],
                "end": random.choice(["<", "a"]),
            }
        return {"type": kind, "elements": elements}

    for _ in range(4):
        tag = {"format": drawn(2)}
        matcher = tokfold.Matcher(tokfold.compile(tag, vocabulary, classes="never"))
        for _ in range(4):
            found = fewest(matcher, 3)
            if found <= 3:
                assert matcher.shortest().tokens == found, (tag, matcher.text)
                assert len(matcher.closing_tokens()) == found
            ways = [token for token in range(len(WORDS)) if matcher.fork().accept_token(token)]
            if not ways:
                break
            assert matcher.accept_token(random.choice(ways))
