"""Our own engine, instrumented: it counts for itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Literal

import tokfold
from tokfold._quoting import quoted
from tokfold.classes import TokenClasses, compile_classes
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.grammar import Grammar
from tokfold.laboratory.instruments.base import (
    Counts,
    EngineRefusedError,
    EngineStoppedError,
    Row,
    new_row,
)
from tokfold.limits import Limits
from tokfold.vocabulary import Vocabulary

__all__ = ["OwnEngine"]

_OF_MASKS = ("sets_visited", "memo_misses", "trie_nodes")
_OF_STEPS = ("work", "completions", "earley_sets")


class OwnEngine:
    """Our own engine over a grammar; memory is not shared with other grammars.

    Counters: ``mask.sets_visited``, the pairs of a frame and pending nodes looked at;
    ``mask.memo_misses``, answers made; ``mask.trie_nodes`` entered to make them;
    ``mask.bytes_made``, bytes by which the memory of masks grew; ``state.items``, Earley items of
    the state; ``step.work``, units of work of the token read; ``step.completions`` of rules;
    ``step.earley_sets`` that were new to this walk; ``step.bytes`` of the token.

    Args:
        grammar: the grammar.
        vocabulary: the vocabulary.
        classes: ``"now"``: masks over token classes, as ``tokfold.compile`` has them after its
            first moments; ``"never"``: masks over the whole vocabulary.
        limits: bounds of the engine.

    Raises:
        EngineRefusedError: the grammar holds what is not context-free, or is too large.
    """

    remembers = True

    def __init__(
        self,
        grammar: Grammar,
        vocabulary: Vocabulary,
        *,
        classes: Literal["now", "never"] = "now",
        limits: Limits | None = None,
    ) -> None:
        if classes not in ("now", "never"):
            raise ValueError(f'classes must be "now" or "never", not {quoted(classes)}')
        self.name = "own"
        self.version = tokfold.__version__
        self.vocabulary = vocabulary
        began = time.perf_counter()
        try:
            made: TokenClasses | Literal["never"] = "never"
            if classes == "now":
                made = compile_classes(grammar, vocabulary, limits)
            self.compiled = tokfold.compile(
                grammar,
                vocabulary,
                limits,
                classes=made,
                options=tokfold.CompileOptions(pool=None, check_tokens=False),
            )
        except (UnsupportedGrammarError, LimitExceededError) as error:
            raise EngineRefusedError(self.name, str(error)) from error
        self.compile_seconds = time.perf_counter() - began

    def begin(self, *, cold: bool, counting: bool = False) -> OwnWalk:
        """Begin a text; ``cold`` forgets every answer, of all walks over this engine."""
        if cold:
            self.compiled._core.forget()
        return OwnWalk(self, counting)


class OwnWalk:
    """One text on its way; see :class:`tokfold.laboratory.instruments.base.Walk`."""

    row: Row
    fill: Callable[[], object]
    accept: Callable[[int], bool]

    def __init__(self, engine: OwnEngine, counting: bool) -> None:
        self._compiled = engine.compiled
        self._vocabulary = engine.vocabulary
        self._matcher = tokfold.Matcher(engine.compiled)
        self.row = new_row(engine.vocabulary)
        self.fill, self.accept = (
            partial(self._matcher.fill_bitmask, self.row),
            self._matcher.accept_token,
        )
        self._before = self._levels() if counting else {}
        self._read = 0

    def check(self) -> None:
        """Our engine raises where it gives up."""

    def _levels(self) -> dict[str, int]:
        masks, steps = self._compiled.counters(), self._matcher.counters()
        found = {f"mask.{name}": masks[name] for name in _OF_MASKS}
        found["mask.bytes_made"] = masks["bytes_held"]
        return found | {f"step.{name}": steps[name] for name in _OF_STEPS}

    def counters(self) -> Counts:
        """What was spent since the last call."""
        now = self._levels()
        # Memory that is full is thrown away: what was made then is not told by what is held.
        spent = {name: max(0, now[name] - was) for name, was in self._before.items()}
        self._before = now
        read = len(self._matcher.text)
        spent["step.bytes"], self._read = read - self._read, read
        return spent | {"state.items": self._matcher.counters()["items"]}

    def would_accept(self, token_id: int) -> bool:
        """Tries the token on a fork."""
        try:
            return self._matcher.fork().accept_token(token_id)
        except LimitExceededError as error:
            raise EngineStoppedError("own", str(error)) from error
