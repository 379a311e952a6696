"""XGrammar, instrumented: its states are printed by it, what its masks leave open it serializes.

XGrammar makes a mask for each parser state when it compiles, and leaves some tokens *uncertain*:
those that run past the end of the rule, which are tried one by one, at each step, in the state at
hand. The tokens uncertain in the states of a step are therefore what its mask costs. How far such a
token gets, and through how many states, differs a hundredfold between grammars; XGrammar does not
count it, so a sample of the tokens is tried again, and counted.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from tokfold._extras import installed_version, require, xgrammar_reason
from tokfold.grammar import Grammar
from tokfold.laboratory.instruments.base import (
    Counts,
    EngineRefusedError,
    InstrumentError,
    Row,
    new_row,
)
from tokfold.vocabulary import Vocabulary

__all__ = ["XgrammarEngine"]

MAX_CACHE_BYTES = 1 << 30
_STATE = re.compile(
    r"ParserState\(rule_id=(-?\d+), sequence_id=(-?\d+), element_id=(-?\d+), "
    r"rule_start_pos=(-?\d+), sub_element_id=(-?\d+)"
)
SAMPLE = 48
"""Uncertain tokens that are tried again for the estimates."""
_StateKey = tuple[int, int, int, int]


class XgrammarEngine:
    """Plain XGrammar, one thread, its cache between grammars switched off.

    Special tokens of the vocabulary are handed to it without bytes, so that its masks never allow
    them, as those of the other engines do not.

    Counters: ``state.states``, parser states that may read the next byte; ``state.starts``, the
    places of the text where their rules began; ``mask.listed``, tokens that the masks of these
    states list one by one; ``mask.uncertain``, tokens that are tried at this step;
    ``mask.uncertain_bytes``, nodes of the trie of those; ``mask.tried_bytes`` and
    ``mask.tried_states``, estimates, from an evenly spaced sample, of how many of these nodes are
    read and of the states after each; ``step.bytes`` of the token read.

    Args:
        grammar: the grammar; XGrammar reads it as tokfold prints it.
        vocabulary: the vocabulary.
        max_cache_bytes: bound on the masks made by compiling whose contents are read for the
            counters.

    Raises:
        MissingExtraError: XGrammar is not installed.
        EngineRefusedError: XGrammar does not take the grammar.
    """

    remembers = False

    def __init__(
        self,
        grammar: Grammar,
        vocabulary: Vocabulary,
        *,
        max_cache_bytes: int = MAX_CACHE_BYTES,
    ) -> None:
        module: Any = require("xgrammar", "xgrammar", "profiling XGrammar")
        self.name = "xgrammar"
        self.version = installed_version("xgrammar")
        self.vocabulary = vocabulary
        self._module, self._max_cache_bytes = module, max_cache_bytes
        special = set(vocabulary.special_token_ids)
        texts = [b"" if i in special else text for i, text in enumerate(vocabulary.token_bytes)]
        info = module.TokenizerInfo(
            texts,
            vocab_type=module.VocabType.RAW,
            vocab_size=len(vocabulary),
            stop_token_ids=list(vocabulary.stop_token_ids),
        )
        compiler = module.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        began = time.perf_counter()
        try:
            self.compiled = compiler.compile_grammar(str(grammar), root_rule_name=grammar.root)
        except (RuntimeError, ValueError) as error:
            raise EngineRefusedError(self.name, xgrammar_reason(error)) from error
        self.compile_seconds = time.perf_counter() - began
        stops = set(vocabulary.stop_token_ids)
        self._sorted = sorted(t for i, t in enumerate(texts) if t and i not in stops)
        self._masks: dict[_StateKey, dict[str, Any]] | None = None
        self._costs: dict[_StateKey, _Cost] = {}

    def begin(self, *, cold: bool, counting: bool = False) -> XgrammarWalk:
        """Begin a text. It remembers nothing of earlier texts: cold and warm are the same."""
        if counting and self._masks is None:
            self._masks = self._read_masks()
        return XgrammarWalk(self)

    def _read_masks(self) -> dict[_StateKey, dict[str, Any]]:
        size = self.compiled.memory_size_bytes
        if size > self._max_cache_bytes:
            raise InstrumentError(
                f"xgrammar's masks for this grammar take {size:,} bytes, and only "
                f"{self._max_cache_bytes:,} are read for its counters: raise max_cache_bytes"
            )
        masks = json.loads(self.compiled.serialize_json())["adaptive_token_mask_cache"]
        return {(key[0], key[1], key[2], key[4]): mask for key, mask in masks}

    def cost(self, key: _StateKey) -> _Cost:
        """What the mask of a state says."""
        found = self._costs.get(key)
        if found is None:
            mask = (self._masks or {}).get(key)
            found = _Cost(0, [], 0)
            if mask is not None:
                listed = len(mask["accepted_indices"]) + len(mask["rejected_indices"])
                uncertain = [self._sorted[i] for i in mask["uncertain_indices"]]
                found = _Cost(listed, uncertain, _trie_nodes(uncertain))
            self._costs[key] = found
        return found


class _Cost(NamedTuple):
    """Of the mask of a state: tokens listed, texts uncertain, nodes of the trie of those."""

    listed: int
    uncertain: list[bytes]
    nodes: int


class XgrammarWalk:
    """One text on its way; see :class:`tokfold.laboratory.instruments.base.Walk`."""

    row: Row
    fill: Callable[[], object]
    accept: Callable[[int], bool]

    def __init__(self, engine: XgrammarEngine) -> None:
        self._engine = engine
        self._matcher = engine._module.GrammarMatcher(engine.compiled)
        self.row = new_row(engine.vocabulary)
        self.fill = partial(self._matcher.fill_next_token_bitmask, self.row)
        self.accept = self._matcher.accept_token

    def check(self) -> None:
        """XGrammar raises where it gives up."""

    def counters(self) -> Counts:
        """Of the states as they are now."""
        states = self._states(self._matcher)
        keys = dict.fromkeys(
            (rule, sequence, element, sub) for rule, sequence, element, _, sub in states
        )
        costs = [self._engine.cost(key) for key in keys]
        nodes = sum(cost.nodes for cost in costs)
        read, after = self._sampled([text for cost in costs for text in cost.uncertain])
        return {
            "state.states": len(states),
            "state.starts": len({state[3] for state in states}),
            "mask.listed": sum(cost.listed for cost in costs),
            "mask.uncertain": sum(len(cost.uncertain) for cost in costs),
            "mask.uncertain_bytes": nodes,
            "mask.tried_bytes": round(nodes * read),
            "mask.tried_states": round(nodes * after),
        }

    def _states(self, matcher: Any) -> list[tuple[int, ...]]:  # noqa: ANN401
        shown = matcher._debug_print_internal_state()
        return [tuple(map(int, state)) for state in _STATE.findall(shown)]

    def _sampled(self, texts: Sequence[bytes]) -> tuple[float, float]:
        """For a byte of some texts: the share that is read, and the states after it."""
        chosen = [texts[i * len(texts) // SAMPLE] for i in range(SAMPLE)] if texts else []
        total = sum(map(len, chosen))
        read = after = 0
        matcher = self._matcher.fork()
        for text in chosen:
            taken = 0
            for byte in text:
                read += 1
                if not matcher.accept_string(bytes((byte,))):
                    break
                taken += 1
                after += len(self._states(matcher))
            matcher.rollback(taken)
        return (read / total, after / total) if total else (0.0, 0.0)

    def would_accept(self, token_id: int) -> bool:
        """Tries the token on a fork."""
        return bool(self._matcher.fork().accept_token(token_id))


def _trie_nodes(texts: Sequence[bytes]) -> int:
    """Nodes of the trie of some sorted texts, the root not counted."""
    count, before = 0, b""
    for text in texts:
        common = 0
        while common < min(len(before), len(text)) and before[common] == text[common]:
            common += 1
        count += len(text) - common
        before = text
    return count
