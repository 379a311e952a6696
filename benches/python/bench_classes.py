"""From grammar text to token classes: time, number, memory; a table of docs/benchmarks.md.

    python benches/python/bench_classes.py --tokenizer path/to/model

Each figure comes from a fresh process with the vocabulary loaded and sorted, on one thread; the
time is that of reading the text and folding, best and median of a number of runs. Peak memory is
that above the loaded vocabulary, in the first run. Two tokenizers are compared with each other.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bench_common as common
from tokfold import Vocabulary
from tokfold.cli.render import number, seconds, size

WORKER = Path(__file__).with_name("measure_classes.py")
Result = dict[str, Any]


def main() -> None:
    """Measure and print."""
    options = _options()
    report: Result = {"machine": common.machine()}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options)
        vocabularies = common.tokenizers(options)
        for name, vocabulary in vocabularies.items():
            bench.load(name, vocabulary)
        report["grammars"] = bench.grammars()
        first = next(iter(vocabularies))
        if options.schema_keys:
            report["schemas"] = bench.schemas(first)
        if options.random:
            report["random"] = bench.random_grammars(first)
        report["cfgzip"] = bench.cfgzip(report["grammars"])
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _show(report, options)


def _options() -> argparse.Namespace:
    parser = common.parser(__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=10, help="runs for each grammar")
    parser.add_argument("--schema-keys", type=int, nargs="*", default=[1_000, 6_000], metavar="N")
    parser.add_argument("--random", type=int, default=200, help="random grammars; 0 for none")
    parser.add_argument("--random-rules", type=int, default=40, help="up to so many rules each")
    parser.add_argument(
        "--timeout", type=float, default=60.0, help="seconds for one schema or random grammar"
    )
    parser.add_argument(
        "--cfgzip",
        metavar="PROGRAM",
        default=shutil.which("cfgzip-preprocess"),
        help="cfgzip-preprocess, if not on the path; needs a tokenizer.json (default: %(default)s)",
    )
    return parser.parse_args()


class Bench:
    """The measurements."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder = folder
        self._options = options
        self._names: list[str] = []

    def load(self, name: str, vocabulary: Vocabulary) -> None:
        """Store a vocabulary for the workers; reading its own file would leave a higher peak."""
        (self._folder / name).write_bytes(pickle.dumps(vocabulary))
        self._names.append(name)

    def _measure(
        self, vocabulary: str, texts: list[str], repeat: int, timeout: float, lookahead: str
    ) -> list[Result | None]:
        """Results of each text; None from the first on that took longer than ``timeout``."""
        job = {
            "vocabulary": str(self._folder / vocabulary),
            "texts": texts,
            "repeat": repeat,
            "lookahead": lookahead,
        }
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, str(WORKER)]
        try:
            done = subprocess.run(
                command,
                input=json.dumps(job),
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                timeout=timeout,
                check=True,
            )
            lines = done.stdout
        except subprocess.TimeoutExpired as error:
            lines = (error.stdout or b"").decode()
        found: list[Result | None] = [json.loads(line) for line in lines.splitlines()]
        return found + [None] * (len(texts) - len(found))

    def grammars(self) -> list[Result]:
        """Every grammar with every tokenizer."""
        options, rows = self._options, []
        for grammar in options.grammars:
            text = common.grammar_text(options.grammar_dir, grammar)
            for name in self._names:
                (found,) = self._measure(name, [text], options.repeat, 600.0, "exact")
                rows.append(_row(found, grammar=grammar, tokenizer=name))
        return rows

    def schemas(self, name: str) -> list[Result]:
        """JSON Schemas of objects with many literal keys, through XGrammar's converter."""
        import xgrammar

        rows = []
        for keys in self._options.schema_keys:
            for required in (True, False):
                schema = _object_schema(keys, required)
                text = str(xgrammar.Grammar.from_json_schema(json.dumps(schema)))
                limit = self._options.timeout
                (found,) = self._measure(name, [text], 2, 3 * limit, "implied")
                kind = "all required" if required else "all optional"
                rows.append(_row(found, keys=keys, kind=kind, limit=3 * limit))
        return rows

    def random_grammars(self, name: str) -> Result:
        """Random ambiguous grammars, the generator that the property tests use."""
        sys.path.insert(0, str(common.ROOT / "tests"))
        try:
            from oracles.model import to_ebnf
            from strategies.grammars import random_grammar
        except ImportError as error:
            return {"skipped": f"the generator of the tests cannot be imported: {error}"}
        finally:
            sys.path.pop(0)
        sizes = random.Random(0)
        count, largest = self._options.random, self._options.random_rules
        texts = [
            to_ebnf(random_grammar(seed, sizes.randint(min(5, largest), largest)))
            for seed in range(count)
        ]
        found: list[Result | None] = []
        while len(found) < count:  # one that takes too long must not hide those after it
            rest = texts[len(found) :]
            limit = self._options.timeout + 2.0 * len(rest)
            part = self._measure(name, rest, 1, limit, "exact")
            known = [result for result in part if result is not None]
            found += known or [None]
        times = sorted(min(row["seconds"]) for row in found if row is not None)
        over = [row["stats"]["over_budget_tokens"] for row in found if row is not None]
        return {
            "grammars": count,
            "median_seconds": statistics.median(times),
            "p99_seconds": times[int(0.99 * (len(times) - 1))],
            "slowest_seconds": times[-1],
            "over_2_s": sum(value > 2 for value in times),
            "not_finished": count - len(times),
            "with_tokens_over_budget": sum(value > 0 for value in over),
            "slowest_seed": max(
                (min(row["seconds"]), seed) for seed, row in enumerate(found) if row is not None
            )[1],
        }

    def cfgzip(self, rows: list[Result]) -> Result:
        """``cfgzip-preprocess`` with two threads on cpp, in the same run."""
        program, options = self._options.cfgzip, self._options
        given = Path((options.tokenizer or ["tekken"])[0])
        source = given if given.is_dir() else given.parent
        if program is None:
            return {"skipped": "cfgzip-preprocess is not installed (pip install cfgzip==0.2.0)"}
        if not (source / "tokenizer.json").is_file():
            return {"skipped": "cfgzip-preprocess reads tokenizer.json only"}
        ours = [row for row in rows if row["grammar"] == "cpp" and row["finished"]]
        if not ours:
            return {"skipped": "cpp was not measured"}
        grammar = self._folder / "cpp.gbnf"
        grammar.write_text(common.grammar_text(options.grammar_dir, "cpp"), encoding="utf-8")
        total, inside, output = self._run_cfgzip(program, source, grammar)
        if total is None:
            return {"skipped": f"cfgzip-preprocess failed: {output.strip().splitlines()[-1:]}"}
        compute = inside if inside is not None else total
        return {
            "seconds": total,
            "compute_seconds": compute,
            "tokfold_seconds": ours[0]["best_seconds"],
            "times_faster": compute / ours[0]["best_seconds"],
        }

    def _run_cfgzip(
        self, program: str, source: Path, grammar: Path
    ) -> tuple[float | None, float | None, str]:
        """Wall time, the part of it that computes classes, and what it printed."""
        # The program knows models of a hub only: a cache laid out as if it had been there.
        cache = self._folder / "hub" / "models--local--tokenizer"
        (cache / "refs").mkdir(parents=True)
        (cache / "refs" / "main").write_text("0")
        (cache / "snapshots").mkdir()
        (cache / "snapshots" / "0").symlink_to(source.resolve(), target_is_directory=True)
        command = [program, "--model-id", "local/tokenizer", "--cache-dir", str(cache.parent)]
        command += ["--grammar-file", str(grammar), "--output", str(self._folder / "cfgzip")]
        command += ["--num-threads", "2", "--timings", "--no-progress"]
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        elapsed = time.perf_counter() - began
        output = done.stdout + done.stderr
        if done.returncode:
            return None, None, output
        inside = re.search(r"compute_token_classes_total_s=([\d.]+)", output)
        return elapsed, None if inside is None else float(inside[1]), output


