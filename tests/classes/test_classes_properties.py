"""Token classes against the slow truths, on random grammars and vocabularies.

- against Earley: no walk, and no walk with tokens replaced by others of their class, tells two
  tokens of one class apart (lossless: docs/design/classes.md, "Displacement"; both with and
  without pruning);
- against sampled contexts: a class never merges what some context treats differently;
- against Algorithm 1 of CFGzip: how much finer or coarser than the paper's partition ours is;
- under work budgets: fewer tokens are folded, never wrongly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st
from oracles.congruence import lower_bound, sample_contexts, violations
from oracles.earley import Oracle, State
from oracles.gnf import TooLargeError, to_gnf
from oracles.model import (
    CharClass,
    Choice,
    Empty,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    grammar,
    lower,
    to_ebnf,
)
from oracles.sentences import SentenceSampler, random_prefix
from strategies.grammars import build_grammar, grammars, random_grammar
from strategies.profiles import CASES, LONG, examples
from strategies.vocabularies import build_vocabulary, vocabularies

tokfold = pytest.importorskip("tokfold")
pytest.importorskip("tokfold._core")

SEEDS = st.integers(0, 1 << 32)

ClassOf = Sequence[int]


def compile_classes(g: Grammar, vocabulary: Sequence[bytes], *, prune: bool, **limits):
    """Our classes, by way of text."""
    return tokfold.compile_classes(
        tokfold.Grammar.from_ebnf(to_ebnf(g), root=g.root),
        tokfold.Vocabulary(list(vocabulary)),
        limits=tokfold.Limits(**limits) if limits else None,
        prune=prune,
    )


def has_text(vocabulary: Sequence[bytes]) -> bool:
    """A vocabulary in which no token has bytes is refused."""
    return any(vocabulary)


# --- lossless ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """Two tokens of one class that a walk tells apart, or a valid token of class -1."""

    prefix: tuple[bytes, ...]
    token: bytes
    other: bytes | None
    what: str


def behaviour(state: State, token: bytes, vocabulary: Sequence[bytes]) -> tuple[object, ...]:
    """All that can be seen of a token within two steps."""
    if not state.allowed(token):
        return ("refused",)
    after = state.feed(token)
    return ("taken", after.accepting, tuple(after.mask(vocabulary)))


def differences(
    oracle: Oracle,
    vocabulary: Sequence[bytes],
    class_of: ClassOf,
    random: Random,
    *,
    prune: bool,
    walks: int = 4,
    steps: int = 5,
) -> list[Difference]:
    """Walks that prove the partition wrong: an empty list for a lossless one.

    Every walk is made twice: with some tokens, and with others of the same classes. Both must
    always have the same tokens to choose from.
    """
    members: dict[int, list[bytes]] = {}
    for token, class_ in zip(vocabulary, class_of, strict=True):
        members.setdefault(int(class_), []).append(token)
    for _ in range(walks):
        plain = swapped = oracle.initial(prune)
        path: list[bytes] = []
        for _ in range(steps):
            CASES["classes: tokens, walks with Earley"] += len(vocabulary)
            if prune and not oracle.productive:
                break
            for class_, tokens in members.items():
                if class_ != -1 and len(set(tokens)) == 1:
                    continue
                seen = [behaviour(plain, token, vocabulary) for token in tokens]
                expected = ("refused",) if class_ == -1 else seen[0]
                for token, what in zip(tokens, seen, strict=True):
                    if what != expected:
                        other = None if class_ == -1 else tokens[0]
                        return [Difference(tuple(path), token, other, "in one state")]
            if plain.mask(vocabulary) != swapped.mask(vocabulary):
                return [Difference(tuple(path), b"", None, "after tokens were replaced")]
            if plain.accepting != swapped.accepting:
                return [Difference(tuple(path), b"", None, "end, after tokens were replaced")]
            allowed = [t for t, ok in enumerate(plain.mask(vocabulary)) if ok]
            if not allowed:
                break
            chosen = random.choice(allowed)
            path.append(vocabulary[chosen])
            plain = plain.feed(vocabulary[chosen])
            swapped = swapped.feed(random.choice(members[int(class_of[chosen])]))
    return []


A, B, C = Literal(b"a"), Literal(b"b"), Literal(b"c")
ROOT, X, Y = Ref("root"), Ref("x"), Ref("y")
NOTHING = CharClass(())

DEAD_ENDS = {
    "nothing at the end": {"root": Choice((Seq((A, NOTHING)), B))},
    "nothing in between": {"root": Choice((Seq((A, NOTHING, B)), Seq((A, C)), C))},
    "all but everything": {"root": Choice((Seq((A, CharClass(((0, 0x10FFFF),), True))), B))},
    "only dead ends": {"root": Seq((A, B, NOTHING))},
    "a rule of nothing": {"root": Choice((Seq((A, X)), B)), "x": NOTHING},
    "only itself": {"root": Choice((Seq((A, X)), B)), "x": X},
    "only each other": {"root": Choice((Seq((A, X, B)), B)), "x": Y, "y": X},
    "left recursion without end": {"root": Choice((Seq((A, X)), B)), "x": Seq((X, A))},
    "hidden left recursion without end": {
        "root": Choice((Seq((A, X)), B)),
        "x": Seq((Repeat(C, 0, 1), X, A)),
    },
    "squared": {"root": Choice((Seq((A, X, A)), B)), "x": Seq((X, X))},
    "nothing, repeated": {"root": Choice((Seq((A, Repeat(NOTHING, 1, None))), B))},
    "nothing, or more": {"root": Choice((Seq((A, Repeat(NOTHING, 0, None), B)), B))},
    "behind the empty": {"root": Choice((Seq((A, Repeat(B, 0, 1), NOTHING)), B))},
    "endless": {"root": Choice((Seq((A, X)), B)), "x": Seq((B, X))},
    "endless, then dead": {
        "root": Choice((Seq((A, X, B)), B)),
        "x": Choice((Seq((B, X)), NOTHING)),
    },
    "at the end of a call": {"root": Choice((Seq((X, B)), C)), "x": Choice((Seq((A, NOTHING)), A))},
    "deep": {"root": Choice((Seq((A, ROOT, B)), Seq((A, NOTHING)), C))},
}


class TestLossless:
    @pytest.mark.parametrize("prune", [False, True])
    @examples(60)
    @given(g=grammars(), data=st.data())
    def test_random_walks(self, prune, g, data):
        vocabulary = data.draw(vocabularies(g))
        random = Random(data.draw(SEEDS))
        check_lossless(g, vocabulary, random, prune=prune)

    @pytest.mark.parametrize("prune", [False, True])
    @examples(6)
    @given(g=grammars(max_rules=3), data=st.data())
    def test_long_runs(self, prune, g, data):
        vocabulary = data.draw(vocabularies(g, max_size=8, long_runs=True))
        random = Random(data.draw(SEEDS))
        check_lossless(g, vocabulary, random, prune=prune, walks=2, steps=2)

    @pytest.mark.parametrize("prune", [False, True])
    @pytest.mark.parametrize("seed", range(200 if LONG else 6))
    def test_large_grammars(self, prune, seed):
        random = Random(seed)
        g = random_grammar(seed, random.randint(5, 40 if LONG else 12))
        vocabulary = build_vocabulary(random, g, size=20)
        check_lossless(g, vocabulary, random, prune=prune, walks=2, steps=2)

    @pytest.mark.parametrize("prune", [False, True])
    @pytest.mark.parametrize("name", DEAD_ENDS)
    def test_dead_ends(self, prune, name):
        """Bytes after which nothing can follow: to XGrammar they are as good as any other."""
        g = grammar(DEAD_ENDS[name])
        vocabulary = [b"a", b"b", b"ab", b"abb", b"c", b"ac", b"acb", b"aa", b"ba"]
        check_lossless(g, vocabulary, Random(1), prune=prune, walks=8)

    @pytest.mark.parametrize("prune", [False, True])
    def test_wrong_partitions_are_found_out(self, prune):
        """The check has teeth: merge two classes, or drop one, and it says so."""
        found = tried = 0
        for seed in range(30):
            random = Random(seed)
            g = build_grammar(random, rules=3, unproductive=0.0)
            oracle = Oracle(g)
            vocabulary = [t for t in build_vocabulary(random, g, size=12) if t] or [b"a"]
            if not oracle.productive:
                continue
            classes = compile_classes(g, vocabulary, prune=prune)
            if len(classes) < 2:
                continue
            contexts = sample_contexts(oracle, vocabulary, random, prune=prune)
            certain = lower_bound(oracle, vocabulary, contexts, prune=prune)
            if len(set(certain) - {-1}) < 2:
                continue
            one, other = (certain.index(c) for c in sorted(set(certain) - {-1})[:2])
            merged = classes.class_of.copy()
            merged[merged == merged[other]] = merged[one]
            lost = classes.class_of.copy()
            lost[lost == lost[other]] = -1
            for wrong in (merged, lost):
                tried += 1
                found += bool(
                    differences(oracle, vocabulary, wrong, Random(seed), prune=prune, walks=12)
                )
        assert tried >= 20
        assert found >= 0.8 * tried, (found, tried)


def check_lossless(
    g: Grammar, vocabulary: Sequence[bytes], random: Random, *, prune: bool, **walk_options
) -> None:
    """Compiles, or sees that it is refused for the right reason, and walks."""
    oracle = Oracle(g)
    if not has_text(vocabulary):
        return
    if prune and not oracle.productive:
        with pytest.raises(tokfold.UnsupportedGrammarError):
            compile_classes(g, vocabulary, prune=True)
        return
    classes = compile_classes(g, vocabulary, prune=prune)
    found = differences(oracle, vocabulary, classes.class_of, random, prune=prune, **walk_options)
    contexts = sample_contexts(oracle, vocabulary, random, count=15, prune=prune)
    found += violations(oracle, vocabulary, classes.class_of, contexts, prune=prune)
    CASES["classes: grammars with a vocabulary"] += 1
    assert found == [], f"{to_ebnf(g)}{vocabulary}\n{classes.class_of.tolist()}"


class TestLimits:
    @pytest.mark.parametrize("prune", [False, True])
    @examples(25)
    @given(
        g=grammars(),
        limits=st.fixed_dictionaries(
            {"max_token_work": st.sampled_from([1, 2, 5, 20, 100])},
            optional={"max_total_work": st.sampled_from([1, 10, 100, 1000])},
        ),
        data=st.data(),
    )
    def test_budgets_fold_less_and_never_wrongly(self, prune, g, limits, data):
        vocabulary = data.draw(vocabularies(g, max_size=12))
        note(to_ebnf(g))
        oracle = Oracle(g)
        if not has_text(vocabulary) or (prune and not oracle.productive):
            return
        free = compile_classes(g, vocabulary, prune=prune)
        bound = compile_classes(g, vocabulary, prune=prune, **limits)
        note(f"{limits}: {bound.class_of.tolist()}, free: {free.class_of.tolist()}")
        random = Random(data.draw(SEEDS))
        assert not differences(oracle, vocabulary, bound.class_of, random, prune=prune, walks=3)
        for one, other in combinations(range(len(vocabulary)), 2):
            if bound.class_of[one] == bound.class_of[other] >= 0:
                assert free.class_of[one] == free.class_of[other]
        event("some token over budget" if len(bound) > len(free) else "within budget")

    def test_budgets_do_bite(self):
        """Without this the test above could pass by never reaching a budget."""
        more = 0
        for seed in range(20):
            g = random_grammar(seed, 8)
            vocabulary = build_vocabulary(Random(seed), g, size=30)
            free = compile_classes(g, vocabulary, prune=False)
            bound = compile_classes(g, vocabulary, prune=False, max_token_work=1)
            more += len(bound) > len(free)
        assert more >= 3, more


class TestContract:
    @examples(25)
    @given(g=grammars(), data=st.data())
    def test_what_the_arrays_say(self, g, data):
        vocabulary = data.draw(vocabularies(g))
        if not has_text(vocabulary):
            return
        classes = compile_classes(g, vocabulary, prune=False)
        class_of = classes.class_of
        assert class_of.dtype == np.int32
        assert class_of.shape == (len(vocabulary),)
        assert set(class_of.tolist()) - {-1} == set(range(len(classes)))
        firsts = [class_of.tolist().index(c) for c in range(len(classes))]
        assert firsts == sorted(firsts)
        assert len(classes.representatives) == len(classes)
        for c, representative in enumerate(classes.representatives):
            members = classes.members(c)
            assert members.tolist() == np.flatnonzero(class_of == c).tolist()
            texts = [vocabulary[m] for m in members]
            assert representative == min(texts, key=len)
        for token, class_ in zip(vocabulary, class_of, strict=True):
            assert token or class_ == -1
        by_text = {token: class_ for token, class_ in zip(vocabulary, class_of, strict=True)}
        assert [by_text[token] for token in vocabulary] == class_of.tolist()  # duplicates

    @examples(15)
    @given(g=grammars(), data=st.data())
    def test_stop_and_special_tokens(self, g, data):
        vocabulary = data.draw(vocabularies(g, min_size=4))
        ids = data.draw(st.permutations(range(len(vocabulary))))
        stops, specials = sorted(ids[:2]), ids[2:3]
        rest = [b"" if i in ids[:3] else token for i, token in enumerate(vocabulary)]
        if not has_text(rest):
            return
        parsed = tokfold.Grammar.from_ebnf(to_ebnf(g))
        classes = tokfold.compile_classes(
            parsed,
            tokfold.Vocabulary(vocabulary, stop_token_ids=stops, special_token_ids=specials),
            prune=False,
        )
        plain = tokfold.compile_classes(parsed, tokfold.Vocabulary(rest), prune=False)
        assert [classes.members(c).tolist() for c in classes.class_of[stops]] == [
            [s] for s in stops
        ]
        assert classes.class_of[specials].tolist() == [-1]
        others = [i for i in range(len(vocabulary)) if i not in stops]
        assert classes.class_of[others].tolist() == plain.class_of[others].tolist()

    @examples(15)
    @given(g=grammars(), data=st.data())
    def test_text_comes_back(self, g, data):
        """The printed grammar gives the same classes; so does asking twice."""
        vocabulary = data.draw(vocabularies(g))
        if not has_text(vocabulary):
            return
        parsed = tokfold.Grammar.from_ebnf(to_ebnf(g))
        again = tokfold.Grammar.from_ebnf(str(parsed))
        assert str(again) == str(parsed)
        tokens = tokfold.Vocabulary(vocabulary)
        one, other, twice = (
            tokfold.compile_classes(x, tokens, prune=False).class_of
            for x in (parsed, again, parsed)
        )
        assert one.tolist() == other.tolist() == twice.tolist()


class TestRecognizer:
    @examples(50)
    @given(g=grammars(), seed=SEEDS)
    def test_against_earley(self, g, seed):
        note(to_ebnf(g))
        random, oracle = Random(seed), Oracle(g)
        parsed = tokfold.Grammar.from_ebnf(to_ebnf(g))
        if not oracle.productive:
            with pytest.raises(tokfold.UnsupportedGrammarError):
                tokfold.recognize(parsed, b"")
            return
        vocabulary = build_vocabulary(random, g, size=6)
        for _ in range(8):
            text = SentenceSampler(oracle.cfg).sample(random, 12) or b""
            if random.random() < 0.6:
                cut = random.randrange(len(text) + 1)
                text = text[:cut] + random.choice(vocabulary) + text[cut + random.randrange(2) :]
            if random.random() < 0.2:
                text = random_prefix(oracle.unpruned.initial, random, 8)
            text = text[:60]
            read = max(n for n in range(len(text) + 1) if oracle.viable(text[:n]))
            result = tokfold.recognize(parsed, text)
            assert (result.accepted, result.read) == (oracle.accepts(text), read), text
            assert result.complete == oracle.accepts(text[:read]), text
            state = oracle.pruned.initial.feed(text[:read])
            assert list(result.expected) == state.next_bytes(), text
            CASES["recognizer: byte strings against Earley"] += 1


# --- the paper's partition ----------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Our partition beside that of Algorithm 1."""

    ours: int
    paper: int
    split_by_ours: list[tuple[bytes, bytes]]  # which the paper merges: we could do better
    merged_by_ours: list[tuple[bytes, bytes]]  # which the paper splits: we do better


