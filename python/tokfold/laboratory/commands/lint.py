"""``tokfold lint``: what is wrong with a grammar, what it may suffer from, and the mend."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tokfold import Grammar
from tokfold._schema_records import RuleOrigin
from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.diagnosis import MAX_POINTERS
from tokfold.cli.inputs import (
    STDIN,
    GrammarKind,
    chosen_kind,
    decoded,
    describe_vocabulary,
    located,
    read_grammar,
    read_text,
    read_tokenizer,
    refuse_options,
)
from tokfold.cli.options import AsJson, GrammarFile, IsLark, IsRegex, IsSchema, IsTag, Root
from tokfold.cli.render import number
from tokfold.cli.schema_options import (
    Dialect,
    NotesChoice,
    ShownNotes,
    Strict,
    given_options,
    note_documents,
    show_schema_notes,
)
from tokfold.laboratory.lint import Engine, Finding, Report, Severity
from tokfold.laboratory.lint import lint as lint_grammar

__all__ = ["lint"]


class EngineChoice(enum.Enum):
    """Whose rules of thumb are asked for."""

    OWN = "own"
    XGRAMMAR = "xgrammar"
    LLGUIDANCE = "llguidance"
    ALL = "all"


class FailOn(enum.Enum):
    """From which severity on the exit code is 1."""

    INFORMATION = "information"
    WARNING = "warning"
    ERROR = "error"
    NEVER = "never"


def lint(
    grammar: GrammarFile,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="PATH",
            help="Look at tokens too: a model folder, tokenizer.json, tekken.json, *.tiktoken, "
            "tokenizer.model; or the word tekken.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        list[EngineChoice],
        typer.Option("--engine", help="Engines whose rules of thumb are asked for."),
    ] = [EngineChoice.ALL],  # noqa: B006 - Typer copies it
    ignore: Annotated[
        list[str],
        typer.Option("--ignore", metavar="CODE", help="Leave out findings of this code."),
    ] = [],  # noqa: B006 - Typer copies it
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Severity from which on the exit code is 1.")
    ] = FailOn.WARNING,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the search for ambiguities.")
    ] = False,
    as_json: AsJson = False,
    root: Root = None,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
    dialect: Dialect = None,
    strict: Strict = False,
    notes: ShownNotes = NotesChoice.WARNINGS,
) -> None:
    """Look for what is wrong with a grammar, and say how to mend it.

    Rules that are undefined, unreachable, endless, cyclic, left-recursive or
    ambiguous; forms that say the same with more; what engines refuse, mask
    wrongly or are slow with. With a tokenizer: dead ends, forced tokens, white
    space without bound, tokens that go on across delimiters. Of a JSON Schema:
    what is not enforced, or was probably meant otherwise.

    Exit code: 0 nothing at or above --fail-on; 1 something; 2 an error.

    [bold]Examples[/bold]
      tokfold lint json.gbnf
      tokfold lint cpp.gbnf --engine own --ignore ambiguous --quick
      tokfold lint json.gbnf -t path/to/model --fail-on error --json
    """
    wanted = _engines(engine)
    options = given_options(dialect=dialect, strict=strict)
    with steps() as step:
        with step("Reading"):
            text, name = _read(grammar, chosen_kind(schema, regex, lark, tag), root, options)
            vocabulary = None if tokenizer is None else read_tokenizer(tokenizer)
        with step("Looking"), located(grammar):
            report = lint_grammar(
                text,
                vocabulary,
                root=root or "root",
                engines=wanted,
                ignore=ignore,
                quick=quick,
            )
    if as_json:
        document = {
            "grammar": {"file": grammar, "engines": sorted(e.value for e in wanted)},
            "vocabulary": None
            if vocabulary is None or tokenizer is None
            else describe_vocabulary(tokenizer, vocabulary),
            **report.document(),
            "schema_notes": [] if isinstance(text, str) else note_documents(text, notes),
        }
        print_json(document)
    else:
        if isinstance(text, Grammar):
            show_schema_notes(grammar, text, notes)
        _show(stdout(), name, report)
    is_warned = isinstance(text, Grammar) and any(n.level == "warning" for n in text.notes)
    if fail_on in (FailOn.INFORMATION, FailOn.WARNING) and is_warned:
        raise typer.Exit(1)
    if fail_on is not FailOn.NEVER and report.at_least(Severity[fail_on.name]):
        raise typer.Exit(1)


def _engines(choices: Sequence[EngineChoice]) -> list[Engine]:
    if EngineChoice.ALL in choices:
        return list(Engine)
    return [Engine(choice.value) for choice in choices]


def _read(
    source: str, kind: GrammarKind | None, root: str | None, options: dict[str, Any]
) -> tuple[Grammar | str, str]:
    """Grammar text, for errors in it to be findings; of other kinds the grammar."""
    name = "standard input" if source == STDIN else source
    other = kind not in (None, GrammarKind.EBNF)
    if other or (kind is None and source.lower().endswith((".json", ".lark"))):
        # Places are those of the text that it was converted to.
        return read_grammar(source, kind, root, options)[0], f"{name}, as grammar text"
    refuse_options(options, GrammarKind.EBNF)
    return decoded(read_text(source), name), name


_STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFORMATION: "bold cyan",
}


def _show(console: Console, name: str, report: Report) -> None:
    told: set[str] = set()
    for finding in report.findings:
        origin = report.origin(finding)
        _show_finding(console, name, finding, finding.code not in told, origin)
        told.add(finding.code)
    for note in report.notes:
        console.print(Text(note, style="dim"))
    counts = ", ".join(_counted(count, word) for word, count in report.counts().items())
    console.print(Text(counts if report.findings else f"{name}: nothing found", style="bold"))


def _counted(count: int, word: str) -> str:
    plural = "" if count == 1 or word == Severity.INFORMATION.word else "s"
    return f"{number(count)} {word}{plural}"


def _show_finding(
    console: Console, name: str, finding: Finding, first: bool, origin: RuleOrigin | None
) -> None:
    place = "" if finding.place is None else f":{finding.place.line}:{finding.place.column}"
    head = Text.assemble(
        (f"{name}{place}", "bold"),
        ": ",
        (finding.severity.word, _STYLES[finding.severity]),
        f": {finding.message} ",
        (f"[{finding.code}]", "dim"),
    )
    console.print(head, soft_wrap=True)
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    if origin is not None:
        pointers = ", ".join([*origin.pointers[:MAX_POINTERS], ""]) if origin.pointers else ""
        said = f"{pointers.removesuffix(', ')}: {origin.description}".removeprefix(": ")
        rows.add_row(Text("  schema", style="dim"), Text(said))
    if first:
        rows.add_row(Text("  why", style="dim"), Text(finding.why))
    rows.add_row(Text("  mend", style="dim"), Text(finding.mend))
    if finding.rewrite is not None:
        rows.add_row(Text("", style="dim"), Text(str(finding.rewrite)))
    console.print(rows)
