"""The compiled core. Only the package's own modules call it; they document what it does."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from tokfold.errors import TokfoldError
from tokfold.limits import Limits

_Note: TypeAlias = tuple[Literal["warning", "info"], str, str, str]

@final
class Grammar:
    """A parsed grammar."""

    def __new__(
        cls,
        text: str,
        root: str,
        limits: Limits | None = None,
        interrupt: Interrupt | None = None,
        tokens: dict[str, list[int]] | None = None,
    ) -> Grammar: ...
    def text(self) -> str: ...
    def has_automata(self) -> bool: ...
    def macro_names(self) -> set[str]: ...
    def composed(self, parts: list[tuple[str, Grammar]]) -> Grammar: ...
    def without_lookahead(self) -> Grammar: ...
    def narrowing_lookahead(self) -> str | None: ...
    def has_bounded_rules(self) -> bool: ...
    def token_bounds(self) -> list[tuple[str, int]]: ...
    def with_automata(
        self, limits: Limits | None = None, interrupt: Interrupt | None = None
    ) -> Grammar: ...
    def rule_names(self) -> list[str]: ...
    def num_rules(self) -> int: ...
    def size(self) -> int: ...
    def root(self) -> str: ...

def style_marks(name: str) -> list[str]: ...
def keyword_role(name: str) -> Literal["constrains", "annotates", "structure"] | None: ...
def check_composed(
    frame: Grammar, parts: list[tuple[str, Grammar | Tags]], limits: Limits | None = None
) -> None: ...
def convert_json_schemas(
    texts: list[str],
    options: dict[str, Any],
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> list[tuple[Grammar, list[str]] | None]: ...
def json_text(
    value: object, levels: int, values: int, default: Callable[[object], object] | None = None
) -> str | tuple[Literal["values", "levels", "type", "name"], list[object], str]: ...
def read_lark(
    text: str,
    start: str,
    dialect: str,
    named: dict[str, str | Grammar],
    tokens: dict[str, list[int]] | None,
    schema_options: dict[str, Any],
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> Grammar: ...
def lark_notes(
    text: str,
    start: str,
    dialect: str,
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> list[tuple[int, int, str, str]]: ...
def regular_grammar(
    steps: Sequence[tuple[str, str, str, bool] | list[str] | tuple[int, int | None] | str],
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> Grammar: ...
def convert_json_schema(
    text: str,
    resources: list[tuple[str, str]],
    options: dict[str, Any],
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> tuple[Grammar, list[str]]: ...
def schema_notes(
    text: str,
    resources: list[tuple[str, str]],
    options: dict[str, Any],
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> list[_Note]: ...
def schema_rule_origins(
    text: str,
    resources: list[tuple[str, str]],
    options: dict[str, Any],
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> list[tuple[list[str], str]]: ...
def explain_document(
    text: str,
    resources: list[tuple[str, str]],
    options: dict[str, Any],
    document: bytes,
    read: int,
    is_whole: bool,
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> tuple[str, list[tuple[list[str], str]]] | None: ...

@final
class Tags:
    """A choice of tags: how each begins, its contents, its ends.

    A content comes with the text before it, as written and as compiled.

    With ``dispatch``, free text with tags of one end: whether it goes on after one, and texts that
    do not come in it.
    """

    def __new__(
        cls,
        tags: list[tuple[str, list[tuple[str, Grammar, Grammar]], list[str]]],
        limits: Limits | None = None,
        dispatch: tuple[bool, list[str]] | None = None,
    ) -> Tags: ...
    def changed(
        self,
        gone: list[int],
        added: list[tuple[str, list[tuple[str, Grammar, Grammar]], list[str]]],
        limits: Limits | None = None,
    ) -> Tags: ...
    def __len__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def grammar(self) -> Grammar: ...

@final
class Parts:
    """Parts of networks by what they say."""

    def __new__(cls, max_bytes: int) -> Parts: ...
    def clear(self) -> None: ...
    def counters(self) -> dict[str, int]: ...

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
    def encode_greedy(self, data: bytes) -> tuple[list[int], int]: ...
    def unsettled(self, data: bytes) -> int: ...
    def ids_of(self, data: bytes, longer: bool) -> list[int]: ...

_Lexicon: TypeAlias = tuple[
    npt.NDArray[np.int32],  # moves
    list[int],  # ends
    list[tuple[bool, int]],  # conditions
    list[int],  # offsets
    list[bool],  # ignored
    tuple[int, int] | None,  # newline, columns of a tab
    list[list[int]],  # scanners
    list[list[int]],  # scanners after each terminal
    list[tuple[int, int, bool]],  # embedded strings
]

@final
class LexerStore:
    """The lexer of a mask store: what each token does from each lexer state."""

    def __new__(
        cls,
        vocabulary: Vocabulary,
        lexicon: _Lexicon,
        separate: bool,
        max_states: int,
        max_work: int,
        progress: Callable[[int, int], object] | None = None,
    ) -> LexerStore: ...
    @staticmethod
    def restored(
        lexicon: _Lexicon,
        scanner_sets: npt.NDArray[np.uint64],
        questions: npt.NDArray[np.uint32],
        question_offsets: npt.NDArray[np.uint32],
        entries: npt.NDArray[np.uint32],
        entry_offsets: npt.NDArray[np.uint32],
        configurations: npt.NDArray[np.uint32],
        states: npt.NDArray[np.uint32],
    ) -> LexerStore: ...
    def saved(self) -> dict[str, npt.NDArray[Any]]: ...
    def has_ways(self) -> bool: ...
    def release(self) -> None: ...
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
class StackParser:
    """The stacks of a table, and languages of them."""

    def __new__(
        cls,
        shifts: list[list[tuple[int, int]]],
        reductions: list[list[tuple[int, int]]],
        gotos: list[list[tuple[int, int]]],
        productions: list[tuple[int, list[tuple[bool, int]]]],
        terminals: int,
        rules: int,
        start: int,
        end_state: int,
        opens: list[int],
        max_states: int,
    ) -> StackParser: ...
    def below(self) -> list[list[int]]: ...
    def after(self) -> list[list[int]]: ...
    def is_reduced(self) -> bool: ...
    def shift(self, stack: list[int], terminal: int) -> list[int] | None: ...
    def reading(self, letters: list[tuple[int, list[int] | None]]) -> int: ...
    def states(self, reading: int, tops: list[int]) -> list[int]: ...
    def chosen(self, regions: list[tuple[int, int]], tops: list[int]) -> list[int]: ...
    def size(self) -> int: ...
    def moves(self, state: int) -> list[tuple[int, int]]: ...
    def choose(self, inside: int, outside: int, top: int, needed: int) -> int: ...

@final
class StoreEngine:
    """What decoding with a mask store needs, shared by texts."""

    def __new__(
        cls,
        lexer: LexerStore,
        vocabulary: Vocabulary,
        parser: StackParser,
        ignored: list[bool],
        indentation: tuple[int, int | None, int | None, int, list[int], list[int], bool] | None,
        scanner_of_state: list[int],
        max_starts: int,
        max_bytes: int,
        rows: tuple[
            npt.NDArray[np.uint32],
            npt.NDArray[np.uint32],
            npt.NDArray[np.uint32],
            npt.NDArray[np.uint32],
            npt.NDArray[np.uint32],
            npt.NDArray[np.uint32],
            npt.NDArray[np.uint32],
            npt.NDArray[np.int64],
        ],
        progress: Callable[[int, int], object] | None = None,
    ) -> StoreEngine: ...
    def counts(self) -> dict[str, int]: ...
    def raw_rows(
        self, state: int, scanner: int, layout: tuple[int, list[int], int | None]
    ) -> list[tuple[list[tuple[int, list[int] | None]], int]]: ...
    def token_set(self, set: int) -> npt.NDArray[np.uint32]: ...

@final
class StoreText:
    """One text on its way through a mask store."""

    def __new__(cls, engine: StoreEngine, stops: list[int], silent: list[int]) -> StoreText: ...
    def fill(self, row: npt.NDArray[np.int32]) -> None: ...
    def depths(self) -> list[int]: ...
    def accept(self, token: int) -> bool: ...
    def accept_many(self, tokens: list[int]) -> int: ...
    def accept_pieces(self, pieces: list[bytes]) -> bool: ...
    def may_end(self) -> bool: ...
    def is_ended(self) -> bool: ...
    def rollback(self, count: int) -> None: ...
    def steps(self) -> int: ...
    def text(self) -> bytes: ...
    def fork(self) -> StoreText: ...
    def places(self) -> list[tuple[list[int], int, int, int, list[int], int | None]]: ...

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
class Interrupt:
    """Ends calls: by a flag, or at a deadline that begins when it is made."""

    def __new__(
        cls, milliseconds: int | None = None, *, limit: str = "milliseconds"
    ) -> Interrupt: ...
    def cancel(self) -> None: ...
    def check(self) -> None: ...
    @property
    def is_cancelled(self) -> bool: ...

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
        limits: Limits | None = None,
        pool: Pool | None = None,
        representation: str = "auto",
        parts: tuple[list[tuple[str, Grammar | Tags]], Parts] | None = None,
        loops: bool = True,
        interrupt: Interrupt | None = None,
    ) -> Engine: ...
    def take_classes(
        self,
        class_of: npt.NDArray[np.int32],
        representatives: npt.NDArray[np.uint32],
        num_stop_classes: int,
    ) -> bool: ...
    def needed_bytes(
        self, written: bytes, interrupt: Interrupt | None = None
    ) -> list[bytes] | None: ...
    def is_finite(self, interrupt: Interrupt | None = None) -> bool: ...
    def forget(self) -> None: ...
    def warm(self, count: int, interrupt: Interrupt | None = None) -> int: ...
    def prepare_ending(self, interrupt: Interrupt | None = None) -> None: ...
    @property
    def has_classes(self) -> bool: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def network_states(self) -> int: ...
    @property
    def is_for_charts(self) -> bool: ...
    @property
    def network_bytes(self) -> int: ...
    @property
    def bytes_held(self) -> int: ...
    def counters(self) -> dict[str, int]: ...

@final
class Matcher:
    """One text on its way."""

    def __new__(
        cls,
        engine: Engine,
        *,
        stop_ids: list[int] | None = None,
        when_complete: bool = False,
        interrupt: Interrupt | None = None,
    ) -> Matcher: ...
    def fill(
        self,
        bitmask: npt.NDArray[np.int32],
        row: int,
        interrupt: Interrupt | None = None,
        tokens_left: int | None = None,
    ) -> bool: ...
    def fill_near_end(
        self,
        bitmask: npt.NDArray[np.int32],
        row: int,
        interrupt: Interrupt | None = None,
    ) -> bool: ...
    def fill_classes(
        self,
        bitmask: npt.NDArray[np.int32],
        row: int,
        interrupt: Interrupt | None = None,
        tokens_left: int | None = None,
    ) -> bool: ...
    def accept_token(self, id: int, interrupt: Interrupt | None = None) -> bool: ...
    def fill_draft(
        self,
        parents: list[int],
        tokens: list[int],
        bitmask: npt.NDArray[np.int32],
        classes: bool,
        interrupt: Interrupt | None = None,
    ) -> list[bool]: ...
    def accept_prefix(self, tokens: list[int], interrupt: Interrupt | None = None) -> int: ...
    def accept_bytes(self, data: bytes, interrupt: Interrupt | None = None) -> bool: ...
    def rollback(self, count: int, interrupt: Interrupt | None = None) -> None: ...
    def reset(self, interrupt: Interrupt | None = None) -> None: ...
    def fork(self) -> Matcher: ...
    def is_accepting(self) -> bool: ...
    def is_terminated(self) -> bool: ...
    def steps(self) -> int: ...
    def stop_ids(self) -> list[int]: ...
    def forced_bytes(self, limit: int, interrupt: Interrupt | None = None) -> bytes: ...
    def forced_token(self, interrupt: Interrupt | None = None) -> int | None: ...
    def tokens_behind(
        self, begin: bytes, interrupt: Interrupt | None = None
    ) -> list[int] | None: ...
    def tokens_behind_in_time(
        self, begin: bytes, most: int, interrupt: Interrupt | None = None
    ) -> list[tuple[int, int]] | None: ...
    def limit_tokens(
        self, most: int, prefer_end: int = 0, interrupt: Interrupt | None = None
    ) -> None: ...
    def prefer_end(self) -> int: ...
    def tokens_left(self) -> int | None: ...
    def shortest(self, interrupt: Interrupt | None = None) -> tuple[int | None, int | None]: ...
    def closing_tokens(self, most: int, interrupt: Interrupt | None = None) -> list[int]: ...
    def closing_bytes(self, most: int, interrupt: Interrupt | None = None) -> bytes: ...
    def readable(self, data: bytes) -> tuple[int, bytes]: ...
    def expected(self) -> bytes: ...
    def text(self) -> bytes: ...
    def state(self) -> bytes: ...
    def state_for(self, other: Engine) -> bytes: ...
    def restore(self, state: bytes) -> None: ...
    def cancel(self, on: bool) -> None: ...
    def bytes_held(self) -> int: ...
    def counters(self) -> dict[str, int]: ...

def fill_batch(
    matchers: list[Matcher],
    bitmask: npt.NDArray[np.int32],
    rows: list[int] | None,
    threads: int,
    classes: bool,
) -> npt.NDArray[np.bool_]: ...
def fill_batch_each(
    matchers: list[Matcher],
    bitmask: npt.NDArray[np.int32],
    rows: list[int] | None,
    threads: int,
    classes: bool,
) -> list[bool | TokfoldError]: ...
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
    bounds: Limits | None = None,
) -> Grammar: ...
def compare(
    left: Grammar,
    right: Grammar,
    skip_lookahead: tuple[bool, bool],
    max_pairs: int,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[tuple[bytes, bool, bool] | None, int | None, int]: ...
def open_rules(
    grammar: Grammar,
    data: bytes,
    *,
    skip_lookahead: bool,
    limits: Limits | None = None,
) -> tuple[list[str], list[str]]: ...
def compile_classes(
    grammar: Grammar,
    vocabulary: Vocabulary,
    *,
    prune: bool,
    skip_lookahead: bool,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
    interrupt: Interrupt | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32], int, dict[str, int | float]]: ...
def recognize(
    grammar: Grammar,
    data: bytes,
    *,
    skip_lookahead: bool,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
    interrupt: Interrupt | None = None,
) -> tuple[int, bool, bytes]: ...
def token_names(text: str) -> list[str]: ...
def repair_printed(text: str) -> str: ...
def digest(text: str) -> bytes: ...
