"""Notes of schemas as plain values, for tests."""

from __future__ import annotations

from typing import Any

from tokfold import Grammar, recognize

Schema = Any

OVERLAP = "each value that this branch takes another branch takes too"
FREE = "a value of any other type is valid too"


def notes(schema: Schema, **options: Any) -> list[tuple[str, str, str]]:
    """The notes but those on schemas without a `type`, as most in tests are: see `free_types`."""
    found = Grammar.from_json_schema(schema, **options).notes
    return [(note.level, note.pointer, note.message) for note in found if FREE not in note.message]


def free_types(schema: Schema) -> list[str]:
    """The pointers of the warnings on schemas that leave values of other types free."""
    found = [note for note in Grammar.from_json_schema(schema).notes if FREE in note.message]
    assert all(note.level == "warning" for note in found)
    return [note.pointer for note in found]


def warnings(schema: Schema, **options: Any) -> dict[str, str]:
    """The messages of warnings, by pointer."""
    found = notes(schema, **options)
    return {pointer: message for level, pointer, message in found if level == "warning"}


def accepts(schema: Schema, text: str, **options: Any) -> bool:
    return recognize(Grammar.from_json_schema(schema, **options), text).accepted
