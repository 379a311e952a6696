"""Pools of masks: whatever a pool holds, however it came there, masks have the same bits.

All grammars of this file are over one vocabulary, large enough for masks to be shared. They are put
together from parts that come again and again, so that most of what one looks at another has seen.
One file, since that vocabulary and those parts are what all of it stands on.
"""

from __future__ import annotations

import re
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest

pytest.importorskip("tokfold._core")

import tokfold
from hypothesis import event, given, note
from hypothesis import strategies as st
from oracles.earley import Oracle
from oracles.model import Choice, Literal, Ref, Seq, to_ebnf
from oracles.model import Grammar as Model
from strategies.engine import compiled_with
from strategies.grammars import build_grammar
from strategies.profiles import CASES, LONG, examples
from support.processes import DEADLINE_S
from support.script_runner import child, output
from tokfold import _artifact
from tokfold import pool as pools


def build_tokens() -> list[bytes]:
    """Some thousand tokens: every byte, words, punctuation, runs, broken characters."""
    random = Random(0)
    letters = [*"abc", *'()[]{},:-+" \\/_019ux', "é", "日", "true", "null", "ab", "--", "\n"]
    out = dict.fromkeys(bytes([b]) for b in range(256))
    while len(out) < 3_000:
        text = "".join(random.choices(letters, k=random.randint(1, 6))).encode()
        out[text[random.random() < 0.05 :]] = None
    out |= dict.fromkeys(letter.encode() * n for letter in letters for n in (8, 16, 17, 40))
    return [*out, b"</s>"]


TOKENS = build_tokens()
STOP = len(TOKENS) - 1
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP])

# Names in braces are those of other parts.
PARTS = {
    "string": '"\\"" [^"\\\\]* "\\""',
    "escaped": '"\\"" ([^"\\\\\\n] | "\\\\" ["\\\\/u] )* "\\""',
    "escaped_by_rules": '"\\"" {inside}',
    "inside": '"\\"" | [^"\\\\\\n] {inside} | "\\\\" ["\\\\/u] {inside}',
    "short": '"\\"" [^"\\\\]{0,20} "\\""',
    "longer": '"\\"" [^"\\\\]{18,40} "\\""',
    "number": '"-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)?',
    "word": '[a-z_] [a-z0-9_]*',
    "words": '{word} (" " {word})*',
    "keyword": '"true" | "null" | {word} "("',
    "list": '"[" ({value} (", "? {value})*)? "]"',
    "value": '{list} | {number} | {string} | "true"',
    "nested": '"(" {nested} ")" | "a" | {nested} "+" {nested}',
    "left": '{left} "," {word} | {word}',
    "ambiguous": '{ambiguous} {ambiguous} | "a" | "aa" | ""',
    "counted": '("ab" | "c" "a"?){17,30}',
    "counted_rule": "({word} \",\"){18,}",
    "ring": "(" + '"' + "abc" * 60 + '"' + ")*",
    "any": "[^]*".replace("[^]", "[^\\u0000]"),
    "unicode": '[\\u0080-\\U0010ffff]+ | "é" {word}',
}  # fmt: skip


def names_in(body: str) -> list[str]:
    return re.findall(r"(?<![0-9a-z\])])\{([a-z_]+)\}", body)


def assembled(root: str, random: Random | None = None) -> str:
    """Grammar text with the parts that the root needs, under names that say nothing."""
    needed: dict[str, None] = {}
    work = names_in(root)
    while work:
        name = work.pop()
        if name not in needed:
            needed[name] = None
            work += names_in(PARTS[name])
    order = list(needed)
    (random or Random(0)).shuffle(order)
    as_rule = {name: f"r{number}" for number, name in enumerate(order)}

    def spelled(body: str) -> str:
        return re.sub(r"(?<![0-9a-z\])])\{([a-z_]+)\}", lambda match: as_rule[match[1]], body)

    lines = [f"root ::= {spelled(root)}"]
    lines += [f"{as_rule[name]} ::= {spelled(PARTS[name])}" for name in order]
    return "\n".join(lines) + "\n"


