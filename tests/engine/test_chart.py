"""Charts beside stacks: the same answers, whichever remembers the text, and however it came there.

The machine and the walks of the other engine tests drive charts too (see ``compiled_ways``). Here
is what is special to them: grammars that are truly ambiguous, long texts, siblings that share
columns, and texts that move from stacks to a chart on their way. One file, since the grammars and
the walks with an oracle beside them are what all of it stands on.
"""

from __future__ import annotations

import pickle
from random import Random

import numpy as np
import pytest
import tokfold
from oracles.model import Choice, Empty, Expr, Grammar, Literal, Ref, Repeat, Seq
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
)
from strategies.profiles import CASES, LONG, LONG_FACTOR
from tokfold import Matcher

FACTOR = LONG_FACTOR if LONG else 1
BYTES = tokfold.Vocabulary([bytes([byte]) for byte in range(256)] + [b"</s>"], stop_token_ids=[256])


def compiled(text: str, engine, vocabulary=BYTES, **limits: int) -> tokfold.CompiledGrammar:
    grammar = tokfold.Grammar.from_ebnf(text)
    bounds = tokfold.Limits(**limits)
    return compiled_with(
        grammar,
        vocabulary,
        limits=bounds,
        classes="never",
        engine=engine,
        pool=None,
        check_tokens=False,
    )


def answers(matcher: Matcher) -> tuple:
    """All that is cheap to ask."""
    return (matcher.expected_bytes, matcher.is_accepting, matcher.text, matcher.num_steps)


# Grammars that are ambiguous, small enough for the oracle.


def ambiguous_setting(random: Random) -> Setting:
    """Rules that call one another, and themselves, with little between; empty ones and cycles."""
    names = ["root", "x", "y", "z"][: random.randint(1, 4)]

    def part() -> Expr:
        kind = random.random()
        if kind < 0.55:
            return Ref(random.choice(names))
        if kind < 0.85:
            return Literal(random.choice([b"a", b"b", b"ab"]))
        return Repeat(Ref(random.choice(names)), *random.choice([(0, 1), (1, None), (2, 3)]))

    def body() -> Expr:
        others = [
            random.choice([Empty(), part(), Seq((part(), part())), Seq((part(), part(), part()))])
            for _ in range(random.randint(1, 3))
        ]
        return Choice((Literal(random.choice([b"a", b"b"])), *others))

    tokens = [b"a", b"b", b"ab", b"ba", b"aab", b"bbb", b"abab", b"c", b""]
    return Setting(Grammar({name: body() for name in names}), (*tokens, b"</s>"), stops=(9,))


def left_recursive_setting(random: Random) -> Setting:
    """Rules that begin with one another, or with themselves; some say the same in the same words.

    A chart reads left recursion as it was written, stacks read it as loops: what makes the loops
    smaller must not change what was written.
    """
    names = ["root", "x", "y", "z", "w"][: random.randint(2, 5)]

    def after() -> Expr:
        part = random.choice([Literal(b"a"), Literal(b"b"), Ref(random.choice(names))])
        return Repeat(part, 0, random.choice([1, None])) if random.random() < 0.4 else part

    def alternative() -> Expr:
        kind = random.random()
        if kind < 0.2:
            return Ref(random.choice(names))
        if kind < 0.75:
            return Seq((Ref(random.choice(names)), *(after() for _ in range(random.randint(1, 2)))))
        return Seq((Literal(random.choice([b"a", b"b"])), after()))

    def body() -> Expr:
        first = random.choice([Literal(b"a"), Literal(b"b"), Literal(b"ab"), alternative()])
        empty = [Empty()] if random.random() < 0.15 else []
        return Choice((first, *empty, *(alternative() for _ in range(random.randint(1, 3)))))

    rules = {name: body() for name in names}
    if random.random() < 0.4:
        rules[random.choice(names)] = rules[random.choice(names)]
    tokens = [b"a", b"b", b"ab", b"ba", b"aab", b"bbb", b"abab", b""]
    return Setting(Grammar(rules), (*tokens, b"</s>"), stops=(8,))


