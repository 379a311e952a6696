"""What ``tokfold demo --real`` does: one text through XGrammar, plain and over classes, and ours.

All matchers follow the same tokens. Our engine's masks and those over classes are made at every
step; plain masks take a tenth of a second and more each, so they are made at steps spread evenly
over the text, in passes that fill the gaps of the passes before, until the time is used up.

XGrammar takes special tokens for their bytes; so does our engine here, that masks can be compared.
"""

from __future__ import annotations

import importlib.resources
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tokfold import (
    Grammar,
    Matcher,
    TokenClasses,
    Vocabulary,
    allocate_bitmask,
    compile,
    compile_classes,
)
from tokfold._extras import require
from tokfold.cli.console import Step
from tokfold.cli.inputs import read_packaged_tekken
from tokfold.errors import TokfoldError

__all__ = ["Comparison", "Replay", "run"]

PASSES = (0, 4, 2, 6, 1, 5, 3, 7)
"""Steps of pass k: those that leave this remainder modulo the number of passes."""

Words = npt.NDArray[np.int32]


@dataclass
class Comparison:
    """Masks over classes and plain ones, step by step, where both were made."""

    masks: int = 0
    bits: int = 0
    equal: int = 0
    """Masks that are equal bit for bit."""
    explained: list[tuple[int, int]] = field(default_factory=list)
    """Step and token where XGrammar's mask contradicts its own ``accept_token``, ours does not."""
    wrong: list[tuple[int, int]] = field(default_factory=list)
    """Step and token of any other difference. There must be none."""
    plain_seconds: dict[int, float] = field(default_factory=dict)
    """Time of the plain mask, by step."""


@dataclass
class Replay:
    """Everything that the demo found."""

    vocabulary: Vocabulary
    grammar: Grammar
    text: bytes
    tokens: list[int]
    classes: TokenClasses
    class_bits: int
    load_seconds: float
    fold_seconds: float
    compile_seconds: dict[str, float]
    """Of ``"plain"``, of ``"classes"`` with folding, of ``"own"`` without: it needs no classes."""
    own_first_seconds: float
    """Time of our engine's first mask, when there are no classes yet."""
    fill_seconds: list[float]
    """Time of each mask over classes, unfolded to the full row."""
    own_fill_seconds: list[float]
    """Time of each mask of our engine, with classes."""
    own_equal: int
    """Masks of our engine that are equal, bit for bit, to those of XGrammar over classes."""
    finished: bool
    """Whether both matchers took every token and then the stop token."""
    comparison: Comparison


def run(step: Callable[[str], Any], steps: int | None, seconds: float) -> Replay:
    """Do it all.

    Args:
        step: makes a line of progress.
        steps: masks to compare; None: as many as ``seconds`` allow.
        seconds: bound on the time spent on plain masks.

    Raises:
        MissingExtraError: a package of the extra ``demo`` is not installed.
    """
    with step("Importing XGrammar"):
        xgr = require("xgrammar", "demo", "the demo")
        from tokfold import xgrammar as txgr
    with step("Loading the vocabulary"):
        began = time.perf_counter()
        vocabulary = read_packaged_tekken().replace(special_token_ids=())
        load_seconds = time.perf_counter() - began
    text, ebnf = _packaged("cpp.txt"), _packaged("cpp.gbnf").decode()
    grammar = Grammar.from_ebnf(ebnf)
    tokens = vocabulary.encode_greedy(text)
    info = xgr.TokenizerInfo(
        list(vocabulary.token_bytes),
        vocab_type=xgr.VocabType.RAW,
        vocab_size=len(vocabulary),
        stop_token_ids=list(vocabulary.stop_token_ids),
    )
    with step("Folding the vocabulary") as report:
        fold_seconds, made = _timed(lambda: compile_classes(grammar, vocabulary, progress=report))
    compile_seconds: dict[str, float] = {}
    with step("Compiling with our own engine"):
        compile_seconds["own"], bare = _timed(lambda: compile(grammar, vocabulary, classes="never"))
        mask = allocate_bitmask(1, len(vocabulary))
        own_first_seconds, _ = _timed(lambda: Matcher(bare).fill_bitmask(mask))
    with step("Compiling with XGrammar, over classes"):
        compiler = txgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        compiler.compile_grammar('root ::= "a"')  # reads the tokenizer, once for all grammars
        compile_seconds["classes"], folded = _timed(lambda: compiler.compile_grammar(ebnf))
    with step("Compiling with XGrammar, plain"):
        plain_compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        compile_seconds["plain"], plain = _timed(lambda: plain_compiler.compile_grammar(ebnf))
    stops = vocabulary.stop_token_ids
    with step("Decoding with our own engine") as report:
        own = Matcher(compile(grammar, vocabulary, classes=made))
        own_rows, own_fill_seconds, own_finished = _replay(
            own, own.fill_bitmask, tokens, stops, len(vocabulary), report
        )
    with step("Decoding over classes") as report:
        over = txgr.GrammarMatcher(folded)
        rows, fill_seconds, finished = _replay(
            over, over.fill_next_token_bitmask, tokens, stops, len(vocabulary), report
        )
    with step("Comparing with plain XGrammar") as report:
        comparison = _compare(xgr.GrammarMatcher(plain), tokens, rows, report, steps, seconds)
    return Replay(
        vocabulary=vocabulary,
        grammar=grammar,
        text=text,
        tokens=tokens,
        classes=folded.classes,
        class_bits=folded.num_class_bits,
        load_seconds=load_seconds,
        fold_seconds=fold_seconds,
        compile_seconds=compile_seconds,
        own_first_seconds=own_first_seconds,
        fill_seconds=fill_seconds,
        own_fill_seconds=own_fill_seconds,
        own_equal=int((own_rows == rows).all(axis=1).sum()),
        finished=finished and own_finished,
        comparison=comparison,
    )


