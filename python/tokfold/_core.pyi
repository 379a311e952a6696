"""The compiled core. Only the package's own modules call it; they document what it does."""

from collections.abc import Callable
from typing import final

import numpy as np
import numpy.typing as npt

@final
class Grammar:
    """A parsed grammar."""

    def __new__(cls, text: str, root: str, limits: dict[str, int] | None = None) -> Grammar: ...
    def text(self) -> str: ...
    def rule_names(self) -> list[str]: ...
    def root(self) -> str: ...

@final
class Vocabulary:
    """A vocabulary, sorted for the walk of its trie."""

    def __new__(
        cls,
        blob: bytes,
        offsets: npt.NDArray[np.int64],
        stop_ids: list[int],
        special_ids: list[int],
    ) -> Vocabulary: ...
    def __len__(self) -> int: ...

@final
class Unfolder:
    """Class masks to token masks."""

    def __new__(
        cls,
        class_of: npt.NDArray[np.int32],
        num_classes: int,
        max_bytes: int = 33_554_432,
    ) -> Unfolder: ...
    def unfold(self, class_mask: npt.NDArray[np.int32], row: npt.NDArray[np.int32]) -> None: ...

def compile_classes(
    grammar: Grammar,
    vocabulary: Vocabulary,
    *,
    prune: bool,
    skip_lookahead: bool,
    limits: dict[str, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
    inline_budget: int | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32], int, dict[str, int | float]]: ...
def recognize(
    grammar: Grammar,
    data: bytes,
    *,
    skip_lookahead: bool,
    limits: dict[str, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, bool, bytes]: ...
def repair_printed(text: str) -> str: ...
