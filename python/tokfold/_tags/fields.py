"""Fields of JSON objects, checked; a fault says where it stands, what is wrong and what is right.

Every function takes the object, the name of the field, the path of the format and its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from tokfold._json import Number
from tokfold.errors import StructuralTagError

__all__ = [
    "LARGEST",
    "Object",
    "budget",
    "check_known",
    "checked_characters",
    "fail",
    "flag",
    "guessed_type",
    "integer",
    "items",
    "kind",
    "needed",
    "short",
    "text",
    "texts",
]

LARGEST = 2**31 - 1
"""XGrammar's bound on token ids, budgets and repetitions."""

Object = Mapping[str, Any]


def fail(path: str, format: str, what: str) -> NoReturn:
    """Raise the error for a fault of a format.

    Raises:
        StructuralTagError: always.
    """
    where = f"{path} ({format}): " if format else f"{path}: " if path else ""
    raise StructuralTagError(where + what, format, path)


def kind(value: object) -> str:
    """What a value is in JSON, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Number):
        shown = str(value)
        return f"the number {shown if len(shown) <= 40 else shown[:39] + '…'}"
    for type_, name in (
        (str, "a string"),
        (dict, "an object"),
        (list, "a list"),
        (tuple, "a list"),
    ):
        if isinstance(value, type_):
            return name
    return f"a {type(value).__name__}"


def short(value: object) -> str:
    """A value for messages: a string itself, cut where it is long."""
    if not isinstance(value, str):
        return kind(value)
    return ascii(value if len(value) <= 40 else value[:39] + "…")


def needed(value: Object, name: str, path: str, format: str) -> Any:  # noqa: ANN401 - JSON
    """A field that must be there."""
    if name not in value:
        fail(path, format, f"'{name}' is missing")
    return value[name]


def checked_characters(value: str, name: str, path: str, format: str) -> str:
    """A string that can be written as UTF-8."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            lone = f"U+{ord(value[error.start]):04X}"
            fail(path, format, f"'{name}' holds {lone}, half of a pair, which is no character")
    return value


def text(value: Object, name: str, path: str, format: str, *, empty: bool = True) -> str:
    """A string that must be there, perhaps not empty."""
    found = needed(value, name, path, format)
    if not isinstance(found, str):
        fail(path, format, f"'{name}' is a string, not {kind(found)}")
    if not found and not empty:
        fail(path, format, f"'{name}' is empty")
    return checked_characters(found, name, path, format)


def texts(
    value: Object, name: str, path: str, format: str, *, unique: bool = True
) -> tuple[str, ...]:
    """Strings that are not empty; each once, if ``unique``. A field that is not there is none."""
    found = items(value.get(name, ()), name, path, format)
    for index, item in enumerate(found):
        if not isinstance(item, str):
            fail(path, format, f"the list '{name}' holds strings, not {kind(item)}")
        if not item:
            fail(
                path,
                format,
                f"'{name}[{index}]' is empty, and the empty text stands in every text; leave it "
                "out",
            )
        checked_characters(item, f"{name}[{index}]", path, format)
    return tuple(dict.fromkeys(found)) if unique else tuple(found)


def items(value: object, name: str, path: str, format: str, *, empty: bool = True) -> Sequence[Any]:
    """A list, perhaps not empty."""
    if not isinstance(value, list | tuple):
        fail(path, format, f"'{name}' is a list, not {kind(value)}")
    if not value and not empty:
        fail(path, format, f"'{name}' is empty; it holds at least one")
    return value


def flag(value: Object, name: str, path: str, format: str, default: bool) -> bool:
    """True or false."""
    found = value.get(name, default)
    if not isinstance(found, bool):
        fail(path, format, f"'{name}' is true or false, not {kind(found)}")
    return found


def integer(value: object, name: str, path: str, format: str) -> int:
    """A whole number, which JSON may write with a point."""
    found = float(value.text) if isinstance(value, Number) else value
    if isinstance(found, float) and found.is_integer():
        return int(found)
    if isinstance(found, bool) or not isinstance(found, int):
        fail(path, format, f"{name} is a whole number, not {kind(value)}")
    return found


