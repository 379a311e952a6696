"""The order of known keys, stated slowly.

The keys of an object that schemas name come in the order in which these name them first. Of a
schema these are the names of its ``properties``; then, left to right through its keywords, those of
its branches and of what it refers to; then those of its ``required``, whose order nobody means.
What is named under ``not`` and ``if`` and by dependencies of names comes after that, for a schema
before the schemas that it applies, and for these before the conditions within them. Keys that no
schema names come last, in any order.

Which branches are still possible is told by what was read before, and the others say nothing of the
order of what comes then. This statement does not know that; :func:`arranged` finds such an order.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tokfold import CompiledGrammar, Matcher

ALWAYS = ("$ref", "allOf", "anyOf", "oneOf", "then", "else")
LATER = ("not", "if")
DEPENDENCIES = ("dependencies", "dependentRequired", "dependentSchemas")

Schema = Any


@dataclass
class Place:
    """The schemas that are given for a value."""

    first: list[Schema] = field(default_factory=list)
    later: list[Schema] = field(default_factory=list)
    """Those under ``not`` and ``if``."""


@dataclass
class _Walk:
    """What the schemas of a place say, in order."""

    names: dict[str, None] = field(default_factory=dict)
    schemas: list[tuple[dict[str, Any], bool]] = field(default_factory=list)
    """Schemas that are applied, and whether under a condition."""
    later: list[Any] = field(default_factory=list)
    is_late: bool = False


class Order:
    """The order that a schema gives to the keys of its instances.

    Args:
        schema: with references into itself by pointers only.
    """

    def __init__(self, schema: Schema) -> None:
        self.root = schema
        uri = schema.get("$schema", "") if isinstance(schema, dict) else ""
        self.hides_siblings = any(f"draft-0{n}" in str(uri) for n in (3, 4, 6, 7))
        self.is_old = "draft-04" in str(uri)

    def sorted(self, value: Any, place: Place | None = None) -> Any:
        """The value with its keys in order, and those of all its parts."""
        walk = self._walked(Place([self.root]) if place is None else place)
        if isinstance(value, dict):
            keys = [k for k in walk.names if k in value]
            keys += [k for k in value if k not in walk.names]
            return {k: self.sorted(value[k], _inner(walk, _of_key, k)) for k in keys}
        if isinstance(value, list):
            return [self.sorted(v, _inner(walk, _of_item, i)) for i, v in enumerate(value)]
        return value

    def names(self) -> list[str]:
        """The known keys at the root, in order."""
        return list(self._walked(Place([self.root])).names)

    def _walked(self, place: Place) -> _Walk:
        walk = _Walk(later=list(place.later))
        for schema in place.first:
            self._walk(schema, walk)
        walk.is_late = True
        while walk.later:
            late = walk.later.pop(0)
            if isinstance(late, list):
                walk.names.update(dict.fromkeys(late))
            else:
                self._walk(late, walk)
        return walk

    def _walk(self, schema: Schema, walk: _Walk) -> None:
        """One schema and those that it applies in its place."""
        if not isinstance(schema, dict):
            return
        if any(schema is s and late == walk.is_late for s, late in walk.schemas):
            return
        target = self.target(schema)
        if target is not None and self.hides_siblings:
            self._walk(target, walk)
            return
        walk.schemas.append((schema, walk.is_late))
        for keyword, inner in schema.items():
            if keyword in LATER and not self._is_dead(schema, keyword):
                walk.later.append(inner)
            elif keyword in DEPENDENCIES:
                for name, needed in _dict(inner).items():
                    walk.later.append([name, *(n for n in _list(needed) if isinstance(n, str))])
        walk.names.update(dict.fromkeys(_dict(schema.get("properties"))))
        for keyword, inner in schema.items():
            if keyword in ("enum", "const"):
                for value in _list(inner) if keyword == "enum" else [inner]:
                    walk.names.update(dict.fromkeys(_dict(value)))
            elif keyword == "$ref":
                self._walk(target, walk)
            elif keyword in ALWAYS and not self._is_dead(schema, keyword):
                for branch in inner if isinstance(inner, list) else [inner]:
                    self._walk(branch, walk)
            elif keyword in DEPENDENCIES:
                for needed in _dict(inner).values():
                    self._walk(needed, walk)
        required = (n for n in _list(schema.get("required")) if isinstance(n, str))
        walk.names.update(dict.fromkeys(required))

    def _is_dead(self, schema: dict[str, Any], keyword: str) -> bool:
        """A branch of a condition that is not there, or in a dialect without conditions."""
        if keyword not in ("if", "then", "else"):
            return False
        return "if" not in schema or self.is_old or not {"then", "else"} & set(schema)

    def target(self, schema: dict[str, Any]) -> Schema:
        """Where the reference of a schema leads; None where it has none."""
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        place = self.root
        for part in reference[1:].split("/")[1:]:
            name = urllib.parse.unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(place, list):
                place = place[int(name)]
            elif isinstance(place, dict) and name in place:
                place = place[name]
            else:
                return None
        return place


def _inner(walk: _Walk, of: Any, at: Any) -> Place:
    """The schemas for a part of a value."""
    place = Place()
    for schema, is_late in walk.schemas:
        (place.later if is_late else place.first).extend(of(schema, at))
    return place


def _of_key(schema: dict[str, Any], key: str) -> Iterator[Any]:
    is_named = False
    properties = _dict(schema.get("properties"))
    if key in properties:
        is_named = True
        yield properties[key]
    for pattern, inner in _dict(schema.get("patternProperties")).items():
        if re.search(pattern, key):
            is_named = True
            yield inner
    if not is_named and "additionalProperties" in schema:
        yield schema["additionalProperties"]
    yield from (schema[k] for k in ("unevaluatedProperties",) if k in schema)
    for value in [*_list(schema.get("enum")), schema.get("const")]:
        if isinstance(value, dict) and key in value:
            yield {"const": value[key]}


def _of_item(schema: dict[str, Any], index: int) -> Iterator[Any]:
    items = schema.get("items")
    first = items if isinstance(items, list) else _list(schema.get("prefixItems"))
    rest = schema.get("additionalItems") if isinstance(items, list) else items
    if index < len(first):
        yield first[index]
    elif rest is not None:
        yield rest
    yield from (schema[k] for k in ("contains", "unevaluatedItems") if k in schema)
    for value in [*_list(schema.get("enum")), schema.get("const")]:
        if isinstance(value, list) and index < len(value):
            yield {"const": value[index]}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


PATIENCE = 20_000
"""Steps of a search for an order."""


def arranged(compiled: CompiledGrammar, value: Any) -> str | None:
    """The text of a value in some order of its keys that a grammar takes; None if there is none.

    Args:
        compiled: the grammar, over bytes.
        value: its keys are tried in their own order first.
    """
    left = [PATIENCE]
    for matcher in _after(Matcher(compiled), value, left):
        if matcher.is_accepting:
            return matcher.text.decode()
    return None


def _after(matcher: Matcher, value: Any, left: list[int]) -> Iterator[Matcher]:
    """Matchers that have read the value in one order or another."""
    if isinstance(value, dict):
        if (inner := _read(matcher, "{", left)) is not None:
            yield from _after_members(inner, value, "", left)
    elif isinstance(value, list):
        if (inner := _read(matcher, "[", left)) is not None:
            yield from _after_items(inner, value, left)
    elif (end := _read(matcher, json.dumps(value, ensure_ascii=False), left)) is not None:
        yield end


def _after_members(
    matcher: Matcher, members: dict[str, Any], comma: str, left: list[int]
) -> Iterator[Matcher]:
    if not members and (end := _read(matcher, "}", left)) is not None:
        yield end
    for key in members:
        name = f"{comma}{json.dumps(key, ensure_ascii=False)}: "
        if (inner := _read(matcher, name, left)) is None:
            continue
        rest = {k: v for k, v in members.items() if k != key}
        for after in _after(inner, members[key], left):
            yield from _after_members(after, rest, ", ", left)


def _after_items(matcher: Matcher, items: list[Any], left: list[int]) -> Iterator[Matcher]:
    """Depth first, without recursion on the number of items."""
    walks = [iter([matcher])]
    while walks:
        place = len(walks) - 1
        current = next(walks[-1], None)
        if current is None:
            walks.pop()
        elif place == len(items):
            if (end := _read(current, "]", left)) is not None:
                yield end
        elif (inner := _read(current, ", " if place else "", left)) is not None:
            walks.append(_after(inner, items[place], left))


def _read(matcher: Matcher, text: str, left: list[int]) -> Matcher | None:
    left[0] -= 1
    if left[0] < 0:
        return None
    fork = matcher.fork()
    return fork if fork.accept_bytes(text.encode("utf-8", "surrogatepass")) else None
