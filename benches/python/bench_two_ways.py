"""The same Lark grammars by a mask store, and by the scannerless engine where they convert.

    python benches/python/bench_two_ways.py --tokenizer path/to/model

JSON, SQL and Lua of this project and Lark's Python. The engine reads what XGrammar's converter
makes of the file; Lua has no priorities and no lookahead there, which are taken out before. Each
way has a process of its own. Masks are along the texts that both ways take, once as they are first
met and then again; thread time, one thread. `unlike Lark` counts the texts, of short ones, valid
and invalid files and mutants of the valid ones, on which a way and Lark disagree.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import resource
import sys
import sysconfig
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bench_common as common
import numpy as np
import tokfold
from tokfold import Grammar, Matcher, Vocabulary
from tokfold.errors import MissingExtraError, UnsupportedGrammarError

sys.path.insert(0, str(common.ROOT / "tests"))

import lark
from lark.indenter import PythonIndenter
from mask_store.decode_samples import SHORT, mutants
from mask_store.lark_texts import parses
from tokfold.mask_store.lark_reader import open_lark, python_grammar
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.store import MaskStore

GRAMMARS = ("json", "sql", "lua", "python")
WAYS = ("store", "engine", "engine, classes")
LARK = common.ROOT / "grammars" / "lark"
AGAIN = 5


@dataclass
class Figures:
    """What one way took; times in seconds, memory in bytes."""

    reason: str = ""
    """Why there are no figures."""
    build: float = 0.0
    memory: int = 0
    first: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)
    judged: int = 0
    taken: list[str] = field(default_factory=list)
    """The texts to be measured that it takes."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0],
        epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--grammars", nargs="+", choices=GRAMMARS, default=list(GRAMMARS))
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--files", type=int, default=5, help="of the library, for Python")
    options = parser.parse_args()
    shown = common.table(
        "grammar", "way", ">build s", ">MiB", ">first p50", ">p99", ">again p50", ">p99",
        ">unlike Lark",
    )  # fmt: skip
    notes: dict[str, None] = {}
    for name in options.grammars:
        texts = samples(name, options.files)
        found = {way: alone(name, way, options, texts, judge=True) for way in WAYS}
        both = [t for t in texts if all(t in f.taken for f in found.values() if not f.reason)]
        for way, verdicts in found.items():
            if verdicts.reason:
                notes[f"{name}, engine: {verdicts.reason}"] = None
                continue
            figures = alone(name, way, options, both, judge=False)
            times = [*micros(figures.first), *micros(figures.again)]
            unlike = f"{len(verdicts.unlike)} of {verdicts.judged}" if verdicts.judged else "-"
            memory = f"{figures.memory / 2**20:.0f}"
            shown.add_row(name, way, f"{figures.build:.2f}", memory, *times, unlike)
            shortest = sorted(set(verdicts.unlike), key=lambda text: (len(text), text))
            for text in shortest[:8]:
                # With classes the engine reads the same.
                notes[f"{name}, {way.partition(',')[0]}: unlike Lark on {text[:80]!r}"] = None
    common.Console(width=110).print(shown)
    for note in notes:
        print(note)


def micros(times: list[float]) -> list[str]:
    if not times:
        return ["-", "-"]
    return [f"{value:.1f}" for value in np.percentile(np.array(times) * 1e6, [50, 99])]


def samples(name: str, files: int) -> list[str]:
    """The texts to be measured, all of which Lark takes."""
    if name != "python":
        paths = sorted((LARK / name / "valid").iterdir())
        return [path.read_text(encoding="utf-8") for path in paths]
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    random.Random(1).shuffle(paths)
    found: list[str] = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if len(found) < files and len(text) < 20_000 and parses(truth(name), text):
            found.append(text)
    return found


def truth(name: str) -> lark.Lark:
    if name != "python":
        return lark.Lark.open(str(LARK / name / f"{name}.lark"), parser="lalr")
    options: dict[str, Any] = {"start": "file_input", "postlex": PythonIndenter()}
    return lark.Lark.open_from_package(
        "lark", "python.lark", ["grammars"], parser="lalr", **options
    )


def alone(
    name: str, way: str, options: argparse.Namespace, texts: list[str], *, judge: bool
) -> Figures:
    """Measure in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        tried = options.mutants if judge else 0
        return pool.submit(measure, name, way, options.tokenizer, texts, tried).result()


def measure(name: str, way: str, tokenizer: str, texts: list[str], tried: int) -> Figures:
    vocabulary, figures = Vocabulary.from_file(tokenizer), Figures()
    try:
        if way != "store":
            Grammar.from_lark('start: "a"')  # The import is no part of a build.
        before, began = resident(), time.process_time()
        begin = made(name, way, vocabulary)
    except (UnsupportedGrammarError, MissingExtraError) as error:
        figures.reason = str(error)
        return figures
    figures.build = time.process_time() - began
    row = np.zeros(-(-len(vocabulary) // 32), np.int32)
    spelled = [(text, vocabulary.encode_greedy(text.encode())) for text in texts]
    for turn in range(1 + AGAIN * (not tried)):
        for text, tokens in spelled:
            matcher, times = begin(), figures.again if turn else figures.first
            if all(timed(matcher, token, row, times) for token in tokens) and matcher.is_accepting:
                figures.taken.append(text)
    figures.memory = resident() - before
    if tried and name != "python":
        parser, rng = truth(name), random.Random(3)
        files = [path.read_text(encoding="utf-8") for path in sorted(LARK.glob(f"{name}/*valid/*"))]
        for text in [*SHORT[name], *files, *mutants(texts, rng, tried)]:
            matcher = begin()
            figures.judged += 1
            if (matcher.accept_string(text) and matcher.is_accepting) != parses(parser, text):
                figures.unlike.append(text)
    return figures


def timed(matcher: Any, token: int, row: np.ndarray, times: list[float]) -> bool:
    began = time.thread_time_ns()
    matcher.fill_bitmask(row)
    times.append((time.thread_time_ns() - began) * 1e-9)
    return bool(matcher.accept_token(token))


def resident() -> int:
    """The memory of the process in bytes: now on Linux, elsewhere the most that it has had."""
    now = Path("/proc/self/statm")
    if now.exists():
        return int(now.read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def made(name: str, way: str, vocabulary: Vocabulary) -> Callable[[], Any]:
    """What begins a text."""
    if way == "store":
        path = LARK / name / f"{name}.lark"
        store = MaskStore(python_grammar() if name == "python" else open_lark(path), vocabulary)
        return lambda: StoreMatcher(store)
    classes: Any = "now" if way == "engine, classes" else "never"
    compiled = tokfold.compile(Grammar.from_lark(convertible(name)), vocabulary, classes=classes)
    return lambda: Matcher(compiled)


def convertible(name: str) -> str:
    """The grammar without what the converter refuses and a context-free grammar can do without."""
    if name == "python":
        folder = Path(str(lark.__file__)).parent / "grammars"
        return (folder / "python.lark").read_text(encoding="utf-8")
    source = (LARK / name / f"{name}.lark").read_text(encoding="utf-8")
    source = re.sub(r"(?m)^(\??\w+)\.\d+:", r"\1:", source)
    # A comment of Lua begins without a long bracket: here without a bracket.
    return source.replace(r"--(?!\[\[|\[=\[|\[==\[)[^\n]*", r"--([^\[\n][^\n]*)?")


if __name__ == "__main__":
    main()
