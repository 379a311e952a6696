"""Hard grammars: masks as they are first met and again, memory, errors, and the bars they missed.

    python benches/python/bench_hard.py --tokenizer path/to/model
    python benches/python/bench_hard.py sparql java --tokenizer path/to/model --texts 2
    python benches/python/bench_hard.py --engines xgrammar llguidance --timeout 300

Grammars are the folders of --folder: NAME holds NAME.gbnf, NAME.lark or make.py (which is run, and
prints a grammar), and valid/, texts that must be taken. Each is read by the engine over stacks, by
the one over charts, by the one that chooses ("auto"), and by that one with classes just made; each
time in a process of its own, fresh, without a pool. What runs out of --timeout, or of --memory, is
a row that says so.

A server is played: a mask before each token of a text and one at its end. All texts are read twice:
"first sight", where the engine has met nothing yet, and "warm". Times are those of the thread on
its processor, one thread; a look at that clock is some tenths of a microsecond of each.

misses   answers that the second reading did not find remembered
growth   of warm masks: mean of the last quarter of each text by that of the first; texts of 100
         tokens and more
refused  valid texts that a mask or an accept refuses
limits   masks and accepts that ended at a limit, in both readings
matcher  bytes of the largest matcher, after 500 tokens or at the end of its text
better   auto's mean by that of stack or chart, whichever is less; warm, and so is the next
without  the mean of masks with classes by that without

The last two compare means over the fastest of four readings of each step, in a process where our
engines take turns: a machine that others use is slower at times.

Then a line for each missed bar; bars are for auto, with classes and without. "On nine of ten" is of
the grammars that were measured. With --tokenizer, texts are cut as the tokenizer does where the
package tokenizers is installed, else greedily.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import json
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import bench_common as common
import measure_hard as measuring
import tokfold
from measure_hard import FOLDED, OURS, PEERS, TOGETHER, Job
from tokfold.cli.inputs import read_tokenizer
from tokfold.cli.render import number, seconds, size

Result = common.Result
HARD = common.ROOT / "grammars" / "hard"
MB = 1 << 20
WIDTH = 150
SHOWN = 6
"""Grammars that a line on a missed bar names."""


class Bar(NamedTuple):
    """What a figure is to be at most."""

    what: str
    path: str
    """Where it stands in a row."""
    most: float
    show: Callable[[float], str]
    engines: tuple[str, ...] = ("auto", FOLDED)
    share: float = 1.0
    """Of the grammars on which it is to hold."""


def ratio(value: float) -> str:
    """``1.30``."""
    return f"{value:.2f}"


def _times(
    what: str, path: str, unit: float, bars: dict[str, float], *more: Any
) -> tuple[Bar, ...]:
    return tuple(
        Bar(f"{what} {key}", f"{path}.{key}", most * unit, seconds, *more)
        for key, most in bars.items()
    )


ONE, WITH = ("auto",), (FOLDED,)
BARS = (
    Bar("limit errors", "limits", 0, number),
    Bar("valid texts refused", "refused", 0, number),
    *_times("warm mask", "warm.mask", 1e-6, {"p50": 10, "p99": 150, "max": 1_000}, ONE),
    *_times("warm mask", "warm.mask", 1e-6, {"p50": 4, "p99": 40}, ONE, 0.9),
    *_times("warm mask", "warm.mask", 1e-6, {"p50": 3, "p99": 50}, WITH),
    Bar("warm mask mean by that without classes", "without", 1.1, ratio, WITH),
    *_times("first mask", "first.mask", 1e-3, {"mean": 0.3, "p99": 5, "max": 15}),
    *_times("first mask", "first.mask", 1e-3, {"p99": 2, "max": 8}, ("auto", FOLDED), 0.9),
    *_times("first accept", "first.accept", 1e-6, {"p50": 3, "p99": 100, "max": 500}),
    *_times("warm accept", "warm.accept", 1e-6, {"p50": 3, "p99": 100, "max": 500}),
    Bar("engine after all texts", "bytes", 32 * MB, size),
    Bar("matcher over 500 tokens", "matcher_bytes", 4 * MB, size),
    Bar("misses of the second reading", "misses", 0, number),
    Bar("growth along a text", "growth", 2, ratio),
    Bar("warm mask mean by the better of stack and chart", "better.mask", 1.3, ratio, ONE),
    Bar("warm accept mean by the better of stack and chart", "better.accept", 1.3, ratio, ONE),
    Bar("compiling the network", "network", 0.1, seconds),
    Bar("making classes", "classes_seconds", 0.5, seconds, WITH),
)


def main() -> None:
    """Measure and print."""
    options = _parser().parse_args()
    names = _names(options)
    for peer in options.engines:
        if importlib.util.find_spec(peer) is None:
            sys.exit(
                f"error: --engines {peer} needs the package {peer!r}, which is not installed: "
                f"pip install {PEERS[peer]} in a checkout of tokfold"
            )
    try:
        vocabulary = read_tokenizer(options.tokenizer)
    except tokfold.TokfoldError as error:
        sys.exit(f"error: {error}")
    if not vocabulary.stop_token_ids:
        sys.exit("error: the tokenizer has no stop token: no text can end")
    rows: list[Result] = []
    together: Result = {}
    is_whole = True
    try:
        for name in names:
            _grammar(name, options, rows, together)
    except KeyboardInterrupt:
        is_whole = False
        print("\ninterrupted; what was measured before:", file=sys.stderr)
    compare(rows, together)
    missed = list(misses(rows))
    out = common.console(width=WIDTH)
    out.width = max(out.width, WIDTH)  # a figure that is cut off would be another
    _show(out, rows, together, missed)
    if options.json:
        report = {
            "machine": common.machine(),
            "versions": common.versions(*options.engines),
            "date": str(datetime.date.today()),
            "tokenizer": Path(options.tokenizer).name,
            "is_whole": is_whole,
            "rows": rows,
            "compared": together,
            "missed": missed,
        }
        text = json.dumps(report, indent=2, ensure_ascii=False)
        options.json.write_text(text + "\n", encoding="utf-8")
    if not is_whole:
        sys.exit(130)


def _grammar(name: str, options: argparse.Namespace, rows: list[Result], together: Result) -> None:
    """Adds what one grammar takes under each engine, and ours beside each other."""
    folder = options.folder.resolve() / name
    for engine in (*OURS, *options.engines, TOGETHER):
        asked = (options.tokenizer, options.texts, options.max_tokens, options.memory)
        found = apart(Job(name, folder, engine, *asked), options.timeout)
        if engine == TOGETHER:
            together[name] = found
        else:
            rows.append({"grammar": name, "engine": engine, **found})


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    parser = common.described(__doc__)
    add = parser.add_argument
    add("grammars", nargs="*", metavar="NAME", help="which grammars (default: all)")
    add("--folder", type=Path, default=HARD, help="another collection of the same layout")
    add("--tokenizer", default="tekken", metavar="PATH", help="file or folder (default: tekken)")
    add("--engines", nargs="+", default=[], choices=list(PEERS), help="peers, in the same run")
    add("--texts", type=_positive, metavar="N", help="the N longest of each grammar (default: all)")
    add("--max-tokens", type=_positive, metavar="N", help="read N tokens of each text at most")
    add(
        "--timeout",
        type=float,
        default=120.0,
        metavar="S",
        help="seconds for a grammar under one engine, loading included (default: 120)",
    )
    add("--memory", type=float, default=16.0, metavar="GB", help="for each process (default: 16)")
    add("--json", type=Path, metavar="FILE", help="write all figures and missed bars there")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def _names(options: argparse.Namespace) -> list[str]:
    """The grammars that are wanted; ends the program where one is not there."""
    folders = options.folder.iterdir() if options.folder.is_dir() else []
    there = sorted(path.name for path in folders if measuring.grammar_file(path) is not None)
    if not there:
        sys.exit(
            f"error: {options.folder} holds no grammar: neither NAME/NAME.gbnf nor NAME/NAME.lark "
            "nor NAME/make.py"
        )
    unknown = [name for name in options.grammars if name not in there]
    if unknown:
        sys.exit(f"error: {options.folder} holds no {unknown[0]}; it has {', '.join(there)}")
    return options.grammars or there


def apart(job: Job, timeout: float) -> Result:
    """Measure in a process of its own; past so many seconds it is ended."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    worker = context.Process(target=measuring.work, args=(sending, job), daemon=True)
    with _not_interrupted():
        worker.start()
    sending.close()
    began, where = time.monotonic(), "starting"
    try:
        while True:
            left = began + timeout - time.monotonic()
            if left <= 0 or not receiving.poll(left):
                value = {"failure": f"out of time after {timeout:g} s, at: {where}"}
                break
            try:
                kind, value = receiving.recv()
            except EOFError:
                worker.join()
                value = {"failure": f"died with exit code {worker.exitcode}, at: {where}"}
                break
            if kind == "done":
                break
            if kind == "failed":
                value = {"failure": value}
                break
            where = value
            _progress(f"{job.grammar}, {job.engine}: {where}")
    finally:
        worker.kill()
        worker.join()
        receiving.close()
        _progress("")
    took = time.monotonic() - began
    if took > 1 and not sys.stderr.isatty():
        print(f"{job.grammar}, {job.engine}: {took:.1f} s", file=sys.stderr, flush=True)
    return value


