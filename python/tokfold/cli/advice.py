"""Advice of the library in the words of the command line.

Errors, notes and reasons name arguments (``key_order="any"``): they are written for those who call
the library. A command that has such an option says how to give that (``--key-order any``).
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable
from typing import Any

from tokfold._sources.schema import DIALECTS

_ARGUMENT = re.compile(r'(?<![^ ])([a-z][a-z_]*)=("[^"]*"|True\b|\{[^{}]*\})(?![\w.:=/])')
_MUST = re.compile(r"^([a-z][a-z_]*)(?= must )")
_ENTRY = re.compile(r'\{("[^"]*"): ([a-z_]+)\}')
_LIMITS = re.compile(r"\bLimits\([a-z_]+=[^()]*\)")

_options: dict[str, Any] = {}


def name_options(parameters: Iterable[Any]) -> None:
    """Take note of the options of the command that runs.

    Args:
        parameters: Click's; each has the name of an argument, and says how it is written.
    """
    _options.clear()
    _options.update({parameter.name: parameter for parameter in parameters})


def in_options(text: str) -> str:
    """The same text with options of the command in place of arguments, where it has them.

    Arguments stand behind a blank, as in all advice: what looks like one within a name of a file or
    a quoted word is the user's, and stays.

    Example:
        >>> in_options('pass key_order="any"')  # of a command without such an option
        'pass key_order="any"'
    """
    text = _MUST.sub(lambda found: _option_name(found[1]) or found[0], text)
    text = _LIMITS.sub(lambda found: f"{found[0]} in Python", text)
    return _ARGUMENT.sub(lambda found: _option(found[1], found[2]) or found[0], text)


def _option_name(argument: str) -> str:
    """How an option is written, or nothing."""
    parameter = _options.get(argument)
    names = [name for name in getattr(parameter, "opts", []) if name.startswith("--")]
    return names[0] if names else ""


def _option(argument: str, source: str) -> str:
    """An option and its value, or nothing where the command cannot be given that."""
    name, parameter = _option_name(argument), _options.get(argument)
    if not name or parameter is None:
        return ""
    if entry := _ENTRY.fullmatch(source):  # {"ticket": pattern}: NAME=PATTERN
        return f"{name} {shlex.quote(ast.literal_eval(entry[1]))}={entry[2].upper()}"
    try:
        value = ast.literal_eval(source)
    except (ValueError, SyntaxError):
        return ""
    if getattr(parameter, "is_flag", False):
        return name if value is True else ""
    if argument == "dialect" and value not in DIALECTS:
        return ""  # that of a pattern
    values = sorted(value) if isinstance(value, set) else [value]
    return " ".join(f"{name} {shlex.quote(str(item))}" for item in values)
