"""What batches, logits processors and folds need of others, whichever engine these are of."""

from __future__ import annotations

from typing import Protocol, Self, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from tokfold.vocabulary import Vocabulary


class RowMatcher(Protocol):
    """What a row of a logits processor needs of a matcher."""

    def fill_bitmask(self, bitmask: npt.NDArray[np.int32], row: int = 0) -> bool: ...
    def accept_token(self, token_id: int) -> bool: ...
    def rollback(self, count: int = 1) -> None: ...
    def fork(self) -> RowMatcher: ...
    @property
    def is_terminated(self) -> bool: ...


class BatchMatcher(RowMatcher, Protocol):
    """What batches need of a matcher."""

    @property
    def num_steps(self) -> int: ...
    @property
    def stop_token_ids(self) -> tuple[int, ...]: ...
    @property
    def vocabulary(self) -> Vocabulary: ...


class TextMatcher(BatchMatcher, Protocol):
    """What a prompt needs of the matcher of the text behind it."""

    def accept_bytes(self, data: bytes) -> bool: ...
    def fork(self) -> Self: ...
    @property
    def is_accepting(self) -> bool: ...
    @property
    def text(self) -> bytes: ...
    @property
    def tokens_left(self) -> int | None: ...
    def _allow_tokens(self, left: int | None) -> None: ...
    def _tokens_to_end(self, enough: int = 0) -> int | None: ...


@runtime_checkable
class ByteReader(Protocol):
    """A matcher that reads bytes too."""

    def accept_bytes(self, data: bytes) -> bool: ...


@runtime_checkable
class ClassBits(Protocol):
    """What says of each token which bit of a class mask it reads."""

    @property
    def class_of_token(self) -> npt.NDArray[np.int32]: ...
    @property
    def num_class_bits(self) -> int: ...


def is_matcher(value: object) -> TypeGuard[BatchMatcher]:
    """Whether it is a matcher, by the names of its methods; XGrammar has others."""
    return hasattr(value, "fill_bitmask") and hasattr(value, "accept_token")
