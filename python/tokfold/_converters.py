r"""The one door to XGrammar's converters: what could end the process or take minutes stays outside.

XGrammar 0.2.8 converts JSON schemas, patterns, Lark text and structural tags by recursion, without
bounds of its own. What it would do is counted here first, in time linear in the text and without
recursion, and what is too much is refused by name. What is deep but not too deep is converted in
a thread whose stack is made for it, so that a small stack of the caller is no danger.

The counts are of what the converter does: how often it copies a subschema (to compute the name
under which it remembers it, at every level anew), how many rules it writes (``$ref`` once for each
spelling, lists of types once for each type), how deep it recurses (through every ``$ref`` it meets
first), and how many states the automaton of a pattern gets. They are upper bounds, not exact.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn, TypeVar

from tokfold import _json
from tokfold._extras import require, xgrammar_reason
from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.interrupt import check_governing

__all__ = [
    "check_excludes",
    "check_grammar",
    "check_lark",
    "check_macro",
    "check_nesting",
    "check_pattern",
    "check_schema",
    "check_tag",
    "check_text",
    "convert",
    "is_deep",
    "json_text",
    "parsed",
    "with_stack",
]

_T = TypeVar("_T")

MAX_JSON_NESTING = 200
"""Levels of JSON text. Its readers, XGrammar's and Python's, recurse: on a stack of 512 KiB
XGrammar's dies between 1,000 and 3,000 levels. Of 2,000 schemas of MaskBench none has over 22."""

MAX_JSON_NODES = 1_000_000
"""Values and names in a value that is to become JSON: shared parts count as often as they are
written, which doubles with every level."""

MAX_SCHEMA_LEVELS = 16_000
"""Schemas within schemas, through `$ref` too. A level takes 5 KB of stack at most, and the thread
that converts has 16 KiB for each: 250 MiB, of which only what is used is ever real memory."""

MAX_SCHEMA_WORK = 100_000
"""Rules, and copies of subschemas, that the converter makes: some 15 µs each, so 1 to 2 s."""

MAX_PATTERN_NESTING = 200
"""Levels of groups in a pattern. On a stack of 512 KiB XGrammar dies between 300 and 1,000."""

MAX_PATTERN_WORK = 50_000
"""States of the automaton of a pattern, and what it costs to join them: some 20 µs each."""

MAX_PATTERN_LENGTH = 300_000
"""Characters of a pattern by itself; they take 0.2 s, and 0.6 s to be read again."""

MAX_MACRO_WORK = 100_000
"""The same of all macros of a grammar, and 25 for each: XGrammar reads them one by one."""

MAX_LARK_LENGTH = 1_000_000
"""Characters of Lark text."""

MAX_LARK_LEVELS = 16_000
"""Terminals within terminals, on a stack made for them. Without, 512 KiB end between 1,000 and
3,000."""

MAX_LARK_WORK = 200_000
"""Characters of a terminal after the terminals that it names are written out."""

MAX_EXCLUDED = 10_000
"""Characters of texts that strings of a schema must not hold. 20,000 take 1 s, 60,000 eleven."""

MAX_GRAMMAR_NESTING = 200
"""Levels of groups in grammar text that XGrammar reads: as for patterns."""

_STACK_FOR_A_LEVEL = 16 << 10
_LEVELS_ON_ANY_STACK = 24
"""Levels that are converted in the caller's thread, whose stack may be small."""

_SMALL = 8_192
"""Bytes of a schema that need no closer look if nothing in it multiplies."""


# ----------------------------------------------------------------- refusals


def _limit(message: str, limit: str, value: int) -> NoReturn:
    raise LimitExceededError(f"{message}; {value:,} is the most", limit, value)