def _row(found: Result | None, **labels: object) -> Result:
    if found is None:
        return {**labels, "finished": False}
    times = found["seconds"]
    return {
        **labels,
        "finished": True,
        "best_seconds": min(times),
        "median_seconds": statistics.median(times),
        "runs": len(times),
        **{key: found[key] for key in ("classes", "peak_bytes", "text_bytes", "stats")},
    }


def _object_schema(keys: int, required: bool) -> Result:
    names = [f"key_{index}" for index in range(keys)]
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names if required else [],
        "additionalProperties": False,
    }


def _cells(row: Result) -> list[str]:
    if not row["finished"]:
        limit = row.get("limit")
        return ["-" if limit is None else f"> {limit:.0f} s", "-", "-", "-"]
    return [
        seconds(row["best_seconds"]),
        seconds(row["median_seconds"]),
        number(row["classes"]),
        size(max(0, row["peak_bytes"])),
    ]


def _show(report: Result, options: argparse.Namespace) -> None:
    out = common.console()
    found = report["machine"]
    out.print(f"{found['processor']}, {found['cores']} cores, Python {found['python']}; one thread")
    out.print()
    figures = [">best", ">median", ">classes", ">memory"]
    rows = [[row["grammar"], row["tokenizer"], *_cells(row)] for row in report["grammars"]]
    title = f"Grammar text to classes ({options.repeat} runs)"
    common.show(out, title, ["grammar", "tokenizer", *figures], rows)
    _show_ratios(out, report["grammars"])
    if "schemas" in report:
        rows = [[number(row["keys"]), row["kind"], *_cells(row)] for row in report["schemas"]]
        common.show(out, "JSON Schema of literal keys", [">keys", "", *figures], rows)
    if "random" in report:
        _show_facts(out, "Random ambiguous grammars", report["random"])
    _show_facts(out, "cfgzip-preprocess, 2 threads, cpp", report["cfgzip"])


def _show_ratios(out: Any, rows: list[Result]) -> None:
    names = list(dict.fromkeys(row["tokenizer"] for row in rows))
    best = {(row["grammar"], row["tokenizer"]): row.get("best_seconds") for row in rows}
    grammars = list(dict.fromkeys(row["grammar"] for row in rows))
    cells = [
        [grammar, name, f"{best[grammar, name] / best[grammar, names[0]]:.2f}"]
        for grammar in grammars
        for name in names[1:]
        if best[grammar, name] and best[grammar, names[0]]
    ]
    if cells:
        common.show(out, f"Time against {names[0]}", ["grammar", "tokenizer", ">times"], cells)


def _show_facts(out: Any, title: str, facts: Result) -> None:
    rows = []
    for name, value in facts.items():
        text = seconds(value) if name.endswith("seconds") else str(value)
        rows.append([name.replace("_", " "), f"{value:,.0f}" if name == "times_faster" else text])
    common.show(out, title, ["", ">"], rows)


if __name__ == "__main__":
    main()
