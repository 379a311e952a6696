"""Masks onto logits: bytes over the bus, and time, beside XGrammar and beside a mere copy.

    python benches/python/bench_apply.py --tokenizer path/to/model --results benches/results

The masks are those of a text on its way through a grammar; the logits are as wide as the
vocabulary. All ways write the same logits, which is checked bit for bit. The *floor* is a copy of
the logits from memory to memory of the same device. Everything is a median.

On a CPU (one thread, logits just written):

- *classes*: apply_class_bitmask_, unfolding included; the fold knows masks that it has met;
- *anew*: the same with a fold that remembers next to nothing;
- *table*: MaskTable, which on a CPU is the first way and its bookkeeping;
- *tokens*: apply_token_bitmask_, with masks of the engine that are unfolded already;
- *XGrammar*: xgrammar.apply_token_bitmask_inplace, with those same masks.

On a GPU (--device cuda; bfloat16 unless --dtypes says otherwise):

- *kernel*: masks on the device, by Triton, by a table, by plain torch and by XGrammar: many
  launches over logits that do not fit the L2 cache, queued behind a kernel that sleeps, so that the
  host is not what is measured; and again in a CUDA graph;
- *transfer and apply*: from masks on the host to logits on the device. "waiting" is the clock of a
  host that waits for it, launches included; "device" is what the stream needs once all is queued.
  XGrammar's masks lie where its allocate_token_bitmask puts them, and in pinned memory.
- *numbered*: MaskTable, warm.

Bytes over the bus are counted for each row, without a GPU too. At the end it says which bars hold.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import bench_common as common
import numpy as np
import numpy.typing as npt
import tokfold
import torch
import xgrammar
from tokfold import Vocabulary
from tokfold.cli.console import Step, steps
from tokfold.cli.render import number, seconds
from tokfold.torch import Fold, MaskTable, apply_class_bitmask_, apply_token_bitmask_
from tokfold.torch.table import RING

Rows = npt.NDArray[np.int32]
Launch = Callable[[int], object]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
BATCHES = {"cpu": [1, 4, 16, 64], "cuda": [1, 8, 64, 256, 512]}
PACKAGES = ("torch", "triton", "xgrammar", "numpy")

BYTES_BAR, FLOOR_BAR, TRANSFER_BAR, CPU_BAR = 40, 1.25, 3, 2
"""What is aimed at."""


def main() -> None:
    """Measure and print."""
    options = _parser().parse_args()
    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        sys.exit("error: torch sees no GPU; without --device the CPU is measured")
    device = options.device or ("cuda" if has_gpu else "cpu")
    torch.set_num_threads(1)
    report: common.Result = {
        "machine": common.machine(),
        "versions": common.versions(*PACKAGES),
        "date": datetime.date.today().isoformat(),
        "device": device,
        "cpu_time": options.cpu,
        "rows": [],
        "bytes": [],
    }
    if device == "cuda":
        report["machine"]["gpu"] = torch.cuda.get_device_name()
        report["versions"]["CUDA"] = torch.version.cuda
    with common.stoppable(), steps() as step:
        for name, vocabulary in common.tokenizers(options).items():
            for grammar in options.grammars:
                with step(f"{grammar}, {name}: masks"):
                    load = _load(options, vocabulary, grammar)
                label = {"grammar": grammar, "tokenizer": name, "width": len(vocabulary)}
                with step(f"{grammar}, {name}: bytes") as done:
                    report["bytes"].append({**label, **_bytes(load, device, done)})
                for row in _rows(options, load, device, partial(_named, step, grammar)):
                    common.add(report, {**label, **row})
    report["bars"] = list(_bars(report))
    common.publish(options, "apply", report, _sheets(report), _notes(report))


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    parser = common.parser(__doc__, writes=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: a GPU if there is one")
    parser.add_argument(
        "--dtypes", nargs="+", choices=list(DTYPES), help="default: float32 and bfloat16 on a CPU"
    )
    parser.add_argument("--batches", nargs="+", type=int, metavar="N", help="rows of logits")
    parser.add_argument(
        "--steps", type=int, default=60, metavar="N", help="repetitions of which medians are taken"
    )
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="on a CPU: processor time of the thread, for a machine that is busy with other things",
    )
    return parser


def _named(step: Callable[[str], Any], grammar: str, what: str) -> Any:
    return step(f"{grammar}, {what}")


def _rows(
    options: argparse.Namespace, load: Load, device: str, step: Callable[[str], Any]
) -> Iterator[common.Result]:
    """The figures of all dtypes and batches."""
    default = ["float32", "bfloat16"] if device == "cpu" else ["bfloat16"]
    batches = options.batches or BATCHES[device]
    for dtype, batch in itertools.product(options.dtypes or default, batches):
        with step(f"{dtype}, {batch} rows") as done:
            measure = _on_cpu if device == "cpu" else _on_gpu
            times = measure(options, load, DTYPES[dtype], batch, done)
            yield {"dtype": dtype, "batch": batch, **times}


# -------------------------------------------------------------------------------------- the masks


@dataclass(frozen=True)
class Load:
    """The masks along a text, by classes and by tokens."""

    compiled: tokfold.CompiledGrammar
    classes: Rows
    tokens: Rows
    size: int

    def batch(self, index: int, rows: int) -> tuple[Rows, Rows]:
        """So many masks that follow each other, as if each were of a text of its own."""
        chosen = (index * rows + np.arange(rows)) % len(self.classes)
        return self.classes[chosen], self.tokens[chosen]


def _load(options: argparse.Namespace, vocabulary: Vocabulary, grammar: str) -> Load:
    text = common.grammar_text(options.grammar_dir, grammar)
    ids = vocabulary.encode_greedy(common.sample_text(options.grammar_dir, grammar))
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf(text), vocabulary, classes="now")
    classes = Fold(compiled).allocate(len(ids))
    tokens = tokfold.allocate_bitmask(len(ids), len(vocabulary))
    matcher = tokfold.Matcher(compiled)
    for index, token in enumerate(ids):
        matcher.fill_class_bitmask(classes, index)
        matcher.fill_bitmask(tokens, index)
        if not matcher.accept_token(token):
            sys.exit(f"error: the text of {grammar} is refused at token {index} of {len(ids)}")
    return Load(compiled, classes, tokens, len(vocabulary))


def _bytes(load: Load, device: str, done: Step) -> common.Result:
    """Bytes to the device for each row, a table's along the text and once more."""
    rows = 8
    fold = Fold(load.compiled, device)
    table = MaskTable(fold, max_rows=rows)
    logits = torch.zeros((rows, load.size), dtype=torch.bfloat16, device=device)
    sent, count = [0], -(-len(load.classes) // rows)
    for index in range(2 * count):
        # By plain torch the CPU goes the way of a device, and what would be sent is counted.
        table.apply_(logits, load.batch(index, rows)[0], backend="torch")
        done(index + 1, 2 * count)
        if index + 1 in (count, 2 * count):
            sent.append(table.counters.bytes_sent)
    met, warm = ((after - before) / (rows * count) for before, after in itertools.pairwise(sent))
    return {
        "classes": fold.num_classes,
        "distinct": len({mask.tobytes() for mask in load.classes}),
        "class masks": 4 * load.classes.shape[1],
        "numbered, first": met,
        "numbered": warm,
        "XGrammar": 4 * load.tokens.shape[1],
    }


# --------------------------------------------------------------------------------------- on a CPU


def _on_cpu(
    options: argparse.Namespace, load: Load, dtype: torch.dtype, batch: int, done: Step
) -> common.Result:
    fold, forgetful = Fold(load.compiled), Fold(load.compiled, max_row_bytes=0)
    table = MaskTable(Fold(load.compiled), max_rows=batch)
    source = _random(batch, load.size, dtype, "cpu")
    logits = source.clone()
    ways: dict[str, Callable[[Rows, Rows], object]] = {
        "class masks": lambda classes, _: apply_class_bitmask_(logits, classes, fold),
        "classes, anew": lambda classes, _: apply_class_bitmask_(logits, classes, forgetful),
        "table": lambda classes, _: table.apply_(logits, classes),
        "token masks": lambda _, tokens: apply_token_bitmask_(logits, tokens, load.size),
        "XGrammar": lambda _, tokens: xgrammar.apply_token_bitmask_inplace(
            logits, torch.from_numpy(tokens)
        ),
    }
    times: dict[str, list[int]] = {"floor": [], **{name: [] for name in ways}}
    expected = torch.empty_like(logits)
    clock = time.thread_time_ns if options.cpu else time.perf_counter_ns
    gc.collect()
    gc.disable()
    try:
        for index in range(options.steps):
            masks = load.batch(index, batch)
            # In turn, so that a busy machine is busy for all.
            for name in reversed(ways):
                began = clock()
                logits.copy_(source)
                times["floor"].append(clock() - began)
                began = clock()
                ways[name](*masks)
                times[name].append(clock() - began)
                if name == "XGrammar":
                    expected.copy_(logits)
                elif index < 3:
                    _same(logits, expected, name)
            done(index + 1, options.steps)
    finally:
        gc.enable()
    return {"times": {name: common.summary(found) for name, found in times.items()}}


def _random(rows: int, width: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    generator = torch.Generator(device).manual_seed(1)
    return torch.randn((rows, width), generator=generator, device=device).to(dtype)


def _same(logits: torch.Tensor, expected: torch.Tensor, name: str) -> None:
    if not torch.equal(logits, expected):
        sys.exit(f"error: {name} and XGrammar write different logits: no figure means anything")


# --------------------------------------------------------------------------------------- on a GPU


class Gpu:
    """Takes times on a GPU."""

    def __init__(self) -> None:
        properties = torch.cuda.get_device_properties("cuda")
        self.cache = int(getattr(properties, "L2_cache_size", 0)) or 128 << 20
        cycles = 20_000_000
        torch.cuda._sleep(cycles)
        self.cycles = cycles / self._between(lambda: torch.cuda._sleep(cycles))
        """Of the sleeping kernel, a second."""

    @staticmethod
    def _between(work: Callable[[], object]) -> float:
        """Seconds of the stream for what is queued."""
        begin, end = _event(), _event()
        torch.cuda.synchronize()
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def queued(self, launch: Launch, count: int, rounds: int) -> float:
        """Seconds of one of ``count`` launches, when the host is ahead of the device."""
        torch.cuda.synchronize()
        for _ in range(2):  # the first time kernels are compiled
            began = time.perf_counter()
            for index in range(count):
                launch(index)
        sleep = 2 * (time.perf_counter() - began) + 1e-3
        torch.cuda.synchronize()
        times: list[float] = []
        while len(times) < rounds:
            begin, end = _event(), _event()
            torch.cuda._sleep(int(sleep * self.cycles))
            begin.record()
            for index in range(count):
                launch(index)
            end.record()
            was_ahead = not begin.query()
            torch.cuda.synchronize()
            if was_ahead or sleep > 2:
                times.append(begin.elapsed_time(end) / 1e3 / count)
            else:
                sleep *= 2
        return float(np.median(times))

    def graph(self, launch: Launch, count: int, rounds: int) -> float:
        """Seconds of one of ``count`` launches in a captured graph."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # kernels are compiled before the capture
            for index in range(count):
                launch(index)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for index in range(count):
                launch(index)
        graph.replay()
        return self.queued(lambda _: graph.replay(), 1, rounds) / count

    @staticmethod
    def waiting(launches: dict[str, Launch], rounds: int, done: Step) -> dict[str, float]:
        """Seconds until a host that waits goes on, of each, in turn."""
        times: dict[str, list[float]] = {name: [] for name in launches}
        for index in range(rounds):
            for name, launch in launches.items():
                torch.cuda.synchronize()
                began = time.perf_counter()
                launch(index)
                torch.cuda.synchronize()
                if index > 2:
                    times[name].append(time.perf_counter() - began)
            done(index + 1, rounds)
        return {name: float(np.median(found)) for name, found in times.items()}


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)


def _on_gpu(
    options: argparse.Namespace, load: Load, dtype: torch.dtype, batch: int, done: Step
) -> common.Result:
    from tokfold.torch import kernels

    gpu = Gpu()
    fold = Fold(load.compiled, "cuda")
    source = _random(batch, load.size, dtype, "cuda")
    # Twice the cache, and so many launches that one launch is no matter.
    copies = min(512, max(2, -(-2 * gpu.cache // (source.numel() * source.element_size()))))
    logits = source.repeat(copies, 1, 1)
    others = torch.empty_like(logits)
    count, kinds = max(copies, 32), min(copies, 8)
    host = [load.batch(index, batch) for index in range(kinds)]

    # Masks on the device; the distinct ones in a table.
    classes = [torch.from_numpy(masks).cuda() for masks, _ in host]
    tokens = [torch.from_numpy(masks).cuda() for _, masks in host]
    rows = np.concatenate([masks for masks, _ in host])
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    held = torch.empty((len(distinct), -(-load.size // 32)), dtype=torch.int32, device="cuda")
    places = torch.arange(len(distinct), dtype=torch.int32, device="cuda")
    kernels.unfold(held, places, torch.from_numpy(distinct).cuda(), fold)
    numbers = torch.from_numpy(inverse.astype(np.int32).reshape(kinds, batch)).cuda()

    def numbered(index: int) -> object:
        chosen = numbers[index % kinds]
        return kernels.apply_tokens(logits[index % copies], held, load.size, None, numbers=chosen)

    launches: dict[str, Launch] = {
        "floor": lambda i: others[i % copies].copy_(logits[i % copies]),
        "class masks": lambda i: apply_class_bitmask_(logits[i % copies], classes[i % kinds], fold),
        "numbered": numbered,
        "plain torch": lambda i: apply_class_bitmask_(
            logits[i % copies], classes[i % kinds], fold, backend="torch"
        ),
        "XGrammar": lambda i: xgrammar.apply_token_bitmask_inplace(
            logits[i % copies], tokens[i % kinds]
        ),
    }
    sending = _sending(load, fold, batch, logits, host)
    _agree({name: launches[name] for name in launches if name != "floor"}, logits, source)
    _agree(sending, logits, source)
    rounds = max(3, options.steps // 6)
    kernel = {name: gpu.queued(launch, count, rounds) for name, launch in launches.items()}
    graph = {name: gpu.graph(launch, count, rounds) for name, launch in launches.items()}
    waiting = gpu.waiting(sending, 4 * options.steps, done)
    # What is not pinned makes the host wait for the stream: there is no queue to measure. A table
    # has so many buffers, and waits when it needs one more.
    device = {
        name: gpu.queued(launch, RING - 1, options.steps)
        for name, launch in sending.items()
        if name != "XGrammar"
    }
    return {"kernel": kernel, "graph": graph, "waiting": waiting, "device": device}


def _sending(
    load: Load, fold: Fold, batch: int, logits: torch.Tensor, host: list[tuple[Rows, Rows]]
) -> dict[str, Launch]:
    """Ways from masks on the host to logits on the device."""
    copies, kinds = len(logits), len(host)
    table = MaskTable(fold, max_rows=batch)
    classes = [fold.allocate(batch) for _ in host]
    plain = [xgrammar.allocate_token_bitmask(batch, load.size) for _ in host]
    for index, masks in enumerate(host):
        classes[index][:] = masks[0]
        plain[index].copy_(torch.from_numpy(masks[1]))
        table.apply_(logits[0], classes[index])
    pinned = [masks.pin_memory() for masks in plain]

    def as_they_are(index: int) -> object:
        masks = torch.from_numpy(classes[index % kinds]).to("cuda", non_blocking=True)
        return apply_class_bitmask_(logits[index % copies], masks, fold)

    def by_xgrammar(masks: list[torch.Tensor]) -> Launch:
        def launch(index: int) -> object:
            moved = masks[index % kinds].to("cuda", non_blocking=True)
            return xgrammar.apply_token_bitmask_inplace(logits[index % copies], moved)

        return launch

    return {
        "class masks": as_they_are,
        "numbered": lambda i: table.apply_(logits[i % copies], classes[i % kinds]),
        "XGrammar": by_xgrammar(plain),
        "XGrammar, pinned": by_xgrammar(pinned),
    }


def _agree(launches: dict[str, Launch], logits: torch.Tensor, source: torch.Tensor) -> None:
    """Hold all ways against XGrammar's, and leave the logits as they were."""
    made = {}
    for name, launch in launches.items():
        for index in range(2):
            logits[index].copy_(source)
            launch(index)
        torch.cuda.synchronize()
        made[name] = logits[:2].clone()
    for name, found in made.items():
        _same(found, made["XGrammar"], name)
    logits[:2].copy_(source)


# ------------------------------------------------------------------------------------- what holds


def _bars(report: common.Result) -> Iterator[common.Result]:
    """Each bar, the worst case found, and whether it holds: ``None`` where nothing was measured."""
    for way in ("class masks", "numbered"):
        found = [(row["XGrammar"] / row[way], _place(row)) for row in report["bytes"]]
        yield _bar(f"a {BYTES_BAR}th of XGrammar's bytes, {way}", found, BYTES_BAR)
    rows = report["rows"]
    if report["device"] == "cpu":
        for way in ("class masks", "classes, anew", "token masks"):
            found = [
                (row["times"]["XGrammar"]["p50"] / row["times"][way]["p50"], _place(row))
                for row in rows
            ]
            yield _bar(f"{CPU_BAR} times faster than XGrammar's apply, {way}", found, CPU_BAR)
        return
    for where, way in itertools.product(("kernel", "graph"), ("class masks", "numbered")):
        found = [
            (row[where][way] / row[where]["floor"], _place(row))
            for row in rows
            if row["batch"] >= 64
        ]
        name = f"{where} within {FLOOR_BAR} of the floor from 64 rows on, {way}"
        yield _bar(name, found, FLOOR_BAR, at_most=True)
    for where, way in itertools.product(("kernel", "graph"), ("class masks", "numbered")):
        found = [(row[where]["XGrammar"] / row[where][way], _place(row)) for row in rows]
        yield _bar(f"{where} ahead of XGrammar's at every batch, {way}", found, 1)
    cases = [("waiting", "XGrammar"), ("waiting", "XGrammar, pinned")]
    cases += [("device", "XGrammar, pinned")]
    for (where, peer), way in itertools.product(cases, ("class masks", "numbered")):
        found = [
            (row[where][peer] / row[where][way], _place(row)) for row in rows if row["batch"] == 64
        ]
        name = f"transfer and apply {TRANSFER_BAR} times faster than {peer}, 64 rows, {where}"
        yield _bar(f"{name}, {way}", found, TRANSFER_BAR)


def _bar(
    name: str, found: list[tuple[float, str]], bound: float, *, at_most: bool = False
) -> common.Result:
    if not found:
        return {"bar": name, "holds": None}
    worst, place = max(found) if at_most else min(found)
    return {
        "bar": name,
        "holds": worst <= bound if at_most else worst >= bound,
        "worst": worst,
        "where": place,
    }


def _place(row: common.Result) -> str:
    parts = [row["grammar"], row["tokenizer"]]
    if "batch" in row:
        parts += [row["dtype"], f"{row['batch']} rows"]
    return ", ".join(parts)


# ----------------------------------------------------------------------------------- showing them


def _sheets(report: common.Result) -> list[common.Sheet]:
    columns = ["grammar", "tokenizer", ">tokens", ">classes", ">masks", ">class masks"]
    columns += [">numbered, first", ">then", ">XGrammar", ">share"]
    rows = [
        [
            *(row["grammar"], row["tokenizer"], number(row["width"]), number(row["classes"])),
            *(number(row["distinct"]), number(row["class masks"]), f"{row['numbered, first']:.1f}"),
            *(f"{row['numbered']:.1f}", number(row["XGrammar"])),
            f"1/{row['XGrammar'] / row['class masks']:.0f}",
        ]
        for row in report["bytes"]
    ]
    sheets = [common.Sheet("Bytes over the bus, a row and step", columns, rows)]
    return sheets + (_cpu_sheets(report) if report["device"] == "cpu" else _gpu_sheets(report))


LABELS = ["grammar", "tokenizer", "dtype", ">rows"]


def _labels(row: common.Result) -> list[str]:
    return [row["grammar"], row["tokenizer"], row["dtype"], str(row["batch"])]


def _cpu_sheets(report: common.Result) -> list[common.Sheet]:
    ways = {"floor": "floor", "class masks": "classes", "classes, anew": "anew", "table": "table"}
    ways |= {"token masks": "tokens", "XGrammar": "XGrammar"}
    rows = []
    for row in report["rows"]:
        times = {way: row["times"][way]["p50"] for way in ways}
        faster = times["XGrammar"] / times["class masks"]
        cells = [seconds(times[way]) for way in ways]
        rows.append([*_labels(row), *cells, f"{faster:.1f}x"])
    columns = [*LABELS, *(f">{name}" for name in ways.values()), ">faster"]
    return [common.Sheet("Masks onto logits on the CPU, all rows", columns, rows)]


def _gpu_sheets(report: common.Result) -> list[common.Sheet]:
    kernels, sent = [], []
    for row in report["rows"]:
        for where in ("kernel", "graph"):
            times = row[where]
            cells = [
                f"{seconds(times[way])} ({times[way] / times['floor']:.2f})"
                for way in ("class masks", "numbered", "plain torch", "XGrammar")
            ]
            kernels.append([*_labels(row), where, seconds(times["floor"]), *cells])
        for where in ("waiting", "device"):
            times = row[where]
            names = ("class masks", "numbered", "XGrammar", "XGrammar, pinned")
            cells = [seconds(times[name]) if name in times else "-" for name in names]
            faster = times.get("XGrammar", times["XGrammar, pinned"]) / times["numbered"]
            sent.append([*_labels(row), where, *cells, f"{faster:.1f}x"])
    columns = [*LABELS, "", ">floor", ">class masks", ">numbered", ">plain torch", ">XGrammar"]
    sheets = [common.Sheet("The kernel, all rows, and by the floor", columns, kernels)]
    columns = [*LABELS, "", ">class masks", ">numbered", ">XGrammar", ">XGrammar, pinned"]
    return [*sheets, common.Sheet("Transfer and apply", [*columns, ">faster"], sent)]


def _notes(report: common.Result) -> list[str]:
    notes = ['"masks": distinct ones along the text; "numbered": by a MaskTable, and once warm.']
    if report["device"] == "cpu":
        notes.append('"faster": XGrammar by class masks; the floor is a copy of the logits.')
        clock = "processor time of the thread" if report["cpu_time"] else "the clock on the wall"
        notes.append(f"Times are {clock}.")
    else:
        notes.append('"faster": XGrammar by numbered masks; the floor is a copy of the logits.')
    for bar in report["bars"]:
        if bar["holds"] is None:
            notes.append(f"not measured: {bar['bar']}")
            continue
        verdict = "holds" if bar["holds"] else "does not hold"
        notes.append(f"{verdict}: {bar['bar']} (worst: {bar['worst']:.2f}, {bar['where']})")
    return notes


if __name__ == "__main__":
    main()
