"""Batches of masks in threads: many matchers at places of JSON texts.

    python benches/python/bench_batch.py FOLDER --tokenizer path/to/model

FOLDER is as for bench_maskbench.py. For each schema so many matchers stand at places of its
instances, each place another, and one call fills a row for each. *Warm*: what the masks are made of
is there; the median of many calls. *Cold*: nothing is; the best of three, each with a grammar
compiled anew. *Equal*: all matchers stand at one place. Wall time, of a machine that does nothing
else: a thread that waits for a processor is measured too. A row that is only copied takes as long
as the memory takes, which threads share.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import bench_common as common
import numpy as np
import tokfold
from bench_maskbench import Case, read_cases
from tokfold import Vocabulary
from tokfold.cli.inputs import read_tokenizer
from tokfold.cli.render import seconds
from tokfold.errors import TokfoldError

CALLS = 200
ROUNDS = 3


def main() -> None:
    """Measure and print."""
    assert __doc__ is not None
    parser = common.described(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="files of MaskBench's layout")
    parser.add_argument("--tokenizer", default="tekken", metavar="PATH", help="file or folder")
    parser.add_argument("--matchers", type=int, default=256, metavar="N")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--limit", type=int, default=12, metavar="N", help="schemas, the largest")
    options = parser.parse_args()
    vocabulary = read_tokenizer(options.tokenizer)
    cases, _ = read_cases(options.folder, options.tokenizer, vocabulary)
    cases.sort(key=lambda case: -len(case.schema))
    gc.disable()
    rows = []
    for case in cases:
        if len(rows) == options.limit:
            break
        try:
            compiled = _compile(case, vocabulary)
        except TokfoldError:
            continue
        rows.append([case.name, *_figures(compiled, case, vocabulary, options)])
        gc.collect()
    threads = options.threads
    titles = [f"{kind}, {count} thr." for kind in ("warm", "cold", "equal") for count in threads]
    out = common.console(width=60 + 16 * len(titles))
    out.print(f"{common.machine()['processor']}; {options.matchers} matchers, {vocabulary.name}")
    common.show(out, "A batch, all rows", ["schema", *titles, "warm, ratio"], rows)


def _compile(case: Case, vocabulary: Vocabulary) -> tokfold.CompiledGrammar:
    grammar = tokfold.Grammar.from_json_schema(case.schema)
    return tokfold.compile(
        grammar, vocabulary, classes="never", options=tokfold.CompileOptions(pool=None)
    )


def _figures(
    compiled: tokfold.CompiledGrammar,
    case: Case,
    vocabulary: Vocabulary,
    options: argparse.Namespace,
) -> list[str]:
    bitmask = tokfold.allocate_bitmask(options.matchers, len(vocabulary))
    threads = options.threads
    matchers = _placed(compiled, case, options.matchers)
    warm = [_warm(lambda n=n: _fill(matchers, bitmask, n)) for n in threads]
    cold = []
    for count in threads:
        times = []
        for _ in range(ROUNDS):
            fresh = _placed(_compile(case, vocabulary), case, options.matchers)
            times.append(_time(lambda ms=fresh, n=count: _fill(ms, bitmask, n)))
        cold.append(min(times))
    equal = [matchers[-1].fork() for _ in range(options.matchers)]
    same = [_warm(lambda n=n: _fill(equal, bitmask, n)) for n in threads]
    return [*map(seconds, (*warm, *cold, *same)), f"{warm[0] / warm[-1]:.2f}"]


def _fill(matchers: list[tokfold.Matcher], bitmask: np.ndarray, threads: int) -> None:
    tokfold.fill_bitmask_batch(matchers, bitmask, threads=threads)


def _placed(compiled: tokfold.CompiledGrammar, case: Case, count: int) -> list[tokfold.Matcher]:
    """Matchers at places of the instances, as far as these are taken."""
    out = []
    for index in range(count):
        tokens = case.instances[index % len(case.instances)].tokens
        matcher = tokfold.Matcher(compiled)
        for token in tokens[: 1 + index * 37 % max(1, len(tokens) - 1)]:
            if not matcher.accept_token(token):
                break
        out.append(matcher)
    return out


def _warm(call: Callable[[], None]) -> float:
    call()
    return median(_time(call) for _ in range(CALLS))


def _time(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
