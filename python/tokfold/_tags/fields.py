"""Fields of JSON objects, checked; a fault says where it stands, what is wrong, what is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from tokfold._json import Number
from tokfold._quoting import quoted
from tokfold.errors import StructuralTagError

LARGEST = 2**31 - 1
"""XGrammar's bound on token ids, budgets and repetitions."""

Object = Mapping[str, Any]


def fail(path: str, what: str, format: str = "") -> NoReturn:
    """Raise the error for a fault, of a format if one is named."""
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
    if isinstance(value, str):
        return "a string"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def short(value: object) -> str:
    """A value for messages: a string itself, cut where it is long."""
    if not isinstance(value, str):
        return kind(value)
    return ascii(value if len(value) <= 40 else value[:39] + "…")


class Fields:
    """The fields of an object, each of which is checked as it is read.

    Args:
        value: the object.
        path: where it stands.
        format: its type, if it is a format.
    """

    def __init__(self, value: Object, path: str, format: str = "") -> None:
        self.value, self.path, self.format = value, path, format

    def fail(self, what: str, step: str = "") -> NoReturn:
        """Raise the error for a fault, of what stands ``step`` further on."""
        fail(self.path + step, what, self.format)

    def needed(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """A field that must be there."""
        if name not in self.value:
            self.fail(f"'{name}' is missing")
        return self.value[name]

    def characters(self, value: str, name: str, step: str = "") -> str:
        """A string that can be written as UTF-8."""
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                lone = f"U+{ord(value[error.start]):04X}"
                self.fail(f"'{name}' holds {lone}, half of a pair, which is no character", step)
        return value

    def text(self, name: str, *, empty: bool = True) -> str:
        """A string that must be there, perhaps not empty."""
        found = self.needed(name)
        if not isinstance(found, str):
            self.fail(f"'{name}' is a string, not {kind(found)}")
        if not found and not empty:
            self.fail(f"'{name}' is empty")
        return self.characters(found, name)

    def texts(self, name: str, *, unique: bool = True) -> tuple[str, ...]:
        """Strings that are not empty; each once, if ``unique``."""
        found = self.items(name)
        for index, item in enumerate(found):
            if not isinstance(item, str):
                self.fail(f"the list '{name}' holds strings, not {kind(item)}")
            if not item:
                self.fail(
                    f"'{name}[{index}]' is empty, and the empty text stands in every text; leave "
                    "it out"
                )
            self.characters(item, f"{name}[{index}]")
        return tuple(dict.fromkeys(found)) if unique else tuple(found)

    def items(self, name: str) -> Sequence[Any]:
        """A list; a field that is not there is an empty one."""
        found = self.value.get(name, ())
        if not isinstance(found, list | tuple):
            self.fail(f"'{name}' is a list, not {kind(found)}")
        return found

    def some(self, name: str) -> Sequence[Any]:
        """A list that must be there, and not empty."""
        self.needed(name)
        found = self.items(name)
        if not found:
            self.fail(f"'{name}' is empty; it holds at least one")
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        found = self.value.get(name, default)
        if not isinstance(found, bool):
            self.fail(f"'{name}' is true or false, not {kind(found)}")
        return found

    def integer(self, value: object, name: str, step: str = "") -> int:
        """A whole number, which JSON may write with a point."""
        found = float(value.text) if isinstance(value, Number) else value
        if isinstance(found, float) and found.is_integer():
            return int(found)
        if isinstance(found, bool) or not isinstance(found, int):
            self.fail(f"{name} is a whole number, not {kind(value)}", step)
        return found

    def budget(self, name: str) -> int | None:
        """A number of tokens or characters; null, and a field that is not there, is no bound."""
        found = self.value.get(name)
        if found is None:
            return None
        number = self.integer(found, f"'{name}'")
        if not 0 <= number <= LARGEST:
            self.fail(f"'{name}' is a number from 0 to {LARGEST}, or null, not {number}")
        return number

    def check_known(self) -> None:
        """Refuse fields that a format does not have, unless they say nothing.

        A misspelled field would leave its condition out, and other releases of XGrammar may have
        more fields: their classes write them with null, false or nothing in them where they are not
        used.
        """
        known = _KNOWN[self.format]
        if self.value.keys() <= known:
            return
        for name, given in self.value.items():
            if name in known or name == "type" or given is None or given is False:
                continue
            if isinstance(given, str | list | tuple | dict) and not given:
                continue
            near = get_close_matches(str(name), known, 1, 0.7)
            hint = f"; did you mean {quoted(near[0])}?" if near else ";"
            fields = ", ".join(sorted(known))
            self.fail(f"there is no field {short(name)}{hint} there are: type, {fields}")


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
    fail(path, "the format does not say its 'type', and its fields do not tell it; name it")