def _unsupported(message: str, what: str, line: int = 1, column: int = 1) -> NoReturn:
    raise UnsupportedGrammarError(message, what, line, column)


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def check_text(text: object, what: str) -> str:
    """A text that converters can be given.

    Raises:
        TypeError: it is no ``str``.
        UnsupportedGrammarError: it holds NUL, on which some versions of XGrammar end the process,
            or a lone surrogate; at its place.
    """
    if not isinstance(text, str):
        raise TypeError(f"a {what} must be a str, not {type(text).__name__}")
    offset = text.find("\0")
    if offset >= 0:
        line, column = _place(text, offset)
        _unsupported(
            f"line {line}, column {column}: this {what} holds NUL, which no text has; leave it out",
            what,
            line,
            column,
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            line, column = _place(text, error.start)
            raise UnsupportedGrammarError(
                f"line {line}, column {column}: this {what} holds a lone surrogate, which is no "
                "character; decode the text as UTF-8",
                what,
                line,
                column,
            ) from error
    return text


# --------------------------------------------------------------------- JSON


def check_nesting(text: str, what: str, most: int = MAX_JSON_NESTING) -> int:
    """Levels of JSON text, whether it is JSON or not: converters do not read it as Python does.

    Raises:
        LimitExceededError: there are more than ``most``.
    """
    deepest = _json.nesting(text)
    if deepest > most:
        _limit(
            f"this {what} is nested {deepest:,} levels deep; make it flatter, with `$ref` for what "
            "repeats",
            "MAX_JSON_NESTING",
            most,
        )
    return deepest


def json_text(value: object, what: str, levels: int = MAX_JSON_NESTING) -> str:
    """A Python value as JSON text, without recursion on what is too deep for it.

    Args:
        value: dicts, lists and so on.
        what: for errors.
        levels: how deep they may stand in each other.

    Raises:
        TypeError: a part of it is no JSON value; says where.
        UnsupportedGrammarError: a number cannot be written.
        LimitExceededError: it is nested too deeply, within itself for example, or too large.
    """
    path: list[tuple[Iterator[tuple[object, object]], object]] = []
    entered: list[object] = []
    nodes = 0
    found: object = value
    while True:
        nodes += 1
        if nodes > MAX_JSON_NODES:
            _limit(f"this {what} has too many values", "MAX_JSON_NODES", MAX_JSON_NODES)
        if isinstance(found, dict | list | tuple):
            if len(path) >= levels:
                _limit(
                    f"{_pointer(entered[:8])}...: this {what} is nested too deeply, or holds "
                    "itself; make it flatter, with `$ref` for what repeats",
                    "MAX_JSON_NESTING",
                    levels,
                )
            items = found.items() if isinstance(found, dict) else enumerate(found)
            path.append((iter(items), found))
        elif not (found is None or isinstance(found, str | int | float)):
            raise TypeError(
                f"{_pointer(entered)}: this {what} holds a value of type {type(found).__name__}, "
                "which is no JSON; pass dicts, lists, strings, numbers, booleans and None"
            )
        while path:
            step = next(path[-1][0], None)
            if step is None:
                path.pop()
                del entered[len(path) - 1 if path else 0 :]
                continue
            key, found = step
            if isinstance(path[-1][1], dict) and not isinstance(key, str | int | float | None):
                raise TypeError(
                    f"{_pointer(entered)}: this {what} has a name of type {type(key).__name__}; "
                    "names in JSON are strings"
                )
            del entered[len(path) - 1 :]
            entered.append(key)
            break
        else:
            break
    try:
        return _json.dumps(value)
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnsupportedGrammarError(
            f"this {what} cannot be written as JSON: {error}", what, 1, 1
        ) from error


def parsed(text: str, what: str) -> Any:  # noqa: ANN401 - JSON
    """JSON text as a value, if its nesting allows it.

    Raises:
        UnsupportedGrammarError: it is no JSON, at its place; or as :func:`check_text`.
        LimitExceededError: it is nested too deeply.
    """
    check_nesting(check_text(text, what), what)
    value, _ = _loads(text, what)
    return value


def _loads(text: str, what: str) -> tuple[Any, bool]:
    """The value, and whether a name stands twice in one object: then the last one counts."""
    repeated = False

    def as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        made = dict(pairs)
        repeated = repeated or len(made) < len(pairs)
        return made

    try:
        return _json.loads(text, object_pairs_hook=as_dict), repeated
    except json.JSONDecodeError as error:
        raise UnsupportedGrammarError(
            f"line {error.lineno}, column {error.colno}: this {what} is no JSON: {error.msg}",
            what,
            error.lineno,
            error.colno,
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:  # a number of thousands of digits
        raise UnsupportedGrammarError(f"this {what} cannot be read: {error}", what, 1, 1) from error


def _pointer(keys: list[object]) -> str:
    """A JSON pointer; `#` for the whole, and without its middle where it is long."""
    steps = ["#", *(str(key)[:60].replace("~", "~0").replace("/", "~1") for key in keys)]
    return "/".join(steps if len(steps) <= 12 else [*steps[:6], "...", *steps[-5:]])


# ------------------------------------------------------------------ schemas

_MULTIPLIES = re.compile(
    r'"(?:pattern\w*|oneOf|minProperties|maxProperties|type"\s*:\s*\[|[^"\\]{100})'
    r"|\\u[dD][89a-fA-F]"
)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_OBJECT_KEYS = frozenset(
    {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties"}
    | {"propertyNames"}
)
_ARRAY_KEYS = frozenset({"items", "prefixItems", "unevaluatedItems"})
_ANY_KEYS = frozenset({"anyOf", "oneOf", "allOf"})
_SCHEMA_KEYS = _OBJECT_KEYS | _ARRAY_KEYS | _ANY_KEYS
_GROUPS = frozenset({"properties", "patternProperties", "anyOf", "oneOf", "allOf", "prefixItems"})
_CEILING = 1 << 60
"""Past this counts only say `too much`: they double with every level."""

LARGEST_COUNT = (1 << 31) - 1


class Counted(NamedTuple):
    """What the converter would do with a schema, at most."""

    text: str
    """The schema, as it was counted."""
    levels: int
    work: int


def check_schema(text: object, what: str = "JSON schema", *, is_open: bool = False) -> Counted:
    """Count what the converter would do with a schema.

    Args:
        text: JSON text.
        what: for errors.
        is_open: objects that say nothing of other names may have them (``strict_mode=False``).

    Raises:
        TypeError: it is no text.
        UnsupportedGrammarError: it is no JSON, or holds what has no meaning; at its place.
        LimitExceededError: it is too much.
    """
    source = check_text(text, what)
    depth = check_nesting(source, what)
    references = source.count('"$ref"') + source.count("\\u0024ref")
    levels = depth * (references + 1)
    is_small = len(source) <= _SMALL and levels <= _LEVELS_ON_ANY_STACK
    if is_small and "\\u00" not in source and not _MULTIPLIES.search(source):
        return Counted(source, levels, len(source))
    value, has_repeated = _loads(source, what)
    if has_repeated:  # what is converted is what is counted
        source = _json.dumps(value)
    counts = _SchemaCounts(value, what, is_open, bool(_SURROGATE_ESCAPE.search(source)))
    return Counted(source, *counts.totals(depth))


class _SchemaCounts:
    """The nodes of a schema, parents before children, and what each of them comes to."""

    def __init__(self, root: object, what: str, is_open: bool, may_be_broken: bool) -> None:
        self._what = what
        self._is_open = is_open
        self.values: list[Any] = [root]
        self.parents = [-1]
        self.keys: list[Any] = [""]
        self.first: list[int] = []
        for index, value in enumerate(self.values):
            self.first.append(len(self.values))
            if type(value) is dict:
                self.values += value.values()
                self.keys += value
                self.parents += [index] * len(value)
            elif type(value) is list:
                self.values += value
                self.keys += range(len(value))
                self.parents += [index] * len(value)
            if may_be_broken:
                self._check_characters(index)
        self.first.append(len(self.values))
        self._count()

    def _check_characters(self, index: int) -> None:
        for text in (self.values[index], self.keys[index]):
            if isinstance(text, str) and not text.isascii():
                try:
                    text.encode()
                except UnicodeEncodeError as error:
                    raise UnsupportedGrammarError(
                        f"{self.pointer(self.parents[index])}: a string in this {self._what} has "
                        "a lone surrogate, which is no character; leave it out",
                        self._what,
                        1,
                        1,
                    ) from error

    def pointer(self, index: int) -> str:
        keys = []
        while index > 0:
            keys.append(self.keys[index])
            index = self.parents[index]
        return _pointer(keys[::-1])

    def _count(self) -> None:
        total = len(self.values)
        size, key_work = [0] * total, [0] * total
        # As a schema, and as what holds schemas.
        self.work, self.held = [0] * total, [0] * total
        self.rules, rules_held = [0] * total, [0] * total
        self.levels, levels_held = [0] * total, [0] * total
        for index in range(total - 1, -1, -1):
            value, key, parent = self.values[index], self.keys[index], self.parents[index]
            size[index] += 1
            if type(value) is str:
                size[index] += len(value) >> 8
            if type(key) is str:
                size[index] += len(key) >> 8
            key_work[index] += size[index]
            objects = arrays = 1
            if type(value) is dict:
                own, deep, calls = self._own(index, value, size)
                self.rules[index] += own
                self.work[index] += own + (key_work[index] * calls >> 7) + self.rules[index] // 8
                self.levels[index] += deep + 1
            if parent < 0:
                continue
            size[parent] += size[index]
            key_work[parent] += key_work[index]
            self.held[parent] += self.work[index]
            rules_held[parent] += self.rules[index]
            levels_held[parent] = max(levels_held[parent], self.levels[index])
            if key in _SCHEMA_KEYS and type(self.values[parent]) is dict:
                objects, arrays = _types(self.values[parent])
                times = objects if key in _OBJECT_KEYS else arrays if key in _ARRAY_KEYS else 1
                is_group = key in _GROUPS or type(value) is list
                work, rules, levels = (
                    (self.held[index], rules_held[index], levels_held[index])
                    if is_group
                    else (self.work[index], self.rules[index], self.levels[index])
                )
                self.work[parent] = min(_CEILING, self.work[parent] + times * work)
                self.rules[parent] = min(_CEILING, self.rules[parent] + times * rules)
                self.levels[parent] = max(self.levels[parent], levels)
        self._key_work = key_work

    def _own(self, index: int, value: dict[str, Any], size: list[int]) -> tuple[int, int, int]:
        """Rules of a schema without those in it, levels that are none, and readings of it."""
        own, deep, calls = 1, 0, 1
        if type(value.get("type")) is list:
            calls = 1 + len(value["type"])
            own += len(value["type"])
        for name in ("enum", "const"):
            if name in value:
                child = self._child(index, name)
                own += size[child] >> 3
        if "format" in value:
            own += 8
        if type(value.get("pattern")) is str:
            found = self._pattern(value["pattern"], index)
            own, deep = own + found.work, found.levels
        if type(value.get("patternProperties")) is dict:
            for pattern in value["patternProperties"]:
                found = self._pattern(pattern, index)
                own, deep = own + found.work + 2, max(deep, found.levels)
        names = value.get("properties")
        if type(names) is dict and names:
            counted = [value.get(name) for name in ("minProperties", "maxProperties")]
            if counted != [None, None]:
                most = counted[1] if type(counted[1]) is int and counted[1] >= 0 else len(names)
                own += len(names) * min(len(names), most + 1)
            is_open = value.get("additionalProperties", self._is_open)
            if is_open is not False or value.get("unevaluatedProperties", False) is not False:
                # other names are those that a trie of these leaves out, a level for each byte
                lengths = [len(name.encode()) if type(name) is str else 0 for name in names]
                own += sum(lengths) >> 2
                deep = max(deep, *lengths)
        for name in ("minProperties", "maxProperties"):
            if type(value.get(name)) is int and value[name] > LARGEST_COUNT:
                _unsupported(
                    f"{self.pointer(index)}: {name} is more than {LARGEST_COUNT:,}, which "
                    "XGrammar's converter reads as another number; lower it, or leave it out",
                    self._what,
                )
        if type(value.get("oneOf")) is list:
            calls += 1
            own += size[self._child(index, "oneOf")] ** 2 >> 13  # each is compared with each
        return own, deep, calls

    def _child(self, index: int, name: str) -> int:
        children = range(self.first[index], self.first[index + 1])
        return next(child for child in children if self.keys[child] == name)

    def _pattern(self, pattern: object, index: int) -> PatternCounts:
        if type(pattern) is not str:
            return PatternCounts(0, 0, 0, 0)
        return check_pattern(pattern, f"{self.pointer(index)}: this pattern", as_automaton=True)

    def totals(self, depth: int) -> tuple[int, int]:
        """Levels and work with all that is referred to."""
        levels, work = depth + self.levels[0], self.work[0]
        seen: set[str] = set()
        walked: set[tuple[int, bool]] = set()
        todo = [(0, True)]
        self._check(levels, work, 0)
        while todo:
            place = todo.pop()
            if place in walked:
                continue
            walked.add(place)
            index, is_schema = place
            value = self.values[index]
            if type(value) is not dict and type(value) is not list:
                continue
            for child in range(self.first[index], self.first[index + 1]):
                key = self.keys[child]
                if not is_schema:
                    todo.append((child, True))
                elif key in _SCHEMA_KEYS:
                    is_group = key in _GROUPS or type(self.values[child]) is list
                    todo.append((child, not is_group))
            uri = value.get("$ref") if is_schema and type(value) is dict else None
            if type(uri) is not str or uri in seen:
                continue
            seen.add(uri)
            for target in self._targets(uri):
                levels += self.levels[target] + 1
                work += self.work[target] + (self._key_work[target] >> 7) + 1
                self._check(levels, work, target)
                todo.append((target, True))
        return levels, work

    def _targets(self, uri: str) -> set[int]:
        """Where a `$ref` leads, with XGrammar's reading of it and with the standard's."""
        if uri != "#" and not uri.startswith("#/"):
            return set()
        found = set()
        for decode in (False, True) if "~" in uri or "%" in uri else (False,):
            index = 0
            for part in filter(None, uri[2:].split("/")):
                step = part.replace("~1", "/").replace("~0", "~") if decode else part
                value = self.values[index]
                if type(value) is dict and step in value:
                    index = self.first[index] + self._rank(index, step)
                elif type(value) is list and step.isdecimal() and int(step[:9]) < len(value):
                    index = self.first[index] + int(step[:9])
                else:
                    break
            else:
                found.add(index)
        return found

    def _rank(self, index: int, name: str) -> int:
        """The place of a name in its object; where many are asked for, all at once."""
        ranks = self._ranks.get(index)
        if ranks is None:
            ranks = self._ranks[index] = {key: i for i, key in enumerate(self.values[index])}
        return ranks[name]

    @property
    def _ranks(self) -> dict[int, dict[str, int]]:
        made: dict[int, dict[str, int]] = self.__dict__.setdefault("_all_ranks", {})
        return made

    def _check(self, levels: int, work: int, at: int) -> None:
        if levels > MAX_SCHEMA_LEVELS:
            _limit(
                f"{self.pointer(at)}: the schemas of this {self._what} stand in each other too "
                "deeply, through `$ref` too; shorten the chain",
                "MAX_SCHEMA_LEVELS",
                MAX_SCHEMA_LEVELS,
            )
        if work > MAX_SCHEMA_WORK:
            _limit(
                f"{self.pointer(self._heaviest(at))}: the converter would make {work:,} rules and "
                f"copies for this {self._what}; make it smaller or flatter here, with `$ref` for "
                "what repeats",
                "MAX_SCHEMA_WORK",
                MAX_SCHEMA_WORK,
            )

    def _heaviest(self, index: int) -> int:
        """The innermost place that most of the work is for."""
        while True:
            children = range(self.first[index], self.first[index + 1])
            weights = [max(self.work[child], self.held[child]) for child in children]
            here = max(self.work[index], self.held[index])
            if not weights or max(weights) * 2 < here:
                return index
            index = children[weights.index(max(weights))]


def _types(schema: dict[str, Any]) -> tuple[int, int]:
    """How often properties and items are written: once for each type that has them."""
    types = schema.get("type")
    if type(types) is not list or not types:
        return 1, 1
    return max(1, types.count("object")), max(1, types.count("array"))


# ----------------------------------------------------------------- patterns


class PatternCounts(NamedTuple):
    """What a pattern comes to."""

    levels: int
    states: int
    joints: int
    work: int


class _Part(NamedTuple):
    """An expression: states, places where it may begin and end, joints, and whether it is nullable.

    They are those of Glushkov's construction; ``least`` are the fewest states XGrammar may count.
    """

    states: int
    firsts: int
    lasts: int
    joints: int
    is_nullable: bool
    least: int
    copies: int
    """States that are copied while repetitions are written out."""


_NOTHING = _Part(0, 0, 0, 0, True, 0, 0)
_MAX_UNROLLED = 100_000
"""States past which XGrammar leaves a repetition as it is."""
_WORK_FOR_A_MACRO = 25
_LARGE_REPEAT = 128
"""Counts past which it does so in a macro."""
_BOUNDS = re.compile(r"\{\s*(\d*)\s*(?:(,)\s*(\d*)\s*)?\}")
_ATOM = re.compile(r"\\(?:x[0-9A-Fa-f]{1,8}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|c.|.)|.", re.DOTALL)
_CLASS = re.compile(
    r"\[\^?(?:[^\]\\]|\\.)*\]?", re.DOTALL
)  # `[]` and `[^]` end, as XGrammar reads them
_GROUP = re.compile(r"\((?:\?(?:[:=!>]|<[=!]|P?<\w*>|P?'\w*'|[a-zA-Z-]*[:)]))?")
_WIDE_STATES = 12
"""States of a character that takes several bytes, as `.` and `[^a]` do; 9 at least."""


def check_pattern(pattern: object, what: str = "pattern", *, as_automaton: bool) -> PatternCounts:
    """Count what a pattern comes to.

    Args:
        pattern: the pattern.
        what: for errors.
        as_automaton: an automaton is made of it, as for `pattern` in a schema or a macro; else
            grammar text.

    Raises:
        TypeError: it is no text.
        UnsupportedGrammarError: it holds NUL or a lone surrogate.
        LimitExceededError: it is too much.
    """
    text = check_text(pattern, "regex") if not as_automaton else str(pattern)
    if len(text) > MAX_PATTERN_LENGTH:
        _limit(f"{what} has {len(text):,} characters", "MAX_PATTERN_LENGTH", MAX_PATTERN_LENGTH)
    # The alternatives so far, the sequence so far, and its last atom, for each open group.
    groups: list[tuple[_Part | None, _Part, _Part | None]] = []
    either: _Part | None = None
    before, last = _NOTHING, None
    deepest = offset = 0
    while offset < len(text):
        letter = text[offset]
        if letter == "(":
            groups.append((either, before, last))
            either, before, last = None, _NOTHING, None
            if len(groups) > deepest:
                deepest = len(groups)
                if deepest > MAX_PATTERN_NESTING:
                    _limit(
                        f"{what} has groups that are nested too deeply, at position {offset + 1}",
                        "MAX_PATTERN_NESTING",
                        MAX_PATTERN_NESTING,
                    )
            opened = _GROUP.match(text, offset)
            offset = opened.end() if opened else offset + 1
            continue
        if letter == ")" and groups:
            inner = _either(either, _then(before, last))
            either, before, last = groups.pop()
            before, last = _then(before, last), inner
            offset += 1
            continue
        if letter == "|":
            either = _either(either, _then(before, last))
            before, last = _NOTHING, None
            offset += 1
            continue
        if letter in "*+?":
            last = _repeated(last or _NOTHING, 0 if letter != "+" else 1, 1 if letter == "?" else 0)
            offset += 1
            continue
        if letter == "{":
            bounds = _BOUNDS.match(text, offset)
            if bounds:
                least = _count_of(bounds[1])
                most = least if bounds[2] is None else _count_of(bounds[3])
                last = _repeated(last or _NOTHING, least, most)
                offset = bounds.end()
                continue
        found = _CLASS.match(text, offset) if letter == "[" else _ATOM.match(text, offset)
        assert found is not None
        before, last = _then(before, last), _atom(found[0])
        offset = found.end()
    while groups:  # it is no pattern, and XGrammar says so
        inner = _either(either, _then(before, last))
        either, before, last = groups.pop()
        before, last = _then(before, last), inner
    whole = _either(either, _then(before, last))
    work = whole.states + whole.joints // 16 + whole.copies // 400 if as_automaton else 0
    if work > MAX_PATTERN_WORK:
        _limit(
            f"{what} comes to {work:,} states and joints, written out; lower the counts in braces, "
            "or have fewer optional parts in a row",
            "MAX_PATTERN_WORK",
            MAX_PATTERN_WORK,
        )
    return PatternCounts(deepest, whole.states, whole.joints, work)


def _count_of(digits: str | None) -> int:
    return min(int(digits[:12]), _CEILING) if digits else 0


def _atom(text: str) -> _Part:
    if text in ("^", "$"):
        return _NOTHING
    wide = not text.isascii() or text[:2] in ("[^", "\\W", "\\D", "\\S", "\\u", "\\U", "\\x")
    if text == "." or wide or (text[0] == "[" and "\\" in text):
        return _Part(_WIDE_STATES, 1, 1, 0, False, 1, 0)
    return _Part(2, 1, 1, 0, False, 1, 0)


def _then(one: _Part, two: _Part | None) -> _Part:
    if two is None or two is _NOTHING:
        return one
    return _Part(
        min(_CEILING, one.states + two.states),
        one.firsts + (two.firsts if one.is_nullable else 0),
        two.lasts + (one.lasts if two.is_nullable else 0),
        min(_CEILING, one.joints + two.joints + one.lasts * two.firsts),
        one.is_nullable and two.is_nullable,
        min(_CEILING, one.least + two.least),
        min(_CEILING, one.copies + two.copies),
    )


def _either(one: _Part | None, two: _Part) -> _Part:
    if one is None:
        return two
    return _Part(
        min(_CEILING, one.states + two.states),
        one.firsts + two.firsts,
        one.lasts + two.lasts,
        min(_CEILING, one.joints + two.joints),
        one.is_nullable or two.is_nullable,
        min(_CEILING, one.least + two.least),
        min(_CEILING, one.copies + two.copies),
    )


def _repeated(part: _Part, least: int, most: int) -> _Part:
    """A repetition; `most` is 0 for no bound."""
    times = max(least, most, 1)
    is_nullable = part.is_nullable or least == 0
    pairs = part.lasts * part.firsts
    if times == 1:
        joints = part.joints + (pairs if most == 0 else 0)
        return part._replace(is_nullable=is_nullable, joints=min(_CEILING, joints))
    if part.least * times > _MAX_UNROLLED:  # XGrammar leaves it as it is
        return part._replace(is_nullable=is_nullable)
    copies = min(_CEILING, part.copies + times * times * part.states // 2)
    if times > _LARGE_REPEAT:  # written out to see whether it can be, and then not kept
        return part._replace(is_nullable=is_nullable, copies=copies)
    joined = times * times // 2 if part.is_nullable else times - 1
    ends = times if least < times else 1
    return _Part(
        min(_CEILING, part.states * times),
        min(_CEILING, part.firsts * (times if part.is_nullable else 1)),
        min(_CEILING, part.lasts * (times if part.is_nullable else ends)),
        min(_CEILING, part.joints * times + joined * pairs),
        is_nullable,
        min(_CEILING, part.least * times),
        copies,
    )


# ------------------------------------------------------------------- macros

_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def check_macro(name: str, text: str, already: int = 0) -> PatternCounts:
    """Count what a macro of a grammar text comes to: ``Regex(...)`` or ``Substring(...)``.

    Args:
        name: which.
        text: the macro as it is written.
        already: work of the macros before it.

    Returns:
        Its counts; the work with what was there already.

    Raises:
        LimitExceededError: it is too much, or all of them are.
    """
    if name == "Regex":
        literal = _LITERAL.search(text)
        pattern = "" if literal is None else _unescaped(literal[1])
        counts = check_pattern(pattern, "this pattern", as_automaton=True)
    else:
        letters = sum(len(literal[1]) for literal in _LITERAL.finditer(text))
        if letters > MAX_PATTERN_WORK:
            _limit(f"this text has {letters:,} characters", "MAX_PATTERN_WORK", MAX_PATTERN_WORK)
        counts = PatternCounts(0, letters, 0, letters)
    work = already + counts.work + _WORK_FOR_A_MACRO
    if work > MAX_MACRO_WORK:
        _limit(
            f"up to here the macros of this grammar come to {work:,} states and joints; have fewer "
            "of them, or smaller ones",
            "MAX_MACRO_WORK",
            MAX_MACRO_WORK,
        )
    return counts._replace(work=work)


_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,8})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL
)
_NAMED = {"n": "\n", "r": "\r", "t": "\t"}


def _unescaped(text: str) -> str:
    """What a literal of grammar text says; characters without meaning here become letters."""

    def character(match: re.Match[str]) -> str:
        digits = match[1] or match[2] or match[3]
        if digits is None:
            return _NAMED.get(match[4], match[4])
        code = int(digits, 16)
        return chr(code) if 0 < code < 0xD800 or 0xDFFF < code <= 0x10FFFF else "?"

    return _ESCAPE.sub(character, text)


# --------------------------------------------------------------------- Lark

_TERMINAL = re.compile(
    r"^[ \t]*[?!]?(_?[A-Z][A-Z0-9_]*)[ \t]*(?:\.-?\d+)?[ \t]*(?:\[[^\]]*\])?:", re.MULTILINE
)
_DEFINITION = re.compile(r"^[ \t]*[?!]?_?[A-Za-z]\w*[^:\n]*:|^[ \t]*%", re.MULTILINE)
_LARK_WORD = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|/(?:[^/\\\n]|\\.)+/[a-z]*|//[^\n]*|\#[^\n]*|[()\[\]]|(_?[A-Z][A-Z0-9_]*)'
)