@contextlib.contextmanager
def _not_interrupted() -> Iterator[None]:
    """A process that is started here leaves Ctrl-C to this one, which ends it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _progress(text: str) -> None:
    """Says on a terminal what is being done; an empty text wipes it out."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:78]}", end="", file=sys.stderr, flush=True)


def compare(rows: list[Result], together: Result) -> None:
    """Adds to rows what they are against others of their grammar.

    Args:
        rows: all rows.
        together: by grammar, what our engines took side by side.
    """
    for row in rows:
        means = together.get(row["grammar"], {})
        mean = means.get(row["engine"])
        if "failure" in row or not mean:
            continue
        if row["engine"] == "auto":
            others = [means[name] for name in ("stack", "chart") if name in means]
            row["better"] = {
                part: mean[part] / min(other[part] for other in others)
                for part in ("mask", "accept")
                if others and mean[part]
            }
        elif row["engine"] == FOLDED and "auto" in means:
            row["without"] = mean["mask"] / means["auto"]["mask"]


def misses(rows: list[Result]) -> Iterator[str]:
    """A line for each bar that was missed."""
    for row in rows:
        if "failure" in row and row["engine"] in ("auto", FOLDED):
            yield f"missed: figures of {row['grammar']}, {row['engine']}: {row['failure']}"
    for bar in BARS:
        for engine in bar.engines:
            found = [
                (value, row["grammar"])
                for row in rows
                if row["engine"] == engine and (value := _at(row, bar.path)) is not None
            ]
            over = sorted((pair for pair in found if pair[0] > bar.most), reverse=True)
            if len(over) <= (1 - bar.share) * len(found) + 1e-9:
                continue
            named = ", ".join(f"{name} {bar.show(value)}" for value, name in over[:SHOWN])
            more = f" and {len(over) - SHOWN} more" if len(over) > SHOWN else ""
            where = (
                "" if bar.share == 1 else f" on nine of ten (not on {len(over)} of {len(found)})"
            )
            most = bar.show(bar.most)
            yield f"missed: {bar.what}, {engine}, at most {most}{where}: {named}{more}"