def build_text(random: Random) -> str:
    """A grammar of parts with something of its own around them, or any grammar with parts in it."""
    pick = [f"{{{name}}}" for name in random.sample(list(PARTS), random.randint(1, 3))]
    glue = [f'"{random.choice("abc:,{}()[]-")}"' for _ in pick]
    shape = random.randrange(4)
    if shape == 0:
        root = " ".join(f"{text} {part}" for text, part in zip(glue, pick, strict=True))
    elif shape == 1:
        root = " | ".join(f"{text} {part}" for text, part in zip(glue, pick, strict=True))
    elif shape == 2:
        root = f"({' | '.join(pick)}) {glue[0]}? {random.choice(pick)}"
    else:
        root = f"({' '.join(pick)} {glue[0]})*"
    return assembled(root, random)


def build_random(random: Random) -> tuple[str, Model]:
    """A grammar that the oracle knows as well."""
    model = build_grammar(random, rules=random.randint(1, 4))
    return to_ebnf(model), model


def compiled_of(text: str, pool: object, **options) -> tokfold.CompiledGrammar:
    options.setdefault("classes", "never")
    return compiled_with(tokfold.Grammar.from_ebnf(text), VOCABULARY, pool=pool, **options)


def row_of(matcher: tokfold.Matcher) -> np.ndarray:
    bitmask = tokfold.allocate_bitmask(1, len(TOKENS))
    matcher.fill_bitmask(bitmask)
    return bitmask[0].copy()


def allowed_in(row: np.ndarray) -> list[int]:
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(TOKENS)]
    return np.flatnonzero(bits).tolist()


def walk_all(ways: dict[str, tokfold.CompiledGrammar], random: Random, steps: int) -> int:
    """All ways along one walk; every mask must be that of the first. How many were compared."""
    matchers = {name: tokfold.Matcher(compiled) for name, compiled in ways.items()}
    first = next(iter(matchers))
    compared = 0
    for _ in range(steps):
        try:
            rows = {name: row_of(matcher) for name, matcher in matchers.items()}
        except tokfold.LimitExceededError:
            break  # of one, where others found what it had to make
        for name, row in rows.items():
            different = allowed_in(row ^ rows[first])
            assert not different, (name, matchers[first].text, [TOKENS[t] for t in different[:5]])
        compared += len(rows) - 1
        CASES["pool: masks compared"] += len(rows) - 1
        allowed = [token for token in allowed_in(rows[first]) if token != STOP]
        if not allowed:
            break
        token = random.choice(allowed)
        assert all(matcher.accept_token(token) for matcher in matchers.values())
        if random.random() < 0.15:
            for matcher in matchers.values():
                matcher.rollback(1)
    return compared


@dataclass
class Shared:
    """Pools that live as long as the tests of this file, so that they hold what was long ago."""

    own: tokfold.MaskPool
    tiny: tokfold.MaskPool
    folder: Path

    def loaded(self) -> tokfold.MaskPool:
        """What the pool holds now, by way of a file."""
        path = self.folder / "pool"
        self.own.save(path)
        out = tokfold.MaskPool(VOCABULARY)
        assert out.load(path) == self.own.counters()["entries"]
        return out


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Shared:
    return Shared(
        tokfold.MaskPool(VOCABULARY),
        tokfold.MaskPool(VOCABULARY, 6_000),
        tmp_path_factory.mktemp("pools"),
    )


def ways_of(text: str, shared: Shared, *, now: bool = False) -> dict[str, tokfold.CompiledGrammar]:
    """Without a pool, and with each kind of pool."""
    out = {
        "none": compiled_of(text, None),
        "vocabulary": compiled_of(text, "vocabulary"),
        "own": compiled_of(text, shared.own),
        "own again": compiled_of(text, shared.own),
        "tiny": compiled_of(text, shared.tiny),
        "nothing fits": compiled_of(text, tokfold.MaskPool(VOCABULARY, 0)),
        "forgetful": compiled_of(text, shared.own, limits=tokfold.Limits(max_memo_bytes=1 << 20)),
        "loaded": compiled_of(text, shared.loaded()),
    }
    if now:
        out |= {
            "classes": compiled_of(text, shared.own, classes="now"),
            "classes, tiny": compiled_of(text, shared.tiny, classes="now"),
        }
    return out


