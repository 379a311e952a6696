"""Networks linked of parts beside networks made at once: the same texts, the same masks."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import tokfold
from hypothesis import given, note
from hypothesis import strategies as st
from oracles.model import to_ebnf
from strategies.composition import joined
from strategies.engine import compiled_with
from strategies.grammars import build_grammar
from strategies.profiles import CASES, examples
from tokfold import Grammar, Limits, Vocabulary, _core, _parts
from tokfold._sources.frames import FrameSource

LETTERS = [bytes([byte]) for byte in b'abcx01"{},: \n\\']
WORDS = [b"ab", b"ca", b'"a', b'":', b"abc", b"}}", b"<t", b"<t>", b"aaaa", b"\xc3", b"\xa9a"]
TOKENS = [*LETTERS, *WORDS]
# One for all examples, so that they share one pool of masks.
VOCABULARY = Vocabulary([*TOKENS, b"</s>"], stop_token_ids=[len(TOKENS)])

FRAMES = (
    'root ::= p0 "x" p1\n',
    'root ::= p0 | p1 | "x" root p0\n',
    'root ::= (p0 | "a" p1){0,40} "x"?\n',
    "root ::= p0{17,60}\n",
    'root ::= r | "x"\nr ::= r p0 | p1 "a"\n',
    'root ::= TagDispatch(("<t>", t), ("ab", p1), loop_after_dispatch=true)\nt ::= p0 "x"\n',
    'root ::= TagDispatch(("a", p0), loop_after_dispatch=false, excludes=("x"))\n',
    'root ::= [^"]* p0 "\\"" p1*\n',
)


def mask_of(matcher: tokfold.Matcher) -> list[int]:
    row = tokfold.allocate_bitmask(1, len(VOCABULARY))
    matcher.fill_bitmask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def compiled(grammar: Grammar, **options) -> tokfold.CompiledGrammar | None:
    """None for a grammar without any string."""
    try:
        return compiled_with(grammar, VOCABULARY, classes="never", check_tokens=False, **options)
    except tokfold.UnsupportedGrammarError as error:
        if "the language is empty" not in str(error):
            raise
        return None


def part(random: Random) -> Grammar:
    """A random grammar, sometimes with what JSON is made of."""
    text = to_ebnf(build_grammar(random, rules=random.randint(1, 4)))
    kind = random.choice(["plain", "plain", "json"])
    if kind == "json":
        text = text.replace("root ::=", f"root ::= {random.choice(['v', 's', 'v root?'])} |", 1)
        text += JSON
    return Grammar.from_ebnf(text, lookahead="implied")


JSON = r"""
v ::= s | "[" v ("," v)* "]" | o | [01]{1,30}
o ::= "{" s ":" v "}"
s ::= "\"" inside
inside ::= "\"" | [^"\\\x00-\x1f] inside | "\\" ["\\] inside
"""


@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(150)
def test_linked_is_joined(random):
    """Along walks: every mask of a network linked of parts, on stacks and on a chart, is that of
    the network of one text; whether masks are shared with all that came before or not."""
    frame = random.choice(FRAMES)
    parts = {name: part(random) for name in ("p0", "p1") if name in frame}
    whole = Grammar.from_ebnf(joined(frame, parts), lookahead="implied")
    linked = Grammar._of(FrameSource(frame, parts))
    note(f"{frame}\n" + "\n".join(f"{name}:\n{text}" for name, text in parts.items()))
    right = compiled(whole, pool=None)
    ways = [compiled(linked), compiled(linked, pool=None), compiled(linked, engine="chart")]
    assert [way is None for way in ways] == [right is None] * 3
    if right is None:
        return
    matchers = [tokfold.Matcher(way) for way in (right, *ways)]
    for _ in range(8):
        masks = [mask_of(matcher) for matcher in matchers]
        assert masks[1:] == masks[:1] * 3
        CASES["parts: masks beside those of one network"] += 3
        assert len({matcher.is_accepting for matcher in matchers}) == 1
        allowed = [token for token in masks[0] if token < len(TOKENS)]
        if not allowed:
            return
        token = random.choice(allowed)
        assert [matcher.accept_token(token) for matcher in matchers] == [True] * 4


def json_leaf(name: str) -> Grammar:
    return Grammar.from_ebnf(f'root ::= "{name}" v\n' + JSON, lookahead="implied")


def engine(
    frame: str, parts: dict[str, Grammar], cache: _core.Parts, **limits: int
) -> _core.Engine:
    grammar = Grammar._of(FrameSource(frame, parts))
    linkable = grammar._linkable
    assert linkable is not None
    return _core.Engine(
        linkable[0],
        VOCABULARY._compiled,
        skip_lookahead=True,
        limits=Limits(**limits),
        parts=(linkable[1], cache),
    )


def test_what_is_common_is_made_once():
    """The values of JSON are parts that all leaves share, and stand in a network once."""
    cache = _core.Parts(1 << 20)
    one = engine("root ::= p0\n", {"p0": json_leaf("a")}, cache)
    first = cache.counters()
    assert first["parts"] == 3  # the leaf, its values, the inside of their strings
    both = engine('root ::= p0 "x" p1\n', {"p0": json_leaf("a"), "p1": json_leaf("b")}, cache)
    second = cache.counters()
    assert second["parts"] == first["parts"] + 1
    # One more leaf: its letter, and what stands around it in the frame.
    assert both.network_states - one.network_states <= 6


def test_strings_of_schemas_are_made_once():
    """Automata too are told by what they say: two schemas share all but their names of members."""
    schemas = [
        Grammar.from_json_schema(
            {"properties": {name: {"format": "date"}}, "required": [name]},
            additional_properties=True,
        )
        for name in ("first", "second")
    ]
    cache = _core.Parts(1 << 20)
    engine("root ::= p0\n", {"p0": schemas[0]}, cache)
    first = cache.counters()
    engine('root ::= p0 "x" p1\n', dict(zip(("p0", "p1"), schemas, strict=True)), cache)
    made = cache.counters()["parts"] - first["parts"]
    # The object itself, its beginning, the names that are not its own; not values, dates, strings.
    assert (first["parts"], made) == (8, 3)
    # In one grammar they stand once, too.
    pieces = dict(zip(("p0", "p1"), schemas, strict=True))
    whole = Grammar._of(FrameSource('root ::= p0 "x" p1\n', pieces))
    own = {line.split()[0] for line in str(whole).splitlines() if line.startswith("p1__")}
    assert own == {"p1__root", "p1__object_4", "p1__name_8"}


def test_networks_do_not_depend_on_what_came_before():
    """The same grammar has the same network, whatever the cache held."""
    frame, parts = 'root ::= p0 "x" p1\n', {"p0": json_leaf("a"), "p1": json_leaf("b")}
    cache = _core.Parts(1 << 20)
    fresh = engine(frame, parts, cache).fingerprint
    engine("root ::= p0\n", {"p0": json_leaf("b")}, cache)
    equal = {"p0": json_leaf("a"), "p1": json_leaf("b")}  # not the same objects
    assert engine(frame, equal, cache).fingerprint == fresh
    assert engine(frame, equal, _core.Parts(0)).fingerprint == fresh


def test_the_cache_is_bounded():
    """Parts that were not used for longest go; what is larger than the bound is not kept."""
    cache = _core.Parts(20_000)
    for index in range(50):
        engine("root ::= p0\n", {"p0": json_leaf(f"a{index}")}, cache)
        assert cache.counters()["bytes"] <= 20_000
    counters = cache.counters()
    assert counters["evicted"] > 0
    assert 0 < counters["parts"] < 50
    cache.clear()
    assert cache.counters()["parts"] == cache.counters()["bytes"] == 0
    small = _core.Parts(10)
    engine("root ::= p0\n", {"p0": json_leaf("a")}, small)
    assert small.counters()["parts"] == 0


def test_limits_hold_for_all_parts_together():
    parts = {f"p{index}": json_leaf(f"a{index}") for index in range(20)}
    frame = f"root ::= {' | '.join(parts)}\n"
    cache = _core.Parts(1 << 20)
    states = engine(frame, parts, cache).network_states
    with pytest.raises(tokfold.LimitExceededError, match="max_network_states"):
        engine(frame, parts, cache, max_network_states=states - 1)


def test_a_deep_chain_of_parts():
    """Rules that are parts and call each other in a chain of thousands: no stack overflows, at
    making, at masks or when all is let go."""
    count = 5_000
    rules = [f'r{i} ::= [^{"ab"[i % 2]}]* "{"ab"[i % 2]}" r{i + 1}\n' for i in range(count)]
    text = "root ::= r0\n" + "".join(rules) + f'r{count} ::= "x"\n'
    leaf = Grammar.from_ebnf(text, lookahead="implied")
    compiled_ = tokfold.compile(Grammar._of(FrameSource("root ::= p0\n", {"p0": leaf})), VOCABULARY)
    matcher = tokfold.Matcher(compiled_)
    assert mask_of(matcher)
    _parts.shared.clear()


def test_parts_without_strings():
    """A part that has no string takes its alternative away; the empty string alone is one."""
    nothing = Grammar.from_ebnf('root ::= "a" root', lookahead="implied")
    empty = Grammar.from_ebnf('root ::= ""', lookahead="implied")
    found = Grammar._of(FrameSource('root ::= p0 | p1 "b"\n', {"p0": nothing, "p1": empty}))
    matcher = tokfold.Matcher(tokfold.compile(found, VOCABULARY, classes="never"))
    assert mask_of(matcher) == [TOKENS.index(b"b")]
    with pytest.raises(tokfold.UnsupportedGrammarError, match="the language is empty"):
        tokfold.compile(Grammar._of(FrameSource("root ::= p0\n", {"p0": nothing})), VOCABULARY)
    only = tokfold.compile(Grammar._of(FrameSource("root ::= p0\n", {"p0": empty})), VOCABULARY)
    assert tokfold.Matcher(only).is_accepting


WORDY = Vocabulary(
    [*(a + b + c for a in LETTERS for b in LETTERS for c in LETTERS), *LETTERS, b"</s>"],
    stop_token_ids=[len(LETTERS) ** 3 + len(LETTERS)],
)
"""Large enough for its masks to be shared."""


def row_of(matcher: tokfold.Matcher) -> list[int]:
    row = tokfold.allocate_bitmask(1, len(WORDY))
    matcher.fill_bitmask(row)
    return row[0].tolist()


@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(40)
def test_shared_masks_of_linked_networks(random):
    """With one pool for all that are drawn, masks are those that are made without one; large
    choices among them, which differ in little."""
    words = [a + b + c for a in "abcx" for b in "abc01" for c in "ab01x"]
    random.shuffle(words)
    choice = " | ".join(f'"{word}" p{index % 2} "x"' for index, word in enumerate(words[:60]))
    frame = random.choice(
        [
            f"root ::= ({choice}) root?\n",
            f'root ::= TagDispatch(("<", t), loop_after_dispatch=true)\nt ::= {choice}\n',
            'root ::= "a" p0 | "b" p1 | "c" root\n',
        ]
    )
    parts = {"p0": part(random), "p1": json_leaf(random.choice("abc"))}
    found = Grammar._of(FrameSource(frame, parts))
    try:
        shared = tokfold.compile(found, WORDY, classes="never")
    except tokfold.UnsupportedGrammarError:
        return
    matchers = [
        tokfold.Matcher(compiled)
        for compiled in (
            shared,
            compiled_with(found, WORDY, classes="never", pool=None),
        )
    ]
    for _ in range(6):
        rows = [row_of(matcher) for matcher in matchers]
        assert rows[0] == rows[1]
        CASES["parts: masks shared"] += 1
        allowed = np.flatnonzero(
            np.unpackbits(np.array(rows[0], dtype=np.int32).view(np.uint8), bitorder="little")
        )
        allowed = [int(token) for token in allowed if token < len(WORDY) - 1]
        if not allowed:
            return
        token = random.choice(allowed)
        assert all(matcher.accept_token(token) for matcher in matchers)


def test_large_parts_that_differ_in_little():
    """States of large rules are known by the tables of all: another letter is another state."""

    def made(seconds: str, **options) -> list[int]:
        words = [a + b + c for a in "abcx" for b in seconds for c in "ab01"]
        choice = " | ".join(f'"{word}" p0' for word in words)
        frame = f'root ::= TagDispatch(("a", t), loop_after_dispatch=true)\nt ::= {choice}\n'
        found = Grammar._of(FrameSource(frame, {"p0": json_leaf("a")}))
        return row_of(tokfold.Matcher(compiled_with(found, WORDY, classes="never", **options)))

    pool = tokfold.MaskPool(WORDY)
    sets = ["abc0", "abc1", "ab01", "bc01"]
    rows = [made(seconds, pool=None) for seconds in sets]
    assert len({tuple(row) for row in rows}) == len(sets)
    for _ in range(2):
        assert [made(seconds, pool=pool) for seconds in sets] == rows
    assert pool.counters()["hits"] > 0


@pytest.mark.parametrize("engine", ["stack", "chart"])
def test_parts_count(engine):
    """Counted repetitions of several parts keep their bounds."""
    leaves = {
        "p0": Grammar.from_ebnf('root ::= "a"{17,19} "b"', lookahead="implied"),
        "p1": Grammar.from_ebnf('root ::= ("x" | "0"){20,21}', lookahead="implied"),
    }
    found = Grammar._of(FrameSource('root ::= (p0 p1 ":"){18,20} | "{" p1{17,18} "}"\n', leaves))
    made = compiled_with(found, VOCABULARY, classes="never", engine=engine)

    def is_right(text: bytes) -> bool:
        matcher = tokfold.Matcher(made)
        return matcher.accept_bytes(text) and matcher.is_accepting

    for a in range(15, 22):
        for x in range(18, 24):
            one = b"a" * a + b"b" + b"x" * x + b":"
            for count in (17, 18, 20, 21):
                is_one = 17 <= a <= 19 and 20 <= x <= 21
                assert is_right(one * count) == (is_one and 18 <= count <= 20)
    for x in range(330, 385):
        is_count = 340 <= x <= 357 or 360 <= x <= 378  # 17 or 18 passes of 20 or 21
        assert is_right(b"{" + b"0" * x + b"}") == is_count
