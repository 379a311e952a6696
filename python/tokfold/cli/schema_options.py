"""The options of :meth:`tokfold.Grammar.from_json_schema` on the command line."""

from __future__ import annotations

import enum
from functools import partial
from typing import Annotated, Any

import typer

from tokfold import Grammar
from tokfold._schema_records import SchemaNote
from tokfold._sources.schema import DIALECTS, MOST_DEPTH, MOST_DIGITS, MOST_INDENT
from tokfold.cli.console import report_note
from tokfold.cli.inputs import STDIN, decoded, read_text
from tokfold.errors import TokfoldError

_reading = partial(typer.Option, rich_help_panel="How a JSON Schema is read")
_writing = partial(typer.Option, rich_help_panel="How texts of a JSON Schema are written")

KeyOrderChoice = enum.StrEnum("KeyOrderChoice", ["SCHEMA", "ANY"])
WhitespaceChoice = enum.StrEnum("WhitespaceChoice", ["ANY", "COMPACT", "SPACED"])
IntegersChoice = enum.Enum("IntegersChoice", {"PLAIN": "1", "WITH_FRACTION": "1.0"})
EscapesChoice = enum.StrEnum("EscapesChoice", ["STANDARD", "ANY", "PLAIN"])
LossyChoice = enum.Enum("LossyChoice", {"UNIQUE_ITEMS": "uniqueItems"})
NotesChoice = enum.StrEnum("NotesChoice", ["WARNINGS", "ALL", "NONE"])

Dialect = Annotated[
    str | None,
    _reading(
        "--dialect",
        metavar="NAME",
        help=f"The dialect where the schema names none: {', '.join(DIALECTS)}.",
    ),
]
Strict = Annotated[
    bool,
    _reading("--strict", help="Refuse a schema that there are warnings of."),
]
ShownNotes = Annotated[
    NotesChoice,
    _reading(
        "--notes",
        metavar="WHICH",
        help="Which notes on the schema to print: warnings (the default), all (annotations too), "
        "or none.",
    ),
]
KeyOrder = Annotated[
    KeyOrderChoice | None,
    _writing(
        "--key-order",
        metavar="ORDER",
        help="Names stand in the order of the schema (schema, the default), or in any (any).",
    ),
]
Whitespace = Annotated[
    WhitespaceChoice | None,
    _writing(
        "--whitespace",
        metavar="WHERE",
        help="White space: any (the default), compact for none, spaced for one space behind commas "
        "and colons.",
    ),
]
MaxWhitespace = Annotated[
    str | None,
    _writing(
        "--max-whitespace",
        metavar="N",
        help="The most characters of white space at one place, by default 32; none for no bound.",
    ),
]
Indent = Annotated[
    int | None,
    _writing(
        "--indent",
        metavar="N",
        min=0,
        max=MOST_INDENT,
        help="A line for each member and item, N spaces deeper each level.",
    ),
]
Separators = Annotated[
    tuple[str, str] | None,
    _writing(
        "--separators",
        metavar="TEXT TEXT",
        help="What stands behind an item and behind a name: ', ' ': '.",
    ),
]
MaxDigits = Annotated[
    int | None,
    _writing(
        "--max-digits",
        metavar="N",
        min=1,
        max=MOST_DIGITS,
        help="The most digits of a number in a row.",
    ),
]
MaxDepth = Annotated[
    int | None,
    _writing(
        "--max-depth",
        metavar="N",
        min=0,
        max=MOST_DEPTH,
        help="The most arrays and objects in which a value stands.",
    ),
]
Integers = Annotated[
    IntegersChoice | None,
    _writing(
        "--integers",
        metavar="FORM",
        help="Integers without a fraction (1, the default), or also with one of zeros (1.0).",
    ),
]
Escapes = Annotated[
    EscapesChoice | None,
    _writing(
        "--escapes",
        metavar="WHERE",
        help=r"Strings that may spell characters as \/ and \uXXXX: those without a pattern, "
        "format or enum (standard, the default), any, or none (plain).",
    ),
]
Formats = Annotated[
    list[str] | None,
    _writing(
        "--formats",
        metavar="HOW",
        help="The keyword format is a condition (assert, the default) or an annotation; "
        "NAME=PATTERN: a format of that name, by a pattern of ECMA-262; may be repeated.",
    ),
]
AdditionalProperties = Annotated[
    bool,
    _writing(
        "--additional-properties",
        help="Objects that do not say otherwise may have members of other names.",
    ),
]
Resources = Annotated[
    list[str] | None,
    _writing(
        "--resource",
        metavar="URI=FILE",
        help="A document that references lead to; may be given several times.",
    ),
]
Lossy = Annotated[
    list[LossyChoice] | None,
    _writing("--lossy", metavar="KEYWORD", help="Leave uniqueItems out where it cannot be said."),
]