class TestSameBits:
    @pytest.mark.parametrize("name", PARTS)
    def test_each_part(self, name, shared):
        for root in (f"{{{name}}}", f'"<" {{{name}}} ">"', f'({{{name}}} "," )* {{{name}}}'):
            ways = ways_of(assembled(root), shared, now=name in {"string", "list", "counted"})
            for seed in range(3):
                walk_all(ways, Random(f"{name} {seed}"), 8)

    @examples(40)
    @given(seed=st.integers(0, 1 << 40))
    def test_grammars_of_the_same_parts(self, shared, seed):
        random = Random(seed)
        text = build_text(random)
        note(text)
        before = shared.own.counters()["hits"]
        try:
            ways = ways_of(text, shared, now=random.random() < 0.2)
        except tokfold.UnsupportedGrammarError:
            return
        compared = walk_all(ways, random, 8)
        event(f"hits: {shared.own.counters()['hits'] > before}; compared: {min(compared, 50)}")

    @examples(40)
    @given(seed=st.integers(0, 1 << 40))
    def test_any_grammars_with_the_oracle(self, shared, seed):
        """The masks of all ways are the same, and what a naive recognizer says of some tokens."""
        random = Random(seed)
        text, model = build_random(random)
        note(text)
        oracle = Oracle(model)
        if not oracle.productive:
            return
        ways = ways_of(text, shared)
        walk_all(ways, random, 6)
        state, matcher = oracle.initial(prune=True), tokfold.Matcher(ways["loaded"])
        for _ in range(3):
            try:
                allowed = set(allowed_in(row_of(matcher)))
            except tokfold.LimitExceededError:
                break
            some = random.sample(range(STOP), 40) + random.sample(
                sorted(allowed), min(3, len(allowed))
            )
            for token in some:
                if token != STOP:
                    assert (token in allowed) is state.allowed(TOKENS[token]), TOKENS[token]
            assert (STOP in allowed) is state.accepting
            CASES["pool: bits against the oracle"] += len(some)
            allowed.discard(STOP)
            if not allowed:
                break
            token = random.choice(sorted(allowed))
            assert matcher.accept_token(token)
            state = state.feed(TOKENS[token])

    @examples(25)
    @given(seed=st.integers(0, 1 << 40))
    def test_grammars_that_differ_in_one_place(self, seed):
        """Nearly the same must not be taken for the same: all in one fresh pool."""
        random = Random(seed)
        first = build_grammar(random, rules=3, unproductive=0)
        pool = tokfold.MaskPool(VOCABULARY)
        models = [first]
        for _ in range(3):
            rules = dict(models[-1].rules)
            name = random.choice(list(rules))
            extra = Literal(random.choice([b"a", b"b", b"(", b"ab", b"-"]))
            rules[name] = random.choice(
                [
                    Choice((rules[name], extra)),
                    Seq((rules[name], extra)),
                    Choice((rules[name], Seq((extra, Ref(random.choice(list(rules))))))),
                ]
            )
            models.append(Model(rules))
        for model in models:
            text = to_ebnf(model)
            note(text)
            limits = tokfold.Limits(max_mask_work=300_000)
            try:
                ways = {
                    name: compiled_of(text, pool_or_none, limits=limits)
                    for name, pool_or_none in (("none", None), ("pool", pool))
                }
            except tokfold.UnsupportedGrammarError:
                continue
            for _ in range(2):
                walk_all(ways, random, 5)

    @pytest.mark.parametrize("low", [0, 17, 18, 30])
    def test_bounds_are_not_mistaken_for_each_other(self, low):
        """Counted repetitions with all bounds from one pool, in both orders."""
        pool = tokfold.MaskPool(VOCABULARY)
        highs: list[int | None] = [33, 34, 35, 36, 41, None]
        for high in highs + highs[::-1]:
            upper = "" if high is None else high
            text = f'root ::= "<" [ab0]{{{low},{upper}}} ">" | [ab0]{{{low},{upper}}}'
            ways = {"none": compiled_of(text, None), "pool": compiled_of(text, pool)}
            for prefix in (0, 1, 15, 16, 17, 18, 24, 25, 29, 32, 33):
                matchers = {name: tokfold.Matcher(way) for name, way in ways.items()}
                taken = [matcher.accept_bytes(b"a" * prefix) for matcher in matchers.values()]
                assert taken[0] is taken[1]
                a, b = (row_of(matcher) for matcher in matchers.values())
                assert (a == b).all(), (text, prefix)
        assert pool.counters()["hits"] > 0

    def test_much_is_really_shared(self):
        """Without this the tests above could pass with pools that hold nothing."""
        own, tiny = tokfold.MaskPool(VOCABULARY), tokfold.MaskPool(VOCABULARY, 6_000)
        made = found = 0
        for seed in range(60):
            random = Random(f"shared {seed}")
            text = build_text(random)
            compiled = compiled_of(text, own)
            walk_all({"own": compiled, "tiny": compiled_of(text, tiny)}, random, 6)
            counters = compiled.counters()
            made += counters["memo_misses"]
            found += counters["memo_shared"]
        assert found > 30, (made, found)
        assert tiny.counters()["evicted"] > 100
        assert tiny.counters()["bytes"] <= 6_000

    def test_what_costs_more_to_describe_than_to_make(self):
        """Few tokens begin with a letter, and a long text follows: not described at once."""
        text = f'root ::= "{"abc" * 100}"'
        pool = tokfold.MaskPool(VOCABULARY)
        matcher = tokfold.Matcher(compiled_of(text, pool))
        row_of(matcher)
        assert pool.counters()["misses"] == 0
        for letter in "abc" * 20:
            assert matcher.accept_bytes(letter.encode())
            row_of(matcher)
        assert pool.counters()["misses"] > 0
        string = compiled_of(assembled(PARTS["string"]), pool)
        before = pool.counters()["misses"]
        matcher = tokfold.Matcher(string)
        assert matcher.accept_bytes(b'"')
        row_of(matcher)
        assert pool.counters()["misses"] > before

    def test_threads_that_share_a_tiny_pool(self):
        pool = tokfold.MaskPool(VOCABULARY, 6_000)
        stop = threading.Event()

        def work(number: int) -> int:
            random, compared = Random(number), 0
            for _ in range(6):
                text = build_text(random)
                try:
                    ways = {"none": compiled_of(text, None), "pool": compiled_of(text, pool)}
                except tokfold.UnsupportedGrammarError:
                    continue
                compared += walk_all(ways, random, 5)
            return compared

        def disturb() -> None:
            while not stop.wait(0.01):
                pool.clear()
                assert pool.counters()["bytes"] <= 6_000

        with ThreadPoolExecutor(5) as threads:
            disturbed = threads.submit(disturb)
            compared = list(threads.map(work, [*range(3), 0]))
            stop.set()
            disturbed.result(DEADLINE_S)
        assert min(compared) > 5