def walk(setting: Setting, random: Random, engine, length: int, *, every_token: bool) -> int:
    """One text with turns back, every question asked at each step of it."""
    if not setting.oracle.productive or not any(setting.tokens):
        return 0
    ours = compiled_with(
        setting.our_grammar(),
        setting.our_vocabulary(),
        classes="never",
        engine=engine,
        check_tokens=False,
    )

    def look(matcher, plain) -> list[int]:
        CASES["chart: states against the oracle"] += 1
        return allowed_tokens(check(matcher, plain, every_token=every_token))

    wander((Matcher(ours, **setting.options), plain_matcher(setting)), random, length, look)
    return 1


@pytest.mark.parametrize("engine", ["chart", "auto"])
def test_ambiguous_grammars_against_the_oracle(engine):
    done = 0
    for seed in range(120 * FACTOR):
        random = Random(seed)
        done += walk(ambiguous_setting(random), random, engine, 8, every_token=seed % 4 == 0)
    assert done > 100


@pytest.mark.parametrize("engine", ["chart", "auto"])
def test_left_recursive_grammars_against_the_oracle(engine):
    done = 0
    for seed in range(150 * FACTOR):
        random = Random(seed)
        setting = left_recursive_setting(random)
        done += walk(setting, random, engine, 8, every_token=seed % 4 == 0)
    assert done > 100


@pytest.mark.parametrize(("build", "count"), [(build_setting, 60), (build_counted_setting, 24)])
def test_all_kinds_of_grammars_against_the_oracle(build, count):
    done = 0
    for seed in range(count * FACTOR):
        random = Random(seed)
        done += walk(build(random), random, "chart", 6, every_token=False)
    assert done > count // 2


# Rules whose calls are delegated: strings, free text.

WIDE = 'str ::= "\\"" [^"\\\\]* "\\""\nw ::= [^,"]*\nnum ::= [0-9]+ w?\n'
WIDE_TOKENS = (
    b'" a b , ", "a a" "," "" "a","b" ",a" xx" 1 12 1" ab ba, ",", """ """" "a"b" a,b ,",a'.split()
)


def wide_grammar(random: Random) -> str:
    parts = ['"a"', '"b"', '","', "str", "str", "w", "x", "y", "z", '"\\""', "num"]
    marks = ["?", "*", "+", "{0,40}", "{2,20}"]

    def alternative() -> str:
        marked = [
            random.choice(parts) + (random.choice(marks) if random.random() < 0.15 else "")
            for _ in range(random.randint(1, 4))
        ]
        return " ".join(marked)

    rules = "".join(
        f"{name} ::= {random.choice(['str', 'num', alternative()])} | "
        + " | ".join(alternative() for _ in range(random.randint(1, 3)))
        + "\n"
        for name in "xyz"
    )
    return "root ::= x y | z x\n" + rules + WIDE


def masks_alike(text: str, random: Random, walks: int, steps: int) -> int:
    """Masks of a chart against those of stacks along random texts."""
    vocabulary = tokfold.Vocabulary(list(WIDE_TOKENS))
    try:
        stack, chart = (compiled(text, engine, vocabulary) for engine in ("stack", "chart"))
    except tokfold.UnsupportedGrammarError:
        return 0
    compared = 0
    for _ in range(walks):
        a, b = Matcher(stack), Matcher(chart)
        for _ in range(steps):
            bits, needed = mask_of(a, len(WIDE_TOKENS))
            assert mask_of(b, len(WIDE_TOKENS)) == (bits, needed), (text, a.text)
            assert answers(a) == answers(b)
            compared += 1
            if not any(bits):
                break
            token = random.choice(allowed_tokens(bits))
            assert a.accept_token(token)
            assert b.accept_token(token)
    return compared


def test_masks_over_strings_are_those_of_stacks():
    compared = sum(
        masks_alike(wide_grammar(Random(seed)), Random(seed), 3, 12) for seed in range(250 * FACTOR)
    )
    assert compared > 2_000


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        (
            'root ::= x y | z x\nx ::= str | x\ny ::= str | y | x+ x "a"? | str y x z\n'
            'z ::= num | "b" | "a"\n',
            b'",a""""""""',
        ),
        (
            'root ::= x y | z x\nx ::= "a" | "," "," z? str | str z+ str | y x str{2,20}\n'
            'y ::= "a" | str | z* z* w num\nz ::= num | "\\"" | x | "a" z w str\n',
            b'",a"",a""a"b"',
        ),
    ],
)
def test_places_that_come_later_are_asked_about_too(rules, text):
    """A frame is met again with places that were not there before, above the same wide rule."""
    vocabulary = tokfold.Vocabulary(list(WIDE_TOKENS))
    for engine in ("stack", "chart"):
        matcher = Matcher(compiled(rules + WIDE, engine, vocabulary))
        assert matcher.accept_bytes(text)
        bits, _ = mask_of(matcher, len(WIDE_TOKENS))
        assert bits == [matcher.fork().accept_token(token) for token in range(len(WIDE_TOKENS))]