_INLINE_SCHEMA = re.compile(r"%json\s*")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def check_lark(text: object) -> int:
    """Count what Lark text comes to.

    Returns:
        Levels of groups, and of terminals within terminals.

    Raises:
        TypeError: it is no text.
        UnsupportedGrammarError: it holds NUL or a lone surrogate.
        LimitExceededError: it is too much.
    """
    source = check_text(text, "lark")
    if len(source) > MAX_LARK_LENGTH:
        _limit(
            f"this Lark grammar has {len(source):,} characters", "MAX_LARK_LENGTH", MAX_LARK_LENGTH
        )
    level = deepest = 0
    for found in _LARK_WORD.finditer(source):
        word = found[0]
        if word[0] == "/" and word[:2] != "//":
            line, column = _place(source, found.start())
            where = f"line {line}, column {column}: this pattern"
            deepest = max(deepest, check_pattern(word[1:], where, as_automaton=False).levels)
        elif word in "([":
            level += 1
            deepest = max(deepest, level)
        elif word in ")]":
            level = max(0, level - 1)
    # XGrammar itself goes no deeper than 200 groups.
    return max(min(deepest, 2 * MAX_PATTERN_NESTING), _terminals(source), _inline_schemas(source))


def _inline_schemas(source: str) -> int:
    """Levels of the schemas that stand in Lark text after ``%json``."""
    levels = work = end = 0
    for found in _INLINE_SCHEMA.finditer(source):
        if found.start() < end:
            continue
        line, column = _place(source, found.start())
        start = end = found.end()
        depth = 0
        for token in _JSON_TOKEN.finditer(source, start):
            depth += 1 if token[0] in "[{" else -1 if token[0] in "]}" else 0
            end = token.end()
            if depth > MAX_JSON_NESTING or depth == 0:
                break
        try:
            counts = check_schema(source[start:end], "schema after %json")
        except LimitExceededError as error:
            raise LimitExceededError(
                f"line {line}, column {column}: {error}", error.limit, error.value
            ) from error
        except UnsupportedGrammarError:  # it is no JSON: a part of a text, or XGrammar says so
            continue
        levels, work = max(levels, counts.levels), work + counts.work
        if work > MAX_SCHEMA_WORK:
            _limit(
                f"line {line}, column {column}: the schemas up to here come to {work:,} rules and "
                "copies; make them smaller",
                "MAX_SCHEMA_WORK",
                MAX_SCHEMA_WORK,
            )
    return levels