# -------------------------------------------------------------------- counters

QUOTED = 'root ::= "{before}" s "{after}"\ns ::= "\\"" [^"\\\\]* "\\""\n'


def fill(text: str, pool: tokfold.MaskPool, prefix: bytes = b"") -> dict[str, int]:
    compiled = compiled_of(text, pool)
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(prefix)
    row_of(matcher)
    return compiled.counters()


class TestCounters:
    def test_the_same_string_rule_is_found(self):
        pool = tokfold.MaskPool(VOCABULARY)
        assert pool.counters() == dict.fromkeys(
            ("entries", "bytes", "hits", "misses", "evicted"), 0
        )
        first = fill(QUOTED.format(before="a", after="b"), pool, b'a"')
        held = pool.counters()
        assert first["memo_shared"] == held["hits"] == 0
        assert held["entries"] > 0
        assert held["misses"] > 0
        second = fill(QUOTED.format(before="{", after=", x"), pool, b'{"')
        assert second["memo_shared"] == pool.counters()["hits"] > 0
        assert second["trie_nodes"] < first["trie_nodes"] / 4
        renamed = 'root ::= "(" text\ntext ::= "\\"" chars "\\""\nchars ::= [^"\\\\]*\n'
        assert fill(renamed, pool, b'("a')["memo_shared"] > 0

    def test_another_rule_is_not(self):
        pool = tokfold.MaskPool(VOCABULARY)
        fill(QUOTED.format(before="a", after="b"), pool, b'a"')
        other = 'root ::= "a" s\ns ::= "\\"" [^"\\\\\\n]* "\\""\n'
        assert fill(other, pool, b'a"')["memo_shared"] == 0

    def test_bytes_stay_under_the_bound_and_what_is_evicted_is_counted(self):
        full = tokfold.MaskPool(VOCABULARY)
        small = tokfold.MaskPool(VOCABULARY, 5_000)
        for seed in range(30):
            text = build_text(Random(seed))
            for pool in (full, small):
                walk_all({"pool": compiled_of(text, pool)}, Random(seed), 4)
                counters = pool.counters()
                assert counters["bytes"] <= pool.max_bytes
                assert (counters["entries"] == 0) is (counters["bytes"] == 0)
        assert full.counters()["bytes"] > 20_000
        assert small.counters()["evicted"] > 20
        assert small.counters()["entries"] > 0
        assert f"{small.counters()['entries']} masks" in repr(small)

    def test_clear(self):
        pool = tokfold.MaskPool(VOCABULARY)
        text = QUOTED.format(before="a", after="b")
        fill(text, pool, b'a"')
        pool.clear()
        assert (pool.counters()["entries"], pool.counters()["bytes"]) == (0, 0)
        assert fill(text, pool, b'a"')["memo_shared"] == 0
        assert pool.counters()["entries"] > 0

    def test_what_was_not_used_for_longest_goes_first(self):
        texts = [f'root ::= [^{letter}"]* "{letter}"' for letter in "abcdefgh"]
        probe = tokfold.MaskPool(VOCABULARY)
        fill(texts[0], probe)
        pool = tokfold.MaskPool(VOCABULARY, int(probe.counters()["bytes"] * 3.5))
        for text in texts[1:]:
            fill(texts[0], pool)  # used again and again
            fill(text, pool)
        assert pool.counters()["evicted"] > 0
        assert fill(texts[0], pool)["memo_shared"] > 0
        assert fill(texts[1], pool)["memo_shared"] == 0

    @pytest.mark.parametrize("value", [-1, 1.5, "1", None])
    def test_bounds_that_are_none(self, value):
        with pytest.raises(ValueError, match="max_bytes must be a number of bytes"):
            tokfold.MaskPool(VOCABULARY, value)

    def test_thousands_of_grammars_stay_under_the_bound(self):
        """What requests bring: objects with other keys each time, and the same strings in them."""
        pool = tokfold.MaskPool(VOCABULARY, 1 << 18)
        random = Random(1)
        most = 0
        count = 10_000 if LONG else 300
        for number in range(count):
            keys = [f"{random.choice('abc')}{number}{n}" for n in range(3)]
            values = random.choices(["{string}", "{short}", "{number}", "{list}"], k=3)
            fields = ' "," '.join(
                f'"\\"{key}\\":" {value}' for key, value in zip(keys, values, strict=True)
            )
            text = assembled(f'"{{" {fields} "}}"', random)
            matcher = tokfold.Matcher(compiled_of(text, pool))
            for token in (f'{{"{keys[0]}":', {"{number}": "1", "{list}": "["}.get(values[0], '"a')):
                row_of(matcher)
                assert matcher.accept_string(token)
            row_of(matcher)
            most = max(most, pool.counters()["bytes"])
        assert 0 < most <= pool.max_bytes
        counters = pool.counters()
        assert counters["hits"] > count