# Grammars that are like those read off a treebank: heavy for stacks.


def phrases(productions: int, seed: int) -> str:
    """Few phrases and many tags of one letter, some of each far more frequent."""
    random = Random(seed)
    tags = [chr(code) for code in (*range(0x61, 0x7B), *range(0x41, 0x54))]
    names = [f"p{number}" for number in range(26)]

    def one(of: list[str]) -> str:
        return of[min(int(random.paretovariate(0.6)) - 1, len(of) - 1)]

    bodies: dict[str, dict[str, None]] = {
        name: {f'"{random.choice(tags)}"': None} for name in names
    }
    while sum(map(len, bodies.values())) < productions:
        head = one(names)
        length = 1 + min(4, int(random.expovariate(0.6)))
        body = [one(names) if random.random() < 0.45 else f'"{one(tags)}"' for _ in range(length)]
        if body != [head]:
            bodies[head][" ".join(body)] = None
    rules = "".join(f"{name} ::= {' | '.join(bodies[name])}\n" for name in names)
    return f'root ::= p0 "."\n{rules}'


@pytest.fixture(scope="module")
def heavy() -> str:
    return phrases(300, 3)


@pytest.fixture(scope="module")
def of_engine(heavy) -> dict[str, tokfold.CompiledGrammar]:
    return {engine: compiled(heavy, engine) for engine in ("stack", "auto", "chart")}


def read_on(random: Random, matchers: list[Matcher], count: int) -> None:
    """All read the same letters, chosen by the last; not the one that ends the text."""
    for _ in range(count):
        expected = matchers[-1].expected_bytes
        assert all(answers(matcher) == answers(matchers[-1]) for matcher in matchers)
        letter = bytes([random.choice([byte for byte in expected if byte != 0x2E])])
        assert all(matcher.accept_bytes(letter) for matcher in matchers)


def stands_on_a_chart(matcher: Matcher) -> bool:
    """Whether reading makes no stacks."""
    fork = matcher.fork()
    before = fork._core.counters()
    letter = max(byte for byte in fork.expected_bytes)
    assert fork.accept_bytes(bytes([letter]))
    after = fork._core.counters()
    return before["earley_sets"] == after["earley_sets"] and before["work"] < after["work"]


def read_until_moved(random: Random, matchers: list[Matcher]) -> None:
    """Reads on until the first stands on a chart."""
    while not stands_on_a_chart(matchers[0]):
        assert matchers[0].num_steps < 60, "the grammar is not heavy enough"
        read_on(random, matchers, 1)


def test_a_heavy_text_moves_to_a_chart_and_nobody_can_tell(of_engine):
    for seed in range(6):
        random = Random(seed)
        pair = [Matcher(of_engine[engine]) for engine in ("auto", "chart")]
        assert not stands_on_a_chart(pair[0])
        assert stands_on_a_chart(pair[1])
        read_until_moved(random, pair)
        fresh = Matcher(of_engine["stack"])
        assert fresh.accept_bytes(pair[0].text)
        assert mask_of(fresh, 257) == mask_of(pair[0], 257) == mask_of(pair[1], 257)
        assert fresh.state == pair[0].state == pair[1].state
        read_on(random, pair, 5)


