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
from functools import partial
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
    """What the demo replayed, and the document of all that it found."""

    vocabulary: Vocabulary
    text: bytes
    classes: TokenClasses
    found: dict[str, Any]


SPREAD: dict[str, Callable[[npt.NDArray[np.float64]], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "p99": lambda times: np.percentile(times, 99),
    "slowest": np.max,
}


def run(step: Callable[[str], Any], steps: int | None, seconds: float) -> Replay:
    """Do it all.

    Args:
        step: makes a line of progress.
        steps: masks to compare; None: as many as ``seconds`` allow.
        seconds: bound on the time spent on plain masks.
    """
    with step("Importing XGrammar"):
        xgr = require("xgrammar", "demo", "the demo")
        from tokfold import xgrammar as txgr
    with step("Loading the vocabulary"):
        load_seconds, vocabulary = _timed(
            lambda: read_packaged_tekken().replace(special_token_ids=())
        )
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
    with step("Compiling with our own engine"):
        own_seconds, bare = _timed(lambda: compile(grammar, vocabulary, classes="never"))
        mask = allocate_bitmask(1, len(vocabulary))
        own_first_seconds, _ = _timed(lambda: Matcher(bare).fill_bitmask(mask))
    with step("Compiling with XGrammar, over classes"):
        compiler = txgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        compiler.compile_grammar('root ::= "a"')  # reads the tokenizer, once for all grammars
        folded_seconds, folded = _timed(lambda: compiler.compile_grammar(ebnf))
    with step("Compiling with XGrammar, plain"):
        plain_compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        plain_seconds, compiled = _timed(lambda: plain_compiler.compile_grammar(ebnf))
    stops = vocabulary.stop_token_ids
    with step("Decoding with our own engine") as report:
        matcher = Matcher(compile(grammar, vocabulary, classes=made))
        own_rows, own, own_finished = _replay(
            matcher, matcher.fill_bitmask, tokens, stops, len(vocabulary), report
        )
    with step("Decoding over classes") as report:
        over = txgr.GrammarMatcher(folded)
        rows, classes, finished = _replay(
            over, over.fill_next_token_bitmask, tokens, stops, len(vocabulary), report
        )
    with step("Comparing with plain XGrammar") as report:
        compared = _compare(xgr.GrammarMatcher(compiled), tokens, rows, report, steps, seconds)
    at = sorted(compared.plain_seconds)
    plain = np.array([compared.plain_seconds[index] for index in at])
    times = {"plain": plain, "classes": classes[at], "own": own[at]}
    found = {
        "vocabulary": {"name": vocabulary.name, "size": len(vocabulary)},
        "text": {"bytes": len(text), "tokens": len(tokens)},
        "classes": len(folded.classes),
        "seconds": {
            "load": load_seconds,
            "fold": fold_seconds,
            "compile_plain": plain_seconds,
            "compile_classes": folded_seconds,
            "compile_own": own_seconds,
            "first_mask_plain": plain_seconds + float(plain[0]),
            "first_mask_classes": folded_seconds + float(classes[0]),
            "first_mask_own": own_seconds + own_first_seconds,  # when there are no classes yet
            "all_masks_classes": float(classes.sum()),
            "all_masks_own": float(own.sum()),
        },
        "mask_seconds": {
            name: {engine: float(of(taken)) for engine, taken in times.items()}
            for name, of in SPREAD.items()
        },
        "mask_bytes": {
            "plain": (len(vocabulary) + 31) // 32 * 4,
            "classes": (folded.num_class_bits + 31) // 32 * 4,
        },
        "compared": {
            "masks": compared.masks,
            "of": len(rows),
            "bits": compared.bits,
            "equal": compared.equal,
            "explained": [{"step": s, "token": t} for s, t in compared.explained],
            "wrong": [{"step": s, "token": t} for s, t in compared.wrong],
        },
        "own_engine": {
            "masks": len(own_rows),
            "equal_to_classes": int((own_rows == rows).all(axis=1).sum()),
        },
        "finished": finished and own_finished,
    }
    return Replay(vocabulary, text, folded.classes, found)


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
) -> tuple[Words, npt.NDArray[np.float64], bool]:
    """Masks before each token and after the last, the time of each, and whether all were taken."""
    rows = np.zeros((len(tokens) + 1, (size + 31) // 32), dtype=np.int32)
    times = np.zeros(len(rows))
    for index in range(len(rows)):
        times[index], _ = _timed(partial(fill, rows, index))
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
                taken, _ = _timed(lambda: matcher.fill_next_token_bitmask(row))
                result.plain_seconds[index] = taken
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
