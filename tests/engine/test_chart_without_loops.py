"""Grammars whose left recursion passes the limits as loops: charts alone, and the same answers.

A network has left recursion as loops, for stacks and masks, unless those pass its limits. Then it
stays as it was written; a chart reads the text, and for a mask it reads the tokens. Here small
grammars are compiled both ways and compared with each other and the oracle; then those are read
that have no other way.
"""

from __future__ import annotations

import warnings
from random import Random

import numpy as np
import pytest
import tokfold
from engine.test_chart import (
    BYTES,
    WIDE_TOKENS,
    ambiguous_setting,
    answers,
    left_recursive_setting,
    wide_grammar,
)
from strategies.engine import (
    Setting,
    allowed_tokens,
    build_counted_setting,
    build_setting,
    check,
    compiled_with,
    mask_of,
    plain_matcher,
    wander,
    without_loops,
)
from strategies.profiles import LONG, LONG_FACTOR
from support.processes import DEADLINE_S
from tokfold import LimitExceededError, Matcher, MatcherStateError

FACTOR = LONG_FACTOR if LONG else 1


def walk(setting: Setting, random: Random, engine: str, length: int) -> int:
    """One text with turns back and forks, all asked at each step; whether it needs a chart."""
    if not setting.oracle.productive or not any(setting.tokens):
        return 0
    grammar, vocabulary = setting.our_grammar(), setting.our_vocabulary()
    ours = without_loops(grammar, vocabulary, engine=engine)
    with_loops = compiled_with(
        grammar, vocabulary, classes="never", engine=engine, check_tokens=False
    )
    assert not with_loops.is_for_charts

    def look(matcher, plain) -> list[int]:
        allowed = allowed_tokens(check(matcher, plain, every_token=random.random() < 0.3))
        if not plain.ended:
            other = Matcher(with_loops, **setting.options)
            assert other.accept_bytes(matcher.text)
            assert mask_of(other, len(setting.tokens)) == mask_of(matcher, len(setting.tokens))
            assert other.expected_bytes == matcher.expected_bytes
        return allowed

    wander((Matcher(ours, **setting.options), plain_matcher(setting)), random, length, look)
    return int(ours.is_for_charts)


@pytest.mark.parametrize(
    ("build", "count", "least"),
    [
        (left_recursive_setting, 200, 120),
        (ambiguous_setting, 150, 60),
        (build_setting, 80, 3),
        (build_counted_setting, 60, 3),
    ],
)
def test_the_same_as_with_loops_and_the_oracle(build, count, least):
    for_charts = 0
    for seed in range(count * FACTOR):
        random = Random(seed)
        engine = random.choice(["chart", "auto", "stack"])
        for_charts += walk(build(random), random, engine, 8)
    assert for_charts >= least


def left_recursive_text(random: Random) -> str:
    """Rules with strings and counts, some of which begin with themselves or each other."""
    heads = random.sample(["x x", 'y "a"', "z x", 'x "," y', "y str", "x{2,20}", "z"], 3)
    rules = wide_grammar(random)
    for name, head in zip("xyz", heads, strict=True):
        rules = rules.replace(f"{name} ::= ", f"{name} ::= {head} | ", 1)
    return rules


def test_masks_over_strings_and_counts():
    """Frames that nothing left-recursive can follow are asked about on stacks, as ever."""
    vocabulary = tokfold.Vocabulary(list(WIDE_TOKENS))
    size, compared, for_charts = len(WIDE_TOKENS), 0, 0
    for seed in range(150 * FACTOR):
        random = Random(seed)
        grammar = tokfold.Grammar.from_ebnf(left_recursive_text(random))
        try:
            ours = without_loops(grammar, vocabulary)
        except tokfold.UnsupportedGrammarError:  # it has no string
            continue
        theirs = compiled_with(
            grammar, vocabulary, classes="never", pool=None, engine="chart", check_tokens=False
        )
        for_charts += ours.is_for_charts
        for _ in range(3):
            pair = [Matcher(ours), Matcher(theirs)]
            for _ in range(12):
                bits, needed = mask_of(pair[1], size)
                assert mask_of(pair[0], size) == (bits, needed), (seed, pair[1].text)
                assert answers(pair[0]) == answers(pair[1])
                compared += 1
                if not any(bits):
                    break
                token = random.choice(allowed_tokens(bits))
                assert all(matcher.accept_token(token) for matcher in pair)
    assert compared > 2_000
    assert for_charts > 100


