"""``tokfold check``: is a text in the language, and if not, where does it leave it?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tokfold import Grammar
from tokfold.cli.console import fits_encoding, print_json, report_error, stdout, steps
from tokfold.cli.diagnosis import Diagnosis, diagnose
from tokfold.cli.inputs import STDIN, chosen_kind, located, read_grammar, read_text
from tokfold.cli.render import number
from tokfold.errors import LimitExceededError, TokfoldError

__all__ = ["check"]


def check(
    grammar: Annotated[
        str,
        typer.Argument(
            metavar="GRAMMAR",
            help="Grammar file: .gbnf or .ebnf text, a JSON Schema or structural tag (.json), "
            "a .lark file.",
            show_default=False,
        ),
    ],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Texts, or - for standard input.", show_default=False
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    root: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Start rule of grammar text, if not root."),
    ] = None,
    chomp: Annotated[
        bool, typer.Option("--chomp", help="Leave out a line end at the end of each text.")
    ] = False,
    schema: Annotated[bool, typer.Option("--schema", help="GRAMMAR is a JSON Schema.")] = False,
    regex: Annotated[
        bool, typer.Option("--regex", help="GRAMMAR is itself the pattern, not a file.")
    ] = False,
    lark: Annotated[bool, typer.Option("--lark", help="GRAMMAR is a Lark file.")] = False,
    tag: Annotated[bool, typer.Option("--tag", help="GRAMMAR is a structural tag.")] = False,
) -> None:
    r"""Check texts against a grammar: accepted, or where and what was expected.

    Exit code: 0 all accepted; 1 some refused; 2 a file cannot be read or used.

    [bold]Examples[/bold]
      tokfold check json.gbnf answer.json
      tokfold check cpp.gbnf src/*.cpp --json
      echo '{"a": 1}' | tokfold check person-schema.json - --chomp
      echo 2026-01 | tokfold check --regex '\[0-9]{4}-\[0-9]{2}' - --chomp
    """
    read, _ = read_grammar(grammar, chosen_kind(schema, regex, lark, tag), root)
    console = stdout()
    results: list[dict[str, Any]] = []
    for name in files:
        try:
            diagnosis = _diagnosed(read, grammar, name, chomp)
        except (OSError, LimitExceededError) as error:
            if not as_json:
                report_error(error)
            results.append({"file": name, "accepted": None, "error": str(error)})
            continue
        results.append({"file": name, **diagnosis.document()})
        if not as_json:
            _show(console, name, diagnosis)
    accepted = sum(result["accepted"] is True for result in results)
    refused = sum(result["accepted"] is False for result in results)
    if as_json:
        print_json({"accepted": accepted, "refused": refused, "files": results})
    elif len(files) > 1:
        console.print(f"{number(accepted)} of {number(len(files))} accepted", style="bold")
    if accepted + refused < len(files):
        raise typer.Exit(2)
    raise typer.Exit(1 if refused else 0)


def _diagnosed(grammar: Grammar, grammar_name: str, name: str, chomp: bool) -> Diagnosis:
    with steps() as step, step(f"Reading {name}"):
        data = read_text(name)
        if chomp:
            data = data.removesuffix(b"\n").removesuffix(b"\r")
        try:
            return diagnose(grammar, data)
        except LimitExceededError:
            raise  # of this text: others may do
        except TokfoldError:
            with located(grammar_name):
                raise


def _show(console: Console, name: str, found: Diagnosis) -> None:
    label = "standard input" if name == STDIN else name
    if found.accepted:
        verdict = Text.assemble((label, "bold"), ": ", ("accepted", "bold green"))
        console.print(verdict, f"({number(found.size)} bytes)", soft_wrap=True)
        return
    verdict = Text.assemble(
        (f"{label}:{found.line}:{found.column}", "bold"), ": ", ("refused", "bold red")
    )
    console.print(verdict, soft_wrap=True)
    gutter = f"{found.line:>5} | "
    ellipsis = "…" if fits_encoding(console, "…") else "..."
    line, caret = found.excerpt(console.width - len(gutter) - 1, ellipsis)
    console.print(Text.assemble((gutter, "dim"), line), no_wrap=True, crop=False)
    console.print(Text.assemble((" " * 5 + " | ", "dim"), " " * caret, ("^", "bold red")))
    notes = Table.grid(padding=(0, 2, 0, 0))
    notes.add_column()
    notes.add_column(overflow="fold")
    for what, text in (
        ("found", found.found),
        ("expected", found.expectation),
        ("hint", found.hint),
    ):
        if text:
            notes.add_row(Text(f"  {what}", style="dim"), Text(text))
    console.print(notes)
