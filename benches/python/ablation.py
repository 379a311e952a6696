"""What each technique is worth: one switched on after the other, over JSON schemas.

    python benches/python/ablation.py FOLDER --tokenizer path/to/model

After table 1 of the XGrammar 2 paper (arXiv), with classes, which are ours, as the last row.
FOLDER, *compile* and the walk along the instances are those of bench_maskbench.py; a mask is the
mask alone, without accepting the token. All schemas of a row go through one process, one after the
other, since what the cache saves is work between grammars. The verdicts of all rows must be the
same; the run ends with an error where they are not.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench_common as common
import bench_maskbench as maskbench
from tokfold.cli.inputs import read_tokenizer
from tokfold.cli.render import number, seconds

EVERY_STATE = 1 << 40


@dataclass(frozen=True)
class Switch:
    """A technique, and the options that switch it off and on.

    Options are those of ``bench_common.TokfoldEngine``: ``classes``, ``warm``, and the group
    ``compile`` (fields of ``tokfold.CompileOptions``).
    """

    name: str
    off: dict[str, Any]
    on: dict[str, Any]


# ------------------------------------------------------------------------- the configurations
# Row n of the table has the first n switches on and the others off.

SWITCHES = (
    Switch(
        "just-in-time masks",
        off={"warm": EVERY_STATE},  # the mask of every state, when compiling
        on={"warm": 0},
    ),
    Switch(
        "cache across grammars",
        off={"compile": {"pool": None}},
        on={"compile": {"pool": "vocabulary"}},
    ),
    Switch(
        "repetition counted",
        off={"compile": {"_count_repetitions": False}},
        on={"compile": {"_count_repetitions": True}},
    ),
    Switch(
        "classes",
        off={"classes": "never"},
        on={"classes": "now"},
    ),
)

# ---------------------------------------------------------------------------------------------


def configurations() -> dict[str, dict[str, Any]]:
    """The rows: names, and arguments of ``bench_common.TokfoldEngine``."""
    rows = {}
    for count in range(len(SWITCHES) + 1):
        options: dict[str, Any] = {}
        for index, switch in enumerate(SWITCHES):
            for name, value in (switch.on if index < count else switch.off).items():
                both = isinstance(value, dict)
                options[name] = {**options.get(name, {}), **value} if both else value
        rows[f"+ {SWITCHES[count - 1].name}" if count else "baseline"] = options
    return rows


def main() -> None:
    """Measure and print."""
    options = _parser().parse_args()
    vocabulary = read_tokenizer(options.tokenizer)
    cases, _ = maskbench.read_cases(options.folder, options.tokenizer, vocabulary, options.limit)
    settings = maskbench.Settings(options.timeout, options.memory, shared=True, cpu=options.cpu)
    results = {
        name: maskbench.measure(common.TokfoldEngine(**arguments), vocabulary, cases, settings)
        for name, arguments in configurations().items()
    }
    report = {
        "machine": common.machine(),
        "tokenizer": vocabulary.name,
        "rows": maskbench.summarize_common(cases, results),
        "timeouts": {name: _count(outcomes, "timeout") for name, outcomes in results.items()},
    }
    _show(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    different = _different(cases, results)
    if different:
        raise SystemExit(f"error: rows judge differently: {', '.join(different[:10])}")


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    parser = common.described(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="files of MaskBench's layout")
    parser.add_argument("--tokenizer", default="tekken", metavar="PATH", help="file or folder")
    parser.add_argument("--limit", type=int, metavar="N", help="N schemas, spread over the folder")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="for a schema")
    parser.add_argument("--memory", type=float, default=16.0, metavar="GB", help="for a process")
    parser.add_argument("--cpu", action="store_true", help="processor time of the thread")
    parser.add_argument("--json", type=Path, metavar="OUT")
    return parser


def _count(outcomes: maskbench.Outcomes, status: str) -> int:
    return sum(outcome.status == status for outcome in outcomes.values())


def _different(cases: list[maskbench.Case], results: dict[str, maskbench.Outcomes]) -> list[str]:
    """Schemas that were taken by several rows and not judged alike."""
    found = []
    for case in cases:
        taken = [o[case.name] for o in results.values() if o[case.name].status == "taken"]
        verdicts = {
            tuple((verdict.accepted, len(verdict.masks)) for verdict in outcome.verdicts)
            for outcome in taken
        }
        if len(verdicts) > 1:
            found.append(case.name)
    return found


def _show(report: common.Result) -> None:
    out = common.console(width=120)
    found = report["machine"]
    out.print(f"{found['processor']}, {found['cores']} cores, Python {found['python']}")
    out.print()
    rows = []
    for name, row in report["rows"].items():
        times = [row["compile"].get("mean"), *(row["mask"].get(key) for key in ("mean", "p99"))]
        cells = ["-" if value is None else seconds(value) for value in times]
        rows.append([name, *cells, number(report["timeouts"][name])])
    first = next(iter(report["rows"].values()))
    title = f"Switched on one after the other: {number(first['schemas'])} schemas that all took, "
    title += f"{number(first['steps'])} masks, {report['tokenizer']}"
    common.show(out, title, ["", ">compile mean", ">mask mean", ">p99", ">timeouts"], rows)


if __name__ == "__main__":
    main()