def _packaged(name: str) -> bytes:
    return (importlib.resources.files("tokfold.cli") / "data" / name).read_bytes()


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _replay(
    matcher: Any,  # noqa: ANN401 - ours, or of tokfold.xgrammar
    fill: Callable[[Words, int], object],
    tokens: list[int],
    stops: tuple[int, ...],
    size: int,
    report: Step,
) -> tuple[Words, list[float], bool]:
    """Masks before each token and after the last, the time of each, and whether all were taken."""
    rows = np.zeros((len(tokens) + 1, (size + 31) // 32), dtype=np.int32)
    times = []
    for index in range(len(tokens) + 1):
        began = time.perf_counter()
        fill(rows, index)
        times.append(time.perf_counter() - began)
        if index < len(tokens) and not matcher.accept_token(tokens[index]):
            raise TokfoldError(f"the demo's own text is refused at token {index}: please report it")
        report(index, len(tokens))
    finished = all(matcher.fork().accept_token(stop) for stop in stops)
    return rows, times, finished and bool(stops)


def _compare(
    matcher: Any,  # noqa: ANN401 - XGrammar's
    tokens: list[int],
    rows: Words,
    report: Step,
    steps: int | None,
    seconds: float,
) -> Comparison:
    """Compare our masks with plain ones until ``steps`` or ``seconds`` are used up."""
    result = Comparison()
    deadline = time.perf_counter() + seconds
    total = len(rows) if steps is None else min(steps, len(rows))
    row = np.zeros((1, rows.shape[1]), dtype=np.int32)
    for chosen in _passes(len(rows), steps):
        matcher.reset()
        for index in range(max(chosen) + 1):
            if index in chosen:
                if steps is None and result.masks and time.perf_counter() > deadline:
                    return result
                began = time.perf_counter()
                matcher.fill_next_token_bitmask(row)
                result.plain_seconds[index] = time.perf_counter() - began
                _compare_row(result, matcher, index, rows[index], row[0])
                report(result.masks, total)
            if index < len(tokens):
                matcher.accept_token(tokens[index])
    return result


def _passes(count: int, steps: int | None) -> Iterator[set[int]]:
    """Which steps to compare, pass by pass; with ``steps``, one pass of that many."""
    if steps is not None:
        number = min(steps, count)
        yield {index * (count - 1) // max(1, number - 1) for index in range(number)}
        return
    for remainder in PASSES:
        if remainder < count:
            yield set(range(remainder, count, len(PASSES)))


def _compare_row(result: Comparison, matcher: Any, index: int, ours: Words, plain: Words) -> None:  # noqa: ANN401
    result.masks += 1
    result.bits += 32 * len(ours)
    difference = np.unpackbits((ours ^ plain).view(np.uint8), bitorder="little")
    tokens = np.flatnonzero(difference).tolist()
    result.equal += not tokens
    for token in tokens:
        accepted = bool(matcher.accept_token(token))
        if accepted:
            matcher.rollback(1)
        allowed = bool(ours[token // 32] >> (token % 32) & 1)
        (result.explained if allowed == accepted else result.wrong).append((index, token))