def budget(value: Object, name: str, path: str, format: str) -> int | None:
    """A number of tokens or characters; null, and a field that is not there, is no bound."""
    found = value.get(name)
    if found is None:
        return None
    number = integer(found, f"'{name}'", path, format)
    if not 0 <= number <= LARGEST:
        fail(path, format, f"'{name}' is a number from 0 to {LARGEST}, or null, not {number}")
    return number


_OF_SCHEMAS = {"json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"}
_HOW_MANY = {"at_least_one", "stop_after_first"}
_KNOWN: dict[str, set[str]] = {
    "": {"format", "markers"},
    "any_text": {"excludes", "max_tokens", "max_chars"},
    "any_tokens": {"exclude_tokens", "max_tokens"},
    "const_string": {"value"},
    "dispatch": {"rules", "loop", "excludes"},
    "exclude_token": {"exclude_tokens"},
    "grammar": {"grammar", "syntax"},
    "json_schema": _OF_SCHEMAS,
    "optional": {"content"},
    "or": {"elements"},
    "plus": {"content"},
    "qwen_xml_parameter": _OF_SCHEMAS - {"style"},
    "regex": {"pattern"},
    "repeat": {"min", "max", "content"},
    "sequence": {"elements"},
    "star": {"content"},
    "tag": {"begin", "content", "end"},
    "tags_with_separator": {"tags", "separator", *_HOW_MANY},
    "token": {"token"},
    "token_dispatch": {"rules", "loop", "exclude_tokens"},
    "token_triggered_tags": {"trigger_tokens", "tags", "exclude_tokens", *_HOW_MANY},
    "triggered_tags": {"triggers", "tags", "excludes", *_HOW_MANY},
}
"""The fields of each format beside ``type``; of the tag itself by the empty name."""


def check_known(value: Object, path: str, format: str) -> None:
    """Refuse fields that a format does not have, unless they say nothing.

    A misspelled field would leave its condition out, and other releases of XGrammar may have more
    fields: their classes write them with null, false or nothing in them where they are not used.
    """
    known = _KNOWN[format]
    if value.keys() <= known:
        return
    for name, given in value.items():
        if name in known or name == "type" or given is None or given is False:
            continue
        if isinstance(given, str | list | tuple | dict) and not given:
            continue
        near = get_close_matches(str(name), known, 1, 0.7)
        hint = f"; did you mean {near[0]!r}?" if near else ";"
        fields = ", ".join(sorted(known))
        fail(path, format, f"there is no field {short(name)}{hint} there are: type, {fields}")


_TELLING = (
    (frozenset({"begin", "content", "end"}), "tag"),
    (frozenset({"value"}), "const_string"),
    (frozenset({"json_schema"}), "json_schema"),
    (frozenset({"elements"}), "sequence"),
    (frozenset({"triggers", "tags"}), "triggered_tags"),
    (frozenset({"tags", "separator"}), "tags_with_separator"),
    (frozenset({"content"}), "optional"),
    (frozenset({"excludes"}), "any_text"),
)
"""Which fields tell a format that does not say its type, as XGrammar tries them."""

_OPTIONAL = {
    "json_schema": {"style", "any_order", "max_whitespace_cnt", "excludes"},
    "any_text": {"max_tokens", "max_chars"},
    "triggered_tags": {"at_least_one", "stop_after_first"},
    "tags_with_separator": {"at_least_one", "stop_after_first"},
}


def guessed_type(value: Object, path: str) -> str:
    """The type of a format that does not say it.

    XGrammar takes the first type that it can read, whatever else the object holds: one with
    ``min``, ``max`` and ``content`` becomes an ``optional``. Here the fields must be those of one
    type, and that the one which XGrammar takes.
    """
    fields = set(value)
    for telling, name in _TELLING:
        if telling <= fields <= telling | _OPTIONAL.get(name, set()):
            return name
    if fields in ({"rules"}, {"rules", "loop"}):
        rules = value["rules"]
        pairs = isinstance(rules, list | tuple) and all(
            isinstance(rule, list | tuple) and len(rule) == 2 for rule in rules
        )
        if pairs and rules:
            texts_only = all(isinstance(rule[0], str) for rule in rules)
            return "dispatch" if texts_only else "token_dispatch"
    fail(path, "", "the format does not say its 'type', and its fields do not tell it; name it")
