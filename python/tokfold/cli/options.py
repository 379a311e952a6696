"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "Chomp",
    "GrammarFile",
    "IsLark",
    "IsRegex",
    "IsSchema",
    "IsTag",
    "Root",
    "Tokenizer",
]

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
