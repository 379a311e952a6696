"""``tokfold classes``: fold a vocabulary under a grammar and show what came of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tokfold import TokenClasses, compile_classes
from tokfold.cli.console import fits_encoding, print_json, stdout, steps
from tokfold.cli.inputs import (
    chosen_kind,
    describe_grammar,
    describe_vocabulary,
    located,
    read_grammar,
    read_tokenizer,
)
from tokfold.cli.options import (
    AsJson,
    GrammarFile,
    IsLark,
    IsRegex,
    IsSchema,
    IsTag,
    Root,
    Tokenizer,
)
from tokfold.cli.render import bar, number, seconds, size, table
from tokfold.cli.summary import (
    BAR_WIDTH,
    BIGGEST,
    show_summary,
    summarize,
)

FOLDING = "folding"


def classes(
    grammar: GrammarFile,
    tokenizer: Tokenizer,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Save the classes to this file."),
    ] = None,
    as_json: AsJson = False,
    root: Root = None,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune/--no-prune",
            help="Drop branches that cannot be completed, or keep them as XGrammar does.",
        ),
    ] = True,
    cache_dir: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep classes here and find them again."),
    ] = None,
    biggest: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many of the biggest classes to show.")
    ] = BIGGEST,
) -> None:
    r"""Fold a vocabulary under a grammar: time by phase, classes, sample tokens.

    [bold]Examples[/bold]
      tokfold classes json.gbnf --tokenizer path/to/model
      tokfold classes sql.ebnf -t tekken --root select -o select.tokfold
      tokfold classes person-schema.json -t tokenizer.json
      tokfold classes --regex '\[0-9]{4}-\[0-9]{2}' -t tekken
      tokfold classes json.gbnf -t tekken --json | jq .classes.total
    """
    kind = chosen_kind(schema, regex, lark, tag)
    times: dict[str, float] = {}
    with steps() as step:
        with step("Reading the grammar"), _timed(times, "reading the grammar"):
            read, kind = read_grammar(grammar, kind, root)
        with step("Loading the vocabulary"), _timed(times, "loading the vocabulary"):
            vocabulary = read_tokenizer(tokenizer)
        with step("Folding the vocabulary") as report, _timed(times, FOLDING), located(grammar):
            folded = compile_classes(
                read, vocabulary, progress=report, prune=prune, cache_dir=cache_dir
            )
    if output is not None:
        with _timed(times, "saving"):
            folded.save(output)
    document = {
        "grammar": describe_grammar(grammar, kind, read),
        "vocabulary": describe_vocabulary(tokenizer, vocabulary),
        "prune": prune,
        "seconds": _phases(times, folded),
        **summarize(folded, vocabulary, biggest),
        "stats": folded.stats,
        "artifact": _describe_file(output),
    }
    if as_json:
        print_json(document)
    else:
        _show(document)


@contextmanager
def _timed(times: dict[str, float], name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    times[name] = time.perf_counter() - began


def _phases(times: dict[str, float], folded: TokenClasses) -> dict[str, float]:
    """Times in the order of the work; folding is split where it was not found in a cache."""
    phases: dict[str, float] = {}
    for name, elapsed in times.items():
        if name != FOLDING or "walk_seconds" not in folded.stats:
            phases[name if name != FOLDING else "loading from the cache"] = elapsed
            continue
        network, walk = folded.stats["network_seconds"], folded.stats["walk_seconds"]
        phases["sorting the vocabulary, once"] = max(0.0, elapsed - network - walk)
        phases["grammar to network"] = network
        phases["walk over the vocabulary"] = walk
    return {**phases, "total": sum(phases.values())}


def _describe_file(path: Path | None) -> dict[str, Any] | None:
    return None if path is None else {"file": str(path), "bytes": path.stat().st_size}


def _show(document: dict[str, Any]) -> None:
    console = stdout()
    grammar, vocabulary = document["grammar"], document["vocabulary"]
    console.print(
        Text.assemble(
            (grammar["file"], "bold"),
            f" ({grammar['kind']}, {number(grammar['rules'])} rules) over ",
            (vocabulary["name"], "bold"),
            f" ({number(vocabulary['size'])} tokens)",
        )
    )
    console.print()
    console.print(_times_table(console, document["seconds"]))
    show_summary(console, document)
    if document["artifact"] is not None:
        written = document["artifact"]
        console.print(f"Saved to {written['file']} ({size(written['bytes'])})", soft_wrap=True)


def _times_table(console: Console, phases: dict[str, float]) -> Table:
    fill = "█" if fits_encoding(console, "█") else "#"
    result = table("", ">", "", title="Time")
    largest = max(elapsed for name, elapsed in phases.items() if name != "total")
    for name, elapsed in phases.items():
        share = "" if name == "total" else bar(elapsed, largest, BAR_WIDTH, fill)
        style = "bold" if name == "total" else ""
        result.add_row(
            Text(name, style=style), Text(seconds(elapsed), style=style), Text(share, style="cyan")
        )
    return result
