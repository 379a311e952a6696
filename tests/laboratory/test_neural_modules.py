"""The torch modules: what they compute, their gradients, small dtypes, saved weights, misuse."""

from __future__ import annotations

import pickle
import sys

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

torch.set_num_threads(1)  # tiny tensors: threads only wait for each other

import tokfold  # noqa: E402
from support import processes  # noqa: E402
from tokfold.laboratory.neural import (  # noqa: E402
    FeatureMismatchError,
    GrammarConditionedLogits,
    GrammarEmbedding,
    GrammarFeatures,
    GrammarRouter,
    RefusedTokenError,
    UnusableLogitsError,
    conditions_along,
    hard_mask,
    log_allowed_mass,
)

LISTS = 'root ::= value\nvalue ::= "[" (value ("," value)*)? "]" | [0-9]+'
TOKENS = [b"[", b"]", b",", b"1", b"23", b"4", b"],", b"x", b"</s>"]
TEXTS = [[0, 3, 2, 4, 1, 8], [0, 0, 5, 6, 3, 1]]


def compiled_lists(text: str = LISTS) -> tokfold.CompiledGrammar:
    vocabulary = tokfold.Vocabulary(TOKENS, stop_token_ids=[8])
    return tokfold.compile(tokfold.Grammar.from_ebnf(text), vocabulary, classes="now")


@pytest.fixture(scope="module")
def features():
    return GrammarFeatures(compiled_lists())


@pytest.fixture(scope="module")
def seen(features):
    return conditions_along(features, TEXTS)


def trained(features, **options) -> GrammarConditionedLogits:
    """A module that is no longer at its beginning."""
    torch.manual_seed(3)
    head = GrammarConditionedLogits(features, 5, **options)
    torch.nn.init.normal_(head.u)
    return head


def some_logits(seen, width: int = len(TOKENS), **options):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*seen.bitmask.shape[:-1], width, generator=generator, **options)


def plainly_masked(logits, seen):
    """The same by other operations, out of place."""
    width = logits.shape[-1] - seen.vocab_size
    allowed = torch.nn.functional.pad(seen.allowed, (0, width))
    return torch.where(allowed, logits, torch.full_like(logits, -torch.inf))


def test_untrained_it_is_the_hard_mask(features, seen):
    logits = some_logits(seen)
    out = GrammarConditionedLogits(features)(logits, seen)
    assert out.equal(hard_mask(logits, seen))
    assert out.equal(plainly_masked(logits, seen))


@pytest.mark.parametrize("share", ["token", "class"])
@pytest.mark.parametrize("width", [9, 40])
def test_it_is_definition_24(features, seen, share, width):
    head = trained(features, share=share, width=width)
    logits = some_logits(seen, width)
    embedded = torch.tanh(seen.features @ head.psi.linear.weight.T + head.psi.linear.bias)
    classes = features.compiled.classes.class_of.tolist()
    for token in range(width):
        row = token
        if share == "class":
            row = max(classes[token], 0) if token < len(classes) else 0
        moved = logits[..., token] + embedded @ head.u[row]
        out = head(logits, seen)[..., token]
        if token < len(TOKENS):
            allowed = seen.allowed[..., token]
            torch.testing.assert_close(out[allowed], moved[allowed])
            assert out[~allowed].isneginf().all()
        else:
            assert out.isneginf().all()


def test_tokens_of_a_class_share_their_vector(features, seen):
    head = trained(features, share="class")
    bias = head.bias(seen.features)
    classes = features.compiled.classes.class_of
    assert classes[3] == classes[4] == classes[5] != classes[2]  # the three numbers
    assert bias[..., 3].equal(bias[..., 4])
    assert not bias[..., 3].equal(bias[..., 2])


class TestGradients:
    def test_they_are_those_of_plain_torch(self, features, seen):
        head, targets = trained(features), torch.tensor(TEXTS)
        logits = some_logits(seen).requires_grad_()
        by_ours = head(logits, seen)
        by_torch = plainly_masked(head.before_mask(logits, seen), seen)
        weights = [logits, *head.parameters()]
        results = []
        for masked in (by_ours, by_torch):
            loss = torch.nn.functional.cross_entropy(masked.flatten(0, 1), targets.flatten())
            results.append(torch.autograd.grad(loss, weights))
        for name, ours, theirs in zip(["logits", "u", "w", "b"], *results, strict=True):
            assert theirs.abs().sum() > 0, name
            torch.testing.assert_close(ours, theirs)

    def test_none_passes_where_the_mask_is(self, features, seen):
        """Not even where NaN comes back, as from a loss that looked at a masked token."""
        logits = some_logits(seen, 12).requires_grad_()
        back = torch.full_like(logits, torch.nan)
        allowed = torch.nn.functional.pad(seen.allowed, (0, 3))
        back[allowed] = 2.0
        hard_mask(logits, seen).backward(back)
        assert logits.grad[allowed].eq(2).all()
        assert logits.grad[~allowed].eq(0).all()

    def test_what_was_given_stays_as_it_was(self, features, seen):
        logits = some_logits(seen).requires_grad_()
        before = logits.detach().clone()
        trained(features)(logits * 1, seen).sum()
        hard_mask(logits, seen)
        assert logits.equal(before)
        turned = some_logits(seen, 9).transpose(0, 1).contiguous().transpose(0, 1)
        assert hard_mask(turned, seen).equal(plainly_masked(turned, seen))

    def test_training_reaches_the_embedding(self, features, seen):
        """``u`` begins as 0 and moves first; then the features' weights move."""
        head, targets = GrammarConditionedLogits(features, 5), torch.tensor(TEXTS)
        optimizer = torch.optim.Adam(head.parameters(), 0.05)
        losses = []
        for _ in range(30):
            masked = head(some_logits(seen), seen)
            loss = torch.nn.functional.cross_entropy(masked.flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            assert head.u.grad.abs().sum() > 0
            assert bool(head.psi.linear.weight.grad.any()) is bool(losses)
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] * 0.8


