"""``tokfold check``: is a text in the language, and if not, where does it leave it?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tokfold import Grammar
from tokfold.cli.console import fits_encoding, print_json, report_error, stdout, steps
from tokfold.cli.diagnosis import Diagnosis, diagnose
from tokfold.cli.inputs import STDIN, chosen_kind, located, read_grammar, read_text
from tokfold.cli.options import (
    AsJson,
    Chomp,
    GrammarFile,
    IsLark,
    IsRegex,
    IsSchema,
    IsTag,
    Root,
)
from tokfold.cli.render import number
from tokfold.errors import LimitExceededError, TokfoldError

__all__ = ["check", "show_notes", "show_spot"]


def check(
    grammar: GrammarFile,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Texts, or - for standard input.", show_default=False
        ),
    ],
    as_json: AsJson = False,
    root: Root = None,
    chomp: Chomp = False,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
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
        data = read_text(name, chomp)
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
    show_spot(console, found)
    show_notes(
        console,
        [("found", found.found), ("expected", found.expectation), ("hint", found.hint)],
    )


def show_spot(console: Console, found: Diagnosis) -> None:
    """Print the line in question with a caret under the spot."""
    gutter = f"{found.line:>5} | "
    ellipsis = "…" if fits_encoding(console, "…") else "..."
    line, caret = found.excerpt(console.width - len(gutter) - 1, ellipsis)
    console.print(Text.assemble((gutter, "dim"), line), no_wrap=True, crop=False)
    console.print(Text.assemble((" " * 5 + " | ", "dim"), " " * caret, ("^", "bold red")))


def show_notes(console: Console, notes: Iterable[tuple[str, str]]) -> None:
    """Print a name and what there is to say of it on each line; nothing where that is empty."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for what, text in notes:
        if text:
            rows.add_row(Text(f"  {what}", style="dim"), Text(text))
    console.print(rows)