def compare_with_paper(
    g: Grammar,
    vocabulary: Sequence[bytes],
    *,
    max_productions: int = 300,
    max_configurations: int = 1000,
) -> Comparison:
    """Both partitions of the pruned grammar.

    Raises:
        TooLargeError: the paper's construction grew too large.
    """
    gnf = to_gnf(lower(g), max_productions=max_productions)
    paper = gnf.partition(vocabulary, max_configurations=max_configurations)
    ours = compile_classes(g, vocabulary, prune=True).class_of.tolist()
    pairs = list(combinations(range(len(vocabulary)), 2))
    return Comparison(
        ours=len(set(ours) - {-1}),
        paper=len(set(paper) - {-1}),
        split_by_ours=[
            (vocabulary[a], vocabulary[b])
            for a, b in pairs
            if ours[a] != ours[b] and paper[a] == paper[b]
        ],
        merged_by_ours=[
            (vocabulary[a], vocabulary[b])
            for a, b in pairs
            if ours[a] == ours[b] and paper[a] != paper[b]
        ],
    )


DIGIT = CharClass(((0x30, 0x39),))
LETTER = CharClass(((0x61, 0x7A),))


def text(string: str) -> Literal:
    return Literal(string.encode())


def words(string: str) -> list[str]:
    return string.split()