def test_a_chart_says_at_each_step_what_stacks_say(heavy, of_engine):
    """Also where the same is read again after a rollback, and something else after that."""
    wide = {"max_accept_work": 1 << 40}
    for seed in range(3 * FACTOR):
        random = Random(seed)
        pair = [Matcher(of_engine["chart"]), Matcher(compiled(heavy, "stack", **wide))]
        read_on(random, pair, 24)
        for _ in range(6):
            count = random.randint(1, 12)
            again = pair[0].text[-count:]
            for matcher in pair:
                matcher.rollback(count)
            assert answers(pair[0]) == answers(pair[1])
            if random.random() < 0.5:
                for letter in again:
                    assert all(matcher.accept_bytes(bytes([letter])) for matcher in pair)
                    assert answers(pair[0]) == answers(pair[1])
            else:
                read_on(random, pair, count)
        assert mask_of(pair[0], 257) == mask_of(pair[1], 257)


def test_auto_costs_little_where_stacks_drown(of_engine):
    random = Random(1)
    pair = [Matcher(of_engine[engine]) for engine in ("auto", "chart")]
    read_on(random, pair, 200)
    assert stands_on_a_chart(pair[0])
    auto, chart = (matcher._core.counters()["work"] for matcher in pair)
    assert auto < chart + 100_000


def test_rollback_goes_back_across_the_move(of_engine):
    for seed in range(10):
        random = Random(seed)
        pair = [Matcher(of_engine[engine]) for engine in ("auto", "chart")]
        read_until_moved(random, pair)
        read_on(random, pair, 4)
        while pair[1].num_steps:
            count = random.randint(1, min(4, pair[1].num_steps))
            for matcher in pair:
                matcher.rollback(count)
            assert answers(pair[0]) == answers(pair[1])
            read_on(random, pair, random.randint(0, 2))
            for matcher in pair:
                matcher.rollback(min(2, matcher.num_steps))
        pair[0].reset()
        assert answers(pair[0]) == answers(Matcher(of_engine["stack"]))


def test_forks_that_move_one_after_the_other(of_engine):
    """What both read stands on the columns of the one that moved last; the other moves on."""
    for seed in range(12):
        random = Random(seed)
        first = [Matcher(of_engine[engine]) for engine in ("auto", "chart")]
        read_on(random, first, random.randint(1, 6))
        second = [matcher.fork() for matcher in first]
        read_on(random, second, random.randint(1, 3))
        read_on(random, first, random.randint(5, 15))
        read_on(random, second, random.randint(10, 15))
        del second
        read_on(random, first, 3)
        while first[1].num_steps:
            for matcher in first:
                matcher.rollback(1)
            assert answers(first[0]) == answers(first[1])
            assert mask_of(first[0], 257) == mask_of(first[1], 257)


@pytest.mark.parametrize("engine", ["chart", "auto"])
def test_siblings_never_see_each_others_tail(of_engine, engine):
    """Many forks of one text, each against one that read its text alone."""
    random = Random(5)
    pairs = [[Matcher(of_engine[engine]), Matcher(of_engine["chart"])]]
    texts = [b""]
    for _ in range(250):
        at = random.randrange(len(pairs))
        pair, kind = pairs[at], random.random()
        if kind < 0.6:
            read_on(random, pair, random.choice([1, 1, 2, 6]))
        elif kind < 0.75:
            count = random.randint(0, min(9, pair[1].num_steps))
            for matcher in pair:
                matcher.rollback(count)
        elif kind < 0.9 and len(pairs) < 8:
            pairs.append([matcher.fork() for matcher in pair])
            texts.append(texts[at])
        elif len(pairs) > 1:
            del pairs[at], texts[at]
            continue
        texts[at] = pair[0].text
        for (matcher, other), text in zip(pairs, texts, strict=True):
            assert matcher.text == other.text == text
        alone = Matcher(of_engine["chart"])
        assert alone.accept_bytes(texts[at])
        assert alone.expected_bytes == pair[0].expected_bytes == pair[1].expected_bytes
        assert alone.is_accepting == pair[0].is_accepting


