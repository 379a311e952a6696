"""A text through several engines, step by step: counters once, times several times."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import numpy.typing as npt

from tokfold._quoting import quoted
from tokfold.errors import LimitExceededError
from tokfold.grammar import Grammar
from tokfold.laboratory.instruments.base import (
    EngineProfile,
    EngineRefusedError,
    EngineStoppedError,
    InstrumentedEngine,
    InstrumentError,
    Pass,
    Profile,
    StepCounters,
    TextRefusedError,
    Walk,
    bits_of,
)
from tokfold.laboratory.instruments.llguidance import LlguidanceEngine
from tokfold.laboratory.instruments.own import OwnEngine
from tokfold.laboratory.instruments.xgrammar import XgrammarEngine
from tokfold.recognition import recognize
from tokfold.vocabulary import Vocabulary

__all__ = [
    "ENGINES",
    "EngineFactory",
    "check_text",
    "make_engine",
    "profile",
    "profile_engine",
    "text_tokens",
]

EngineFactory = Callable[[Grammar, Vocabulary], InstrumentedEngine]

ENGINES: dict[str, EngineFactory] = {
    "own": OwnEngine,
    "xgrammar": XgrammarEngine,
    "llguidance": LlguidanceEngine,
}
"""Engines by name. ``own`` masks over token classes."""

_BEST: dict[str, EngineFactory] = {"llguidance": partial(LlguidanceEngine, by_own_door=True)}
"""What is measured of engines that are slower over what every engine takes."""

REPEATS = 5
SECONDS = 20.0
_CLOCK = time.perf_counter_ns


def make_engine(
    engine: str | EngineFactory, grammar: Grammar, vocabulary: Vocabulary
) -> InstrumentedEngine:
    """An engine by its name, or by what makes it.

    Raises:
        InstrumentError: no engine has this name.
        EngineRefusedError: the engine does not take the grammar.
        MissingExtraError: the engine is not installed.
    """
    if not isinstance(engine, str):
        return engine(grammar, vocabulary)
    if engine not in ENGINES:
        raise InstrumentError(
            f"no engine is named {quoted(engine)}; there are {', '.join(ENGINES)}"
        )
    return ENGINES[engine](grammar, vocabulary)


def text_tokens(grammar: Grammar, vocabulary: Vocabulary, text: bytes) -> tuple[list[int], bool]:
    """The tokens of a text, each the longest that fits, and whether the text is complete.

    Raises:
        VocabularyError: no token fits at some place.
        TextRefusedError, UnsupportedGrammarError, LimitExceededError: as :func:`check_text`.
    """
    is_complete = check_text(grammar, text)
    return vocabulary.encode_greedy(text), is_complete


def check_text(grammar: Grammar, text: bytes) -> bool:
    """Whether a text is complete.

    Raises:
        TextRefusedError: the text is not the beginning of any string of the grammar.
        UnsupportedGrammarError, LimitExceededError: as :func:`tokfold.recognize`.
    """
    found = recognize(grammar, text)
    if found.read < len(text):
        raise TextRefusedError(
            f"the text leaves the grammar at line {found.line}, column {found.column} "
            f"after {found.read} of {len(text)} bytes; tokfold check says what was expected there",
            found.read,
            found.line,
            found.column,
        )
    return found.accepted


def profile(
    grammar: Grammar,
    vocabulary: Vocabulary,
    text: bytes,
    engines: Sequence[str] | Mapping[str, EngineFactory] = ("own",),
    *,
    repeats: int = REPEATS,
    seconds: float = SECONDS,
    max_tokens: int | None = None,
    extra: Sequence[StepCounters] = (),
) -> Profile:
    """Run a text through engines and record counters and times of each step.

    A step is the mask before a token, and the reading of that token.

    Args:
        grammar: the grammar.
        vocabulary: the vocabulary; the text is cut into its longest tokens.
        text: the beginning of a string of the grammar, or a whole one.
        engines: names out of :data:`ENGINES`, or what makes an engine, by any name. llguidance
            takes a JSON Schema itself, where the grammar was made of one without options.
        repeats: how often the text is gone through for the times, cold and warm each.
        seconds: for each engine; when they are over no further repeat begins. At least one is
            made. Where the first pass, which counts, takes longer, the profile ends there.
        max_tokens: how many tokens of the text to go through; None: all.
        extra: counters from elsewhere.

    Raises:
        TextRefusedError: the text is not the beginning of any string of the grammar.
        InstrumentError: no engine has such a name; a provider of extra counters gives another
            number of counts than there are tokens.
        MissingExtraError: an engine is not installed.
        ValueError: ``repeats`` is less than 1, or ``engines`` is empty.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be 1 or more, not {repeats}")
    if not engines:
        raise ValueError("engines is empty: name at least one")
    token_ids, may_end = text_tokens(grammar, vocabulary, text)
    if max_tokens is not None and max_tokens < len(token_ids):
        token_ids, may_end = token_ids[:max_tokens], False
    makers: Mapping[str, str | EngineFactory] = (
        engines if isinstance(engines, Mapping) else {n: _BEST.get(n, n) for n in engines}
    )
    profiles: dict[str, EngineProfile] = {}
    refused: dict[str, str] = {}
    for name, maker in makers.items():
        try:
            engine = make_engine(maker, grammar, vocabulary)
        except EngineRefusedError as error:
            refused[name] = error.reason
            continue
        profiles[name] = profile_engine(engine, token_ids, repeats=repeats, seconds=seconds)
    columns: dict[str, npt.NDArray[np.int64]] = {}
    pieces = [vocabulary[i] for i in token_ids]
    for provider in extra:
        for name, counts in provider(grammar, pieces).items():
            if len(counts) != len(token_ids):
                raise InstrumentError(
                    f"the counter {quoted(name)} has {len(counts)} counts for {len(token_ids)} "
                    "tokens"
                )
            columns[name] = np.asarray(counts, dtype=np.int64)
    return Profile(vocabulary, token_ids, profiles, refused, columns, may_end)