def _terminals(source: str) -> int:
    """The longest chain of terminals; refuses those that are too long once written out."""
    starts = [(match.start(), match.end(), match[1]) for match in _TERMINAL.finditer(source)]
    ends = sorted(match.start() for match in _DEFINITION.finditer(source))
    uses: dict[str, list[str]] = {}
    lengths: dict[str, int] = {}
    places: dict[str, int] = {}
    following = 0
    for start, end, name in starts:
        while following < len(ends) and ends[following] < end:
            following += 1
        stop = ends[following] if following < len(ends) else len(source)
        body = [found for found in _LARK_WORD.finditer(source, end, stop) if found[1]]
        uses[name] = uses.get(name, []) + [found[1] for found in body]
        lengths[name] = lengths.get(name, 0) + stop - end
        places[name] = start
    levels: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for first in uses:
        todo = [first]
        while todo:
            name = todo[-1]
            if name in levels:
                todo.pop()
                continue
            missing = [each for each in uses[name] if each in uses and each not in sizes]
            if missing and name not in sizes:
                sizes[name] = 0  # under way: a circle, which XGrammar refuses, ends here
                todo += dict.fromkeys(missing)
                continue
            known = [each for each in uses[name] if each in levels]
            levels[name] = 1 + max((levels[each] for each in known), default=0)
            size = lengths[name] + sum(sizes[each] for each in known)
            sizes[name] = min(size, _CEILING)
            if size > MAX_LARK_WORK:
                line, column = _place(source, places[name])
                _limit(
                    f"line {line}, column {column}: the terminal {name} has {size:,} characters "
                    "when the terminals in it are written out; make it a rule",
                    "MAX_LARK_WORK",
                    MAX_LARK_WORK,
                )
            if levels[name] > MAX_LARK_LEVELS:
                line, column = _place(source, places[name])
                _limit(
                    f"line {line}, column {column}: the terminal {name} holds terminals that hold "
                    "others, too many levels deep",
                    "MAX_LARK_LEVELS",
                    MAX_LARK_LEVELS,
                )
            todo.pop()
    return max(levels.values(), default=0)


