"""Charts on a GPU: a step with what may come next, many texts at once, and a tree of look-ahead.

    python benches/python/bench_chart_gpu.py --results benches/results
    python benches/python/bench_chart_gpu.py --kernel cuda --threads 256
    TRITON_INTERPRET=1 python benches/python/bench_chart_gpu.py --check

The grammar is english_tags (776 productions), a letter for each tag; the text its sentences,
joined. Each figure is the median of many replays of a captured graph, timed by the device's own
events, for the kernels in CUDA and for Triton's:

- *a step at n*: one text of n - 1 tags reads its n-th; next letters and acceptance are part of it;
- *132 texts*: the same at n = 100 for 132 texts at once;
- *a text of n*: n tags are read from the first on, in one launch by CUDA; for each tag;
- *4,096 nodes*: a mask at n = 100 whose token tree has 4,096 nodes that read a letter, level by
  level, with planting, spreading and packing;
- *a token read, and its mask* (with --tokenizer): sentences of english_tags, a tag and a blank,
  token by token through a `DeviceMatcher`, by the clock of a host that waits, with letters that are
  bytes and with letters that are tags; beside the chart on the CPU, with which
  each mask is compared. The sentences are read three times and the last time counts, as in a
  process that has read such texts. How much of that reads the token, and what the device takes for
  the mask, has rows of its own. --matchers measures these alone. The bar is what the paper found
  with its English grammar (Incremental
  Valiant, table 1, H100). *In a graph*: the same for one tag, by the device's events.

--threads is how many threads a block in CUDA has: the numbers in launches.py are reckoned.

--check compares with the chart on the CPU instead, and measures nothing: on a GPU, or on a CPU in
Triton's interpreter. Where there is no GPU nothing is measured, and the program says so.
"""

from __future__ import annotations

import datetime
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from statistics import median
from typing import Any

import bench_common as common
import numpy as np
import tokfold
import torch
from bench_chart import SENTENCES, letters_for_tags
from tokfold import Grammar, Matcher, Vocabulary
from tokfold.chart_gpu import (
    BinaryGrammar,
    Charts,
    DeviceGrammar,
    DeviceMatcher,
    Tables,
    TerminalLexer,
    TokenMasks,
    TokenTree,
    launches,
)
from tokfold.chart_gpu.launches import KernelName
from tokfold.chart_gpu.reading import ReadingName

BARS = {60: 15.0, 100: 25.0, 500: 120.0, 1_000: 300.0}
"""Microseconds of a step, by length."""
ROWS, NODES, AT = 132, 4_096, 100
ROWS_BAR, NODES_BAR = 1.3, 1_000.0
MASK_BAR = 248.0
"""Microseconds of a token mask."""
REPLAYS, TURNS = 200, 3
NOTE = f"medians of {REPLAYS} replays of a graph, by the device's events"
KERNELS: tuple[KernelName, ...] = ("cuda", "triton")
BYTES = Vocabulary([bytes([byte]) for byte in range(256)])


class Ground:
    """The grammar with a letter for each tag, its text, and a matcher of the CPU."""

    def __init__(self, folder: Any, device: str, kernel: KernelName) -> None:
        self.kernel = kernel
        text, letter = letters_for_tags(common.grammar_text(folder, "english_tags"))
        grammar = Grammar.from_ebnf(text)
        self.binary = BinaryGrammar.of(grammar)
        self.tables = Tables(self.binary, device)
        joined = [*" CC ".join(SENTENCES).split(), "CC"]
        self.text = b"".join(islice(cycle(letter[tag] for tag in joined), max(BARS)))
        self.compiled = tokfold.compile(
            grammar,
            BYTES,
            classes="never",
            options=tokfold.CompileOptions(pool=None, engine="chart"),
        )

    def letters(self, length: int) -> torch.Tensor:
        """The letters of the text's beginning, on the device."""
        encoded = self.binary.encode(self.text[:length])
        return torch.tensor(encoded, dtype=torch.int32).to(self.tables.device)

    def read(self, rows: int, length: int, **options: int) -> Charts:
        """Charts of so many texts that have read so much."""
        wide = tokfold.Limits(max_matcher_bytes=1 << 36)
        charts = Charts(self.tables, rows, length + 1, kernel=self.kernel, limits=wide, **options)
        charts.read_(self.letters(length).repeat(rows, 1))
        if charts.lengths.tolist() != [length] * rows:
            sys.exit(f"error: the charts read {charts.lengths.tolist()} letters of {length}")
        return charts

    def tree(self, length: int, nodes: int) -> TokenTree:
        """What may come after a beginning: a tree in which so many nodes read a letter."""
        matcher = Matcher(self.compiled)
        if not matcher.accept_bytes(self.text[:length]):
            sys.exit("error: the text is none of the grammar")
        queue: list[tuple[Matcher, bytes]] = [(matcher, b"")]
        paths: list[bytes] = []
        inner = -1  # the root reads nothing
        for before, path in queue:
            if inner == nodes:
                break
            at = before.fork()
            at.accept_bytes(path[-1:])
            following = at.expected_bytes
            if not following:
                continue
            inner += 1
            for byte in following:
                queue.append((at, path + bytes([byte])))
                paths.append(path + bytes([byte]))
        tokens = [[tuple(self.binary.encode(path))] for path in paths]
        return TokenTree.of_letters(self.binary, tokens)


