"""``tokfold inspect``: what is in a file of token classes, and what it fits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from tokfold import TokenClasses
from tokfold.cli.console import print_json, stdout
from tokfold.cli.inputs import read_grammar, read_tokenizer
from tokfold.cli.options import AsJson
from tokfold.cli.render import number, size, table
from tokfold.cli.summary import BIGGEST, show_summary, summarize


def inspect(
    artefact: Annotated[
        Path,
        typer.Argument(metavar="ARTEFACT", help="A file that tokfold saved.", show_default=False),
    ],
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="PATH",
            help="Say whether the classes fit this tokenizer, and show its tokens.",
        ),
    ] = None,
    grammar: Annotated[
        str | None,
        typer.Option(
            "--grammar", "-g", metavar="FILE", help="Say whether they were made for this grammar."
        ),
    ] = None,
    root: Annotated[
        str | None, typer.Option(metavar="NAME", help="Start rule of that grammar, if not root.")
    ] = None,
    as_json: AsJson = False,
    biggest: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many of the biggest classes to show.")
    ] = BIGGEST,
) -> None:
    """Show a file of classes: fingerprints, sizes, the biggest classes, what it fits.

    The whole file is checked against its checksum first.
    Exit code: 0; 1 if it does not fit what was given; 2 if it cannot be used.

    [bold]Examples[/bold]
      tokfold inspect json.tokfold
      tokfold inspect json.tokfold --tokenizer path/to/model
      tokfold inspect json.tokfold -t tekken -g json.gbnf --json
    """
    classes = TokenClasses.load(artefact)
    vocabulary = None if tokenizer is None else read_tokenizer(tokenizer)
    fits: dict[str, bool | None] = {"tokenizer": None, "grammar": None}
    if vocabulary is not None:
        fits["tokenizer"] = vocabulary.fingerprint == classes.vocabulary_fingerprint
    if grammar is not None:
        read, _ = read_grammar(grammar, root=root)
        fits["grammar"] = read.fingerprint == classes.grammar_fingerprint
    document = {
        "file": str(artefact),
        "bytes": artefact.stat().st_size,
        "grammar_fingerprint": classes.grammar_fingerprint,
        "vocabulary_fingerprint": classes.vocabulary_fingerprint,
        "prune": classes.prune,
        "fits_tokenizer": fits["tokenizer"],
        "fits_grammar": fits["grammar"],
        **summarize(classes, vocabulary if fits["tokenizer"] else None, biggest),
        "stats": classes.stats,
    }
    if as_json:
        print_json(document)
    else:
        _show(document, tokenizer, grammar)
    if False in fits.values():
        raise typer.Exit(1)


def _show(document: dict[str, Any], tokenizer: str | None, grammar: str | None) -> None:
    console = stdout()
    console.print(
        Text.assemble((document["file"], "bold"), f" ({size(document['bytes'])}, checksum good)"),
        soft_wrap=True,
    )
    console.print()
    result = table("", "", title="Made for")
    for what, given in (("grammar", grammar), ("tokenizer", tokenizer)):
        key = "vocabulary_fingerprint" if what == "tokenizer" else "grammar_fingerprint"
        result.add_row(what, document[key])
        fits = document[f"fits_{what}"]
        if fits is not None:
            verdict = ("this one", "bold green") if fits else ("another one than this", "bold red")
            result.add_row("", Text.assemble(verdict, f": {given}"))
    result.add_row(
        "branches", "only those that can be completed" if document["prune"] else "all, as XGrammar"
    )
    console.print(result)
    show_summary(console, document)
    stats = table("", ">", title="The work it took")
    for name, value in document["stats"].items():
        if isinstance(value, int) and name not in document["classes"]:
            stats.add_row(name.replace("_", " "), number(value))
    console.print(stats)
