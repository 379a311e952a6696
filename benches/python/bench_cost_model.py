"""The cost model: fitted on synthetic grammars, judged on the grammars of the project.

    python benches/python/bench_cost_model.py --tokenizer path/to/model
    python benches/python/bench_cost_model.py --tokenizer path/to/model --write

For our own engine, masks over classes and over the whole vocabulary: by which factor predicted
times are off. For XGrammar and llguidance: Spearman's correlation of the ranking with the times,
over the first ``--foreign-tokens`` of each text, since masks of plain XGrammar may take seconds.
Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import bench_common as common
import tokfold
from tokfold import Grammar, Vocabulary
from tokfold.cli.render import number
from tokfold.laboratory import cost_model
from tokfold.laboratory.cost_model import (
    CostModel,
    evaluate,
    fit_cost_model,
    fit_ranking,
    rank_correlation,
    spearman,
    training_profiles,
)
from tokfold.laboratory.instruments import EngineProfile, OwnEngine, profile
from tokfold.laboratory.instruments.profile import ENGINES, EngineFactory

SHIPPED = Path(cost_model.__file__).with_name("own.json")
WAYS: dict[str, EngineFactory] = {
    "own, classes": OwnEngine,
    "own, whole vocabulary": partial(OwnEngine, classes="never"),
}


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.set_defaults(grammars=[])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--foreign", nargs="*", default=["xgrammar", "llguidance"])
    parser.add_argument("--foreign-tokens", type=int, default=40, metavar="N")
    parser.add_argument("--write", action="store_true", help=f"write the model to {SHIPPED.name}")
    options = parser.parse_args()
    options.grammars = options.grammars or sorted(
        path.stem for path in options.grammar_dir.glob("*/*.gbnf")
    )
    report: common.Result = {"machine": common.machine(), "own": [], "foreign": []}
    for name, vocabulary in common.tokenizers(options).items():
        for way, engine in WAYS.items():
            row, model = own(engine, vocabulary, options)
            report["own"].append({"engine": way, "tokenizer": name, **row})
            if options.write and engine is OwnEngine:
                write(model, row, report["machine"], vocabulary)
        for engine_name in options.foreign:
            row = foreign(engine_name, vocabulary, options)
            report["foreign"].append({"engine": engine_name, "tokenizer": name, **row})
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        show(report)


def held_out(
    engine: EngineFactory, vocabulary: Vocabulary, options: argparse.Namespace, **bounds: Any
) -> dict[str, EngineProfile]:
    """The project's grammars with their texts."""
    found = {}
    for name in options.grammars:
        grammar = Grammar.from_ebnf(common.grammar_text(options.grammar_dir, name))
        text = common.sample_text(options.grammar_dir, name)
        made = profile(grammar, vocabulary, text, {"engine": engine}, **bounds)
        if "engine" in made.engines and len(made.engines["engine"].allowed):
            found[name] = made.engines["engine"]
    return found


def own(
    engine: EngineFactory, vocabulary: Vocabulary, options: argparse.Namespace
) -> tuple[common.Result, CostModel]:
    """Our engine in one way: the model, and how far it is off."""
    training = training_profiles(vocabulary, engine, repeats=options.repeats, seconds=30)
    model = fit_cost_model([p for one in training.values() for p in (one.cold, one.warm)])
    found = held_out(engine, vocabulary, options, repeats=options.repeats, seconds=30)
    return {"held_out": evaluate(model, found).document(), "training": sorted(training)}, model


def foreign(name: str, vocabulary: Vocabulary, options: argparse.Namespace) -> common.Result:
    """Another engine: how well its steps are ranked."""
    most = options.foreign_tokens
    bounds: dict[str, Any] = {"repeats": 3, "seconds": 3.0, "max_tokens": most}
    training = training_profiles(vocabulary, name, **bounds)
    ranking = fit_ranking(name, [one.cold for one in training.values()])
    found = {
        grammar: one.cold
        for grammar, one in held_out(ENGINES[name], vocabulary, options, **bounds).items()
    }
    each = {
        grammar: spearman(ranking.ranks(one.counters), one.total())
        for grammar, one in found.items()
        if len(set(ranking.ranks(one.counters).tolist())) > 1
    }
    return {
        "steps": sum(len(one.total()) for one in found.values()),
        "rank": rank_correlation(ranking, found),
        "by_grammar": each,
        "order": ranking.order({grammar: one.counters for grammar, one in found.items()}),
        "measured_order": sorted(found, key=lambda grammar: -found[grammar].total().mean()),
    }


def write(
    model: CostModel, row: common.Result, machine: common.Result, vocabulary: Vocabulary
) -> None:
    """The model that comes with the package."""
    about = {
        **machine,
        "tokfold": tokfold.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "vocabulary": vocabulary.name,
        "tokens": len(vocabulary),
        **row,
    }
    SHIPPED.write_text(CostModel(model.mask, model.step, about).to_json(), encoding="utf-8")


def show(report: common.Result) -> None:
    """Tables."""
    out = common.console()
    columns = ["engine", ">steps", ">factor", ">cold", ">masks made", ">warm", ">rank"]
    rows = [
        [
            row["engine"],
            number(row["held_out"]["steps"]),
            *(f"{row['held_out'][key]:.2f}" for key in ("factor", "cold", "made", "warm", "rank")),
        ]
        for row in report["own"]
    ]
    common.show(out, "Our engine, grammars not fitted to: predicted off by", columns, rows)
    for row in report["own"]:
        each = row["held_out"]["by_grammar"].items()
        out.print(f"{row['engine']}: " + ", ".join(f"{name} {factor:.2f}" for name, factor in each))
    out.print()
    rows = [
        [row["engine"], number(row["steps"]), f"{row['rank']:.3f}"] for row in report["foreign"]
    ]
    common.show(out, "Other engines: ranks", ["engine", ">steps", ">Spearman"], rows)
    for row in report["foreign"]:
        each = row["by_grammar"].items()
        out.print(f"{row['engine']}: " + ", ".join(f"{name} {rank:.2f}" for name, rank in each))
        out.print(f"  costliest first, ranked:  {' '.join(row['order'])}")
        out.print(f"  costliest first, measured: {' '.join(row['measured_order'])}")


if __name__ == "__main__":
    main()