# ------------------------------------------------------ what XGrammar reads whole

_GRAMMAR_WORD = re.compile(
    r'(?P<macro>(?:Regex|Substring)\s*\()|"(?:[^"\\\n]|\\.)*"|\[(?:[^\]\\\n]|\\.)*\]|\#[^\n]*|[()]'
)
TAG_LEVELS = 400
"""Levels of JSON of a structural tag: two for each of 100 formats, and a schema."""


def check_grammar(text: object) -> int:
    """Count what grammar text comes to that XGrammar itself is to read.

    Returns:
        Levels of groups.

    Raises:
        TypeError: it is no text.
        UnsupportedGrammarError: it holds NUL or a lone surrogate.
        LimitExceededError: it is too much.
    """
    source = check_text(text, "grammar")
    level = deepest = work = 0
    for found in _GRAMMAR_WORD.finditer(source):
        word = found[0]
        if found["macro"]:
            name = "Regex" if word[0] == "R" else "Substring"
            ends = source.find("\n", found.end())
            # a macro's texts, up to the end of its line at least
            counts = check_macro(name, source[found.end() : ends if ends >= 0 else None], work)
            work, deepest = counts.work, max(deepest, counts.levels)
            level += 1
        elif word == "(":
            level += 1
            if level > MAX_GRAMMAR_NESTING:
                line, column = _place(source, found.start())
                _limit(
                    f"line {line}, column {column}: groups are nested too deeply; make rules of "
                    "some",
                    "MAX_GRAMMAR_NESTING",
                    MAX_GRAMMAR_NESTING,
                )
        elif word == ")":
            level = max(0, level - 1)
        deepest = max(deepest, level)
    return deepest