@pytest.mark.parametrize("engine", ["chart", "auto"])
def test_drafts_batches_and_prefixes(of_engine, engine):
    random = Random(9)
    pair = [Matcher(of_engine[engine]), Matcher(of_engine["stack"])]
    read_until_moved(random, pair)
    rows = np.full((2, 8, 9), 0x5A5A5A5A, dtype=np.int32)
    for _ in range(5):
        guide = pair[1].fork()
        ids, parents = [], []
        for node in range(7):
            branch = guide.fork()
            parents.append(random.randint(-1, node - 1))
            for token in path_of(ids, parents, parents[-1]):
                if branch.is_terminated or not branch.accept_token(token):
                    break
            allowed = [] if branch.is_terminated else list(branch.expected_bytes)
            ids.append(random.choice([*allowed, *allowed, 65, 46, 256]))
        taken = [
            matcher.fill_bitmask_draft(ids, rows[at], parents).tolist()
            for at, matcher in enumerate(pair)
        ]
        assert taken[0] == taken[1]
        assert (rows[0] == rows[1]).all()
        counts = [matcher.fork().accept_tokens(ids) for matcher in pair]
        assert counts[0] == counts[1]
        for row, token in enumerate([ids[0], ids[1], 65]):
            forks = [matcher.fork() for matcher in pair]
            tokfold.fill_bitmask_batch(forks, rows[:, row].reshape(2, 9).copy())
            assert forks[0].accept_token(token) is forks[1].accept_token(token)
            assert answers(forks[0]) == answers(forks[1])
        assert pair[0].forced_bytes() == pair[1].forced_bytes()
        read_on(random, pair, 1)


def path_of(ids: list[int], parents: list[int], node: int) -> list[int]:
    out = []
    while node >= 0:
        out.append(ids[node])
        node = parents[node]
    return out[::-1]


@pytest.mark.parametrize("engine", ["chart", "auto"])
def test_states_are_values_whatever_remembers_the_text(of_engine, engine):
    random = Random(4)
    pair = [Matcher(of_engine[engine]), Matcher(of_engine["stack"])]
    read_until_moved(random, pair)
    states = [matcher.state for matcher in pair]
    assert states[0] == states[1]
    assert hash(states[0]) == hash(states[1])
    for state in (pickle.loads(pickle.dumps(states[0])), states[1]):
        restored = Matcher.from_state(of_engine[engine], state)
        assert restored.num_steps == 0
        assert restored.expected_bytes == pair[0].expected_bytes
        assert mask_of(restored, 257) == mask_of(pair[0], 257)
        on = [restored, pair[1].fork()]
        for _ in range(3):
            letter = bytes([random.choice([b for b in on[1].expected_bytes if b != 0x2E])])
            assert all(matcher.accept_bytes(letter) for matcher in on)
            assert on[0].state == on[1].state
        restored.reset()
        assert restored.state == states[0]


@pytest.mark.parametrize("engine", ["chart", "auto"])
def test_explanations_are_alike(of_engine, engine):
    pair = [Matcher(of_engine[engine]), Matcher(of_engine["stack"])]
    read_until_moved(Random(4), pair)
    for token in (0, 46, 97, 110, 256):
        said = [str(matcher.explain(token)) for matcher in pair]
        assert said[0] == said[1]


# Long and deep texts, of a language whose truth is a stack of brackets.

BRACKETS = (
    'root ::= s\ns ::= s s | t s | "(" s ")" | "[" s? "]" | "()" | t\nt ::= s u | "{" s "}" | "x"\n'
    'u ::= "x" | "x" u | s\n'
)
CLOSING = {0x28: 0x29, 0x5B: 0x5D, 0x7B: 0x7D}


def bracket_truth(open_: list[int], fresh: bool) -> tuple[bytes, bool]:
    """What may come next, and whether the text may end. ``fresh``: nothing since it opened."""
    expected = set(b"([{x")
    if open_ and (not fresh or open_[-1] in b"(["):
        expected.add(CLOSING[open_[-1]])
    return bytes(sorted(expected)), not open_ and not fresh


@pytest.mark.parametrize(("length", "leaning"), [(1_500, 0.55), (1_500, 0.95)])
def test_long_ambiguous_texts(length, leaning):
    matcher = Matcher(compiled(BRACKETS, "chart"))
    random = Random(length)
    open_: list[int] = []
    fresh = True
    for read in range(length):
        expected, accepting = bracket_truth(open_, fresh)
        assert matcher.expected_bytes == expected, read
        assert matcher.is_accepting is accepting
        closing = [byte for byte in expected if byte in CLOSING.values()]
        letter = closing[0] if closing and random.random() > leaning else random.choice(expected)
        assert matcher.accept_bytes(bytes([letter]))
        if letter in CLOSING:
            open_.append(letter)
        elif letter != 0x78:
            open_.pop()
        fresh = letter in CLOSING
    assert matcher.num_steps == length