def profile_engine(
    engine: InstrumentedEngine,
    token_ids: Sequence[int],
    *,
    repeats: int = REPEATS,
    seconds: float = SECONDS,
) -> EngineProfile:
    """One engine along some tokens: counters cold and warm, then times of both.

    Where the engine stops, by an error, a limit, or because it does not take a token, the steps
    before are recorded, and why it stopped.
    """
    ends = time.monotonic() + seconds
    cold, allowed, stopped = _count(engine, token_ids, is_cold=True, seconds=seconds)
    reached = len(allowed)
    tokens = list(token_ids[:reached])
    warm = cold
    if engine.remembers:
        warm, _, _ = _count(engine, tokens, is_cold=False)
    times: dict[bool, list[tuple[list[int], list[int]]]] = {True: [], False: []}
    for repeat in range(repeats):
        if repeat and time.monotonic() > ends:
            break
        for is_cold in (True, False) if engine.remembers else (True,):
            times[is_cold].append(_times(engine, tokens, is_cold))
            reached = min(reached, len(times[is_cold][-1][0]))
    if not engine.remembers:
        times[False] = times[True]
    if reached < len(tokens) and not stopped:
        stopped = f"it took token {reached + 1} once, and not again"
    made = [
        Pass(
            {name: counts[:reached] for name, counts in counters.items()},
            *(
                np.array([run[part][:reached] for run in times[is_cold]], dtype=np.float64) / 1e3
                for part in (0, 1)
            ),
        )
        for is_cold, counters in ((True, cold), (False, warm))
    ]
    return EngineProfile(
        engine.name,
        engine.version,
        engine.compile_seconds,
        np.array(allowed[:reached], dtype=np.int64),
        made[0],
        made[1],
        stopped,
        getattr(engine, "given", ""),
    )


def _count(
    engine: InstrumentedEngine,
    token_ids: Sequence[int],
    is_cold: bool,
    seconds: float | None = None,
) -> tuple[dict[str, npt.NDArray[np.int64]], list[int], str]:
    """Counters of each step by name, how many tokens each mask allows, and why it stopped."""
    walk = engine.begin(cold=is_cold, counting=True)
    walk.counters()
    names: list[str] = []
    rows: list[dict[str, int]] = []
    allowed: list[int] = []
    stopped = ""
    began = time.monotonic()
    for index, token_id in enumerate(token_ids):
        if index and seconds is not None and time.monotonic() - began > seconds:
            stopped = (
                f"out of time after {index} of {len(token_ids)} tokens: allow more than "
                f"{seconds:g} seconds, or go through fewer tokens"
            )
            break
        try:
            walk.fill()
            walk.check()
            masked = walk.counters()
            count = int(np.count_nonzero(bits_of(walk.row, engine.vocabulary)))
            if not walk.accept(token_id):
                stopped = (
                    f"it does not take token {index + 1}, {quoted(engine.vocabulary[token_id])}"
                )
                break
            walk.check()
        except (EngineStoppedError, LimitExceededError, RuntimeError) as error:
            reason = error.reason if isinstance(error, EngineStoppedError) else str(error)
            stopped = f"at token {index + 1}: {reason}"
            break
        read = walk.counters()
        # A level belongs to the mask, what was spent to the part that spent it.
        row = {name: n for name, n in masked.items() if not name.startswith("step.")}
        row |= {name: n for name, n in read.items() if name.startswith("step.")}
        row["step.bytes"] = len(engine.vocabulary[token_id])
        row["mask.allowed"] = count
        names = names or list(row)
        rows.append(row)
        allowed.append(count)
    table = {name: np.array([row[name] for row in rows], dtype=np.int64) for name in names}
    return table, allowed, stopped


def _times(
    engine: InstrumentedEngine, token_ids: Sequence[int], is_cold: bool
) -> tuple[list[int], list[int]]:
    """Nanoseconds of each mask and of the reading of each token."""
    walk: Walk = engine.begin(cold=is_cold)
    masks: list[int] = []
    steps: list[int] = []
    fill, accept, check = walk.fill, walk.accept, walk.check
    with _quiet():
        for token_id in token_ids:
            try:
                began = _CLOCK()
                fill()
                between = _CLOCK()
                taken = accept(token_id)
                ended = _CLOCK()
                check()
            except (EngineStoppedError, LimitExceededError, RuntimeError):
                break  # told by the number of steps
            if not taken:
                break
            masks.append(between - began)
            steps.append(ended - between)
    return masks, steps


@contextmanager
def _quiet() -> Iterator[None]:
    """No garbage is collected meanwhile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
