"""Many matchers at once."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal

import numpy as np
import torch
import xgrammar as xgr

from tokfold.xgrammar.bitmask import mask_array, mask_row
from tokfold.xgrammar.matcher import GrammarMatcher

__all__ = ["BatchGrammarMatcher"]


class BatchGrammarMatcher:
    """Steps of many matchers, which may have different grammars, compressed or not.

    Args:
        max_threads: threads for masks, ``"auto"`` for half of the hardware's.

    Raises:
        RuntimeError: not a positive number, nor ``"auto"``.
    """

    def __init__(self, max_threads: int | Literal["auto"] = "auto") -> None:
        self._inner = xgr.BatchGrammarMatcher(max_threads)

    def batch_fill_next_token_bitmask(
        self,
        matchers: list[GrammarMatcher],
        bitmask: Any,  # noqa: ANN401 - whatever offers DLPack
        indices: list[int] | None = None,
        debug_print: bool = False,
    ) -> None:
        """Fill the masks of many matchers.

        Args:
            matchers: which; each once.
            bitmask: int32, on the CPU, shape ``(batch, ceil(vocab_size / 32))``; strides are
                honoured.
            indices: row for each matcher; ``range(len(matchers))`` if None.
            debug_print: print XGrammar's masks.

        Raises:
            RuntimeError: the bitmask does not fit, or a matcher has terminated; other rows may
                have been written.
        """
        array = mask_array(bitmask)
        if indices is None:
            indices = list(range(len(matchers)))
        _same_size("indices", indices, matchers)
        rows = [
            mask_row(array, index, matcher.num_words)
            for matcher, index in zip(matchers, indices, strict=True)
        ]
        # XGrammar's threads take one bitmask, so matchers go in groups of one row length
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for position, matcher in enumerate(matchers):
            groups[matcher.inner_words].append(position)
        for words, positions in groups.items():
            inner_rows = np.empty((len(positions), words), dtype=np.int32)
            self._inner.batch_fill_next_token_bitmask(
                [matchers[position].inner for position in positions],
                inner_rows,
                None,
                debug_print,
            )
            for inner_row, position in zip(inner_rows, positions, strict=True):
                matchers[position].unfold(inner_row, rows[position])

    @staticmethod
    def batch_fill_temperature(
        matchers: list[GrammarMatcher],
        temperatures: torch.Tensor,
        indices: list[int] | None = None,
    ) -> None:
        """Write the temperature of each matcher, -1 where it has none.

        Args:
            matchers: which.
            temperatures: float32, on the CPU, one dimension.
            indices: element for each matcher; ``range(len(matchers))`` if None.

        Raises:
            RuntimeError: the tensor does not fit.
        """
        inner = [matcher.inner for matcher in matchers]
        xgr.BatchGrammarMatcher.batch_fill_temperature(inner, temperatures, indices)

    @staticmethod
    def batch_accept_token(
        matchers: list[GrammarMatcher], tokens: list[int], debug_print: bool = False
    ) -> list[bool]:
        """Let each matcher take one token.

        Raises:
            RuntimeError: not as many tokens as matchers.
        """
        _same_size("token_ids", tokens, matchers)
        return [
            matcher.accept_token(token, debug_print=debug_print)
            for matcher, token in zip(matchers, tokens, strict=True)
        ]

    @staticmethod
    def batch_accept_string(
        matchers: list[GrammarMatcher], strings: list[str | bytes], debug_print: bool = False
    ) -> list[bool]:
        """Let each matcher take one text.

        Raises:
            RuntimeError: not as many texts as matchers.
        """
        _same_size("input_strs", strings, matchers)
        return [
            matcher.accept_string(text, debug_print=debug_print)
            for matcher, text in zip(matchers, strings, strict=True)
        ]

    @staticmethod
    def batch_rollback(matchers: list[GrammarMatcher], num_tokens: list[int] | int = 1) -> None:
        """Undo steps of each matcher.

        Args:
            matchers: which.
            num_tokens: one number for all, or one for each.

        Raises:
            RuntimeError: not as many numbers as matchers, or more steps than were taken.
        """
        if isinstance(num_tokens, int | np.integer):
            num_tokens = [int(num_tokens)] * len(matchers)
        _same_size("num_tokens", num_tokens, matchers)
        for matcher, steps in zip(matchers, num_tokens, strict=True):
            matcher.rollback(steps)


def _same_size(name: str, values: list[Any], matchers: list[GrammarMatcher]) -> None:
    if len(values) != len(matchers):
        raise RuntimeError(
            f"The size of matchers ({len(matchers)}) and {name} ({len(values)}) should be the same."
        )
