"""``TagDispatch`` by our own automaton, beside an oracle that knows positions in texts only.

The oracle reads the doc comment of ``grammar/dispatch.rs``: of the free text since the last call,
the longest end that begins a tag or an excluded text is what is being written. Where that is a
tag, its rule follows or what is being written goes on; a text that ends with an excluded one is no
text. No automaton, no suffix links: every question is answered by looking at all tags.

XGrammar is not needed. Where it is installed, its own matcher is asked as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

import pytest

pytest.importorskip("tokfold._core")

import tokfold
from hypothesis import event, given, note
from hypothesis import strategies as st
from strategies.engine import mask_of
from strategies.profiles import CASES, LONG, examples
from support.script_runner import child, output

BYTES = [bytes([b]) for b in range(256)]


def written(text: bytes) -> str:
    """The bytes as a literal of the grammar."""
    return '"' + "".join(f"\\U{ord(character):08x}" for character in text.decode()) + '"'


@dataclass(frozen=True)
class Dispatch:
    """Tags, each with the texts of its rule; what is excluded; what follows the whole."""

    tags: tuple[tuple[bytes, tuple[bytes, ...]], ...]
    excludes: tuple[bytes, ...] = ()
    loops: bool = True
    tail: bytes = b""

    @property
    def text(self) -> str:
        """The grammar."""
        arguments = [f"({written(tag)}, r{number})" for number, (tag, _) in enumerate(self.tags)]
        if not self.loops:
            arguments.append("loop_after_dispatch=false")
        if self.excludes:
            arguments.append(f"excludes=({', '.join(map(written, self.excludes))},)")
        lines = [
            f"root ::= free {written(self.tail)}",
            f"free ::= TagDispatch({', '.join(arguments)})",
        ]
        for number, (_, texts) in enumerate(self.tags):
            lines.append(f"r{number} ::= {' | '.join(map(written, texts))}")
        return "\n".join(lines) + "\n"

    @cached_property
    def beginnings(self) -> set[bytes]:
        """What is something being written, and nothing."""
        whole = [b"", *(tag for tag, _ in self.tags), *self.excludes]
        return {text[:n] for text in whole for n in range(len(text) + 1)}

    def being_written(self, free: bytes) -> bytes:
        """The longest end of a free text that begins a tag or an excluded text."""
        return max((b for b in self.beginnings if free.endswith(b)), key=len)

    def rules_of(self, free: bytes) -> list[tuple[bytes, ...]]:
        """The texts of the rules that a free text calls: more than one for equal tags."""
        now = self.being_written(free)
        return [texts for tag, texts in self.tags if tag == now]


@dataclass(frozen=True)
class Place:
    """One way to read a text: free text, in a text of a rule, after everything, or in the tail."""

    free: bytes | None = b""
    rest: bytes | None = None
    tail: bytes | None = None


class Reader:
    """All ways to read a text."""

    def __init__(self, dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.places = self._closed({Place()})

    def _closed(self, places: set[Place]) -> set[Place]:
        """With what comes without a byte: calls, ends of rules, the beginning of the tail."""
        work, seen = list(places), set(places)
        while work:
            for after in self._silent(work.pop()):
                if after not in seen:
                    seen.add(after)
                    work.append(after)
        return seen

    def _silent(self, place: Place) -> Iterator[Place]:
        if place.free is not None:
            rules = self.dispatch.rules_of(place.free)
            for texts in rules:
                for text in texts:
                    yield Place(None, rest=text)
            if not rules:
                yield Place(None, tail=self.dispatch.tail)
        elif place.rest == b"":
            yield Place() if self.dispatch.loops else Place(None, tail=self.dispatch.tail)

    def _after(self, place: Place, byte: bytes) -> Place | None:
        if place.free is not None:
            free = place.free + byte
            if any(free.endswith(text) for text in self.dispatch.excludes):
                return None
            now = self.dispatch.being_written(place.free)
            if self.dispatch.rules_of(place.free) and now + byte not in self.dispatch.beginnings:
                return None
            return replace(place, free=free)
        if place.rest is not None:
            return Place(None, rest=place.rest[1:]) if place.rest[:1] == byte else None
        assert place.tail is not None
        return Place(None, tail=place.tail[1:]) if place.tail[:1] == byte else None

    def read(self, text: bytes) -> Reader | None:
        """Where a text leads, if anywhere."""
        places = self.places
        for at in range(len(text)):
            made = {self._after(place, text[at : at + 1]) for place in places}
            places = self._closed({place for place in made if place is not None})
        # Each of them can be completed: free text that is no tag may end, and no rule here is
        # without texts.
        out = Reader.__new__(Reader)
        out.dispatch, out.places = self.dispatch, places
        return out if places else None

    @property
    def is_complete(self) -> bool:
        return any(place.tail == b"" for place in self.places)


LETTERS = ["a", "b", "<", "ab", "ba", "aa", "<a", "a<b", "abab", "é", "è", "\ud400", "\ud7ff"]
PIECES = [letter.encode("utf-8", "surrogatepass") for letter in LETTERS]
BROKEN = [b"\xc3", b"\xa9", b"\xff", b"\xed\x90"]


def build_dispatch(random: Random, most: int = 5) -> Dispatch:
    """Tags and excluded texts of few letters, so that they overlap, begin and hold each other."""

    def text(least: int) -> bytes:
        return b"".join(random.choices(PIECES, k=random.randint(least, 3)))

    def end(tag: bytes) -> bytes:
        return tag.decode("utf-8", "surrogatepass")[-2:].encode("utf-8", "surrogatepass")

    tags: list[bytes] = []
    for _ in range(random.randint(0, most)):
        kind = random.randrange(6)
        if tags and kind == 0:
            tags.append(random.choice(tags))  # equal
        elif tags and kind == 1:
            tags.append(random.choice(tags) + text(1))  # begun by another
        elif tags and kind == 2:
            tags.append(end(random.choice(tags)))
        else:
            tags.append(text(1))
    excludes = [text(1) for _ in range(random.choice([0, 0, 1, 2]))]
    excludes = [e for e in excludes if not any(tag.startswith(e) for tag in tags)]
    rules = [tuple(text(0) for _ in range(random.randint(1, 2))) for _ in tags]
    return Dispatch(
        tuple(zip(tags, rules, strict=True)),
        tuple(excludes),
        random.random() < 0.6,
        random.choice([b"", b"", b">", b"ab", b"\xc3\xa9"]),
    )


def build_text(random: Random, dispatch: Dispatch, length: int) -> bytes:
    """Pieces of what the dispatch knows."""
    known = [tag for tag, _ in dispatch.tags] + [t for _, texts in dispatch.tags for t in texts]
    known += [*dispatch.excludes, dispatch.tail, *PIECES, *BROKEN]
    out = b""
    while len(out) < length:
        piece = random.choice(known)
        out += piece[: random.randint(0, len(piece))] if random.random() < 0.3 else piece
        if not piece:
            out += b"a"
    return out


def compiled_of(text: str, tokens: list[bytes] = BYTES, **options) -> tokfold.CompiledGrammar:
    options.setdefault("classes", "never")
    grammar = tokfold.Grammar.from_ebnf(text)
    return tokfold.compile(grammar, tokfold.Vocabulary(tokens), **options)


LOOK = [b"a", b"b", b"<", b">", b"\xc3", b"\xa9", b"\xa8", b"\xed", b"\x80", b"\xff", b"z"]


def check_texts(dispatch: Dispatch, matcher: tokfold.Matcher, random: Random, count: int) -> int:
    """Texts byte by byte; how many bytes were taken."""
    taken = 0
    for _ in range(count):
        matcher.reset()
        reader: Reader = Reader(dispatch)
        for byte in build_text(random, dispatch, 14):
            assert matcher.is_accepting is reader.is_complete, matcher.text
            for other in LOOK:
                fork = matcher.fork()
                assert fork.accept_bytes(other) is (reader.read(other) is not None), (
                    matcher.text,
                    other,
                )
            after = reader.read(bytes([byte]))
            assert matcher.accept_token(byte) is (after is not None), (matcher.text, byte)
            CASES["dispatch: bytes against the oracle"] += 1
            if after is None:
                break
            reader = after
            taken += 1
    return taken


class TestAgainstTheOracle:
    @examples(120)
    @given(seed=st.integers(0, 1 << 40))
    def test_random_dispatches(self, seed):
        random = Random(seed)
        dispatch = build_dispatch(random)
        note(dispatch.text)
        matcher = tokfold.Matcher(compiled_of(dispatch.text))
        taken = check_texts(dispatch, matcher, random, 6)
        event(f"bytes taken: {min(taken, 40) // 10 * 10}")

    @examples(40)
    @given(seed=st.integers(0, 1 << 40))
    def test_masks(self, seed):
        """Tokens that hold the ends of tags, with classes and without."""
        random = Random(seed)
        dispatch = build_dispatch(random)
        note(dispatch.text)
        tokens = [*BYTES[90:100], b"<", b">", *PIECES, *BROKEN]
        tokens += [build_text(random, dispatch, random.randint(1, 9)) for _ in range(40)]
        ways = [compiled_of(dispatch.text, tokens, classes=mode) for mode in ("never", "now")]
        matchers = [tokfold.Matcher(way) for way in ways]
        reader = Reader(dispatch)
        for _ in range(7):
            expected = [reader.read(token) is not None for token in tokens]
            assert [mask_of(matcher, len(tokens))[0] for matcher in matchers] == [expected] * 2
            CASES["dispatch: bits against the oracle"] += len(tokens)
            allowed = [token for token, bit in enumerate(expected) if bit]
            if not allowed:
                break
            token = random.choice(allowed)
            assert all(matcher.accept_token(token) for matcher in matchers)
            after = reader.read(tokens[token])
            assert after is not None
            reader = after

    def test_five_hundred_tags(self):
        random = Random(5)
        tags = tuple(
            (b"<" + b"".join(random.choices([b"a", b"b", b"c"], k=random.randint(1, 9))), (b"b>",))
            for _ in range(500)
        )
        dispatch = Dispatch(tags, (b"ca<",))
        matcher = tokfold.Matcher(compiled_of(dispatch.text))
        assert len(dispatch.beginnings) > 500
        for _ in range(20):
            matcher.reset()
            reader: Reader = Reader(dispatch)
            for _ in range(3):
                tag = random.choice(tags)[0]
                for byte in random.choice([b"", b"cc", b"a"]) + tag + random.choice([b"b>", b"a"]):
                    after = reader.read(bytes([byte]))
                    assert matcher.accept_token(byte) is (after is not None), matcher.text
                    if after is None:
                        break
                    reader = after
                else:
                    continue
                break

    def test_the_texts_lead_somewhere(self):
        """Without this the tests above could pass by being refused."""
        calls = refused = 0
        for seed in range(40):
            random = Random(seed)
            dispatch = build_dispatch(random)
            for _ in range(6):
                reader: Reader | None = Reader(dispatch)
                for byte in build_text(random, dispatch, 14):
                    reader = reader and reader.read(bytes([byte]))
                    if reader is None:
                        refused += 1
                        break
                    calls += any(place.rest is not None for place in reader.places)
        assert calls > 200, calls
        assert refused > 60, refused

    @pytest.mark.parametrize(
        "fault", ["a shorter tag counts", "a tag is passed over", "no exclude", "always loops"]
    )
    def test_the_check_has_teeth(self, fault, monkeypatch):
        """An oracle that reads the comment wrongly is found out."""
        if fault == "a shorter tag counts":
            monkeypatch.setattr(
                Dispatch,
                "rules_of",
                lambda self, free: [texts for tag, texts in self.tags if free.endswith(tag)],
            )
        elif fault == "a tag is passed over":
            monkeypatch.setattr(Dispatch, "rules_of", lambda self, free: [])
        change = {
            "no exclude": lambda d: replace(d, excludes=()),
            "always loops": lambda d: replace(d, loops=True),
        }.get(fault, lambda d: d)

        def check_many() -> None:
            for seed in range(100):
                random = Random(seed)
                dispatch = build_dispatch(random)
                matcher = tokfold.Matcher(compiled_of(dispatch.text))
                check_texts(change(dispatch), matcher, random, 6)

        with pytest.raises(AssertionError):
            check_many()


NAMED = {
    "overlapping": (Dispatch(((b"aab", (b"1",)), (b"ab", (b"2",)))), b"xaab1ab2", b"xaab2"),
    "begun by another": (Dispatch(((b"ab", (b"1",)), (b"abb", (b"2",)))), b"ab1abb2", b"ab2"),
    "a longer one that breaks off": (Dispatch(((b"a", (b"1",)), (b"abc", (b"2",)))), b"abx", b"ax"),
    "the end of another": (Dispatch(((b"ab", (b"1",)), (b"b", (b"2",)))), b"ab1b2", b"ab2"),
    "equal": (Dispatch(((b"a", (b"1",)), (b"a", (b"2",)))), b"a1a2", b"a3"),
    "a broken character": (Dispatch((("é".encode(), (b"1",)),)), b"\xc3\xc3\xa91", b"\xc3\xa9x"),
    "excluded": (Dispatch((), (b"ab",)), b"aab"[:2] + b"cb", b"aab"),
    "excluded at a call": (Dispatch(((b"x", (b"a",)),), (b"ab",)), b"xab", b"ab"),
    "excluded within a tag": (Dispatch(((b"a<b", (b"1",)),), (b"<",)), b"ab", b"a<"),
    "once": (Dispatch(((b"a", (b"1",)),), loops=False), b"xxa1", b"a1x"),
    "empty content": (Dispatch(((b"a", (b"",)),)), b"aaxa", None),
    "empty content, once": (Dispatch(((b"a", (b"",)),), loops=False), b"xa", b"ax"),
    "a tail": (Dispatch(((b"a", (b">",)),), tail=b">"), b"x>a>>", None),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_named(name):
    dispatch, accepted, refused = NAMED[name]
    grammar = tokfold.Grammar.from_ebnf(dispatch.text)
    assert tokfold.recognize(grammar, accepted).accepted
    reader = Reader(dispatch).read(accepted)
    assert reader is not None
    assert reader.is_complete
    if refused is not None:
        assert tokfold.recognize(grammar, refused).read == len(refused) - 1
        assert Reader(dispatch).read(refused) is None


# ------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('("", r)', "a tag or excluded text must be a literal that is not empty"),
        ('("a", r), excludes=("",)', "must be a literal that is not empty"),
        ('("ab", r), excludes=("a",)', "must not begin a trigger"),
        ('("ab", r), excludes=("ab",)', "must not begin a trigger"),
        ('("ab", r), excludes=("x", "a", "y")', "must not begin a trigger"),
        ('("a", none)', '"none" is not defined'),
        ('("a",)', "a trigger and the name of a rule"),
        ('("a", r, r)', "a trigger and the name of a rule"),
        ('("a", "b")', "a trigger and the name of a rule"),
        ('"a"', "a pair in parentheses"),
        ("(1, r)", "must be a literal"),
        ('("a", r), loop_after_dispatch=1', "must be true or false"),
        ('("a", r), excludes="b"', "must be a list in parentheses"),
        ('("a", r), other=true', "has no argument `other`"),
    ],
)
def test_what_is_wrong_is_said(arguments, reason):
    with pytest.raises(tokfold.GrammarSyntaxError) as caught:
        tokfold.Grammar.from_ebnf(f'root ::= TagDispatch({arguments})\nr ::= "1"\n')
    assert reason in str(caught.value)
    assert caught.value.line == 1


@pytest.mark.parametrize("arguments", ["", "loop_after_dispatch=false", "excludes=()"])
def test_without_tags_it_is_any_text(arguments):
    matcher = tokfold.Matcher(compiled_of(f"root ::= TagDispatch({arguments})"))
    assert mask_of(matcher, 256) == ([True] * 256, False)
    assert matcher.accept_bytes(bytes(range(256)))
    assert matcher.is_accepting


def test_a_rule_without_texts():
    """Its tag can only be begun, or be the beginning of another."""
    text = 'root ::= TagDispatch(("ab", dead), ("abc", r))\ndead ::= "1" dead\nr ::= "2"\n'
    grammar = tokfold.Grammar.from_ebnf(text)
    assert tokfold.recognize(grammar, "aabc2a").accepted
    assert tokfold.recognize(grammar, "ab1").read == 2
    alone = tokfold.Grammar.from_ebnf('root ::= TagDispatch(("ab", d))\nd ::= "1" d\n')
    assert tokfold.recognize(alone, "aab").read == 2


def tags_of(count: int) -> str:
    random = Random(7)
    tags = {"".join(random.choices("abcdefghij", k=random.randint(3, 20))) for _ in range(count)}
    pairs = ", ".join(f'("{tag}", r)' for tag in sorted(tags))
    return f'root ::= TagDispatch({pairs})\nr ::= "1"\n'


class TestMany:
    @pytest.mark.parametrize(
        ("count", "limit", "message"),
        [
            (100_000, "max_network_work", "making the network"),
            (300_000, "max_network_edges", "TagDispatch"),
        ],
    )
    def test_hundred_thousands_of_tags(self, count, limit, message):
        """A limit, which counts work or what it makes; a tenth of the tags unless in long runs."""
        value = getattr(tokfold.Limits(), limit)
        if not LONG:
            count, value = count // 10, value // 20
        limits = tokfold.Limits(**{limit: value})
        grammar = tokfold.Grammar.from_ebnf(tags_of(count), limits=limits)
        with pytest.raises(tokfold.LimitExceededError) as caught:
            tokfold.compile(grammar, tokfold.Vocabulary(BYTES), limits, classes="never")
        assert (caught.value.limit, caught.value.value) == (limit, value)
        assert message in str(caught.value)

    def test_ten_thousand_tags_are_taken(self):
        """By work in proportion to the tags."""
        limits = tokfold.Limits(max_network_work=1_500 * 10_000)
        matcher = tokfold.Matcher(compiled_of(tags_of(10_000), limits=limits))
        assert matcher.accept_bytes(b"xyz")

    def test_one_very_long_tag(self):
        tag = b"ab" * 20_000
        matcher = tokfold.Matcher(compiled_of(Dispatch(((tag, (b"1",)),)).text))
        assert matcher.accept_bytes(b"xa" + tag[:-1])
        assert matcher.is_accepting
        assert matcher.accept_bytes(b"b")
        assert not matcher.is_accepting
        assert not matcher.accept_bytes(b"a")
        assert matcher.accept_bytes(b"1")

    @pytest.mark.parametrize(
        ("limit", "value"), [("max_network_states", 50), ("max_network_edges", 50)]
    )
    def test_limits_given_to_the_grammar_hold(self, limit, value):
        limits = tokfold.Limits(**{limit: value})
        grammar = tokfold.Grammar.from_ebnf(tags_of(40), limits=limits)
        for use in (
            lambda: tokfold.compile(grammar, tokfold.Vocabulary(BYTES), classes="never"),
            lambda: tokfold.recognize(grammar, "a"),
        ):
            with pytest.raises(tokfold.LimitExceededError) as caught:
                use()
            assert (caught.value.limit, caught.value.value) == (limit, value)

    @pytest.mark.parametrize("limit", ["max_network_states", "max_network_edges"])
    def test_limits_given_to_compile_hold(self, limit):
        limits = tokfold.Limits(**{limit: 50})
        with pytest.raises(tokfold.LimitExceededError) as caught:
            compiled_of(tags_of(40), limits=limits)
        assert caught.value.limit == limit


# -------------------------------------------------------------------- XGrammar

SCRIPT = """
    sys.modules["xgrammar"] = None
    text = 'root ::= TagDispatch(("<a>", x), ("<b>", x), excludes=("!",))\\nx ::= [0-9]+ ";"'
    vocabulary = Vocabulary([bytes([b]) for b in range(256)])
    for classes in ("never", "now", "auto"):
        matcher = Matcher(compile(Grammar.from_ebnf(text), vocabulary, classes=classes))
        print(matcher.accept_bytes(b"text <a>12; <b>"), matcher.is_accepting)
        print(matcher.accept_bytes(b"!"), matcher.accept_bytes(b"3;"), matcher.is_accepting)
    print(len(compile_classes(Grammar.from_ebnf(text), vocabulary)))
    print(recognize(Grammar.from_ebnf(text), "a<a>1;").accepted)
    print(sys.modules["xgrammar"])
"""


def test_xgrammar_is_not_needed():
    lines = output(child(SCRIPT)).splitlines()
    assert lines[:6] == ["True False", "False True True"] * 3
    assert int(lines[6]) > 5
    assert lines[7:] == ["True", "None"]


@examples(30)
@given(seed=st.integers(0, 1 << 40))
def test_beside_xgrammars_matcher(seed):
    """Byte by byte; its masks, which have faults of their own, are left out."""
    xgr = pytest.importorskip("xgrammar")
    random = Random(seed)
    dispatch = build_dispatch(random)
    note(dispatch.text)
    info = xgr.TokenizerInfo(BYTES, xgr.VocabType.RAW, stop_token_ids=[])
    theirs = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False).compile_grammar(
        dispatch.text
    )
    ours = tokfold.Matcher(compiled_of(dispatch.text))
    for _ in range(6):
        ours.reset()
        plain = xgr.GrammarMatcher(theirs)
        for byte in build_text(random, dispatch, 14):
            assert ours.is_accepting == plain.is_completed(), ours.text
            taken = ours.accept_token(byte)
            assert taken == plain.accept_token(byte), (ours.text, byte)
            CASES["dispatch: bytes beside XGrammar's"] += 1
            if not taken:
                break