# name: rules, vocabulary
USUAL = {
    "arithmetic": (
        {
            "root": Choice((Seq((ROOT, Choice((text("+"), text("-"))), X)), X)),
            "x": Choice((Repeat(DIGIT, 1, None), Seq((text("("), ROOT, text(")"))))),
        },
        words("1 12 + - +1 -2 ( (( (1 ) )) 1) 1+ 1+1 1-2 )+"),
    ),
    "ambiguous arithmetic": (
        {
            "root": Choice(
                (Seq((ROOT, Choice((text("+"), text("-"))), ROOT)), Repeat(DIGIT, 1, None))
            )
        },
        words("1 12 + - +1 -2 1+ 1+1 1-2+3 +1+"),
    ),
    "runs": (
        {"root": Choice((Seq((text("-"), ROOT)), Seq((ROOT, text("-"), ROOT)), text("x")))},
        words("- -- --- -------- x x- -x --x x-x x--x"),
    ),
    "brackets": (
        {
            "root": Repeat(
                Choice((Seq((text("("), ROOT, text(")"))), Seq((text("["), ROOT, text("]"))))),
                0,
                None,
            )
        },
        words("( [ ) ] () [] (( ([ )) )] )( ([]) ()[] ]( (]"),
    ),
    "values": (
        {
            "root": Choice((Ref("object"), Ref("array"), Ref("string"), DIGIT)),
            "object": Seq(
                (text("{"), Repeat(Seq((Ref("string"), text(":"), ROOT)), 0, 1), text("}"))
            ),
            "array": Seq((text("["), ROOT, Repeat(Seq((text(","), ROOT)), 0, None), text("]"))),
            "string": Seq((text('"'), Repeat(LETTER, 0, None), text('"'))),
        },
        words('{ } [ ] " "a ab a" ": "," , 1 1, ,1 ]] }} {" {}'),
    ),
    "names and keywords": (
        {
            "root": Seq((Choice((text("if"), text("in"), Ref("name"))), text(" "), Ref("name"))),
            "name": Seq((LETTER, Repeat(Choice((LETTER, DIGIT)), 0, None))),
        },
        ["i", "if", "in", "int", "a", "abc", "a1", "1", " ", " i", "if ", "f", "n", "b c"],
    ),
    "dangling else": (
        {
            "root": Choice(
                (Seq((text("i"), ROOT, Repeat(Seq((text("e"), ROOT)), 0, 1))), text("s"))
            ),
        },
        words("i ii s e es is ise eis se ses iseise"),
    ),
    "text of any script": (
        {"root": Seq((text('"'), Repeat(CharClass(((0x22, 0x22),), True), 0, None), text('"')))},
        ['"', "a", "é", "日本", "😀", '"a', 'a"', '""', '" '],
    ),
    "palindromes": (
        {"root": Choice((Empty(), A, B, Seq((A, ROOT, A)), Seq((B, ROOT, B))))},
        words("a b aa ab ba bb aba abb"),
    ),
}


