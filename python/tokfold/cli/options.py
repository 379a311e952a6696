"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokfold._extras import require
from tokfold.errors import TokfoldError

GrammarFile = Annotated[
    str,
    typer.Argument(
        metavar="GRAMMAR",
        help="Grammar file, or - for standard input: .gbnf or .ebnf text, a JSON Schema or "
        "structural tag (.json), a .lark file.",
        show_default=False,
    ),
]
Tokenizer = Annotated[
    str,
    typer.Option(
        "--tokenizer",
        "-t",
        metavar="PATH",
        help="Tokenizer: a model folder, tokenizer.json, tekken.json, *.tiktoken, "
        "tokenizer.model; or the word tekken for the one of the demo.",
        show_default=False,
    ),
]
TokenizerOrBytes = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        "-t",
        metavar="PATH",
        help="Tokenizer, as for the other commands; without one each byte is a token.",
    ),
]
TextFile = Annotated[
    str,
    typer.Option(
        "--text", metavar="FILE", help="The text, or - for standard input.", show_default=False
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Write a picture: .png, .svg or .pdf."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Root = Annotated[
    str | None, typer.Option(metavar="NAME", help="Start rule of grammar text, if not root.")
]
Chomp = Annotated[
    bool, typer.Option("--chomp", help="Leave out a line end at the end of each text.")
]
IsSchema = Annotated[bool, typer.Option("--schema", help="GRAMMAR is a JSON Schema.")]
IsRegex = Annotated[
    bool, typer.Option("--regex", help="GRAMMAR is itself the pattern, not a file.")
]
IsLark = Annotated[bool, typer.Option("--lark", help="GRAMMAR is a Lark file.")]
IsTag = Annotated[bool, typer.Option("--tag", help="GRAMMAR is a structural tag.")]


def check_picture(plot: Path | None) -> None:
    """Look before the work whether the picture could be written after it."""
    if plot is None:
        return
    if plot.suffix not in (".png", ".svg", ".pdf"):
        raise TokfoldError(f"--plot {plot}: name a .png, .svg or .pdf file")
    require("matplotlib", "lab", "a plot")