def microseconds(work: Callable[[], object], before: Callable[[], object] = list) -> float:
    """The median of a captured graph, by the events of its stream; ``before`` is not timed."""
    before()
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    times = []
    for _ in range(REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before()
        torch.cuda._sleep(50_000)  # until all is queued: the device is timed, not the CPU
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return median(times)


def step_time(ground: Ground, rows: int, length: int) -> float:
    charts = ground.read(rows, length - 1)
    letter = torch.full_like(charts.lengths, int(ground.letters(length)[-1].item()))
    return microseconds(lambda: charts.step_(letter), lambda: charts.lengths.fill_(length - 1))


def text_time(ground: Ground, length: int) -> float:
    """Microseconds for each letter of a text that is read as one."""
    charts, letters = ground.read(1, length), ground.letters(length)[None]
    return microseconds(lambda: charts.read_(letters), charts.reset_) / length


def mask_time(ground: Ground) -> tuple[float, int, int]:
    """Microseconds, nodes that read a letter, levels."""
    tree = ground.tree(AT, NODES)
    charts = ground.read(1, AT, ahead=tree.depth, nodes=NODES + 1)
    masks = TokenMasks(charts, tree)
    masks.fill_()
    masks.check()
    live = int(charts.counts[1:].sum().item())
    return microseconds(masks.fill_), live, tree.depth


def tagged(text: str) -> Grammar:
    """english_tags with a blank behind each tag and none before: no tag begins like another."""
    body = re.sub(r"#[^\n]*", "", text).replace('"\\n"?', "").replace('" "', "")
    found = re.compile(r'"([A-Z ]+)"')
    spaced = found.sub(lambda m: " ".join(f'"{word} "' for word in m[1].split()), body)
    return Grammar.from_ebnf(spaced)


def sentence_times(
    folder: Any, vocabulary: Vocabulary, device: str, *, is_check: bool = False
) -> list[common.Result]:
    """A token and its mask along the sentences; every mask as on the CPU. A check is short."""
    grammar = tagged(common.grammar_text(folder, "english_tags"))
    texts = [f"{line} DOT ".encode() for line in SENTENCES]
    ids = [vocabulary.encode_greedy(text) for text in texts]
    if is_check:
        ids = [ids[0][:2]]
    alphabets: list[ReadingName] = ["terminals"] if is_check else ["terminals", "bytes"]
    grammars = {
        f"GPU, letters are {alphabet}": DeviceGrammar(grammar, device=device, alphabet=alphabet)
        for alphabet in alphabets
    }
    compiled = tokfold.compile(
        grammar, vocabulary, classes="now", options=tokfold.CompileOptions(engine="chart")
    )
    times: dict[str, list[float]] = {name: [] for name in ("CPU", *grammars)}
    parts: dict[str, defaultdict[str, list[float]]] = {name: defaultdict(list) for name in grammars}
    row = tokfold.allocate_bitmask(1, len(vocabulary))
    for turn in range(1 if is_check else TURNS):  # the first compile, make room and graphs
        for text in ids:
            on_cpu = Matcher(compiled)
            matchers = {name: DeviceMatcher(compiled, found) for name, found in grammars.items()}
            for token in text:
                began = time.perf_counter()
                taken = on_cpu.accept_token(token)
                on_cpu.fill_bitmask(row)
                spent = {"CPU": time.perf_counter() - began}
                for name, matcher in matchers.items():
                    began = time.perf_counter()
                    taken &= matcher.accept_token(token)
                    accepted = time.perf_counter()
                    mask = matcher.device_bitmask()
                    if mask.is_cuda:
                        torch.cuda.synchronize()
                    spent[name] = time.perf_counter() - began
                    if turn == TURNS - 1:
                        parts[name]["the token"].append(accepted - began)
                        of_device = _of_device(matcher)
                        if of_device is not None:
                            parts[name]["the device for a mask in a graph"].append(of_device)
                    if not taken or not np.array_equal(mask.cpu().numpy(), row):
                        sys.exit(f"error: {name}: behind {matcher.text!r} the mask differs")
                for name, found in spent.items():
                    if turn == TURNS - 1:
                        times[name].append(found * 1e6)
            del matchers, matcher  # their memory is that of the next text
    figures = [
        {"kernel": name, "what": "a token read, and its mask", "found": median(found), "unit": "µs"}
        | {"bar": None if name == "CPU" else MASK_BAR, "p99": float(np.percentile(found, 99))}
        for name, found in times.items()
        if found
    ]
    figures += [
        {"kernel": name, "what": f"{len(found)} tokens: {what}", "found": median(found) * 1e6}
        | {"bar": None, "p99": float(np.percentile(found, 99)) * 1e6, "unit": "µs"}
        for name, found_parts in parts.items()
        for what, found in found_parts.items()
    ]
    return figures


def _of_device(matcher: DeviceMatcher) -> float | None:
    """Seconds of the device for the launches of the last mask, if they are a graph."""
    text = matcher._text
    graph = text._memory.masks[text.state].graph
    if graph is None:
        return None
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(50_000)  # until all is queued
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3


def graphed_mask_time(folder: Any, vocabulary: Vocabulary, kernel: KernelName) -> common.Result:
    """A tag read, and the token mask behind it, in one graph: what the device takes."""
    grammar = tagged(common.grammar_text(folder, "english_tags"))
    binary = BinaryGrammar.of(grammar, "terminals")
    compiled = tokfold.compile(
        grammar, vocabulary, classes="now", options=tokfold.CompileOptions(engine="chart")
    )
    lexer = TerminalLexer(binary)
    tree = lexer.tree(0, vocabulary, compiled.classes)
    letters, _ = lexer.read(0, f"{SENTENCES[2]} DOT ".encode()) or ([], 0)
    wide = tokfold.Limits(max_matcher_bytes=1 << 36)
    tables = Tables(binary, "cuda")
    charts = Charts(
        tables, 1, len(letters), ahead=tree.depth, nodes=len(tree), kernel=kernel, limits=wide
    )
    masks = TokenMasks(charts, tree)
    given = torch.tensor([letters], dtype=torch.int32, device="cuda")
    charts.read_(given[:, :-1].contiguous())
    last, before = given[:, -1].contiguous(), charts.lengths.clone()
    row = torch.zeros((1, -(-len(vocabulary) // 32)), dtype=torch.int32, device="cuda")

    def work() -> None:
        charts.step_(last)
        masks.fill_()
        masks.unfold_(row)

    found = microseconds(work, lambda: charts.lengths.copy_(before))
    masks.check()
    what = f"a tag read, and its token mask, in a graph (tree of {len(tree)})"
    return {"kernel": kernel, "what": what, "found": found, "bar": MASK_BAR, "unit": "µs"}


def check(ground: Ground, length: int = 12, nodes: int = 20) -> list[str]:
    """Steps and a mask against the chart on the CPU; what was compared."""
    charts, matcher = ground.read(2, 0), Matcher(ground.compiled)
    charts = Charts(ground.tables, 2, length, kernel=ground.kernel)
    letter_of = ground.binary.letter_of
    for place, letter in enumerate(ground.letters(length).tolist()):
        words = charts.next_letters()[1].cpu().numpy()
        may = (words[letter_of >> 5] >> (letter_of & 31) & 1 != 0) & (letter_of >= 0)
        if bytes(np.flatnonzero(may).tolist()) != matcher.expected_bytes:
            sys.exit(f"error: after {place} letters the device and the CPU differ")
        charts.step_(torch.full_like(charts.lengths, letter))
        matcher.accept_bytes(ground.text[place : place + 1])
    tree = ground.tree(length, nodes)
    masks = TokenMasks(ground.read(1, length, ahead=tree.depth, nodes=nodes + 1), tree)
    found = masks.fill_()[0].cpu().numpy()
    masks.check()
    missing = tree.num_classes - int(np.unpackbits(found.view(np.uint8)).sum())
    if missing:
        sys.exit(f"error: {missing} of {tree.num_classes} tokens that may come are not in the mask")
    done = f"{length} steps of 2 texts and a mask of {tree.num_classes} tokens: as on the CPU"
    return [f"{charts.kernel}: {done}"]


def measured(ground: Ground) -> Iterator[common.Result]:
    """All figures of a kernel."""

    def figure(what: str, found: float, bar: float, unit: str = "µs") -> common.Result:
        return {"kernel": ground.kernel, "what": what, "found": found, "bar": bar, "unit": unit}

    by_length = {}
    for n, bar in BARS.items():
        by_length[n] = step_time(ground, 1, n)
        yield figure(f"a step at n = {n}", by_length[n], bar)
    ratio = step_time(ground, ROWS, AT) / by_length[AT]
    yield figure(f"{ROWS} texts", ratio, ROWS_BAR, "times one")
    for n in (AT, 500):  # no bar of its own: a letter is no slower than a step
        yield figure(f"a text of {n}, each letter", text_time(ground, n), BARS[n])
    taken, live, levels = mask_time(ground)
    yield figure(f"{live} nodes in {levels} levels", taken, NODES_BAR)


def main() -> None:
    parser = common.parser(__doc__ or "", writes=True)
    parser.add_argument("--check", action="store_true", help="compare with the CPU alone")
    parser.add_argument("--matchers", action="store_true", help="a token and its mask alone")
    parser.add_argument("--kernel", choices=KERNELS, help="one alone")
    parser.add_argument("--threads", type=int, help="threads of a block in CUDA, of rows and nodes")
    options = parser.parse_args()
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if not torch.cuda.is_available() and not (options.check and interpreted):
        bars = ", ".join(f"n = {n}: {bar:g} µs" for n, bar in BARS.items())
        print("no GPU: torch.cuda.is_available() is False, so nothing was measured")
        print(f"bars: {bars}; {ROWS} texts: {ROWS_BAR:g} times one; {NODES} nodes: 1 ms")
        return
    if interpreted and not options.check:
        sys.exit("error: the interpreter is no GPU; unset TRITON_INTERPRET, or --check")
    if options.threads:
        launches.ROW_THREADS = launches.NODE_THREADS = options.threads
    device, kernels = ("cpu", KERNELS[1:]) if interpreted else ("cuda", KERNELS)
    figures: list[common.Result] = []

    def keep(found: Iterable[common.Result]) -> None:
        for figure in found:  # each is shown when it is there: a run may be stopped
            late = f" (p99 {figure['p99']:.1f})" if "p99" in figure else ""
            what = f"{figure['kernel']}: {figure['what']}"
            print(f"{what}: {figure['found']:.1f} {figure['unit']}{late}", flush=True)
            figures.append(figure)

    with common.stoppable():
        for kernel in [options.kernel] if options.kernel else kernels:
            if options.matchers:
                break
            ground = Ground(options.grammar_dir, device, kernel)
            if options.check:
                print(*check(ground), sep="\n")
            else:
                keep(measured(ground))
        if options.tokenizer:
            for vocabulary in common.tokenizers(options).values():
                found = sentence_times(
                    options.grammar_dir, vocabulary, device, is_check=interpreted
                )
                if options.check:
                    print("masks along sentences: as on the CPU")
                    continue
                keep(found)
                if options.matchers:
                    continue
                keep(graphed_mask_time(options.grammar_dir, vocabulary, name) for name in KERNELS)
    if options.check:
        return
    report = {
        "machine": {**common.machine(), "gpu": torch.cuda.get_device_name()},
        "versions": common.versions("tokfold", "torch", "triton"),
        "date": datetime.date.today().isoformat(),
        "figures": figures,
    }
    common.publish(options, "chart-gpu", report, _sheets(report), [NOTE])


def _sheets(report: common.Result) -> list[common.Sheet]:
    rows = [
        [
            *(f["kernel"], f["what"], f"{f['found']:.1f}"),
            *(f"{f['p99']:.1f}" if "p99" in f else "-", f"{f['bar'] or '-'}"),
            *(f["unit"], _verdict(f)),
        ]
        for f in report["figures"]
    ]
    columns = ["kernel", "what", ">found", ">p99", ">bar", "unit", "bar met"]
    return [common.Sheet("Charts", columns, rows)]


def _verdict(figure: common.Result) -> str:
    if figure["bar"] is None:
        return "-"
    return "yes" if figure["found"] <= figure["bar"] else "no"


if __name__ == "__main__":
    main()
