"""The learned parts: an embedding of the grammar's state, and what it moves."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from tokfold._quoting import quoted
from tokfold.laboratory.neural.conditions import Conditions
from tokfold.laboratory.neural.errors import FeatureMismatchError
from tokfold.laboratory.neural.features import GrammarFeatures
from tokfold.laboratory.neural.masking import check_places, check_usable, mask_

__all__ = ["GrammarConditionedLogits", "GrammarEmbedding", "GrammarRouter", "Routing"]


class GrammarEmbedding(nn.Module):
    """The learned embedding of the live configurations: a linear map and tanh.

    Saved weights carry what their columns meant; weights for other features are refused.

    Args:
        features: which features.
        dim: numbers of the embedding.
    """

    signature: torch.Tensor

    def __init__(self, features: GrammarFeatures, dim: int = 32) -> None:
        super().__init__()
        self.dim = dim
        self.linear = nn.Linear(features.size, dim)
        signature = torch.frombuffer(bytearray(features.signature), dtype=torch.uint8)
        self.register_buffer("signature", signature)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Embed: shape ``(..., features.size)`` to ``(..., dim)``, in the dtype of the weights."""
        embedded: torch.Tensor = self.linear(features.to(self.linear.weight.dtype))
        return embedded.tanh()

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        *args: Any,
    ) -> None:
        saved = state_dict.get(prefix + "signature")
        if saved is not None and not torch.equal(saved.cpu(), self.signature.cpu()):
            raise FeatureMismatchError(
                f"the weights of {prefix or 'the embedding'} were learned for other features: for "
                "another grammar, vocabulary, choice of kinds or version of tokfold; train anew"
            )
        super()._load_from_state_dict(state_dict, prefix, *args)


class GrammarConditionedLogits(nn.Module):
    """Logits moved by the grammar's state, then masked: definition 24.

    ``logits + u(v) . psi(C)``, and -inf written over what is not allowed, in this order. So the
    support is within the allowed tokens whatever the weights (proposition 7), as the test beside
    this module shows for weights that are huge, infinite or NaN. ``u`` begins as 0: an untrained
    module is the hard mask alone.

    Args:
        features: which features.
        dim: numbers of the embedding.
        psi: an embedding in place of :class:`GrammarEmbedding`: a module from
            ``(..., features.size)``, float32, to ``(..., dim)``. One module may serve the logits
            and any number of routers.
        width: columns of the logits, where the model has more than the vocabulary has tokens.
        share: ``"token"``: a vector for each token. ``"class"``: a vector for each token class,
            since the grammar cannot tell its tokens apart: hundreds in place of 128,000. Needs
            classes.
        nonfinite: what to do where no distribution can be made of a row (NaN or +inf at an
            allowed token, or nothing but -inf). ``"raise"``; it waits for the device. ``"clamp"``:
            NaN and -inf become the least finite number, +inf the greatest.

    Raises:
        ValueError: ``width`` is less than the vocabulary, or there are no classes to share by.
    """

    class_of: torch.Tensor | None

    def __init__(
        self,
        features: GrammarFeatures,
        dim: int = 32,
        *,
        psi: nn.Module | None = None,
        width: int | None = None,
        share: Literal["token", "class"] = "token",
        nonfinite: Literal["raise", "clamp"] = "raise",
    ) -> None:
        super().__init__()
        size = len(features.compiled.vocabulary)
        self.width = size if width is None else width
        if self.width < size:
            raise ValueError(f"width {width} is less than the vocabulary's {size} tokens")
        if share not in ("token", "class"):
            raise ValueError(f'share must be "token" or "class", not {quoted(share)}')
        if nonfinite not in ("raise", "clamp"):
            raise ValueError(f'nonfinite must be "raise" or "clamp", not {quoted(nonfinite)}')
        self.vocab_size = size
        self.nonfinite = nonfinite
        self.psi = GrammarEmbedding(features, dim) if psi is None else psi
        vectors, class_of = self.width, None
        if share == "class":
            classes = features.compiled.classes
            if classes is None:
                raise ValueError(
                    'there are no token classes to share by: compile with classes="now", call '
                    'wait(), or pass share="token"'
                )
            vectors = max(len(classes), 1)
            # Tokens without a class, and padding, are never allowed: any column will do for them.
            known = torch.from_numpy(classes.class_of.copy()).long().clamp(min=0)
            class_of = F.pad(known, (0, self.width - size))
        self.register_buffer("class_of", class_of, persistent=False)
        self.u = nn.Parameter(torch.zeros(vectors, dim))

    def bias(self, features: torch.Tensor) -> torch.Tensor:
        """What the grammar's state adds to each logit: shape ``(..., width)``; before the mask."""
        embedded: torch.Tensor = self.psi(features)
        bias = F.linear(embedded.to(self.u.dtype), self.u)
        return bias if self.class_of is None else bias[..., self.class_of]

    def before_mask(self, logits: torch.Tensor, conditions: Conditions) -> torch.Tensor:
        """The moved logits without the mask: to train the mass before it, or to measure it."""
        check_places(logits, conditions)
        return logits + self.bias(conditions.features).to(logits.dtype)

    def forward(self, logits: torch.Tensor, conditions: Conditions) -> torch.Tensor:
        """Move, then mask.

        Args:
            logits: float32, float16 or bfloat16, shape ``(..., width)``.
            conditions: of the same leading shape, on the same device.

        Returns:
            New logits of the same shape and dtype; -inf for all that is not allowed.

        Raises:
            UnusableLogitsError: see ``nonfinite``.
            ValueError, TypeError: shapes, devices or dtypes do not fit.
        """
        if conditions.vocab_size != self.vocab_size:
            raise ValueError(
                f"the conditions are of a vocabulary of {conditions.vocab_size} tokens, and this "
                f"module of {self.vocab_size}"
            )
        moved = self.before_mask(logits, conditions)
        if self.nonfinite == "clamp":
            least = torch.finfo(moved.dtype).min
            moved = moved.nan_to_num(nan=least, neginf=least)
        masked = mask_(moved.contiguous(), conditions)
        if self.nonfinite == "raise":
            check_usable(masked)
        return masked