# ----------------------------------------------------------------- the other vocabulary


@pytest.mark.parametrize("classes", ["never", "now"])
def test_a_pool_of_another_vocabulary_is_refused(classes):
    other = tokfold.Vocabulary(TOKENS[:-5])
    grammar = tokfold.Grammar.from_ebnf('root ::= "a"')
    with pytest.raises(ValueError, match="another vocabulary"):
        compiled_with(grammar, VOCABULARY, classes=classes, pool=tokfold.MaskPool(other))


@pytest.mark.parametrize("pool", ["own", 3, True, {}])
def test_what_is_no_pool_is_refused(pool):
    with pytest.raises(TypeError, match="pool must be a MaskPool"):
        compiled_of('root ::= "a"', pool)


def test_a_pool_of_an_equal_vocabulary_from_a_file(tmp_path):
    """Another object with the same tokens takes the file."""
    pool = tokfold.MaskPool(VOCABULARY)
    fill(QUOTED.format(before="a", after="b"), pool, b'a"')
    pool.save(tmp_path / "pool")
    equal = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP])
    other = tokfold.MaskPool(equal)
    assert other.load(tmp_path / "pool") == pool.counters()["entries"]
    text = QUOTED.format(before="b", after="c")
    compiled = compiled_with(tokfold.Grammar.from_ebnf(text), equal, classes="never", pool=other)
    matcher, plain = tokfold.Matcher(compiled), tokfold.Matcher(compiled_of(text, None))
    for letter in b'b"a"c':
        assert (row_of(matcher) == row_of(plain)).all()
        assert matcher.accept_bytes(bytes([letter]))
        assert plain.accept_bytes(bytes([letter]))
    assert compiled.counters()["memo_shared"] > 0


