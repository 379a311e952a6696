"""A profile as rows, as CSV, as JSON values and as a plot."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from os import PathLike
from typing import Any, TextIO

import numpy as np

from tokfold._extras import require
from tokfold.laboratory.instruments.base import EngineProfile, Pass, Profile

__all__ = ["TIMES", "document", "plot", "rows", "write_csv"]

TIMES = ("mask_us_min", "mask_us_median", "step_us_min", "step_us_median")
"""Columns of times: wall times of this machine in microseconds, over the repeats."""

_SHOWN = {
    "own": "mask.sets_visited",
    "xgrammar": "mask.uncertain",
    "llguidance": "mask.all_items",
}
"""The counter of each engine that a plot shows."""


def rows(profile: Profile) -> Iterator[dict[str, Any]]:
    """One row for each token, engine and pass: where it is, its times, its counters."""
    tokens = profile.tokens()
    for name, engine in profile.engines.items():
        for which, way in engine.passes().items():
            times = (way.mask("min"), way.mask("median"), way.step("min"), way.step("median"))
            offset = 0
            for index in range(len(engine.allowed)):
                yield {
                    "index": index,
                    "offset": offset,
                    "token_id": profile.token_ids[index],
                    "token": tokens[index].decode("utf-8", "backslashreplace"),
                    "engine": name,
                    "pass": which,
                    "repeats": way.repeats,
                    **{
                        column: round(float(of[index]), 3)
                        for column, of in zip(TIMES, times, strict=True)
                    },
                    **{counter: int(of[index]) for counter, of in way.counters.items()},
                    **{counter: int(of[index]) for counter, of in profile.extra.items()},
                }
                offset += len(tokens[index])


def write_csv(profile: Profile, stream: TextIO) -> None:
    """All rows with a header; counters that an engine does not have are empty."""
    names: dict[str, None] = dict.fromkeys(
        ["index", "offset", "token_id", "token", "engine", "pass", "repeats", *TIMES]
    )
    for engine in profile.engines.values():
        names |= dict.fromkeys([*engine.cold.counters, *engine.warm.counters])
    names |= dict.fromkeys(profile.extra)
    writer = csv.DictWriter(stream, list(names), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(profile))


def document(profile: Profile) -> dict[str, Any]:
    """A profile as JSON values: a summary of each engine, and a list for each column."""
    return {
        "tokens": len(profile.token_ids),
        "token_ids": profile.token_ids,
        "complete": profile.may_end,
        "refused": profile.refused,
        "engines": {name: _engine(engine) for name, engine in profile.engines.items()},
        "extra": {name: counts.tolist() for name, counts in profile.extra.items()},
    }


def _engine(engine: EngineProfile) -> dict[str, Any]:
    return {
        "version": engine.version,
        "compile_seconds": engine.compile_seconds,
        "steps": len(engine.allowed),
        "stopped": engine.stopped,
        "given": engine.given,
        "allowed": engine.allowed.tolist(),
        **{which: _pass(way) for which, way in engine.passes().items()},
    }


def _pass(way: Pass) -> dict[str, Any]:
    return {
        "repeats": way.repeats,
        "mask_us": {how: way.mask(how).round(3).tolist() for how in ("min", "median")},
        "step_us": {how: way.step(how).round(3).tolist() for how in ("min", "median")},
        "counters": {name: counts.tolist() for name, counts in way.counters.items()},
    }


def plot(profile: Profile, path: str | PathLike[str]) -> None:
    """Draw times and a counter of each engine over the tokens of the text, into a file.

    Args:
        profile: the profile.
        path: a ``.png``, ``.svg`` or ``.pdf`` file.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ValueError: the file has another extension.
    """
    figures: Any = require("matplotlib.figure", "lab", "a plot")
    figure = figures.Figure(figsize=(9, 6), layout="constrained")
    times, counts = figure.subplots(2, 1, sharex=True)
    for number, (name, engine) in enumerate(profile.engines.items()):
        if not len(engine.allowed):
            continue
        color = f"C{number}"
        times.plot(engine.cold.total("min"), color=color, linewidth=1, label=f"{name}, cold")
        times.plot(
            engine.warm.total("min"), color=color, linewidth=0.7, alpha=0.5, label=f"{name}, warm"
        )
        shown = _SHOWN.get(name)
        if shown in engine.cold.counters:
            counts.plot(engine.cold.counters[shown], color=color, label=f"{name}: {shown}")
    for number, (name, column) in enumerate(profile.extra.items()):
        counts.plot(np.asarray(column), color=f"C{number + 4}", linestyle="--", label=name)
    times.set_yscale("log")
    times.set_ylabel("mask and step, µs")
    counts.set_yscale("symlog")
    counts.set_ylim(bottom=0)
    counts.set_ylabel("counters, cold")
    counts.set_xlabel("token of the text")
    for axes in (times, counts):
        if axes.lines:
            axes.legend(fontsize="small")
    figure.savefig(path)