def check_excludes(excludes: Iterable[object]) -> None:
    """Count the texts that strings of a schema must not hold.

    Raises:
        LimitExceededError: they are too long together.
    """
    total = sum(len(each) for each in excludes if isinstance(each, str))
    if total > MAX_EXCLUDED:
        _limit(f"'excludes' has {total:,} characters", "MAX_EXCLUDED", MAX_EXCLUDED)


def check_tag(text: object) -> int:
    """Count what a structural tag comes to that XGrammar itself is to convert.

    Returns:
        Levels that its converters recurse.

    Raises:
        TypeError: it is no text.
        UnsupportedGrammarError: a part of it holds NUL or a lone surrogate.
        LimitExceededError: it is too much; at the part.
    """
    source = check_text(text, "structural tag")
    check_nesting(source, "structural tag", TAG_LEVELS)
    try:
        tag, _ = _loads(source, "structural tag")
    except UnsupportedGrammarError:
        return 0  # XGrammar says what is wrong with it
    levels = work = 0
    todo: list[tuple[Any, list[object], int]] = [(tag, [], 1)]
    while todo:
        node, path, depth = todo.pop()
        levels = max(levels, depth)
        if isinstance(node, list):
            todo += [(each, [*path, i], depth) for i, each in enumerate(node)]
        if not isinstance(node, dict):
            continue
        for key, value in node.items():
            here = [*path, key]
            try:
                if key in ("json_schema", "schema"):
                    counts = check_schema(value if isinstance(value, str) else _json.dumps(value))
                    deep, more = counts.levels, counts.work
                elif key == "pattern" and isinstance(value, str):
                    found = check_pattern(value, as_automaton=True)
                    deep, more = found.levels, found.work
                elif key == "excludes" and isinstance(value, list):
                    check_excludes(value)
                    continue
                elif key == "grammar" and isinstance(value, str):
                    deep, more = check_grammar(value), 0
                else:
                    todo.append((value, here, depth + 1))
                    continue
            except LimitExceededError as error:
                raise LimitExceededError(
                    f"{_pointer(here)}: {error}", error.limit, error.value
                ) from error
            levels, work = max(levels, depth + deep), work + more
            if work > MAX_MACRO_WORK:
                _limit(
                    f"{_pointer(here)}: up to here the schemas and patterns of this structural tag "
                    f"come to {work:,} rules and states",
                    "MAX_MACRO_WORK",
                    MAX_MACRO_WORK,
                )
    return levels


