"""The compiled core. Only the package's own modules call it; they document what it does."""

from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

@final
class Grammar:
    """A parsed grammar."""

    def __new__(cls, text: str, root: str, limits: dict[str, int] | None = None) -> Grammar: ...
    def text(self) -> str: ...
    def macros(self) -> list[tuple[int, str, str, list[int], int, int]]: ...
    def composed(
        self, parts: list[tuple[str, Grammar]], limits: dict[str, int] | None
    ) -> Grammar: ...
    def with_dispatches(self, limits: dict[str, int] | None = None) -> Grammar: ...
    def with_meanings(
        self,
        meanings: dict[
            int,
            list[
                tuple[
                    int,
                    int,
                    list[int],
                    list[tuple[int, int, int, int]],
                    list[tuple[int, bool, int, int, int | None, int]],
                ]
            ],
        ],
    ) -> Grammar: ...
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
class LexerStore:
    """The lexer of a mask store: what each token does from each lexer state."""

    def __new__(
        cls,
        vocabulary: Vocabulary,
        moves: npt.NDArray[np.int32],
        ends: list[int],
        conditions: list[tuple[bool, int]],
        offsets: list[int],
        ignored: list[bool],
        newline: tuple[int, int] | None,
        scanners: list[list[int]],
        after: list[list[int]],
        embedded: list[tuple[int, int, bool]],
        separate: bool,
        max_states: int,
        max_work: int,
        progress: Callable[[int, int], object] | None = None,
    ) -> LexerStore: ...
    def states(self) -> list[tuple[int, int]]: ...
    def letters(self) -> list[tuple[int, int, int, int]]: ...
    def sequences(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
    def scanner_sets(self) -> npt.NDArray[np.uint64]: ...
    def sizes(self) -> tuple[list[int], int]: ...
    def at_once(self) -> npt.NDArray[np.uint32]: ...
    def rows(
        self,
    ) -> tuple[
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint32],
        npt.NDArray[np.int64],
    ]: ...
    def joined(self) -> dict[str, npt.NDArray[Any]]: ...
    def advance(
        self, state: int, data: bytes
    ) -> list[tuple[int, list[tuple[int, int, int, int]], int | None]]: ...
    def complete(self, state: int) -> int: ...

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
    def apply(
        self,
        masks: npt.NDArray[np.int32],
        logits: npt.NDArray[np.float32] | npt.NDArray[np.int16],
        rows: list[int] | None = None,
        masked: int = 0,
    ) -> None: ...

@final
class Switch:
    """Stops work in another thread."""

    def __new__(cls) -> Switch: ...
    def set(self) -> None: ...

@final
class Pool:
    """What masks remember, shared by grammars."""

    def __new__(cls, vocabulary: Vocabulary, max_bytes: int) -> Pool: ...
    def clear(self) -> None: ...
    def counters(self) -> dict[str, int]: ...
    def to_bytes(self, max_bytes: int) -> bytes: ...
    def add_bytes(self, data: bytes) -> int: ...

@final
class Engine:
    """A network with what its masks remember."""

    def __new__(
        cls,
        grammar: Grammar,
        vocabulary: Vocabulary,
        *,
        skip_lookahead: bool,
        counters: bool = True,
        limits: dict[str, int] | None = None,
        engine_limits: dict[str, int] | None = None,
        pool: Pool | None = None,
        representation: str = "auto",
    ) -> Engine: ...
    def take_classes(
        self,
        class_of: npt.NDArray[np.int32],
        representatives: npt.NDArray[np.uint32],
        num_stop_classes: int,
    ) -> None: ...
    def forget(self) -> None: ...
    def warm(self, count: int, switch: Switch) -> int: ...
    @property
    def has_classes(self) -> bool: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def network_states(self) -> int: ...
    @property
    def network_bytes(self) -> int: ...
    @property
    def bytes_held(self) -> int: ...
    def counters(self) -> dict[str, int]: ...

@final
class Matcher:
    """One text on its way."""

    def __new__(
        cls, engine: Engine, *, stop_ids: list[int] | None = None, when_complete: bool = False
    ) -> Matcher: ...
    def fill(self, bitmask: npt.NDArray[np.int32], row: int) -> bool: ...
    def fill_classes(self, bitmask: npt.NDArray[np.int32], row: int) -> bool: ...
    def accept_token(self, id: int) -> bool: ...
    def fill_draft(
        self,
        parents: list[int],
        tokens: list[int],
        bitmask: npt.NDArray[np.int32],
        classes: bool,
    ) -> list[bool]: ...
    def accept_prefix(self, tokens: list[int]) -> int: ...
    def accept_bytes(self, data: bytes) -> bool: ...
    def rollback(self, count: int) -> None: ...
    def reset(self) -> None: ...
    def fork(self) -> Matcher: ...
    def is_accepting(self) -> bool: ...
    def is_terminated(self) -> bool: ...
    def steps(self) -> int: ...
    def stop_ids(self) -> list[int]: ...
    def forced_bytes(self, limit: int) -> bytes: ...
    def readable(self, data: bytes) -> tuple[int, bytes]: ...
    def expected(self) -> bytes: ...
    def text(self) -> bytes: ...
    def state(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...
    def cancel(self, on: bool) -> None: ...
    def bytes_held(self) -> int: ...
    def counters(self) -> dict[str, int]: ...

def fill_batch(
    matchers: list[Matcher],
    bitmask: npt.NDArray[np.int32],
    rows: list[int],
    threads: int,
    classes: bool,
) -> npt.NDArray[np.bool_]: ...
def apply_bitmask(
    masks: npt.NDArray[np.int32],
    logits: npt.NDArray[np.float32] | npt.NDArray[np.int16],
    size: int,
    rows: list[int] | None = None,
    masked: int = 0,
) -> None: ...
def accept_batch(
    matchers: list[Matcher], tokens: list[int], threads: int
) -> npt.NDArray[np.bool_]: ...
def rollback_batch(matchers: list[Matcher], counts: list[int], threads: int) -> None: ...
def read_arena(
    grammar: Grammar,
) -> tuple[
    list[tuple[str, int, int | None, bool, int, int]],
    list[tuple[int, list[int], bytes]],
    list[tuple[int, int]],
    int,
]: ...
def build_arena(
    base: Grammar,
    rules: list[tuple[str, int, int | None, int | None]],
    exprs: list[tuple[int, list[int], bytes]],
    root: int,
    bounds: dict[str, int] | None = None,
) -> Grammar: ...
def compare(
    left: Grammar,
    right: Grammar,
    skip_lookahead: tuple[bool, bool],
    max_pairs: int,
    limits: dict[str, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[tuple[bytes, bool, bool] | None, int | None, int]: ...
def open_rules(
    grammar: Grammar,
    data: bytes,
    *,
    skip_lookahead: bool,
    limits: dict[str, int] | None = None,
) -> tuple[list[str], list[str]]: ...
def compile_classes(
    grammar: Grammar,
    vocabulary: Vocabulary,
    *,
    prune: bool,
    skip_lookahead: bool,
    limits: dict[str, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
    milliseconds: int | None = None,
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
