"""Tables of the README and of docs/benchmarks.md, out of what bench_maskbench.py kept.

    python benches/python/page_tables.py

prints them from the newest ``benches/results/maskbench-*.json``. A test compares the pages with
that.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benches" / "results"
ENGINES = {
    "tokfold never": "tokfold",
    "tokfold never, any order": "tokfold, any order of names",
    "llguidance": "llguidance",
    "xgrammar": "XGrammar",
}
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def newest(kind: str = "maskbench") -> dict[str, Any]:
    """The newest result of a benchmark, by the date that it names."""
    paths = RESULTS.glob(f"{kind}-*.json")
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if not found:
        raise FileNotFoundError(f"{RESULTS} holds no {kind}-*.json")
    return max(found, key=lambda report: report["date"])


def headline(report: dict[str, Any]) -> str:
    """The table of the README: verdicts and times of the engines."""
    found = {short: report["engines"][name] for name, short in _engines(report).items()}
    both = {short: report["common"][name] for name, short in _engines(report).items()}
    shared = both["tokfold"]["schemas"]
    return table(
        [f"{report['schemas']} unseen JSON Schemas", *_titles(report)],
        [
            ["all instances judged right, schemas", *(str(row["right"]) for row in found.values())],
            ["refused, schemas", *(_lost(row) for row in found.values())],
            ["valid instances rejected", *(_wrong(r, "valid_rejected") for r in found.values())],
            ["invalid ones accepted", *(_wrong(r, "invalid_accepted") for r in found.values())],
            [
                f"compile, {shared} that all take: median, p99",
                *(_times(row["compile"]) for row in both.values()),
            ],
            [
                "a mask and a token: median, p99",
                *(_times(r["between_masks"]) for r in both.values()),
            ],
        ],
    )


def details(report: dict[str, Any]) -> str:
    """The table of docs/benchmarks.md: what the headline leaves out."""
    rows = []
    for name, short in zip(_engines(report), _titles(report), strict=True):
        for which, found in (("all took", report["common"]), ("it took", report["engines"])):
            row = found[name]
            levels = [row["compile"][level] for level in ("mean", "max")]
            steps = [row["between_masks"][level] for level in ("mean", "p99.9", "max")]
            times = [seconds(value) for value in (*levels, *steps)]
            rows.append([short, f"that {which}", str(row["schemas"]), f"{row['steps']:,}", *times])
    columns = ["engine", "schemas", "number", "tokens", "compile: mean", "max"]
    return table([*columns, "a mask and a token: mean", "p99.9", "max"], rows, words=2)


def table(columns: list[str], rows: list[list[str]], words: int = 1) -> str:
    """Markdown; the first ``words`` columns are words, the others numbers."""
    rule = ["---"] * words + ["---:"] * (len(columns) - words)
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, rule, *rows))


def seconds(value: float) -> str:
    """A time with two significant digits."""
    unit, name = next((pair for pair in UNITS if value >= pair[0]), UNITS[-1])
    scaled = value / unit
    return f"{scaled:,.0f} {name}" if scaled >= 10 else f"{scaled:.1f} {name}"


def _engines(report: dict[str, Any]) -> dict[str, str]:
    """The engines that were measured, and what a table calls them."""
    return {name: short for name, short in ENGINES.items() if name in report["engines"]}


def _titles(report: dict[str, Any]) -> list[str]:
    return [
        f"{short} {report['versions'][name]}" if name in report["versions"] else short
        for name, short in _engines(report).items()
    ]


def _times(summary: dict[str, float]) -> str:
    return f"{seconds(summary['p50'])}, {seconds(summary['p99'])}"


def _lost(row: dict[str, Any]) -> str:
    """Schemas that were refused; those that ended by time or by a crash are named."""
    ends = [f"{row[key]} {key}" for key in ("timeout", "crashed") if row[key]]
    return ", ".join([str(row["refused"]), *ends])


def _wrong(row: dict[str, Any], key: str) -> str:
    return f"{row[key]} of {row[key.split('_')[0]]}"


if __name__ == "__main__":
    report = newest()
    print(headline(report), details(report), sep="\n\n")
