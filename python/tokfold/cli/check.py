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
from tokfold.cli.diagnosis import Diagnosis, diagnose, place_notes
from tokfold.cli.inputs import STDIN, GrammarKind, chosen_kind, located, read_grammar, read_text
from tokfold.cli.options import AsJson, IsLark, IsRegex, IsTag, Root
from tokfold.cli.render import number
from tokfold.cli.schema_options import (
    AdditionalProperties,
    Dialect,
    Escapes,
    Formats,
    Indent,
    Integers,
    KeyOrder,
    Lossy,
    MaxDepth,
    MaxDigits,
    MaxWhitespace,
    NotesChoice,
    Resources,
    Separators,
    ShownNotes,
    Strict,
    Whitespace,
    given_options,
    note_documents,
    show_schema_notes,
)
from tokfold.errors import LimitExceededError, TokfoldError


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[GRAMMAR] FILES",
            help="Texts, or - for standard input. Without --schema the first is the grammar: .gbnf "
            "or .ebnf text, a JSON Schema or structural tag (.json), a .lark file.",
            show_default=False,
        ),
    ],
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            "-s",
            metavar="FILE",
            help="The grammar is this JSON Schema, and all other arguments are documents.",
        ),
    ] = None,
    as_json: AsJson = False,
    root: Root = None,
    chomp: Annotated[
        bool | None,
        typer.Option(
            "--chomp/--no-chomp",
            help="Leave out a line end at the end of each text; so by default under a JSON Schema.",
            show_default=False,
        ),
    ] = None,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
    dialect: Dialect = None,
    strict: Strict = False,
    notes: ShownNotes = NotesChoice.WARNINGS,
    key_order: KeyOrder = None,
    whitespace: Whitespace = None,
    max_whitespace: MaxWhitespace = None,
    indent: Indent = None,
    separators: Separators = None,
    max_digits: MaxDigits = None,
    max_depth: MaxDepth = None,
    integers: Integers = None,
    escapes: Escapes = None,
    formats: Formats = None,
    additional_properties: AdditionalProperties = False,
    resource: Resources = None,
    lossy: Lossy = None,
) -> None:
    r"""Check texts against a grammar: accepted, or where and what was expected.

    Of a document that leaves a JSON Schema, it says where that is in the
    document, which part of the schema stands against it, and what that
    expects. The text counts, not the value alone: names stand in the order of
    the schema, numbers and white space are written as the options say. Warnings
    say what of the schema is not enforced, or probably meant otherwise.

    Exit code: 0 all accepted; 1 some refused; 2 a file cannot be read or used.

    [bold]Examples[/bold]
      tokfold check answer.json --schema person.json
      tokfold check answers/*.json --schema person.json --key-order any --json
      tokfold check json.gbnf answer.json
      tokfold check cpp.gbnf src/*.cpp --json
      echo 2026-01 | tokfold check --regex '\[0-9]{4}-\[0-9]{2}' - --chomp
    """
    options = given_options(
        dialect=dialect,
        strict=strict,
        key_order=key_order,
        whitespace=whitespace,
        max_whitespace=max_whitespace,
        indent=indent,
        separators=separators,
        max_digits=max_digits,
        max_depth=max_depth,
        integers=integers,
        escapes=escapes,
        formats=formats,
        additional_properties=additional_properties,
        resources=resource,
        lossy=lossy,
    )
    kind = chosen_kind(schema is not None, regex, lark, tag)
    grammar, *texts = files if schema is None else (schema, *files)
    if not texts:
        raise TokfoldError("name a text to check behind the grammar, or - for standard input")
    if STDIN in texts and grammar == STDIN:
        raise TokfoldError("grammar and text cannot both come from standard input; name one file")
    read, kind = read_grammar(grammar, kind, root, options)
    if not as_json:
        show_schema_notes(grammar, read, notes)
    if chomp is None:
        chomp = kind is GrammarKind.JSON_SCHEMA
    console = stdout()
    results: list[dict[str, Any]] = []
    for name in texts:
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
        said = note_documents(read, notes)
        print_json(
            {"accepted": accepted, "refused": refused, "files": results, "schema_notes": said}
        )
    elif len(texts) > 1:
        console.print(f"{number(accepted)} of {number(len(texts))} accepted", style="bold")
    if accepted + refused < len(texts):
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
        [
            ("found", found.found),
            ("expected", found.expectation),
            *place_notes(found.place),
            ("hint", found.hint),
        ],
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