def _at(row: Result, path: str) -> Any:
    """A figure of a row; None where there is none."""
    found: Any = row
    for key in path.split("."):
        found = found.get(key) if found is not None else None
    return found


def _show(out: Any, rows: list[Result], together: Result, missed: list[str]) -> None:
    texts = {row["grammar"]: row for row in rows if "failure" not in row}
    keys = ("mean", "p50", "p99", "max")

    def cell(row: Result, path: str, show: Callable[[float], str]) -> str:
        value = _at(row, path)
        return "-" if value is None else show(value)

    def line(row: Result, *cells: tuple[str, Callable[[float], str]]) -> list[str]:
        shown = partial(cell, row)
        return [row["grammar"], row["engine"], *(shown(path, show) for path, show in cells)]

    for name, title in (
        ("first", "First sight"),
        ("warm", "Warm: the same texts again, in the same engine"),
    ):
        paths = [f"{name}.{part}.{key}" for part in ("mask", "accept") for key in keys]
        columns = [
            "grammar",
            "engine",
            *(f">{part}" for part in ("mask mean", "p50", "p99", "max")),
        ]
        columns += [f">{part}" for part in ("accept mean", "p50", "p99", "max")]
        more: list[tuple[str, Callable[[float], str]]] = []
        if name == "warm":
            columns += [">misses", ">growth"]
            more = [("misses", number), ("growth", ratio)]
        cells = [line(row, *((path, seconds) for path in paths), *more) for row in rows]
        common.show(out, title, columns, cells)
    columns = ["grammar", "engine", ">limits", ">refused", ">engine", ">matcher", ">network"]
    columns += [">classes", ">in", ">better: mask", ">accept", ">without"]
    sizes = [
        line(
            row, ("limits", number), ("refused", number), ("bytes", size), ("matcher_bytes", size),
            ("network", seconds), ("classes", number), ("classes_seconds", seconds),
            ("better.mask", ratio), ("better.accept", ratio), ("without", ratio),
        )
        for row in rows
    ]  # fmt: skip
    common.show(out, "Errors, memory, making, and one against the other", columns, sizes)
    for row in rows:
        for trouble in [row["failure"]] if "failure" in row else row["troubles"]:
            out.print(f"{row['grammar']}, {row['engine']}: {trouble}")
    for grammar, found in together.items():
        if "failure" in found:
            out.print(f"{grammar}, {TOGETHER}: {found['failure']}")
    tokens = sum(row["tokens"] for row in texts.values())
    out.print(f"grammars measured: {len(texts)}, with {number(tokens)} tokens of text")
    for sentence in missed or ["all bars hold"] * bool(texts):
        out.print(sentence, soft_wrap=True)


if __name__ == "__main__":
    main()