class Routing(NamedTuple):
    """Where a mixture of experts sends its inputs."""

    probabilities: torch.Tensor
    """Of all experts, shape ``(..., experts)``."""
    experts: torch.Tensor
    """The chosen ones, the most probable first, int64, shape ``(..., top_k)``."""
    weights: torch.Tensor
    """Their weights, shape ``(..., top_k)``; they sum to 1."""


class GrammarRouter(nn.Module):
    """Gates of a mixture of experts, moved by the grammar's state: section 9.2, equation (4).

    ``softmax(gates + U psi(C))``, and of these the ``top_k`` largest. ``U`` begins as 0: an
    untrained module routes as its gates do. Routing says how a token is computed, never which is
    allowed. With ``top_k=1`` the one weight is always 1 and has no gradient: scale the expert by
    its probability instead.

    Args:
        features: which features.
        num_experts: experts of the layer.
        top_k: experts for each input.
        dim: numbers of the embedding.
        psi: as for :class:`GrammarConditionedLogits`.

    Raises:
        ValueError: ``top_k`` is not between 1 and ``num_experts``.
    """

    def __init__(
        self,
        features: GrammarFeatures,
        num_experts: int,
        top_k: int = 1,
        dim: int = 32,
        *,
        psi: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if not 1 <= top_k <= num_experts:
            raise ValueError(f"top_k must be between 1 and {num_experts}, not {top_k}")
        self.top_k = top_k
        self.psi = GrammarEmbedding(features, dim) if psi is None else psi
        self.u = nn.Parameter(torch.zeros(num_experts, dim))

    def forward(self, gates: torch.Tensor, features: torch.Tensor) -> Routing:
        """Route.

        Args:
            gates: what the layer's gate says, shape ``(..., num_experts)``.
            features: those of the same places (``conditions.features``), on the same device.
        """
        embedded: torch.Tensor = self.psi(features)
        moved = gates + F.linear(embedded.to(self.u.dtype), self.u).to(gates.dtype)
        probabilities = moved.softmax(-1)
        kept, experts = probabilities.topk(self.top_k, dim=-1)
        return Routing(probabilities, experts, kept / kept.sum(-1, keepdim=True))
