"""What the converter of JSON schemas would do, counted without recursion."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tokfold import _json
from tokfold._converters.bounds import (
    CEILING,
    LEVELS_ON_ANY_STACK,
    MAX_SCHEMA_LEVELS,
    MAX_SCHEMA_WORK,
)
from tokfold._converters.patterns import PatternCounts, check_pattern
from tokfold._text_checks import check_nesting, check_text, loads, pointer_to, refuse, refuse_size
from tokfold.errors import UnsupportedGrammarError

_SMALL = 8_192
"""Bytes of a schema that need no closer look if nothing in it multiplies."""

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

LARGEST_COUNT = (1 << 31) - 1


class Counted(NamedTuple):
    """What the converter would do with a schema, at most."""

    text: str
    """The schema, as it was counted."""
    levels: int
    work: int


def check_schema(text: object, what: str = "JSON schema", *, is_open: bool = False) -> Counted:
    """Count what the converter would do with a schema.

    ``is_open``: objects that say nothing of other names may have them (``strict_mode=False``).
    """
    source = check_text(text, what)
    depth = check_nesting(source, what)
    references = source.count('"$ref"') + source.count("\\u0024ref")
    levels = depth * (references + 1)
    is_small = len(source) <= _SMALL and levels <= LEVELS_ON_ANY_STACK
    if is_small and "\\u00" not in source and not _MULTIPLIES.search(source):
        return Counted(source, levels, len(source))
    value, has_repeated = loads(source, what)
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
        return pointer_to(keys[::-1])

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
                self.work[parent] = min(CEILING, self.work[parent] + times * work)
                self.rules[parent] = min(CEILING, self.rules[parent] + times * rules)
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
                refuse(
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
            refuse_size(
                f"{self.pointer(at)}: the schemas of this {self._what} stand in each other too "
                "deeply, through `$ref` too; shorten the chain",
                "MAX_SCHEMA_LEVELS",
                MAX_SCHEMA_LEVELS,
            )
        if work > MAX_SCHEMA_WORK:
            refuse_size(
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
