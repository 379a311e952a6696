"""``tokfold profile``: what each token of a text costs engines, in counters and in time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.inputs import (
    chosen_kind,
    describe_grammar,
    describe_vocabulary,
    located,
    read_grammar,
    read_replayed_text,
    read_tokenizer_or_bytes,
)
from tokfold.cli.options import (
    AsJson,
    Chomp,
    GrammarFile,
    IsLark,
    IsRegex,
    IsSchema,
    IsTag,
    Picture,
    Root,
    TextFile,
    TokenizerOrBytes,
    check_picture,
)
from tokfold.cli.render import escaped, number, quoted, seconds, table
from tokfold.errors import TokfoldError
from tokfold.laboratory.cost_model import StepTime, predict_step_time
from tokfold.laboratory.forest import earley_counters
from tokfold.laboratory.instruments import (
    EngineProfile,
    InstrumentError,
    Profile,
)
from tokfold.laboratory.instruments import (
    profile as run_profile,
)
from tokfold.laboratory.instruments.profile import ENGINES, SECONDS
from tokfold.laboratory.instruments.report import document, write_csv
from tokfold.laboratory.instruments.report import plot as draw

__all__ = ["profile"]

ROWS = 12

_SLOWER = "; a JSON Schema (--schema) it takes itself, and is many times faster there"

_OF_FORM = {
    "earley.new_items": "items",
    "earley.completer_work": "completer",
    "earley.new_packed_nodes": "packed",
}
"""What the table shows of ``--form``; files have all."""


def profile(
    grammar: GrammarFile,
    text: TextFile,
    engines: Annotated[str, typer.Option(metavar="NAMES", help="Engines, between commas.")] = "own",
    tokenizer: TokenizerOrBytes = None,
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="Times that the text is gone through.")
    ] = 5,
    budget: Annotated[
        float,
        typer.Option(
            "--seconds",
            min=0,
            metavar="S",
            help="For each engine: no repeat begins after so many, and a first pass ends.",
        ),
    ] = SECONDS,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the first tokens of the text.")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=0, metavar="N", help="The costliest steps to list, by engine.")
    ] = ROWS,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write every step there.")
    ] = None,
    plot: Picture = None,
    form: Annotated[
        bool,
        typer.Option(
            "--form", help="Add what each token costs the form of the grammar: items, forest."
        ),
    ] = False,
    model_ms: Annotated[
        float | None,
        typer.Option(min=0, metavar="MS", help="A model's step: say what of the masks shows."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Sequences, with --model-ms.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads, with --model-ms.")] = 1,
    as_json: AsJson = False,
    root: Root = None,
    chomp: Chomp = False,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
) -> None:
    """Run a text through engines and say what each token costs: counters and times.

    Each engine goes through the text cold, with nothing remembered of masks,
    and then warm. Times are wall times of this machine, the least of the
    repeats. Counters are exact, and differ between engines.

    Engines: own, xgrammar, llguidance.

    Exit code: 0 all went through; 1 an engine refused the grammar or stopped
    on the way; 2 an error.

    [bold]Examples[/bold]
      tokfold profile json.gbnf --text answer.txt
      tokfold profile json.gbnf --text answer.txt -t tekken --engines own,xgrammar
      tokfold profile sql.gbnf --text query.sql --csv steps.csv --plot steps.png
      tokfold profile sql.gbnf --text query.sql --form --csv steps.csv
      tokfold profile sql.gbnf --text query.sql --model-ms 15 --batch 32 --threads 4
    """
    names = _names(engines)
    check_picture(plot)
    if model_ms is None and (batch, threads) != (1, 1):
        raise TokfoldError("--batch and --threads are for --model-ms: say how long a model takes")
    data = read_replayed_text(grammar, text, chomp)
    with steps() as step:
        read, kind = read_grammar(grammar, chosen_kind(schema, regex, lark, tag), root)
        with step("Loading the vocabulary"):
            vocabulary = read_tokenizer_or_bytes(tokenizer)
        with step("Running the text through the engines"), located(grammar):
            made = run_profile(
                read,
                vocabulary,
                data,
                names,
                repeats=repeats,
                seconds=budget,
                max_tokens=max_tokens,
                extra=[earley_counters] if form else [],
            )
    if csv is not None:
        # Written at once, so that what cannot be made leaves no half of a file.
        stream = io.StringIO()
        write_csv(made, stream)
        csv.write_text(stream.getvalue(), encoding="utf-8")
    if plot is not None:
        draw(made, plot)
    visible = {
        name: _visible(engine, batch, threads, model_ms)
        for name, engine in made.engines.items()
        if model_ms is not None and len(engine.allowed)
    }
    if as_json:
        print_json(
            {
                "grammar": describe_grammar(grammar, kind, read),
                "vocabulary": describe_vocabulary(tokenizer or "", vocabulary),
                "text": {"file": text, "bytes": len(data)},
                **document(made),
                "visible": {
                    name: {which: vars(time) for which, time in both.items()}
                    for name, both in visible.items()
                },
            }
        )
    else:
        _show(stdout(), made, rows, visible)
    if made.refused or any(engine.stopped for engine in made.engines.values()):
        raise typer.Exit(1)


def _names(engines: str) -> list[str]:
    names = [name.strip() for name in engines.split(",")]
    for name in names:
        if name not in ENGINES:
            raise InstrumentError(
                f"--engines: no engine is named {quoted(name)}; there are {', '.join(ENGINES)}"
            )
    if len(set(names)) < len(names):
        raise InstrumentError("--engines names an engine twice")
    return names


def _visible(
    engine: EngineProfile, batch: int, threads: int, model_ms: float | None
) -> dict[str, StepTime]:
    """A step of a batch, of average masks, cold and warm."""
    return {
        which: predict_step_time(
            float(way.total("min").mean()),
            batch=batch,
            threads=threads,
            model_us=1e3 * (model_ms or 0.0),
        )
        for which, way in engine.passes().items()
    }


def _show(
    console: Console, made: Profile, count: int, visible: dict[str, dict[str, StepTime]]
) -> None:
    summary = table("engine", "pass", ">steps", ">mask p50", ">p99", ">max", ">step p50", ">p99")
    for name, engine in made.engines.items():
        for which, way in engine.passes().items():
            if not len(engine.allowed):
                continue
            masks, reads = way.mask("min"), way.step("min")
            cells = [
                *(seconds(float(np.percentile(masks, level)) / 1e6) for level in (50, 99, 100)),
                *(seconds(float(np.percentile(reads, level)) / 1e6) for level in (50, 99)),
            ]
            summary.add_row(Text(name), which, number(len(engine.allowed)), *cells)
    console.print(summary)
    for name, reason in made.refused.items():
        console.print(Text.assemble((name, "bold"), ": ", ("refused", "bold red"), f": {reason}"))
    for name, engine in made.engines.items():
        if engine.given:
            said = f" was given {engine.given}"
            hint = "" if "Schema" in engine.given else _SLOWER
            console.print(Text.assemble((name, "bold"), said, hint))
        if engine.stopped:
            line = Text.assemble((name, "bold"), ": ", ("stopped", "bold red"))
            console.print(line, engine.stopped, soft_wrap=True)
        if count and len(engine.allowed):
            _show_costliest(console, made, name, count)
    for name, both in visible.items():
        for which, time in both.items():
            console.print(
                f"{name}, {which}: a step takes {seconds(time.visible_us / 1e6)} "
                f"(model {seconds(time.model_us / 1e6)}, masks {seconds(time.symbolic_us / 1e6)}), "
                f"and waits for the {time.critical}",
                soft_wrap=True,
            )
    console.print(
        "Wall times of this machine, the least of the repeats; they differ between runs.",
        style="dim",
        soft_wrap=True,
    )


def _show_costliest(console: Console, made: Profile, name: str, count: int) -> None:
    """The steps that took longest cold, with the counters that are not the same everywhere."""
    engine = made.engines[name]
    total = engine.cold.total("min")
    order = np.argsort(-total, kind="stable")[:count]
    varied = [
        counter
        for counter, counts in engine.cold.counters.items()
        if counter.startswith("mask.") and counts.any()
    ][: 1 if made.extra else 3]
    of_form = [counter for counter in _OF_FORM if counter in made.extra]
    shown = table(
        ">step",
        ">cold",
        ">warm",
        *(f">{counter.removeprefix('mask.')}" for counter in varied),
        *(f">{_OF_FORM[counter]}" for counter in of_form),
        "*token",
        title=f"{name}: the costliest masks and steps",
    )
    warm = engine.warm.total("min")
    tokens = made.tokens()
    for index in order.tolist():
        cells: list[Any] = [number(index + 1), seconds(total[index] / 1e6)]
        cells += [seconds(warm[index] / 1e6)]
        cells += [number(int(engine.cold.counters[counter][index])) for counter in varied]
        cells += [number(int(made.extra[counter][index])) for counter in of_form]
        shown.add_row(*cells, Text(quoted(escaped(tokens[index]))))
    console.print(shown)