# ----------------------------------------------------------------------- files


def filled() -> tokfold.MaskPool:
    pool = tokfold.MaskPool(VOCABULARY)
    for name in ("string", "list", "word", "counted", "nested"):
        text = assembled(f'"<" {{{name}}} ">"')
        walk_all({"pool": compiled_of(text, pool)}, Random(name), 5)
    return pool


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "pool"
    filled().save(path)
    return path


def content(path: Path) -> bytes:
    """The answers in a file."""
    return _artifact.read(path, pools.KIND).arrays["answers"].tobytes()


def forge(path: Path, data: bytes, **header: object) -> Path:
    """A file that is whole, by its checksum, with any answers."""
    fields = {"algorithm": pools.ALGORITHM, "vocabulary": VOCABULARY.fingerprint, **header}
    answers = np.frombuffer(data, dtype=np.uint8)
    _artifact.write(path, pools.KIND, fields, {"answers": answers})
    return path


@dataclass
class Entry:
    """An answer as it stands in a file."""

    key: bytes
    kind: int
    accepted: list[int]
    popped: list[int]

    def data(self) -> bytes:
        numbers = struct.pack(f"<I{len(self.accepted)}I", len(self.accepted), *self.accepted)
        popped = struct.pack(f"<I{len(self.popped)}I", len(self.popped), *self.popped)
        return self.key + bytes([self.kind]) + numbers + popped


def entries(data: bytes) -> list[Entry]:
    out, at = [], 0

    def numbers() -> list[int]:
        nonlocal at
        (count,) = struct.unpack_from("<I", data, at)
        found = struct.unpack_from(f"<{count}I", data, at + 4)
        at += 4 + 4 * count
        return list(found)

    while at < len(data):
        key, kind = data[at : at + 32], data[at + 32]
        at += 33
        out.append(Entry(key, kind, numbers(), numbers()))
    return out