def given_options(
    *,
    max_whitespace: str | None = None,
    formats: list[str] | None = None,
    resources: list[str] | None = None,
    lossy: list[LossyChoice] | None = None,
    additional_properties: bool = False,
    dialect: str | None = None,
    strict: bool = False,
    **options: object,
) -> dict[str, Any]:
    """The options that were given, as keyword arguments of ``Grammar.from_json_schema``."""
    given: dict[str, Any] = {
        name: value.value if isinstance(value, enum.Enum) else value
        for name, value in options.items()
        if value is not None
    }
    if max_whitespace is not None:
        if max_whitespace != "none" and not max_whitespace.isdecimal():
            raise TokfoldError(
                f"--max-whitespace {max_whitespace}: give a number from 0, or none for no bound"
            )
        given["max_whitespace"] = None if max_whitespace == "none" else int(max_whitespace)
    if formats:
        given["formats"] = _formats(formats)
    if resources:
        given["resources"] = dict(_resource(text) for text in resources)
    if dialect is not None:
        if dialect not in DIALECTS:
            raise TokfoldError(f"--dialect {dialect}: give one of {', '.join(DIALECTS)}")
        given["dialect"] = dialect
    if strict:
        given["strict"] = True
    if additional_properties:
        given["additional_properties"] = True
    if lossy:
        given["lossy"] = {choice.value for choice in lossy}
    return given


def _chosen(grammar: Grammar, choice: NotesChoice) -> list[SchemaNote]:
    if choice is NotesChoice.NONE:
        return []
    return [n for n in grammar.notes if n.level == "warning" or choice is NotesChoice.ALL]


def note_documents(grammar: Grammar, choice: NotesChoice) -> list[dict[str, str]]:
    """The notes on a schema, as JSON values."""
    return [note._asdict() for note in _chosen(grammar, choice)]


def show_schema_notes(source: str, grammar: Grammar, choice: NotesChoice) -> None:
    """Write the notes on a schema to standard error, a line for each."""
    name = "standard input" if source == STDIN else source
    for note in _chosen(grammar, choice):
        report_note(note.level, f"{name}: {note}")


def _formats(given: list[str]) -> str | dict[str, str]:
    modes = {text for text in given if text in ("assert", "annotation")}
    own: dict[str, str] = {}
    for text in given:
        name, mark, pattern = text.partition("=")
        if mark and name:
            own[name] = pattern
        elif text not in modes:
            raise TokfoldError(f"--formats {text}: give assert, annotation or NAME=PATTERN")
    if len(modes) > 1 or ("annotation" in modes and own):
        raise TokfoldError("--formats annotation: formats are no conditions, so give it alone")
    return own or modes.pop()


def _resource(text: str) -> tuple[str, str]:
    uri, mark, path = text.rpartition("=")
    if not mark or not uri or not path:
        raise TokfoldError(f"--resource {text}: give the URI and the file, as URI=FILE")
    return uri, decoded(read_text(path), path)
