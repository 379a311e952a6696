"""Masks onto logits by torch's own operations: several passes, on any device."""

from __future__ import annotations

import torch

from tokfold.torch.fold import Fold

__all__ = ["apply_classes", "apply_tokens", "unfold"]


def apply_classes(
    logits: torch.Tensor,
    masks: torch.Tensor,
    fold: Fold,
    rows: torch.Tensor | None,
    distinct: bool = False,
) -> None:
    """As the kernel of the same name."""
    _mask(logits, _tokens_of(masks, fold), rows)


def unfold(table: torch.Tensor, numbers: torch.Tensor, masks: torch.Tensor, fold: Fold) -> None:
    """As the kernel of the same name."""
    allowed = _tokens_of(masks, fold)
    padded = torch.nn.functional.pad(allowed, (0, -allowed.shape[1] % 32)).view(len(masks), -1, 32)
    places = torch.arange(32, device=masks.device)
    words = (padded.to(torch.int64) << places).sum(dim=2).to(torch.int32)
    table.index_copy_(0, numbers.long(), words)


def _tokens_of(masks: torch.Tensor, fold: Fold) -> torch.Tensor:
    """Which tokens class masks allow: bool, shape ``(n, num_tokens)``."""
    class_of = fold.class_of.to(torch.int64)
    words = masks[:, class_of.clamp(min=0) >> 5]
    return (words >> (class_of & 31).to(torch.int32) & 1).bool() & (class_of >= 0)


def apply_tokens(
    logits: torch.Tensor,
    masks: torch.Tensor,
    vocab_size: int,
    rows: torch.Tensor | None,
    distinct: bool = False,
    numbers: torch.Tensor | None = None,
) -> None:
    """As the kernel of the same name."""
    masks = masks if numbers is None else masks[numbers]
    bits = torch.arange(32, dtype=torch.int32, device=masks.device)
    allowed = (masks[:, :, None] >> bits & 1).bool().flatten(1)[:, :vocab_size]
    _mask(logits, allowed, rows)


def _mask(logits: torch.Tensor, allowed: torch.Tensor, rows: torch.Tensor | None) -> None:
    count, width = logits.shape
    padding = allowed.new_zeros((len(allowed), width - allowed.shape[1]))
    masked = ~torch.cat([allowed, padding], dim=1)
    if rows is not None:
        # Several masks of one row all count; masks for no row count nowhere.
        known = (rows >= 0) & (rows < count)
        places = torch.where(known, rows, count).to(torch.int64)
        by_row = masked.new_zeros((count + 1, width), dtype=torch.uint8)
        index = places[:, None].expand(-1, width)
        by_row.scatter_reduce_(0, index, masked.to(torch.uint8), "amax")
        masked = by_row[:count].bool()
    logits.masked_fill_(masked, -torch.inf)
