"""llguidance, instrumented: its interpreter tells what each mask took."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tokfold._extras import installed_version, require
from tokfold.grammar import Grammar
from tokfold.laboratory.instruments.base import (
    Counts,
    EngineRefusedError,
    EngineStoppedError,
    InstrumentError,
    Row,
    new_row,
)
from tokfold.laboratory.instruments.lark import to_lark
from tokfold.vocabulary import Vocabulary

__all__ = ["LlguidanceEngine"]

MAX_ITEMS = 2_000_000
_COUNTED = (
    "rows",
    "cached_rows",
    "all_items",
    "lexer_cost",
    "slices_applied",
    "trie_nodes_walked",
    "definitive_bytes",
    "lexer_ops",
)


class LlguidanceEngine:
    """llguidance over a grammar: by a door of its own, or translated by :func:`.lark.to_lark`.

    The translation has a lexeme for each character. It keeps every string, and is many times slower
    than what llguidance makes of a JSON Schema itself. Its own door has other strings where the two
    read a schema differently: other white space, and what one of them does not enforce.

    Counters are what its interpreter reports with each mask, of all since the mask before, which
    includes reading the token between: ``mask.rows``, Earley rows made; ``mask.cached_rows`` used
    again; ``mask.all_items``, Earley items; ``mask.lexer_cost``, derivatives of regular expressions
    taken; ``mask.slices_applied``; ``mask.trie_nodes_walked``; ``mask.definitive_bytes``;
    ``mask.lexer_ops``.

    Where a text is forced, its masks allow only the token that the tokenizer would begin that text
    with, though it accepts others: texts are cut greedily here, without a tokenizer's own rules.

    Args:
        grammar: the grammar.
        vocabulary: the vocabulary.
        max_items: bound on Earley items of one mask. The engine's own is 50,000, which characters
            as lexemes often exceed; where this bound is reached too, it gives up.
        by_own_door: take the JSON Schema of which the grammar was made, where it was made of one
            without options; else the translation.

    Attributes:
        given: what llguidance was given, in words.

    Raises:
        MissingExtraError: llguidance is not installed.
        EngineRefusedError: the grammar cannot be translated, or llguidance does not take it.
        InstrumentError: the vocabulary has no stop token, without which llguidance does not go.
    """

    remembers = True

    def __init__(
        self,
        grammar: Grammar,
        vocabulary: Vocabulary,
        *,
        max_items: int = MAX_ITEMS,
        by_own_door: bool = False,
    ) -> None:
        module: Any = require("llguidance", "lab", "profiling llguidance")
        self.name = "llguidance"
        self.version = installed_version("llguidance")
        self.vocabulary = vocabulary
        self._module = module
        self._limits = module.LLParserLimits(
            step_max_items=max_items,
            max_items_in_row=max_items,
            initial_lexer_fuel=20_000_000,
            step_lexer_fuel=20_000_000,
        )
        stops = list(vocabulary.stop_token_ids)
        if not stops:
            raise InstrumentError("llguidance needs a vocabulary with a stop token; it has none")
        wrapped = module.TokenizerWrapper(_Tokens(vocabulary))
        self._tokenizer = module.LLTokenizer(wrapped, n_vocab=len(vocabulary), eos_token=stops)
        schema = _plain_schema(grammar) if by_own_door else None
        if schema is None:
            self.given = "a translation, with a lexeme for each character"
            self._source = module.LLMatcher.grammar_from_lark(to_lark(grammar))
        else:
            self.given = "the JSON Schema, whose objects it leaves open"
            self._source = module.LLMatcher.grammar_from_json_schema(schema)
        began = time.perf_counter()
        self._known = self._new_matcher()
        self.compile_seconds = time.perf_counter() - began
        self._interpreter: Any = None

    def _new_matcher(self) -> Any:  # noqa: ANN401 - a class of an optional package
        matcher = self._module.LLMatcher(
            self._tokenizer, self._source, log_level=0, limits=self._limits
        )
        if matcher.is_error():
            raise EngineRefusedError(self.name, _first_line(matcher.get_error()))
        return matcher

    def _new_interpreter(self) -> Any:  # noqa: ANN401 - a class of an optional package
        interpreter = self._module.LLInterpreter(
            self._tokenizer,
            self._source,
            enable_backtrack=False,
            enable_ff_tokens=False,
            log_level=0,
            limits=self._limits,
        )
        interpreter.start_without_prompt()
        return interpreter

    def begin(self, *, cold: bool, counting: bool = False) -> LlguidanceWalk | CountingWalk:
        """Begin a text; a warm one knows the states of the lexer that earlier ones met."""
        if counting:
            if cold or self._interpreter is None:
                self._interpreter = self._new_interpreter()
            return CountingWalk(self, self._interpreter.deep_copy())
        if cold:
            self._known = self._new_matcher()
        return LlguidanceWalk(self, self._known.deep_copy())


class LlguidanceWalk:
    """One text on its way; see :class:`tokfold.laboratory.instruments.base.Walk`."""

    row: Row
    fill: Callable[[], object]
    accept: Callable[[int], bool]

    def __init__(self, engine: LlguidanceEngine, matcher: Any) -> None:  # noqa: ANN401
        self._matcher = matcher
        self.row = new_row(engine.vocabulary)
        self.fill = partial(matcher.unsafe_compute_mask_ptr, self.row.ctypes.data, self.row.nbytes)
        self.accept = matcher.consume_token

    def check(self) -> None:
        """Its masks after an error allow the end of the text and nothing else."""
        if self._matcher.is_error():
            raise EngineStoppedError("llguidance", _first_line(self._matcher.get_error()))

    def counters(self) -> Counts:
        """The matcher tells none: a walk that counts is :class:`CountingWalk`."""
        raise InstrumentError("begin the walk with counting=True to have its counters")

    def would_accept(self, token_id: int) -> bool:
        """Tries the token on a copy."""
        return bool(self._matcher.deep_copy().consume_token(token_id))


class CountingWalk:
    """The same by the interpreter, which does the same work and reports it."""

    row: Row

    def __init__(self, engine: LlguidanceEngine, interpreter: Any) -> None:  # noqa: ANN401
        self._interpreter = interpreter
        self.row = new_row(engine.vocabulary)
        self._counted = dict.fromkeys(_COUNTED, 0)
        self._stop = ""

    def fill(self) -> None:
        """Mask, with its report."""
        try:
            report = json.loads(
                self._interpreter.unsafe_compute_mask_ptr(self.row.ctypes.data, self.row.nbytes)
            )
        except (RuntimeError, ValueError) as error:
            raise EngineStoppedError("llguidance", _first_line(str(error))) from error
        self._counted = dict.fromkeys(_COUNTED, 0)
        for part in report["progress"]:
            for name in _COUNTED:
                self._counted[name] += part.get("stats", {}).get(name, 0)
        self._stop = self._interpreter.stop_reason() if report["stop"] else ""

    def accept(self, token_id: int) -> bool:
        """Step."""
        if not self._interpreter.validate_tokens_raw([token_id]):
            return False
        try:
            self._interpreter.commit_token(token_id)
        except (RuntimeError, ValueError) as error:
            raise EngineStoppedError("llguidance", _first_line(str(error))) from error
        return True

    def check(self) -> None:
        """A stop that is no end of the text is an error."""
        if self._stop not in ("", "NotStopped", "NoExtension", "NoExtensionBias", "EndOfSentence"):
            raise EngineStoppedError("llguidance", self._stop)

    def counters(self) -> Counts:
        """What the last mask took, the token before it included."""
        return {f"mask.{name}": count for name, count in self._counted.items()}

    def would_accept(self, token_id: int) -> bool:
        """Whether the token may follow."""
        return bool(self._interpreter.validate_tokens_raw([token_id]))


def _plain_schema(grammar: Grammar) -> str | None:
    """The text of the JSON Schema of which a grammar was made, if by no other than the defaults.

    Objects may be open or closed: llguidance has no such option.
    """
    request, plain = grammar._schema, Grammar.from_json_schema(True)._schema
    if request is None or plain is None or request.resources:
        return None
    if {**request.fields, "open_objects": False} != {**plain.fields, "open_objects": False}:
        return None
    return request.text


class _Tokens:
    """What llguidance asks of a tokenizer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.eos_token_id = vocabulary.stop_token_ids[0]
        self.bos_token_id = None
        self.tokens = [bytes(token) for token in vocabulary.token_bytes]
        self.special_token_ids = sorted({*vocabulary.stop_token_ids, *vocabulary.special_token_ids})

    def __call__(self, data: bytes | str) -> list[int]:
        return self._vocabulary.encode_greedy(data.encode() if isinstance(data, str) else data)


def _first_line(message: str) -> str:
    lines = message.strip().splitlines()
    return lines[0] if lines else "it does not say why"
