"""Token edges in random grammars, beside the naive recognizer along tokens.

At every step of a random walk bit ``t`` of the mask must be what ``accept_token(t)`` says, and both
what the recognizer says: the text can be completed after the token, read by its bytes or whole. The
same over classes; and no walk tells tokens of one class apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

pytest.importorskip("tokfold._core")

import tokfold
from engine.token_edge_samples import MANY, ONE, OTHER
from hypothesis import event, given, note
from hypothesis import strategies as st
from oracles.earley import State
from oracles.tokens import TokenOracle, Tokens, readings
from strategies.engine import (
    Setting,
    allowed_tokens,
    build_counted_setting,
    check_walk,
    compiled_ways,
    compiled_with,
    mask_of,
)
from strategies.profiles import CASES, LONG, examples
from strategies.token_edges import build_counted_edge_setting, build_edge_setting, edge_settings
from strategies.walks import build_walk, walks

SEEDS = st.integers(0, 1 << 40)


def setting_of(random: Random, **options) -> Setting:
    return build_edge_setting(
        random, rules=random.randint(1, 5), size=random.randint(4, 20), **options
    )


class TestTheOracle:
    """Before it judges, it is judged: also beside XGrammar, in ``tests/differential``."""

    @examples(60)
    @given(seed=SEEDS)
    def test_both_readings_at_once_are_either(self, seed):
        """Every way to read some tokens, letter by letter."""
        random = Random(seed)
        setting = setting_of(random)
        note(str(setting))
        oracle, ids = setting.oracle, [t for t in range(len(setting.tokens))]
        ids = [t for t in ids if t not in setting.stops]
        if not oracle.productive:
            return
        path: list[int] = []
        for _ in range(3):
            at = oracle.follow(path)
            assert at is not None
            for token in ids:
                viable = accepting = False
                for letters in readings(oracle.tokens, (*path, token)):
                    state = oracle.initial()
                    for letter in letters:
                        state = state.step(letter)
                    viable |= state.viable
                    accepting |= state.accepting
                assert viable is oracle.viable((*path, token))
                assert accepting is oracle.accepts((*path, token))
                CASES["token edges: the oracle against all readings"] += 1
            allowed = [t for t in ids if oracle.allows(at, t)]
            if not allowed:
                break
            path.append(random.choice(allowed))

    def test_both_readings_matter(self):
        """Without this the settings could be such that it is no matter how tokens are read."""
        whole = ambiguous = special = 0
        for seed in range(60):
            setting = build_edge_setting(Random(seed))
            oracle = setting.oracle
            if not oracle.productive:
                continue
            state = oracle.initial()
            for token in sorted(oracle.takeable):
                by_bytes = oracle.read(state, token, whole=False).viable
                whole += oracle.read(state, token).viable and not by_bytes
                ambiguous += oracle.is_ambiguous(state, token)
                special += token in setting.specials and oracle.allows(state, token)
        assert whole > 60, whole
        assert ambiguous > 20, ambiguous
        assert special > 15, special


class TestWalks:
    """Masks, forks, rollback, states: never folded, folded, and folded less than could be."""

    @examples(60)
    @given(setting=edge_settings(), walk=walks())
    def test_random_walks(self, setting, walk):
        note(str(setting))
        event(f"accepted: {min(check_walk(setting, walk), 4)}")

    @examples(350)
    @given(seed=SEEDS)
    def test_seeded_walks(self, seed):
        random = Random(seed)
        setting = setting_of(random)
        note(str(setting))
        event(f"accepted: {min(check_walk(setting, build_walk(random, 10)), 9)}")

    @pytest.mark.parametrize("seed", range(300 if LONG else 8))
    def test_more_rules(self, seed):
        random = Random(seed)
        setting = build_edge_setting(random, rules=random.randint(6, 10), size=40)
        check_walk(setting, build_walk(random, 8))

    @examples(80)
    @given(seed=SEEDS)
    def test_counted_repetitions(self, seed):
        random = Random(seed)
        setting = build_counted_edge_setting(random)
        note(str(setting))
        event(f"accepted: {min(check_walk(setting, build_walk(random, 8)), 9)}")

    @examples(25)
    @given(seed=SEEDS)
    def test_far_into_counted_repetitions(self, seed):
        """Most walks are short, and these repetitions are long: this one goes to their bounds."""
        random = Random(seed)
        setting = build_counted_edge_setting(random)
        note(str(setting))
        ways = compiled_ways(setting)
        if ways is None:
            return
        matchers = [tokfold.Matcher(way) for way in ways]
        state, size = setting.oracle.initial(), len(setting.tokens)
        favourite = random.randrange(size - 1)
        for step in range(43):
            is_looked_at = step in (0, 2, 15, 16, 17, 18, 20, 33, 39, 40, 41)
            if is_looked_at or not setting.oracle.allows(state, favourite):
                expected = setting.oracle.mask(state)
                for matcher in matchers:
                    assert mask_of(matcher, size)[0] == expected
                    taken = [matcher.fork().accept_token(token) for token in range(size)]
                    assert taken == expected
                CASES["token edges: bits far into repetitions"] += size
                allowed = [t for t in allowed_tokens(expected) if t not in setting.stops]
                if not allowed:
                    break
                token = favourite if expected[favourite] else random.choice(allowed)
            else:
                token = favourite
            assert all(matcher.accept_token(token) for matcher in matchers)
            state = setting.oracle.read(state, token)
        event(f"steps: {step // 10 * 10}")

    def test_walks_lead_somewhere(self):
        """Without this the tests above could pass by standing still."""
        far = [
            check_walk(build_edge_setting(Random(seed)), build_walk(Random(seed), 10))
            for seed in range(12)
        ]
        assert sum(steps >= 3 for steps in far) >= 4, far

    @pytest.mark.parametrize("fault", ["never whole", "special text", "special tokens stay out"])
    def test_the_check_has_teeth(self, fault, monkeypatch):
        """An oracle that reads tokens wrongly is found out."""
        if fault == "never whole":
            plain = TokenOracle.read
            monkeypatch.setattr(TokenOracle, "read", lambda *of: plain(*of, whole=False))
        elif fault == "special text":
            monkeypatch.setattr(Tokens, "textual", Tokens.takeable)
        else:
            whole = Tokens.takeable.fget
            taken = property(lambda self: whole(self) - set(self.specials))
            monkeypatch.setattr(Tokens, "takeable", taken)

        def check_many() -> None:
            for seed in range(60):
                setting = build_edge_setting(Random(seed))
                check_walk(setting, build_walk(Random(seed), 6))

        with pytest.raises(AssertionError):
            check_many()


# --------------------------------------------------------------------- classes


def told_apart(
    setting: Setting,
    class_of: Sequence[int],
    random: Random,
    *,
    prune: bool,
    walks: int = 3,
    steps: int = 4,
) -> str | None:
    """A walk that proves a partition wrong, if one of some does.

    Every walk is made twice: with some tokens, and with others of the same classes. Both must
    always have the same tokens to choose from, and all of one class must lead to the same.
    """
    oracle, tokens = setting.oracle, range(len(setting.tokens))
    members: dict[int, list[int]] = {}
    for token in tokens:
        members.setdefault(int(class_of[token]), []).append(token)

    def behaviour(state: State, token: int) -> tuple[object, ...]:
        if token in setting.stops or not oracle.allows(state, token):
            return (oracle.allows(state, token),)
        after = oracle.read(state, token)
        return (True, after.accepting, *oracle.mask(after))

    for _ in range(walks):
        plain = swapped = oracle.initial(prune)
        for _ in range(steps):
            CASES["token edges: tokens of classes"] += len(tokens)
            for class_, alike in members.items():
                seen = {behaviour(plain, token) for token in alike}
                if len(seen) > 1 or (class_ == -1 and seen != {(False,)}):
                    return f"{alike} of class {class_}"
            if oracle.mask(plain) != oracle.mask(swapped):
                return "after tokens were replaced"
            if plain.accepting is not swapped.accepting:
                return "the end, after tokens were replaced"
            allowed = [t for t in allowed_tokens(oracle.mask(plain)) if t not in setting.stops]
            if not allowed:
                break
            token = random.choice(allowed)
            plain = oracle.read(plain, token)
            swapped = oracle.read(swapped, random.choice(members[int(class_of[token])]))
    return None


def classes_of(setting: Setting, *, prune: bool) -> np.ndarray | None:
    """``None`` where there is no string."""
    if prune and not setting.oracle.productive:
        return None
    grammar, vocabulary = setting.our_grammar(), setting.our_vocabulary()
    return tokfold.compile_classes(grammar, vocabulary, prune=prune).class_of


class TestClasses:
    @pytest.mark.parametrize("prune", [True, False])
    @examples(60)
    @given(seed=SEEDS)
    def test_lossless(self, prune, seed):
        random = Random(seed)
        setting = setting_of(random)
        note(str(setting))
        class_of = classes_of(setting, prune=prune)
        if class_of is None:
            return
        assert told_apart(setting, class_of, random, prune=prune) is None, class_of.tolist()

    @examples(40)
    @given(seed=SEEDS)
    def test_lossless_beside_large_bounds(self, seed):
        random = Random(seed)
        setting = build_counted_edge_setting(random, size=8)
        note(str(setting))
        class_of = classes_of(setting, prune=True)
        if class_of is None:
            return
        found = told_apart(setting, class_of, random, prune=True, walks=1, steps=20)
        assert found is None, class_of.tolist()

    def test_wrong_partitions_are_found_out(self):
        """Merge two classes, and the check says so."""
        found = tried = 0
        for seed in range(40):
            setting = build_edge_setting(Random(seed))
            class_of = classes_of(setting, prune=True)
            if class_of is None:
                continue
            start = setting.oracle.mask(setting.oracle.initial())
            some = [t for t in range(len(start)) if start[t] and t not in setting.stops]
            others = [t for t in range(len(start)) if not start[t] and t not in setting.stops]
            if not some or not others:
                continue
            tried += 1
            wrong = class_of.copy()
            wrong[others[0]] = wrong[some[0]]
            found += told_apart(setting, wrong, Random(seed), prune=True) is not None
        assert tried > 20
        assert found == tried

    def test_they_fold(self):
        """Tokens are alike as often as not: token edges do not part everything."""
        tokens = classes = 0
        for seed in range(40):
            setting = build_edge_setting(Random(seed), size=20)
            class_of = classes_of(setting, prune=True)
            if class_of is not None:
                tokens += len(class_of)
                classes += len(set(class_of.tolist()) - {-1})
        assert classes < 0.8 * tokens


@examples(40)
@given(seed=SEEDS)
def test_batches_and_drafts(seed):
    """Rows of many at once are those of each."""
    random = Random(seed)
    setting = setting_of(random)
    note(str(setting))
    ways = compiled_ways(setting)
    if ways is None:
        return
    size, matchers, expected = len(setting.tokens), [], []
    for way in ways:
        matcher = tokfold.Matcher(way, **setting.options)
        for _ in range(4):
            if matcher.is_terminated:
                break
            bits = mask_of(matcher, size)[0]
            matchers.append(matcher.fork())
            expected.append(bits)
            allowed = allowed_tokens(bits)
            if not allowed:
                break
            matcher.accept_token(random.choice(allowed))
    rows = tokfold.allocate_bitmask(len(matchers) or 1, size)
    tokfold.fill_bitmask_batch(matchers, rows, threads=random.choice([None, 1, 2]))
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").astype(bool)
    assert [row[:size].tolist() for row in bits[: len(matchers)]] == expected
    for matcher, allowed in zip(matchers, expected, strict=True):
        tokens = [random.randrange(size) for _ in range(6)]
        tokens[:1] = random.sample(allowed_tokens(allowed) or [0], 1)
        parents = [-1, *(random.randint(-1, node - 1) for node in range(1, 6))]
        rows = tokfold.allocate_bitmask(7, size)
        said = matcher.fill_bitmask_draft(tokens, rows, parents)
        forks: list[tokfold.Matcher | None] = []
        for node, (parent, token) in enumerate(zip(parents, tokens, strict=True)):
            base = matcher if parent < 0 else forks[parent]
            fork = None if base is None or base.is_terminated else base.fork()
            taken = fork is not None and fork.accept_token(token)
            forks.append(fork if taken else None)
            assert said[node] == taken
            row = np.unpackbits(rows[node + 1].view(np.uint8), bitorder="little")[:size]
            goes_on = taken and fork is not None and not fork.is_terminated
            assert row.astype(bool).tolist() == (
                mask_of(fork, size)[0] if goes_on else [False] * size
            )
    CASES["token edges: batches and drafts"] += len(matchers)


@examples(60)
@given(
    seed=SEEDS,
    field=st.sampled_from(["max_accept_work", "max_mask_work", "max_memo_bytes"]),
    exponent=st.integers(0, 10),
)
def test_an_answer_or_the_error(seed, field, exponent):
    """Under a limit every answer is right, or none is given and nothing has changed.

    A token that is read both ways is two pieces of work: the limit may lie between them.
    """
    random = Random(seed)
    setting = setting_of(random)
    note(str(setting))
    ways = compiled_ways(setting)
    if ways is None:
        return
    limits = tokfold.Limits(**{field: random.randint(1 << exponent, 2 << exponent)})
    grammar, vocabulary = setting.our_grammar(), setting.our_vocabulary()
    try:
        compiled = tokfold.compile(
            grammar,
            vocabulary,
            limits,
            classes="never",
            options=tokfold.CompileOptions(check_tokens=False),
        )
        bounded = tokfold.Matcher(compiled, **setting.options)
    except tokfold.LimitExceededError:
        return
    free, size = tokfold.Matcher(ways[0], **setting.options), len(setting.tokens)
    for _ in range(5):
        if free.is_terminated:
            break
        expected = mask_of(free, size)[0]
        try:
            assert mask_of(bounded, size)[0] == expected
            CASES["token edges: answers under limits"] += 1
        except tokfold.LimitExceededError as error:
            CASES["token edges: limits"] += error.limit == field
        for token in range(size):
            fork = bounded.fork()
            try:
                assert fork.accept_token(token) is expected[token]
            except tokfold.LimitExceededError:
                assert fork.state == bounded.state
                assert fork.num_steps == bounded.num_steps
        allowed = allowed_tokens(expected)
        if not allowed:
            break
        token = random.choice(allowed)
        assert free.accept_token(token)
        try:
            assert bounded.accept_token(token)
        except tokfold.LimitExceededError:
            break
        assert bounded.state == free.state


@examples(40)
@given(seed=SEEDS)
def test_grammars_without_token_edges_are_as_before(seed):
    """The oracle along tokens says what the one along bytes said."""
    random = Random(seed)
    setting = build_counted_setting(random, size=8)
    state = setting.oracle.initial()
    for _ in range(4):
        plain = [
            state.accepting if t in setting.stops else state.allowed(text)
            for t, text in enumerate(setting.tokens)
        ]
        assert setting.oracle.mask(state) == plain
        allowed = [t for t in allowed_tokens(plain) if t not in setting.stops]
        if not allowed:
            break
        state = setting.oracle.read(state, random.choice(allowed))


# ---------------------------------------------------------------- large loops

SPECIAL, SPECIAL_TOO = len(MANY) - 3, len(MANY) - 2
LARGE = tokfold.Vocabulary(
    MANY, stop_token_ids=[len(MANY) - 1], special_token_ids=[SPECIAL, SPECIAL_TOO]
)
NAMED_LOOPS = {
    "a token or text": f'root ::= Token({ONE}) "x" | [^\\u0000]+',
    "a token after a word or after text": f'root ::= "key" Token({ONE}) | [^"]+ Token({SPECIAL})',
    "a token ends a string": f'root ::= "\\"" ([^"]* "\\"" | "k" [^"]* Token({SPECIAL}))',
    "two rules": 'root ::= "q" x | "q" y\n'
    f'x ::= [^"]+ Token({OTHER})\ny ::= "true" Token({ONE}) "a"',
    "all but a token": f'root ::= "a" ExcludeToken({ONE}) | [^"]* Token({ONE}) "b"',
    "free tokens beside text": f'root ::= x | [^"]+ ","\nx ::= TokenTagDispatch(({ONE}, y))\n'
    'y ::= [^"]* "a"',
    "counted": f'root ::= ([^"] | Token({ONE})){{3,40}} "b"',
    "counted beside text": f'root ::= [^"]{{18,40}} Token({ONE}) | [^a]* "b"',
}  # fmt: skip


def check_large(text: str, random: Random, steps: int) -> int:
    """The masks along a walk are what forks accept; how many steps were taken."""
    grammar = tokfold.Grammar.from_ebnf(text)
    try:
        ways = [
            compiled_with(grammar, LARGE, classes="never", pool=None),
            tokfold.compile(grammar, LARGE, classes="now"),
        ]
    except tokfold.UnsupportedGrammarError as error:
        if "the language is empty" not in str(error):
            raise
        return 0
    matchers = [tokfold.Matcher(way) for way in ways]
    for step in range(steps):
        taken = [matchers[0].fork().accept_token(token) for token in range(len(MANY))]
        for matcher in matchers:
            bits = mask_of(matcher, len(MANY))[0]
            wrong = [token for token, bit in enumerate(bits) if bit is not taken[token]]
            assert not wrong, (matcher.text, [MANY[token] for token in wrong[:9]], len(wrong))
        CASES["token edges: bits in large loops"] += len(MANY)
        allowed = allowed_tokens(taken)[: -1 if taken[-1] else None]
        if not allowed:
            return step
        named = [t for t in (ONE, OTHER, SPECIAL, SPECIAL_TOO, *b'"kq') if taken[t]]
        token = random.choice(named if named and random.random() < 0.5 else allowed)
        assert all(matcher.accept_token(token) for matcher in matchers)
    return steps


class TestLargeLoops:
    """Answers that are made from those of a loop or of a count hold both readings of a token."""

    @pytest.mark.parametrize("name", NAMED_LOOPS)
    def test_named(self, name):
        for seed in range(4):
            check_large(NAMED_LOOPS[name], Random(seed), 4)

    @examples(120)
    @given(seed=SEEDS)
    def test_random(self, seed):
        random = Random(seed)
        marks = [f"Token({ONE})", f"Token({SPECIAL}, {OTHER})", f"ExcludeToken({ONE}, {SPECIAL})"]
        words = ['"key"', '"a"', '"\\""', '"ab"', '","']
        loops = ['[^"]*', "[^\\u0000]+", "[a-z ]+", '[^"]{3,40}', f'([^"] | Token({ONE})){{18,40}}']
        pieces = [marks, marks, words, loops, loops, ["x", "y"]]

        def body(names: bool) -> str:
            kinds = pieces if names else pieces[:-1]
            ways = (
                " ".join(random.choice(random.choice(kinds)) for _ in range(random.randint(1, 4)))
                for _ in range(random.randint(1, 3))
            )
            return " | ".join(ways)

        text = f"root ::= {body(True)}\nx ::= {body(False)}\ny ::= {body(False)}"
        text += f" | TokenTagDispatch(({OTHER}, x), excludes=({SPECIAL_TOO}))"
        note(text)
        event(f"steps: {check_large(text, random, 4)}")