class TestSmallDtypes:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half(self, features, seen, dtype):
        head = trained(features)
        logits = some_logits(seen)
        exact = head(logits, seen)
        rounded = head.to(dtype)(logits.to(dtype), seen)
        assert rounded.dtype == dtype
        assert rounded.isneginf().equal(exact.isneginf())
        near = torch.where(
            exact.isneginf(), 0, rounded.float() - torch.where(exact.isneginf(), 0, exact)
        )
        assert near.abs().max() < 0.1
        rounded.logsumexp(-1).sum().backward()
        assert head.u.grad.isfinite().all()

    def test_float32_weights_and_half_logits(self, features, seen):
        out = trained(features)(some_logits(seen).bfloat16(), seen)
        assert out.dtype == torch.bfloat16

    def test_autocast(self, features, seen):
        head = trained(features)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = head(some_logits(seen), seen)
        assert out.isneginf().equal(head(some_logits(seen), seen).isneginf())

    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_without_gradients(self, features, seen, mode):
        head = trained(features)
        expected = head(some_logits(seen), seen)
        with mode():
            out = head(some_logits(seen), seen)
        assert not out.requires_grad
        assert out.equal(expected)


class TestNotFinite:
    @pytest.mark.parametrize("value", [torch.nan, torch.inf])
    def test_at_an_allowed_token_is_an_error_by_name(self, features, seen, value):
        head = trained(features)
        logits = some_logits(seen)
        logits[1, 2, 5] = value  # "4" after "[["
        with pytest.raises(UnusableLogitsError, match="row 8: ") as error:
            head(logits, seen)
        assert error.value.row == 8
        assert pickle.loads(pickle.dumps(error.value)).row == 8

    def test_at_a_masked_token_is_nothing(self, features, seen):
        head = trained(features)
        with torch.no_grad():
            head.u[7] = torch.nan  # "x", which no text has
        logits = some_logits(seen)
        logits[..., 7] = torch.inf
        assert head(logits, seen).equal(trained(features)(some_logits(seen), seen))

    def test_nothing_but_minus_infinity_is_an_error(self, features, seen):
        logits = some_logits(seen)
        logits[0, 3] = -torch.inf
        with pytest.raises(UnusableLogitsError, match="row 3: "):
            trained(features)(logits, seen)

    def test_some_minus_infinity_is_none(self, features, seen):
        """Another processor may have forbidden a token."""
        logits = some_logits(seen)
        logits[..., 0] = -torch.inf
        out = trained(features)(logits, seen)
        assert out[..., 0].isneginf().all()

    @pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
    def test_clamped(self, features, seen, value):
        head = trained(features, nonfinite="clamp")
        with torch.no_grad():
            head.u[:] = value
        chances = head(some_logits(seen), seen).softmax(-1)
        assert chances[~seen.allowed].eq(0).all()
        torch.testing.assert_close(chances.sum(-1), torch.ones(2, 6))

    def test_no_rows(self, features, seen):
        from tokfold.laboratory.neural import conditions_of

        empty = conditions_of(features, [])
        assert trained(features)(torch.zeros(0, 9), empty).shape == (0, 9)


def test_the_mass_before_the_mask(seen):
    for logits in (some_logits(seen), some_logits(seen, 20), some_logits(seen).bfloat16()):
        chances = logits.double()[..., :9].softmax(-1)
        expected = (chances * seen.allowed).sum(-1)
        torch.testing.assert_close(log_allowed_mass(logits, seen).exp().double(), expected)