@pytest.mark.parametrize("engine", ["chart", "auto"])
def test_deep_nesting_and_large_counts(engine):
    depth = 600
    matcher = Matcher(compiled('root ::= "(" root ")" | "(" root | "x"', engine))
    assert matcher.accept_bytes(b"(" * depth + b"x")
    assert matcher.is_accepting
    assert matcher.expected_bytes == b")"
    assert matcher.accept_bytes(b")" * depth)
    assert matcher.expected_bytes == b""
    matcher.rollback()
    assert matcher.expected_bytes == b")"
    counted = Matcher(compiled('root ::= x{0,1000} "c"\nx ::= "a" | "b" x? "b"', engine))
    assert counted.accept_bytes(b"ab" + b"bbab" * 300)
    other = Matcher(compiled('root ::= x{0,1000} "c"\nx ::= "a" | "b" x? "b"', "stack"))
    assert other.accept_bytes(counted.text)
    assert answers(counted) == answers(other)
    many = Matcher(compiled('root ::= x{0,1000} "c"\nx ::= "a"', engine))
    assert many.accept_bytes(b"a" * 999)
    assert many.expected_bytes == b"ac"
    assert many.accept_bytes(b"a")
    assert many.expected_bytes == b"c"
    assert not many.accept_bytes(b"a")


# Limits, and what a chart cannot do.


@pytest.mark.parametrize("limit", ["max_accept_work", "max_matcher_bytes"])
def test_a_limit_leaves_the_chart_as_it_was(heavy, limit):
    bounds = {"max_accept_work": 30_000, "max_matcher_bytes": 300_000}
    matcher = Matcher(compiled(heavy, "chart", **{limit: bounds[limit]}))
    free = Matcher(compiled(heavy, "chart"))
    random = Random(3)
    read_on(random, [free], 2_500)
    data = free.text
    free.reset()
    for start in (0, 25):
        assert matcher.accept_bytes(data[:start])
        assert free.accept_bytes(data[:start])
        before = answers(matcher), matcher.state
        with pytest.raises(tokfold.LimitExceededError, match=limit):
            matcher.accept_bytes(data[start:])
        assert (answers(matcher), matcher.state) == before
        assert answers(matcher) == answers(free)
        assert mask_of(matcher, 257) == mask_of(free, 257)
        matcher.reset()
        free.reset()


def test_auto_goes_on_where_stacks_may_not(heavy):
    """A letter that stacks may not afford is read on a chart; what was read before, too."""
    few = {"max_accept_work": 1_200}
    stack, auto = (Matcher(compiled(heavy, engine, **few)) for engine in ("stack", "auto"))
    free = Matcher(compiled(heavy, "chart"))
    random = Random(0)
    for _ in range(60):
        letter = bytes([random.choice([b for b in free.expected_bytes if b != 0x2E])])
        assert free.accept_bytes(letter)
        assert auto.accept_bytes(letter)
        assert answers(auto) == answers(free)
        before = answers(stack)
        try:
            assert stack.accept_bytes(letter)
        except tokfold.LimitExceededError:
            assert answers(stack) == before
            break
    else:
        raise AssertionError("the grammar is not heavy enough")
    assert stands_on_a_chart(auto)


def test_tokens_taken_whole_are_refused_by_name_and_served_by_auto():
    vocabulary = tokfold.Vocabulary([b"a", b"b", b"<t>"], special_token_ids=[2])
    text = 'root ::= "a" Token(2) root | "b"'
    with pytest.raises(tokfold.UnsupportedGrammarError, match="tokens whole"):
        compiled(text, "chart", vocabulary)
    matchers = [Matcher(compiled(text, engine, vocabulary)) for engine in ("stack", "auto")]
    for token in (0, 2, 0, 2, 1):
        assert mask_of(matchers[0], 3) == mask_of(matchers[1], 3)
        assert all(matcher.accept_token(token) for matcher in matchers)
    assert all(matcher.is_accepting for matcher in matchers)


def test_the_name_of_the_engine_is_checked():
    with pytest.raises(ValueError, match="engine must be"):
        compiled('root ::= "a"', "charts")