# Where ours is finer. A state of our network can stand for several stacks of the normal form: here
# the one after a digit for {root root, root}. Beside it, the state that awaits one root adds
# nothing, which sets of stacks show and sets of states do not.
# name: rules, vocabulary, the pairs that only ours splits
FINER = {
    "one root, or one and another": (
        {
            "root": Choice(
                (
                    Seq((text(","), DIGIT, ROOT)),
                    Seq((DIGIT, ROOT, ROOT)),
                    Seq((DIGIT, ROOT)),
                    Seq((text(","), ROOT)),
                    text("["),
                )
            )
        },
        words("98 1,5 [ , 1"),
        [(b"98", b"1,5")],
    ),
}


class TestPaper:
    """Ours against Algorithm 1, on the pruned grammar."""

    @pytest.mark.parametrize("name", USUAL)
    def test_usual_grammars(self, name):
        """Whatever the paper merges, so do we; and nothing that a context tells apart."""
        rules, texts = USUAL[name]
        g, vocabulary = grammar(rules), [t.encode() for t in texts]
        comparison = compare_with_paper(g, vocabulary, max_productions=3000)
        assert comparison.split_by_ours == []
        assert comparison.ours <= comparison.paper
        check_lossless(g, vocabulary, Random(1), prune=True)

    @pytest.mark.parametrize("name", FINER)
    def test_known_to_be_finer(self, name):
        """At most what is explained above."""
        rules, texts, pairs = FINER[name]
        comparison = compare_with_paper(grammar(rules), [t.encode() for t in texts])
        assert set(comparison.split_by_ours) <= set(pairs)

    def test_random_grammars(self):
        """In the sum ours has fewer classes, and hardly ever one that the paper has not."""
        ours = paper = compared = finer = 0
        for seed in range(4000 if LONG else 120):
            random = Random(seed)
            g = build_grammar(random, rules=random.randint(1, 4), unproductive=0.1)
            vocabulary = build_vocabulary(random, g, size=16)
            if not has_text(vocabulary) or not Oracle(g).productive:
                continue
            try:
                comparison = compare_with_paper(g, vocabulary)
            except TooLargeError:
                continue
            compared += 1
            ours += comparison.ours
            paper += comparison.paper
            finer += bool(comparison.split_by_ours)
            CASES["paper: grammars where ours is coarser"] += bool(comparison.merged_by_ours)
        CASES["paper: grammars compared"] += compared
        CASES["paper: classes, ours"] += ours
        CASES["paper: classes, Algorithm 1"] += paper
        CASES["paper: grammars where ours splits what Algorithm 1 merges"] += finer
        assert compared >= 50
        assert ours <= 0.97 * paper
        assert finer <= 0.005 * compared
