"""Whatever was learned, what is sampled stays in the language: proposition 7, tried hard.

Random grammars, vocabularies and ways to end; weights and logits that are huge, infinite or NaN,
and a model that wants nothing more than tokens that are not allowed. What is true is said by the
naive recognizer of the oracles. Mutants that mask in another order are found out.
"""

from __future__ import annotations

from random import Random

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import tokfold  # noqa: E402
from hypothesis import given, note  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from strategies.engine import (  # noqa: E402
    Setting,
    build_setting,
    plain_matcher,
    settings_of_matchers,
)
from strategies.profiles import CASES, examples  # noqa: E402
from tokfold.laboratory.neural import (  # noqa: E402
    GrammarConditionedLogits,
    GrammarFeatures,
    GrammarRouter,
    NoTokenAllowedError,
    UnusableLogitsError,
    conditions_of,
)

torch.set_num_threads(1)  # tiny tensors: threads only wait for each other

PADDING = 3
"""Columns of the model past the vocabulary."""

WILD = [0.0, 1.0, -1.0, 1e4, -1e4, 3e38, -3e38, float("inf"), float("-inf"), float("nan")]


class BiasAfterMask(GrammarConditionedLogits):
    """A mutant: a finite mask, and the bias on top of it."""

    def forward(self, logits, conditions):
        allowed = torch.nn.functional.pad(conditions.allowed, (0, PADDING))
        masked = logits.masked_fill(~allowed, -1e4)
        return masked + self.bias(conditions.features).to(logits.dtype)


class AddedMask(GrammarConditionedLogits):
    """A mutant: the mask is added, as in the paper's equation (2). ``inf - inf`` is NaN."""

    def forward(self, logits, conditions):
        allowed = torch.nn.functional.pad(conditions.allowed, (0, PADDING))
        moved = self.before_mask(logits, conditions)
        return moved + torch.zeros_like(moved).masked_fill(~allowed, -torch.inf)


class StaleMask(GrammarConditionedLogits):
    """A mutant: the mask of the step before."""

    def forward(self, logits, conditions):
        before, self.seen = getattr(self, "seen", None) or conditions, conditions
        before = before if before.features.shape == conditions.features.shape else conditions
        return super().forward(logits, before)


class NoPadding(GrammarConditionedLogits):
    """A mutant: the columns past the vocabulary stay open."""

    def forward(self, logits, conditions):
        masked = super().forward(logits, conditions)
        return torch.cat([masked[..., :-PADDING], logits[..., -PADDING:]], dim=-1)


MUTANTS = [BiasAfterMask, AddedMask, StaleMask, NoPadding]


def wild_(parameter, random: Random) -> None:
    """Weights that no training would give, or that a broken one does: few of them, or many."""
    worst = random.choice([3, 5, 7, len(WILD)])
    share = random.choice([0.002, 0.05, 1.0])
    values = [
        random.choice(WILD[:worst]) if random.random() < share else random.gauss(0, 1)
        for _ in range(parameter.numel())
    ]
    with torch.no_grad():
        parameter.copy_(torch.tensor(values).view_as(parameter))


def padded(bits: list[bool]) -> list[bool]:
    return bits + [False] * PADDING


def tempting(bits: list[list[bool]], random: Random):
    """Logits of a model that wants what is not allowed."""
    return torch.tensor(
        [
            [random.gauss(0, 3) if bit else random.choice([0.0, 5e4]) for bit in padded(row)]
            for row in bits
        ]
    )


def check_sampling(setting: Setting, seed: int, kind=GrammarConditionedLogits, steps=6) -> int:
    """Samples texts and checks each step; how many tokens were sampled."""
    random = Random(seed)
    generator = torch.Generator().manual_seed(seed)
    if not any(setting.tokens) or not setting.oracle.productive:
        return 0  # nothing to match
    compiled = tokfold.compile(
        setting.our_grammar(),
        setting.our_vocabulary(),
        classes=random.choice(["now", "never"]),
        options=tokfold.CompileOptions(check_tokens=False),
    )
    kinds = [k for k in ("bytes", "ending", "shape", "tops", "beneath") if random.random() < 0.7]
    features = GrammarFeatures(compiled, kinds or ["tops"], max_states=random.choice([2, 1_024]))
    head = kind(
        features,
        dim=random.choice([1, 4]),
        width=len(setting.tokens) + PADDING,
        share=random.choice(["token", "class"]) if compiled.classes else "token",
        nonfinite=random.choice(["clamp", "clamp", "clamp", "raise"]),
    )
    dtype = random.choice([torch.float32, torch.float16, torch.bfloat16])
    for parameter in head.parameters():
        wild_(parameter, random)
    head.to(dtype)
    matchers = [tokfold.Matcher(compiled, **setting.options) for _ in range(3)]
    pairs = [(matcher, plain_matcher(setting)) for matcher in matchers]
    sampled = 0
    for _ in range(steps):
        pairs = [pair for pair in pairs if not pair[0].is_terminated]
        if not pairs:
            break
        bits = [plain.mask() for _, plain in pairs]
        try:
            conditions = conditions_of(features, [matcher for matcher, _ in pairs])
        except NoTokenAllowedError:
            assert not all(map(any, bits))
            pairs = [pair for pair, row in zip(pairs, bits, strict=True) if any(row)]
            continue
        assert conditions.allowed.tolist() == bits
        logits = tempting(bits, random)
        if random.random() < 0.3:
            place = random.randrange(len(logits)), random.randrange(logits.shape[1])
            logits[place] = random.choice(WILD)
        try:
            with torch.no_grad():
                masked = head(logits.to(dtype), conditions)
        except UnusableLogitsError:
            assert head.nonfinite == "raise"
            break
        chances = masked.float().softmax(-1)
        for row, true in zip(chances.tolist(), bits, strict=True):
            masked_out = [chance for chance, bit in zip(row, padded(true), strict=True) if not bit]
            assert not any(chance != 0 for chance in masked_out), "a masked token was opened"
            assert abs(sum(row) - 1) < 1e-3, "no distribution"
        greedy = random.random() < 0.3
        tokens = masked.argmax(-1) if greedy else torch.multinomial(chances, 1, generator=generator)
        for (matcher, plain), token in zip(pairs, tokens.flatten().tolist(), strict=True):
            assert token < len(setting.tokens)
            assert plain.accept_token(token), "a token that the language refuses"
            assert matcher.accept_token(token)
            sampled += 1
            if matcher.is_terminated:
                assert plain.accepting
                assert tokfold.recognize(compiled.grammar, matcher.text).accepted
                CASES["neural: finished texts"] += 1
    return sampled