# --------------------------------------------------------------- conversion

_stack_lock = threading.Lock()


def is_deep(levels: int) -> bool:
    """Whether work that recurses so deep takes a stack of its own."""
    return levels > _LEVELS_ON_ANY_STACK


def with_stack(levels: int, work: Callable[[], _T]) -> _T:
    """Do some work that recurses so deep: here, or in a thread whose stack is large enough.

    Raises:
        LimitExceededError: there is no memory for the stack.
        Exception: whatever ``work`` raises.
    """
    if not is_deep(levels):
        return work()
    made: list[_T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            failed.append(error)

    stack = max(1 << 20, math.ceil(levels * _STACK_FOR_A_LEVEL / (1 << 20)) << 20)
    thread = threading.Thread(target=run, name="tokfold-convert", daemon=True)
    with _stack_lock:  # a thread that others start just now has a large stack, too: no harm
        before = threading.stack_size(stack)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            raise LimitExceededError(
                f"there is no memory for a stack of {stack:,} bytes, which {levels:,} levels take; "
                "make the grammar flatter",
                "MAX_SCHEMA_LEVELS",
                MAX_SCHEMA_LEVELS,
            ) from error
        finally:
            threading.stack_size(before)
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


def convert(converter: str, source: object, **options: Any) -> str:
    """The grammar text that one of XGrammar's converters makes.

    Args:
        converter: ``from_json_schema`` (of text), ``from_regex`` or ``from_lark``.
        source: what it is given.
        options: its options.

    Raises:
        TypeError: ``source`` is no text, or an option is of another type than it must be.
        UnsupportedGrammarError: the converter does not take it.
        LimitExceededError: it would take too long, or too much stack.
        MissingExtraError: XGrammar is not installed.
    """
    xgr = require("xgrammar", "xgrammar", f"Grammar.{converter}")
    check_governing()
    what = converter.removeprefix("from_").replace("_", " ")
    if converter == "from_json_schema":
        is_open = options.get("strict_mode", True) is False
        source, levels, _ = check_schema(source, is_open=is_open)
    elif converter == "from_regex":
        levels = check_pattern(source, as_automaton=False).levels
    else:
        levels = check_lark(source)
    check_governing()
    try:
        return with_stack(levels, lambda: str(getattr(xgr.Grammar, converter)(source, **options)))
    except (RuntimeError, ValueError, OverflowError, MemoryError) as error:
        # what XGrammar raises for what it refuses, and what an option that is too large leads to
        if isinstance(error, UnsupportedGrammarError):
            raise
        reason = xgrammar_reason(error) or f"it gives no reason ({type(error).__name__})"
        raise UnsupportedGrammarError(
            f"XGrammar's converter does not take this {what}: {reason}",
            what,
            1,
            1,
        ) from error
