"""The oracles against each other and against XGrammar: before they judge, they are judged."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st
from oracles.congruence import Context, lower_bound, sample_contexts, violations
from oracles.earley import Oracle
from oracles.gnf import Gnf, TooLargeError, to_gnf
from oracles.model import (
    CharClass,
    Choice,
    Empty,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    encode,
    grammar,
    lower,
    to_ebnf,
    utf8_ranges,
)
from oracles.sentences import SentenceSampler, random_prefix
from strategies.grammars import build_grammar, grammars, random_grammar, reachable_rules
from strategies.profiles import CASES, examples
from strategies.vocabularies import build_vocabulary, vocabularies
from strategies.walks import walks

A, B, C = Literal(b"a"), Literal(b"b"), Literal(b"c")
ROOT = Ref("root")

SEEDS = st.integers(0, 1 << 32)

# name: rules, sentences, viable and no sentence, viable only unpruned, dead
TABLE = {
    "literal": ({"root": "ab"}, ["ab"], ["", "a"], [], ["b", "abc"]),
    "empty": ({"root": Empty()}, [""], [], [], ["a"]),
    "empty class": ({"root": Seq((A, CharClass(())))}, [], [], ["", "a"], ["b", "aa"]),
    "right recursion": (
        {"root": Choice((Seq((A, ROOT)), B))},
        ["b", "aab"],
        ["", "a", "aa"],
        [],
        ["ba", "c"],
    ),
    "left recursion": (
        {"root": Choice((Seq((ROOT, A)), B))},
        ["b", "baa"],
        [""],
        [],
        ["a", "bb"],
    ),
    "mutual left recursion": (
        {"root": Choice((Seq((Ref("x"), A)), B)), "x": Choice((Seq((ROOT, C)), A))},
        ["b", "aa", "bca", "aaca"],
        ["", "a", "bc"],
        [],
        ["ba", "c"],
    ),
    "hidden left recursion": (
        {"root": Choice((Seq((Ref("n"), ROOT, B)), A)), "n": Choice((Empty(), C))},
        ["a", "ab", "cab", "ccabb"],
        ["", "c", "cc", "cca"],
        [],
        ["b", "ac", "cabbc"],
    ),
    "two nullable in a row": (
        {
            "root": Seq((Ref("n"), Ref("n"), Ref("n"), A)),
            "n": Choice((Empty(), Ref("m"))),
            "m": Empty(),
        },
        ["a"],
        [""],
        [],
        ["aa"],
    ),
    "nullable at the end": (
        {"root": Seq((A, Ref("n"))), "n": Choice((Empty(), Seq((Ref("n"), Ref("n"))), B))},
        ["a", "ab", "abb"],
        [""],
        [],
        ["b", "aba"],
    ),
    "cycle": (
        {"root": Choice((ROOT, Ref("x"))), "x": Choice((ROOT, A))},
        ["a"],
        [""],
        [],
        ["aa", "b"],
    ),
    "endless": ({"root": Seq((A, ROOT))}, [], [], ["", "a", "aaa"], ["b"]),
    "endless beside an end": (
        {"root": Choice((Seq((A, Ref("x"))), Seq((A, B)))), "x": Seq((C, Ref("x")))},
        ["ab"],
        ["", "a"],
        ["ac", "acc"],
        ["b", "aa"],
    ),
    "only itself": ({"root": ROOT}, [], [], [""], ["a"]),
    "brackets": (
        {"root": Choice((Empty(), Seq((Literal(b"("), ROOT, Literal(b")"), ROOT))))},
        ["", "()", "(())()"],
        ["(", "(()"],
        [],
        [")", "())"],
    ),
    "palindromes": (
        {"root": Choice((Empty(), A, Seq((A, ROOT, A)), Seq((B, ROOT, B))))},
        ["", "a", "aaa", "bab", "abba"],
        ["b", "ab", "aba"],
        [],
        ["c"],
    ),
    "bounds": (
        {"root": Seq((Repeat(A, 2, 4), Repeat(B, 1, None)))},
        ["aab", "aaaabbb"],
        ["", "aaa"],
        [],
        ["ab", "aaaaa"],
    ),
    "bounds of the nullable": (
        {"root": Seq((Repeat(Repeat(A, 0, 1), 2, 2), B))},
        ["b", "ab", "aab"],
        ["", "aa"],
        [],
        ["aaa", "aaab"],
    ),
    "no repetition": ({"root": Seq((Repeat(A, 0, 0), B))}, ["b"], [""], [], ["a"]),
    "ambiguous": (
        {"root": Choice((A, Seq((ROOT, ROOT)), Empty()))},
        ["", "a", "a" * 30],
        [],
        [],
        ["b", "ab"],
    ),
}


def table_grammar(name: str) -> Grammar:
    return grammar(TABLE[name][0])


def bytes_near(oracle: Oracle, vocabulary: list[bytes], random: Random) -> bytes:
    """Bytes that fit for a while and then perhaps do not."""
    text = random_prefix(oracle.unpruned.initial, random, random.randrange(8))
    if random.random() < 0.5:
        text = SentenceSampler(oracle.cfg).sample(random, 10) or text
    text = text[:40]
    if random.random() < 0.6:
        cut = random.randrange(len(text) + 1)
        text = text[:cut] + random.choice([*vocabulary, b""]) + text[cut + random.randrange(2) :]
    return text


class TestModel:
    @pytest.mark.parametrize("low", [0, 0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xFFFF, 0x10FFF0])
    @pytest.mark.parametrize("length", [0, 1, 2, 63, 64, 65, 5000])
    def test_utf8_ranges_take_exactly_the_encodings(self, low, length):
        high = min(low + length, 0x10FFFF)
        sequences = utf8_ranges(low, high)
        count = 0
        for sequence in sequences:
            size = 1
            for a, b in sequence:
                assert a <= b
                size *= b - a + 1
            count += size
        assert count == high - low + 1  # as many as code points, so none twice and none too many
        for code_point in range(low, high + 1):
            data = encode(code_point)
            assert any(
                len(s) == len(data)
                and all(a <= byte <= b for byte, (a, b) in zip(data, s, strict=True))
                for s in sequences
            )

    def test_negated_class(self):
        assert CharClass(((5, 9), (0, 2), (3, 4)), negated=True).code_points() == [(10, 0x10FFFF)]
        assert CharClass((), negated=True).code_points() == [(0, 0x10FFFF)]
        assert CharClass(((0, 0x10FFFF),), negated=True).code_points() == []

    def test_text(self):
        rules = {
            "root": Seq((Literal(b'a"\\'), Choice((Ref("x"), Empty())), Repeat(Ref("x"), 2, None))),
            "x": CharClass(
                ((0x5D, 0x5D), (0x61, 0x7A), (0xE9, 0xE9), (0x1F600, 0x1F64F)), negated=True
            ),
        }
        assert to_ebnf(grammar(rules)).splitlines() == [
            'root ::= ("a\\x22\\x5c" (x | "") (x){2,})',
            "x ::= [^\\x5da-z\\u00e9\\U0001f600-\\U0001f64f]",
        ]

    def test_lowering(self):
        rules = {"root": Seq((Repeat(A, 1, 2), Ref("x"))), "x": Choice((B, Empty()))}
        assert str(lower(grammar(rules))).splitlines() == [
            '("a")? -> ε',
            '("a")? -> [a]',
            '("a"){1,2} -> [a] ("a")?',
            'root -> ("a"){1,2} x',
            "x -> [b]",
            "x -> ε",
        ]


class TestEarley:
    @pytest.mark.parametrize("name", TABLE)
    def test_table(self, name):
        rules, sentences, viable, unpruned, dead = TABLE[name]
        oracle = Oracle(grammar(rules))
        for text in sentences + viable + unpruned + dead:
            data = text.encode()
            verdict = (oracle.accepts(data), oracle.viable(data), oracle.viable_unpruned(data))
            assert verdict == (
                text in sentences,
                text in sentences + viable,
                text not in dead,
            ), text

    @pytest.mark.parametrize("name", TABLE)
    def test_table_against_xgrammar(self, name):
        xgrammar_truth = pytest.importorskip("oracles.xgrammar_truth")
        rules, sentences, viable, unpruned, dead = TABLE[name]
        truth = xgrammar_truth.ByteTruth(grammar(rules))
        for text in sentences + viable + unpruned + dead:
            taken, complete = truth.read(text.encode())
            assert (taken < len(text)) == (text in dead)
            assert (taken == len(text) and complete[-1]) == (text in sentences)

    def test_states_can_be_shared(self):
        start = Oracle(table_grammar("brackets")).unpruned.initial
        one, other = start.feed(b"(("), start.feed(b"()")
        assert one.next_bytes() == [0x28, 0x29]
        assert (start.accepting, one.accepting, other.accepting) == (True, False, True)
        assert one.mask([b"))", b")))", b"", b"((("]) == [True, False, False, True]
        assert start.mask([b")", b"("]) == [False, True]

    @examples(60)
    @given(grammars(), SEEDS)
    def test_bytes_against_xgrammar(self, g, seed):
        xgrammar_truth = pytest.importorskip("oracles.xgrammar_truth")
        note(to_ebnf(g))
        random, oracle = Random(seed), Oracle(g)
        vocabulary = build_vocabulary(random, g, size=12)
        truth = xgrammar_truth.ByteTruth(g)
        for _ in range(12):
            data = bytes_near(oracle, vocabulary, random)
            state = oracle.unpruned.initial
            complete = [state.accepting]
            for byte in data:
                state = state.step(byte)
                if not state.viable:
                    break
                complete.append(state.accepting)
            assert truth.read(data) == (len(complete) - 1, complete), data
            CASES["oracles: byte strings, Earley against XGrammar"] += 1

    @examples(25)
    @given(grammars(unproductive=0.5), SEEDS)
    def test_viable_is_what_can_be_completed(self, g, seed):
        """Pruned viability, against completions that were really found."""
        random, oracle = Random(seed), Oracle(g)
        sentence = SentenceSampler(oracle.cfg).sample(random, 10)
        assert (sentence is not None) == oracle.productive
        if sentence is not None:
            assert oracle.accepts(sentence)
            assert all(oracle.viable(sentence[:cut]) for cut in range(len(sentence) + 1))
        state = oracle.initial(prune=True)
        text = random_prefix(state, random, 5)
        assert not text or oracle.viable(text)
        if oracle.productive and len(g.rules) < 3:
            rest = completion(oracle, text)
            if rest is None:
                event("no completion found")
            else:
                assert oracle.accepts(text + rest)


def completion(oracle: Oracle, text: bytes, limit: int = 3000) -> bytes | None:
    """The rest of a sentence that begins with the text: the shortest one there is."""
    frontier = [(oracle.initial(prune=True).feed(text), b"")]
    for state, rest in frontier:
        if state.accepting:
            return rest
        if len(frontier) > limit:
            break
        frontier += [(state.step(byte), rest + bytes((byte,))) for byte in state.next_bytes()[:3]]
    return None


class TestGnf:
    @pytest.mark.parametrize("name", TABLE)
    def test_table(self, name):
        rules, sentences, viable, unpruned, dead = TABLE[name]
        gnf = to_gnf(lower(grammar(rules)))
        for text in sentences + viable + unpruned + dead:
            assert gnf.accepts(text.encode()) == (text in sentences), text

    @examples(80)
    @given(grammars(), SEEDS)
    def test_language_is_the_grammars(self, g, seed):
        note(to_ebnf(g))
        random, oracle = Random(seed), Oracle(g)
        try:
            gnf = to_gnf(oracle.cfg, max_productions=800)
        except TooLargeError:
            event("too large")
            return
        vocabulary = build_vocabulary(random, g, size=8)
        for _ in range(8):
            data = bytes_near(oracle, vocabulary, random)[:8]
            assert gnf.accepts(data) == oracle.accepts(data), data
            CASES["oracles: byte strings, GNF against Earley"] += 1

    def test_displacement_by_hand(self):
        """S -> ( S ) | x: what is popped and what is left, spelled out."""
        rules = {"root": Choice((Seq((Literal(b"("), ROOT, Literal(b")"))), Literal(b"x")))}
        gnf = to_gnf(lower(grammar(rules)), merge_equal=False)
        start, root, close = gnf.start, "0:root", "[)]"
        assert gnf.displacement(b"x") == {((start,), ()), ((root,), ())}
        assert gnf.displacement(b"(") == {
            ((start,), (root, close)),
            ((root,), (root, close)),
        }
        assert gnf.displacement(b")") == {((close,), ())}
        assert gnf.displacement(b"x))") == {((root, close, close), ())}
        assert gnf.displacement(b")x") == frozenset()
        assert gnf.displacement(b"x)") == {((root, close), ())}
        assert gnf.displacement(b"(x") == {((start,), (close,)), ((root,), (close,))}
        unrestricted = gnf.displacement(b"x)", adjacency=False)
        assert unrestricted == {((root, close), ()), ((start, close), ())}

    def test_partition_by_hand(self):
        rules = {
            "root": Choice((Seq((ROOT, Literal(b"+"), ROOT)), Ref("digit"))),
            "digit": CharClass(((0x30, 0x39),)),
        }
        vocabulary = [b"1", b"22", b"7", b"+", b"1+1", b"9+9", b"+5", b"x", b"", b"++"]
        gnf = to_gnf(lower(grammar(rules)))
        assert gnf.partition(vocabulary) == [0, -1, 0, 1, 2, 2, 3, -1, -1, -1]

    def test_stack_adjacency_by_hand(self):
        """Appendix C: what is popped last, leaving nothing, right before what stands beneath."""
        a, b, c = (frozenset((byte,)) for byte in b"abc")
        rules = {
            "S": {(a, ("A", "B"))},
            "A": {(a, ("B", "C"))},  # its last byte is read by C, or by what C ends with
            "B": {(b, ())},
            "C": {(c, ()), (b, ("D",))},
            "D": {(a, ())},
        }
        gnf = Gnf(rules, "S", nullable=False)
        assert gnf.adjacent == {("B", "C"), ("C", "B"), ("D", "B")}
        assert gnf.displacement(b"cb") == {(("C", "B"), ())}
        assert gnf.displacement(b"bab") == {(("C", "B"), ())}  # D goes, then B, for C was above B
        assert gnf.displacement(b"ab") == {(("D", "B"), ()), (("A",), ("C",))}
        assert gnf.displacement(b"bcb") == {(("B", "C", "B"), ())}
        assert gnf.displacement(b"bb") == {(("B", "C"), ("D",))}
        unrestricted = gnf.displacement(b"bb", adjacency=False)
        assert unrestricted == {(("B", "C"), ("D",)), (("B", "B"), ())}

    @examples(40)
    @given(grammars(max_rules=3), st.data())
    def test_partition_is_sound(self, g, data):
        """Tokens of equal displacement are never told apart by a context that was tried."""
        vocabulary = data.draw(vocabularies(g, max_size=16))
        random = Random(data.draw(SEEDS))
        note(to_ebnf(g))
        oracle = Oracle(g)
        try:
            gnf = to_gnf(oracle.cfg, max_productions=300)
            partitions = {
                adjacency: gnf.partition(vocabulary, adjacency=adjacency, max_configurations=1000)
                for adjacency in (True, False)
            }
        except TooLargeError:
            event("too large")
            return
        contexts = sample_contexts(oracle, vocabulary, random, count=40)
        for partition in partitions.values():
            assert violations(oracle, vocabulary, partition, contexts) == []
        CASES["oracles: tokens, Algorithm 1 against sampled contexts"] += len(vocabulary)
        for token in filter(None, vocabulary):
            restricted = gnf.displacement(token, max_configurations=1000)
            assert restricted <= gnf.displacement(token, adjacency=False, max_configurations=1000)


class TestCongruence:
    G = grammar({"root": Seq((Literal(b"("), Repeat(A, 0, None), Choice((B, Literal(b"bc")))))})
    VOCABULARY = (b"a", b"aa", b"b", b"bc", b"c", b"z")

    def test_tells_apart(self):
        oracle = Oracle(self.G)
        contexts = [
            Context(b"(", b"b"),
            Context(b"(", b""),
            Context(b"(b", b""),
            Context(b"(", b"c"),
        ]
        assert lower_bound(oracle, self.VOCABULARY, contexts) == [0, 0, 1, 2, 3, -1]

    def test_wrong_partitions_are_found_out(self):
        oracle = Oracle(self.G)
        contexts = sample_contexts(oracle, self.VOCABULARY, Random(1))
        assert violations(oracle, self.VOCABULARY, [0, 0, 1, 2, 3, -1], contexts) == []
        merged = violations(oracle, self.VOCABULARY, [0, 0, 1, 1, 3, -1], contexts)
        assert [(v.token, v.same_class_as) for v in merged] == [(b"bc", b"b")]
        lost = violations(oracle, self.VOCABULARY, [0, 0, 1, 2, -1, -1], contexts)
        assert [(v.token, v.same_class_as) for v in lost] == [(b"c", None)]

    def test_unpruned_contexts_go_where_nothing_ends(self):
        g = grammar({"root": Choice((Seq((A, Ref("x"))), B)), "x": Seq((C, Ref("x")))})
        oracle, vocabulary = Oracle(g), [b"a", b"b", b"c", b"cc", b"d"]
        pruned = sample_contexts(oracle, vocabulary, Random(1))
        unpruned = sample_contexts(oracle, vocabulary, Random(1), prune=False)
        assert lower_bound(oracle, vocabulary, pruned) == [-1, 0, -1, -1, -1]
        assert lower_bound(oracle, vocabulary, unpruned, prune=False) == [0, 1, 2, 2, -1]


class TestGenerators:
    def test_seeded(self):
        assert random_grammar(7, 40) == random_grammar(7, 40) != random_grammar(8, 40)
        one = build_vocabulary(Random(3), random_grammar(7, 5), size=30)
        assert one == build_vocabulary(Random(3), random_grammar(7, 5), size=30)

    @pytest.mark.parametrize("rules", [1, 5, 20, 40])
    def test_benchmark_grammars_are_whole(self, rules):
        for seed in range(10):
            g = random_grammar(seed, rules)
            cfg = lower(g)
            assert len(g.rules) == rules
            assert reachable_rules(g.rules, g.root) == set(g.rules)
            assert set(range(rules)) <= cfg.productive()

    def test_grammars_are_varied(self):
        """The nasty cases do come up."""
        seen = dict.fromkeys(
            ["nullable", "endless", "recursive root", "left recursive", "multi-byte", "two rules"],
            0,
        )
        for seed in range(300):
            random = Random(seed)
            g = build_grammar(random, rules=random.randint(1, 4))
            cfg = lower(g)
            used = {p.lhs for p in cfg.pruned().productions}
            seen["nullable"] += bool(cfg.nullable())
            seen["endless"] += len(cfg.pruned().productions) < len(cfg.productions)
            seen["recursive root"] += any(cfg.start in p.rhs for p in cfg.productions)
            seen["left recursive"] += any(p.rhs[:1] == (p.lhs,) for p in cfg.productions)
            seen["multi-byte"] += any(
                isinstance(s, frozenset) and max(s, default=0) > 0x7F
                for p in cfg.productions
                for s in p.rhs
            )
            seen["two rules"] += len(used) > 1
        assert min(seen.values()) >= 60, seen

    def test_vocabularies_are_varied(self):
        seen = Counter[str]()
        for seed in range(100):
            random = Random(seed)
            g = build_grammar(random, rules=3)
            vocabulary = build_vocabulary(random, g, size=20, long_runs=seed % 4 == 0)
            oracle = Oracle(g)
            seen["empty"] += b"" in vocabulary
            seen["duplicate"] += len(set(vocabulary)) < len(vocabulary)
            seen["long"] += max(map(len, vocabulary)) >= 64
            seen["run"] += any(len(t) > 2 and len(set(t)) == 1 for t in vocabulary)
            seen["not UTF-8"] += any(b"\xff" in t or t[:1] > b"\x7f" for t in vocabulary)
            seen["viable"] += any(oracle.unpruned.initial.mask(vocabulary))
        assert min(seen.values()) >= 20, seen

    @examples(5)
    @given(walks())
    def test_walks(self, walk):
        assert len(walk) <= 12