@examples(150)
@given(setting=settings_of_matchers(), seed=st.integers(0, 2**32))
def test_whatever_the_weights_the_text_stays_in_the_language(setting, seed):
    note(str(setting))
    CASES["neural: tokens sampled under wild weights"] += check_sampling(setting, seed)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_another_order_is_found_out(mutant):
    def all_of_them():
        for seed in range(60):
            check_sampling(build_setting(Random(seed)), seed, mutant)

    with pytest.raises(AssertionError, match=r"was opened|language refuses"):
        all_of_them()


def test_the_same_seeds_find_no_fault_in_the_module():
    assert sum(check_sampling(build_setting(Random(seed)), seed) for seed in range(60)) > 150


NESTED = tokfold.Grammar.from_ebnf("""
root  ::= value
value ::= "[" (value ("," value)*)? "]" | "{" (value ("," value)*)? "}" | [0-9]+
""")
TOKENS = [b"[", b"]", b"{", b"}", b",", b"1", b"23", b"],", b"}]", b"[[", b"x", b"</s>"]


def test_long_texts_that_end_are_whole():
    """Ends are reached here: a model that likes brackets closed, and weights at random."""
    vocabulary = tokfold.Vocabulary(TOKENS, stop_token_ids=[11])
    compiled = tokfold.compile(NESTED, vocabulary, classes="now")
    features = GrammarFeatures(compiled)
    likes = torch.tensor([0.0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 9, 3])
    ended = 0
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        head = GrammarConditionedLogits(features, 8)
        torch.nn.init.normal_(head.u, std=seed / 4, generator=generator)
        matchers = [tokfold.Matcher(compiled) for _ in range(16)]
        for _ in range(60):
            live = [matcher for matcher in matchers if not matcher.is_terminated]
            if not live:
                break
            conditions = conditions_of(features, live)
            with torch.no_grad():
                chances = head(likes.expand(len(live), -1), conditions).softmax(-1)
            tokens = torch.multinomial(chances, 1, generator=generator)[:, 0].tolist()
            assert tokfold.batch.accept_token_batch(live, tokens).all()
        for matcher in matchers:
            if matcher.is_terminated:
                ended += 1
                assert tokfold.recognize(NESTED, matcher.text).accepted, matcher.text
            else:
                assert tokfold.recognize(NESTED, matcher.text).read == len(matcher.text)
    CASES["neural: finished texts"] += ended
    assert ended > 60


def test_routing_cannot_open_a_token():
    """A router of wild weights stands before the logits; the mask still comes last."""
    vocabulary = tokfold.Vocabulary(TOKENS, stop_token_ids=[11])
    features = GrammarFeatures(tokfold.compile(NESTED, vocabulary))
    for seed in range(30):
        random = Random(seed)
        router = GrammarRouter(features, num_experts=3, top_k=2, dim=4)
        head = GrammarConditionedLogits(features, psi=router.psi, dim=4, nonfinite="clamp")
        for parameter in (*router.parameters(), *head.parameters()):
            wild_(parameter, random)
        matcher = tokfold.Matcher(features.compiled)
        for _ in range(8):
            if matcher.is_terminated:
                break
            conditions = conditions_of(features, [matcher])
            with torch.no_grad():
                routing = router(torch.randn(1, 3), conditions.features)
                experts = torch.randn(3, len(TOKENS))[routing.experts]
                logits = (routing.weights[..., None] * experts).sum(-2)
                chances = head(logits, conditions).softmax(-1)
            token = int(torch.multinomial(chances, 1))
            assert matcher.accept_token(token)