class TestFiles:
    def test_there_and_back(self, tmp_path):
        pool = filled()
        pool.save(tmp_path / "a")
        other = tokfold.MaskPool(VOCABULARY)
        assert other.load(tmp_path / "a") == pool.counters()["entries"] > 5
        assert other.counters()["entries"] == pool.counters()["entries"]
        assert other.counters()["bytes"] == pool.counters()["bytes"]
        assert other.load(tmp_path / "a") == pool.counters()["entries"]  # what is held stays
        assert other.counters()["bytes"] == pool.counters()["bytes"]
        other.save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        assert b"".join(e.data() for e in entries(content(tmp_path / "a"))) == content(
            tmp_path / "b"
        )

    def test_an_empty_pool(self, tmp_path):
        tokfold.MaskPool(VOCABULARY).save(tmp_path / "a")
        assert tokfold.MaskPool(VOCABULARY).load(tmp_path / "a") == 0

    def test_what_was_used_last_is_kept(self, tmp_path, saved):
        """By the bound of a save, and by that of the pool that loads."""
        pool = filled()
        whole = content(saved)
        for most in (0, 100, 2_000, 10_000):
            pool.save(tmp_path / "a", most)
            part = content(tmp_path / "a")
            assert len(part) <= most
            assert whole.startswith(part)
        small = tokfold.MaskPool(VOCABULARY, pool.counters()["bytes"] // 3)
        assert small.load(saved) == pool.counters()["entries"]
        assert 0 < small.counters()["bytes"] <= small.max_bytes
        small.save(tmp_path / "b")
        last = [e.key for e in entries(content(tmp_path / "b"))]
        assert set(last) <= {e.key for e in entries(whole)}
        assert last[0] == entries(whole)[0].key

    def test_another_process(self, saved):
        """The digests are the same there, and so are the masks."""
        script = """
            import sys
            sys.path.insert(0, sys.argv[2])
            from engine.test_mask_pool import *
            pool = tokfold.MaskPool(VOCABULARY)
            print(pool.load(sys.argv[1]))
            for name in ("string", "list", "word", "counted", "nested"):
                text = assembled(f'"<" {{{name}}} ">"')
                ways = {"none": compiled_of(text, None), "pool": compiled_of(text, pool)}
                walk_all(ways, Random(name), 5)
            print(pool.counters()["hits"], pool.counters()["misses"])
        """
        tests = Path(__file__).parents[1]
        for seed in ("1", "2"):
            lines = output(child(script, saved, tests, PYTHONHASHSEED=seed)).split()
            assert int(lines[0]) == len(entries(content(saved)))
            assert int(lines[1]) > 0
            assert int(lines[2]) == 0

    def test_another_vocabulary(self, saved):
        pool = tokfold.MaskPool(tokfold.Vocabulary(TOKENS))  # no stop token
        with pytest.raises(tokfold.VocabularyError, match="another vocabulary"):
            pool.load(saved)
        assert pool.counters()["entries"] == 0

    @pytest.mark.parametrize("version", [0, 1, 3, "1", None, [1]])
    def test_another_version(self, tmp_path, saved, version):
        path = forge(tmp_path / "a", content(saved), algorithm=version)
        with pytest.raises(tokfold.ArtifactError, match="another version"):
            tokfold.MaskPool(VOCABULARY).load(path)

    def test_another_artefact(self, tmp_path):
        path = tmp_path / "a"
        tokfold.compile_classes(tokfold.Grammar.from_ebnf('root ::= "a"'), VOCABULARY).save(path)
        with pytest.raises(tokfold.ArtifactError):
            tokfold.MaskPool(VOCABULARY).load(path)

    @pytest.mark.parametrize("dtype", [np.int8, np.uint16])
    def test_other_arrays(self, tmp_path, dtype):
        header = {"algorithm": pools.ALGORITHM, "vocabulary": VOCABULARY.fingerprint}
        for arrays in (
            {},
            {"answers": np.zeros(0, dtype)},
            {"answers": np.zeros((0, 2), np.uint8)},
            {"other": np.zeros(4, np.uint8)},
        ):
            _artifact.write(tmp_path / "a", pools.KIND, header, arrays)
            with pytest.raises(tokfold.ArtifactError, match="damaged"):
                tokfold.MaskPool(VOCABULARY).load(tmp_path / "a")

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            tokfold.MaskPool(VOCABULARY).load(tmp_path / "none")

    def test_no_folder(self, tmp_path):
        with pytest.raises(tokfold.ArtifactError, match="cannot be written"):
            filled().save(tmp_path / "none" / "pool")

    def test_cut_anywhere(self, tmp_path, saved):
        data = saved.read_bytes()
        random = Random(3)
        cuts = {0, 1, 7, 8, 23, 24, 100, len(data) - 1, len(data) - 32}
        cuts |= set(random.sample(range(len(data)), 60 if not LONG else 2_000))
        pool = tokfold.MaskPool(VOCABULARY)
        for cut in sorted(cuts):
            (tmp_path / "a").write_bytes(data[:cut])
            with pytest.raises(tokfold.ArtifactError):
                pool.load(tmp_path / "a")
        (tmp_path / "a").write_bytes(data + b"\0")
        with pytest.raises(tokfold.ArtifactError):
            pool.load(tmp_path / "a")
        assert pool.counters()["entries"] == 0

    def test_a_bit_flipped_anywhere(self, tmp_path, saved):
        data = saved.read_bytes()
        random = Random(4)
        places = set(range(40)) | set(random.sample(range(len(data)), 150 if not LONG else 5_000))
        places |= {len(data) - 1, len(data) - 32, len(data) - 33}
        pool = tokfold.MaskPool(VOCABULARY)
        for place in sorted(places):
            damaged = bytearray(data)
            damaged[place] ^= 1 << random.randrange(8)
            (tmp_path / "a").write_bytes(damaged)
            with pytest.raises(tokfold.ArtifactError):
                pool.load(tmp_path / "a")
        assert pool.counters()["entries"] == 0

    def test_the_place_of_a_file_is_not_touched_by_a_save_that_fails(self, saved, monkeypatch):
        before = saved.read_bytes()

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("tokfold._artifact.os.replace", full)
        with pytest.raises(tokfold.ArtifactError, match="No space left"):
            tokfold.MaskPool(VOCABULARY).save(saved)
        monkeypatch.undo()
        assert saved.read_bytes() == before
        assert [p.name for p in saved.parent.iterdir()] == [saved.name]


class TestForgedFiles:
    """The checksum is right and the answers are anything: an error or other answers, no crash."""

    def test_wrong_answers_are_found_by_the_check_of_this_file(self, tmp_path):
        """A pool that lies is seen: what is compared above really comes from pools."""
        pool = tokfold.MaskPool(VOCABULARY)
        text = assembled('"<" {string} ">"')
        walk_all({"pool": compiled_of(text, pool)}, Random(1), 5)
        pool.save(tmp_path / "a")
        wrong = entries(content(tmp_path / "a"))
        for entry in wrong:
            entry.accepted = [] if entry.kind == 0 else [0] * len(entry.accepted)
        forge(tmp_path / "a", b"".join(entry.data() for entry in wrong))
        lying = tokfold.MaskPool(VOCABULARY)
        assert lying.load(tmp_path / "a") == len(wrong)
        ways = {"none": compiled_of(text, None), "pool": compiled_of(text, lying)}
        with pytest.raises(AssertionError):
            walk_all(ways, Random(1), 5)

    @pytest.mark.parametrize(
        "change",
        [
            "kind",
            "number past the last",
            "row too short",
            "row too long",
            "bit past the last",
            "nodes not in order",
            "node twice",
            "node past the last",
            "count too large",
            "cut",
            "more",
        ],
    )
    def test_what_cannot_be_is_refused_whole(self, tmp_path, saved, change):
        found = entries(content(saved))
        listed = next(e for e in found if e.kind == 0)
        last = (1 << 32) - 1
        some = Entry(bytes(32), 1, [0] * ((len(TOKENS) + 31) // 32), [])
        data = b"".join(e.data() for e in found)
        match change:
            case "kind":
                some.kind = 2
            case "number past the last":
                some = Entry(bytes(32), 0, [len(TOKENS) + 40], [])
            case "row too short":
                some.accepted.pop()
            case "row too long":
                some.accepted.append(0)
            case "bit past the last":
                some.accepted[-1] = last
            case "nodes not in order":
                some.popped = [5, 4]
            case "node twice":
                some.popped = [5, 5]
            case "node past the last":
                some.popped = [5, last]
        bad = some.data()
        if change == "count too large":
            bad = bytes(32) + b"\0" + struct.pack("<I", last) + listed.data()[37:]
        elif change == "cut":
            bad = some.data()[:-1]
        elif change == "more":
            bad = some.data() + b"\0"
        for text in (bad, data + bad, bad + data):
            pool = tokfold.MaskPool(VOCABULARY)
            with pytest.raises(tokfold.ArtifactError, match="damaged"):
                pool.load(forge(tmp_path / "a", text))
            assert pool.counters()["entries"] == 0

    @examples(60)
    @given(seed=st.integers(0, 1 << 40))
    def test_random_damage(self, saved, tmp_path_factory, seed):
        random = Random(seed)
        data = bytearray(content(saved))
        for _ in range(random.choice([1, 1, 3, 20])):
            kind = random.randrange(4)
            at = random.randrange(len(data))
            if kind == 0:
                data[at] ^= 1 << random.randrange(8)
            elif kind == 1:
                del data[at : at + random.choice([1, 4, 33])]
            elif kind == 2:
                data[at:at] = random.randbytes(random.choice([1, 4, 36]))
            else:
                data[at : at + 4] = struct.pack("<I", random.choice([0, 1, 1 << 31, (1 << 32) - 1]))
        path = forge(tmp_path_factory.getbasetemp() / "forged", bytes(data))
        pool = tokfold.MaskPool(VOCABULARY)
        try:
            pool.load(path)
        except tokfold.ArtifactError:
            assert pool.counters()["entries"] == 0
            event("refused")
            return
        event("taken")
        compiled = compiled_of(assembled('"<" {list} ">"'), pool)
        matcher = tokfold.Matcher(compiled)
        for letter in b'<["a", [1]]>':
            row_of(matcher)
            matcher.accept_bytes(bytes([letter]))

    def test_nodes_of_other_places(self, tmp_path, saved):
        """Right in form, and nothing that a mask could have left: no crash."""
        found = entries(content(saved))
        for entry in found:
            entry.popped = list(range(0, 400, 3))
        pool = tokfold.MaskPool(VOCABULARY)
        pool.load(forge(tmp_path / "a", b"".join(e.data() for e in found)))
        for name in ("string", "list", "word", "counted", "nested"):
            matcher = tokfold.Matcher(compiled_of(assembled(f'"<" {{{name}}} ">"'), pool))
            row_of(matcher)
            assert matcher.accept_bytes(b"<")
            row_of(matcher)