def test_drafts_batches_classes_and_pools_are_the_same():
    for seed in range(40 * FACTOR):
        random = Random(seed)
        setting = left_recursive_setting(random)
        if not setting.oracle.productive:
            continue
        grammar, vocabulary = setting.our_grammar(), setting.our_vocabulary()
        size = len(setting.tokens)
        pool = tokfold.MaskPool(vocabulary)
        classes = tokfold.compile_classes(grammar, vocabulary)
        plain = compiled_with(
            grammar, vocabulary, classes="never", pool=pool, engine="chart", check_tokens=False
        )
        ways = [
            plain,
            without_loops(grammar, vocabulary),
            without_loops(grammar, vocabulary, pool=pool),
            without_loops(grammar, vocabulary, classes=classes),
        ]
        matchers = [Matcher(way) for way in ways]
        tokens = [random.randrange(size - 1) for _ in range(6)]
        parents = [random.randrange(-1, node) for node in range(6)]
        for matcher in matchers:
            matcher.accept_tokens(tokens[:2])
        drafts = []
        for matcher in matchers:
            rows = np.zeros((7, (size + 31) // 32), dtype=np.int32)
            allowed = matcher.fill_bitmask_draft(tokens, rows, parents)
            drafts.append((list(allowed), rows.tolist()))
        assert all(draft == drafts[0] for draft in drafts), seed
        rows = np.zeros((len(matchers), (size + 31) // 32), dtype=np.int32)
        tokfold.fill_bitmask_batch(matchers, rows)
        assert all((row == rows[0]).all() for row in rows)


# The rest of what can be asked, of one small grammar.

SUMS = 'root ::= sum\nsum ::= sum "+" sum | sum "-" | "(" sum ")" | "1" | sum sum\n'


def small(engine: str = "chart", vocabulary: tokfold.Vocabulary = BYTES, **limits: int):
    grammar = tokfold.Grammar.from_ebnf(SUMS)
    return without_loops(grammar, vocabulary, tokfold.Limits(**limits), engine=engine)


def test_it_says_what_it_is():
    compiled = small()
    assert compiled.is_for_charts
    assert "for charts only" in repr(compiled)
    grammar = tokfold.Grammar.from_ebnf(SUMS)
    both = compiled_with(grammar, BYTES, classes="never", engine="chart")
    assert not both.is_for_charts
    assert "charts" not in repr(both)
    unlike = tokfold.Grammar.from_ebnf('root ::= "a" root | "b"')
    assert not without_loops(unlike, BYTES).is_for_charts


def test_masks_leave_nothing_behind():
    matcher = Matcher(small())
    assert matcher.accept_bytes(b"(1+1)1-")
    before = matcher._core.counters()
    row = np.zeros((1, 9), dtype=np.int32)
    for _ in range(3):
        matcher.fill_bitmask(row)
    held = matcher._core.bytes_held()
    for _ in range(300):
        matcher.fill_bitmask(row)
    assert matcher._core.counters() == before
    assert matcher._core.bytes_held() == held
    assert matcher.compiled.counters()["trie_nodes"] > 0


def test_explanations_and_forced_bytes_are_the_same():
    tokens = tokfold.Vocabulary([b"1+", b"(1", b")", b"2", b"(((("])
    compiled = small(vocabulary=tokens)
    grammar = tokfold.Grammar.from_ebnf(SUMS)
    other = compiled_with(grammar, tokens, classes="never", engine="chart", pool=None)
    for text in (b"", b"1", b"(1+", b"((1"):
        pair = [Matcher(compiled), Matcher(other)]
        assert all(matcher.accept_bytes(text) for matcher in pair)
        for token in range(5):
            assert pair[0].explain(token) == pair[1].explain(token)
        assert pair[0].forced_bytes() == pair[1].forced_bytes()
    tail = tokfold.Grammar.from_ebnf('root ::= root "xyz" | "abc"')
    matcher = Matcher(without_loops(tail, BYTES))
    assert matcher.forced_bytes() == b"abc"
    assert matcher.accept_bytes(b"abcx")
    assert matcher.forced_bytes() == b"yz"


def test_states_are_refused_by_name():
    matcher = Matcher(small())
    assert matcher.accept_bytes(b"1+")
    with pytest.raises(MatcherStateError, match="keep the text"):
        _ = matcher.state
    grammar = tokfold.Grammar.from_ebnf(SUMS)
    stacks = Matcher(tokfold.compile(grammar, BYTES, classes="never"))
    with pytest.raises(MatcherStateError):
        Matcher.from_state(matcher.compiled, stacks.state)
    with pytest.raises(MatcherStateError, match="keep the text"):
        matcher._core.restore(stacks._core.state())
    with pytest.raises(MatcherStateError, match="keep the text"):
        matcher.moved_to(matcher.compiled)
    assert matcher.accept_bytes(b"1")
    assert matcher.is_accepting


@pytest.mark.parametrize("limit", ["max_accept_work", "max_matcher_bytes", "max_mask_work"])
def test_limits_hold_and_leave_the_matcher_as_it_was(limit):
    few = {"max_accept_work": 50_000, "max_matcher_bytes": 200_000, "max_mask_work": 3}
    matcher, free = (Matcher(small(**bounds)) for bounds in ({limit: few[limit]}, {}))
    assert matcher.accept_bytes(b"1+1")
    assert free.accept_bytes(b"1+1")
    before = answers(matcher)
    row = np.zeros((1, 9), dtype=np.int32)
    masks = limit == "max_mask_work"
    with pytest.raises(LimitExceededError, match=limit):
        _ = matcher.fill_bitmask(row) if masks else matcher.accept_bytes(b"(1+1)1-+(" * 3_000)
    assert answers(matcher) == before == answers(free)
    assert matcher.accept_bytes(b"-")
    if not masks:
        matcher.rollback()
        assert mask_of(matcher, 257) == mask_of(free, 257)


def test_deep_chains_of_left_calls_take_no_stack():
    compiled = without_loops(left_chain(10_000), BYTES)
    assert compiled.is_for_charts
    matcher = Matcher(compiled)
    assert matcher.expected_bytes == b"bd"
    assert matcher.accept_bytes(b"baac")
    assert matcher.expected_bytes == b"a"
    bits, _ = mask_of(matcher, 257)
    assert allowed_tokens(bits) == [0x61]


def test_what_charts_list_of_a_network_is_within_its_limits():
    """For each state the rules that it can begin: a square of the grammar."""
    for limits in (tokfold.Limits(), tokfold.Limits(max_network_work=1 << 40)):
        with pytest.raises(LimitExceededError, match=r"max_network_(work|states)"):
            compiled_with(left_chain(50_000), BYTES, limits=limits, classes="never", engine="stack")
    with pytest.raises(LimitExceededError, match="max_network_work"):
        compiled_with(left_chain(50_000), BYTES, classes="never", engine="chart")


def left_chain(length: int) -> tokfold.Grammar:
    """A circle of rules each of which begins with the next."""
    rules = "".join(f'r{i} ::= r{i + 1} "a" | "b"\n' for i in range(length))
    return tokfold.Grammar.from_ebnf(f'root ::= r0\n{rules}r{length} ::= r0 "c" | "d"')


def test_tokens_taken_whole_keep_their_loops():
    vocabulary = tokfold.Vocabulary([b"a", b"b", b"<t>"], special_token_ids=[2])
    grammar = tokfold.Grammar.from_ebnf('root ::= root "a" | root Token(2) | "b"')
    over = tokfold.compile(grammar, vocabulary, classes="never")
    assert not over.is_for_charts
    few = tokfold.Limits(max_network_work=60)
    with pytest.raises(LimitExceededError, match="max_network_work"):
        tokfold.compile(grammar, vocabulary, few, classes="never")


# Grammars that have no other way.


Bodies = dict[str, list[list[str]]]


def treebank(productions: int, names: int, seed: int) -> tuple[str, Bodies]:
    """Productions like those read off a treebank: some phrases and tags far more frequent."""
    random = Random(seed)
    tags = [chr(code) for code in (*range(0x61, 0x7B), *range(0x41, 0x54))]
    labels = [f"p{number}" for number in range(names)]

    def one(of: list[str]) -> str:
        return of[min(int(random.paretovariate(0.6)) - 1, len(of) - 1)]

    bodies: Bodies = {label: [[f'"{random.choice(tags)}"']] for label in labels}
    drawn = 0
    while drawn < productions:
        head, length = one(labels), 1 + min(7, int(random.expovariate(0.4)))
        body = [one(labels) if random.random() < 0.45 else f'"{one(tags)}"' for _ in range(length)]
        if body != [head]:
            bodies[head].append(body)
            drawn += 1
    rules = "".join(
        f"{label} ::= {' | '.join(' '.join(body) for body in of)}\n" for label, of in bodies.items()
    )
    return f'root ::= p0 "."\n{rules}', bodies


def derived(bodies: Bodies, least: int, most: int, seed: int) -> bytes:
    """A sentence of so many letters and a full stop."""
    random = Random(seed)
    while True:
        left, read = ["p0"], ""
        while left and len(read) + len(left) <= most:
            part = left.pop()
            if part in bodies:
                left += reversed(random.choice(bodies[part]))
            else:
                read += part.strip('"')
        if not left and len(read) >= least:
            return f"{read}.".encode()


@pytest.fixture(scope="module")
def dense() -> tuple[str, Bodies]:
    """5,500 productions of 70 phrases, nearly all of which begin with each other."""
    return treebank(5_500, 70, 1)


VOCABULARY = tokfold.Vocabulary(
    [bytes([byte]) for byte in range(0x41, 0x7B)]
    + [b"ab", b"ba", b"aa.", b".", b"..", b"aST", b"xyz", b"qab", b"Saa.", b"bcdefg", b"Ta", b"a."]
)


@pytest.mark.parametrize("engine", ["chart", "auto"])
def test_a_dense_treebank_compiles_and_has_exact_masks(dense, engine):
    text, bodies = dense
    grammar = tokfold.Grammar.from_ebnf(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = compiled_with(
            grammar, VOCABULARY, classes="never", engine=engine, check_tokens=False
        )
    assert compiled.is_for_charts
    for seed in range(2):
        sentence = derived(bodies, 6, 10, seed)
        matcher = Matcher(compiled)
        for letter in sentence:
            bits, _ = mask_of(matcher, len(VOCABULARY))
            truth = []
            for token in range(len(VOCABULARY)):
                probe = Matcher(compiled)
                truth.append(probe.accept_bytes(matcher.text + VOCABULARY[token]))
            assert bits == truth
            assert not matcher.is_accepting
            assert matcher.accept_bytes(bytes([letter]))
        assert matcher.is_accepting
        assert matcher.expected_bytes == b""


def test_a_dense_treebank_is_read_as_a_naive_chart_reads_it():
    """Fewer productions, so that a chart in Python keeps up; the same limits, made small."""
    text, bodies = treebank(400, 30, 2)
    grammar = tokfold.Grammar.from_ebnf(text)
    small_work = tokfold.Limits(max_network_work=400_000)
    compiled = compiled_with(grammar, BYTES, limits=small_work, classes="never", engine="auto")
    assert compiled.is_for_charts
    sentence = derived(bodies, 8, 12, 1)
    matcher = Matcher(compiled)
    for place, letter in enumerate(sentence):
        assert matcher.expected_bytes == naive_next(bodies, sentence[:place])
        assert matcher.accept_bytes(bytes([letter]))
    assert matcher.is_accepting


def naive_next(bodies: Bodies, read: bytes) -> bytes:
    """What may come next, by Earley's sets of dotted productions, none of them empty."""
    productions = {**bodies, "root": [["p0", '"."']]}
    sets: list[set[tuple[str, int, int, int]]] = [set() for _ in range(len(read) + 1)]
    sets[0].add(("root", 0, 0, 0))
    for place, column in enumerate(sets):
        work = list(column)
        while work:
            head, number, dot, origin = work.pop()
            body = productions[head][number]
            new: list[tuple[int, tuple[str, int, int, int]]] = []
            if dot == len(body):
                for item in list(sets[origin]):
                    other = productions[item[0]][item[1]]
                    if item[2] < len(other) and other[item[2]] == head:
                        new.append((place, (item[0], item[1], item[2] + 1, item[3])))
            elif body[dot] in productions:
                every = range(len(productions[body[dot]]))
                new = [(place, (body[dot], number, 0, place)) for number in every]
            elif place < len(read) and body[dot] == f'"{chr(read[place])}"':
                new = [(place + 1, (head, number, dot + 1, origin))]
            for at, item in new:
                if item not in sets[at]:
                    sets[at].add(item)
                    if at == place:
                        work.append(item)
    following = {
        productions[head][number][dot].strip('"')
        for head, number, dot, _ in sets[len(read)]
        if dot < len(productions[head][number])
        and productions[head][number][dot] not in productions
    }
    return "".join(sorted(following)).encode()


LESS = tokfold.Limits(max_network_work=20_000_000)
"""A quarter of the work that is allowed by default: what is refused is so sooner."""


def test_stacks_and_classes_are_refused_by_name(dense):
    grammar = tokfold.Grammar.from_ebnf(dense[0])
    with pytest.raises(LimitExceededError, match=r'cycle of \d+ rules.*engine="chart"') as caught:
        compiled_with(grammar, VOCABULARY, classes="never", engine="stack")
    assert caught.value.limit == "max_network_work"
    with pytest.raises(LimitExceededError, match=r"cycle of \d+ rules may be why: break it up"):
        tokfold.compile_classes(grammar, VOCABULARY, limits=LESS)
    with pytest.raises(LimitExceededError, match="break it up"):
        tokfold.recognize(grammar, b"a", LESS)


def test_classes_that_cannot_be_made_are_said(dense):
    grammar = tokfold.Grammar.from_ebnf(dense[0])
    with pytest.warns(tokfold.FallbackWarning, match="no classes: limit max_network_work"):
        compiled = compiled_with(grammar, VOCABULARY, limits=LESS, classes="now", engine="chart")
    assert not compiled.has_classes
    behind = tokfold.compile(grammar, VOCABULARY, LESS)
    with pytest.warns(tokfold.FallbackWarning, match="no classes: limit max_network_work"):
        assert not behind.wait(DEADLINE_S)


@pytest.mark.parametrize("limit", ["max_network_states", "max_network_edges", "max_network_work"])
def test_the_limits_of_a_network_hold_without_loops(dense, limit):
    grammar = tokfold.Grammar.from_ebnf(dense[0])
    bounds = tokfold.Limits(**{limit: 5_000})
    with pytest.raises(LimitExceededError, match=limit):
        compiled_with(grammar, VOCABULARY, limits=bounds, classes="never", engine="chart")