class TestRouter:
    def test_it_is_equation_4(self, features, seen):
        router = GrammarRouter(features, 4, top_k=2, dim=3)
        torch.nn.init.normal_(router.u)
        gates = some_logits(seen, 4)
        routing = router(gates, seen.features)
        probabilities = (gates + router.psi(seen.features) @ router.u.T).softmax(-1)
        torch.testing.assert_close(routing.probabilities, probabilities)
        order = probabilities.argsort(dim=-1, descending=True)[..., :2]
        assert routing.experts.equal(order)
        torch.testing.assert_close(routing.weights.sum(-1), torch.ones(2, 6))
        kept = probabilities.gather(-1, order)
        torch.testing.assert_close(routing.weights, kept / kept.sum(-1, keepdim=True))

    def test_untrained_it_is_the_gates(self, features, seen):
        gates = some_logits(seen, 3)
        routing = GrammarRouter(features, 3)(gates, seen.features)
        torch.testing.assert_close(routing.probabilities, gates.softmax(-1))
        assert routing.weights.eq(1).all()

    def test_gradients_reach_it_through_an_embedding_that_is_shared(self, features, seen):
        psi = GrammarEmbedding(features, 4)
        router = GrammarRouter(features, 3, psi=psi, dim=4)
        head = GrammarConditionedLogits(features, psi=psi, dim=4)
        torch.nn.init.normal_(router.u)
        routing = router(some_logits(seen, 3), seen.features)
        assert psi.linear.weight.grad is None
        routing.probabilities[..., 0].sum().backward()
        assert psi.linear.weight.grad.abs().sum() > 0
        assert router.u.grad.abs().sum() > 0
        assert head.psi is router.psi

    def test_half(self, features, seen):
        router = GrammarRouter(features, 3, top_k=2).bfloat16()
        assert (
            router(some_logits(seen, 3).bfloat16(), seen.features).weights.dtype == torch.bfloat16
        )

    @pytest.mark.parametrize("top_k", [0, 4])
    def test_misuse(self, features, top_k):
        with pytest.raises(ValueError, match="top_k must be between 1 and 3"):
            GrammarRouter(features, 3, top_k)


class TestSavedWeights:
    def test_they_come_back(self, tmp_path, features, seen):
        head = trained(features)
        torch.save(head.state_dict(), tmp_path / "head.pt")
        again = GrammarConditionedLogits(GrammarFeatures(compiled_lists()), 5)
        again.load_state_dict(torch.load(tmp_path / "head.pt", weights_only=True))
        assert again(some_logits(seen), seen).equal(head(some_logits(seen), seen))

    def test_those_of_another_grammar_are_refused(self, features):
        other = GrammarFeatures(compiled_lists(LISTS.replace("0-9", "1-9")))
        assert other.size == features.size
        with pytest.raises(FeatureMismatchError, match=r"psi\. were learned for other features"):
            GrammarConditionedLogits(other, 5).load_state_dict(trained(features).state_dict())


class TestMisuse:
    def test_places_and_rows(self, features, seen):
        head = trained(features)
        with pytest.raises(ValueError, match=r"of \(2, 6\) places and the logits of \(2, 5\) rows"):
            hard_mask(some_logits(seen)[:, :5], seen)
        with pytest.raises(ValueError, match="places and the logits"):
            head(torch.zeros(2, 1, 9), seen)
        with pytest.raises(ValueError, match="the logits have 8 columns"):
            hard_mask(some_logits(seen, 8), seen)
        with pytest.raises(TypeError, match="float64"):
            hard_mask(some_logits(seen).double(), seen)

    def test_another_vocabulary(self, features, seen):
        smaller = tokfold.Vocabulary(TOKENS[:-1])
        grammar = features.compiled.grammar
        other = GrammarFeatures(tokfold.compile(grammar, smaller))
        with pytest.raises(ValueError, match="vocabulary of 9 tokens, and this module of 8"):
            GrammarConditionedLogits(other)(some_logits(seen, 9), seen)

    def test_options(self, features):
        with pytest.raises(ValueError, match="width 8 is less"):
            GrammarConditionedLogits(features, width=8)
        with pytest.raises(ValueError, match="share must be"):
            GrammarConditionedLogits(features, share="all")
        with pytest.raises(ValueError, match="nonfinite must be"):
            GrammarConditionedLogits(features, nonfinite="ignore")
        without = tokfold.compile(
            features.compiled.grammar, features.compiled.vocabulary, classes="never"
        )
        with pytest.raises(ValueError, match="no token classes to share by"):
            GrammarConditionedLogits(GrammarFeatures(without), share="class")

    def test_errors_travel_between_processes(self):
        error = pickle.loads(pickle.dumps(RefusedTokenError("no", 3, 4)))
        assert (str(error), error.text, error.position) == ("no", 3, 4)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import tokfold, tokfold.laboratory
try:
    import tokfold.laboratory.neural
except tokfold.MissingExtraError as error:
    print(error)
"""


def test_without_torch_the_extra_is_named():
    code = [sys.executable, "-c", WITHOUT_TORCH]
    out = processes.run(code, check=True)
    assert 'pip install ".[torch]" in a checkout of tokfold' in out.stdout
