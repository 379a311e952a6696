"""Random JSON Schemas over few keys and values, and all small values over them.

The schemas are small enough for every value that tells them apart to be tried. Keywords, keys,
strings and numbers are few, so that conjunctions, alternatives and negations meet one another.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

Schema = Any

KEYS = ("a", "b", "c")
STRINGS = ("", "a", "b", "ab", "abc")
NUMBERS = (0, 1, 2, 3, -1, 1.5)
SCALARS: tuple[Any, ...] = (None, True, False, *NUMBERS, *STRINGS)
FEW: tuple[Any, ...] = (0, 1, "a", True, None)
PATTERNS = ("a", "^a", "b$", "^[ab]*$", "^ab?$", "[^a]", "^(?!a)", "^.$", "^$", "c|^a$")
NAME_PATTERNS = ("^a", "b", "^[ab]$", "x", "^.$")
TYPES = ("string", "integer", "object", "array", "number", "boolean", "null")
DIALECTS = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-04": "http://json-schema.org/draft-04/schema#",
}


class Builder:
    """Draws schemas of one dialect.

    Args:
        random: a generator; Hypothesis' own shrinks.
        dialect: a key of :data:`DIALECTS`.
        definitions: how many there are to refer to.
    """

    def __init__(self, random: Random, dialect: str = "2020-12", definitions: int = 2) -> None:
        self.random, self.dialect, self.definitions = random, dialect, definitions
        self.year = list(DIALECTS).index(dialect)
        # In 2019-09 `contains` says nothing of which items are evaluated; both validators take it
        # as in 2020-12, so a schema has one of the two keywords.
        self.has_contains = self.year != 1 or random.random() < 0.5

    def document(self, depth: int = 3) -> Schema:
        """A schema with its definitions; none refers to itself in its own place."""
        where = "$defs" if self.year < 2 else "definitions"
        made = {f"d{i}": self.schema(depth - 1, below=i) for i in reversed(range(self.definitions))}
        root = self.schema(depth, below=-1)
        if isinstance(root, bool):
            root = {} if root else {"not": {}}
        if '"$ref"' not in json.dumps(root):
            made = {}
        elif "$ref" in root and self.year > 1:
            root = {"allOf": [root]}
        return {"$schema": DIALECTS[self.dialect], **({where: made} if made else {}), **root}

    def schema(self, depth: int, below: int) -> Schema:
        """A schema.

        Args:
            depth: of schemas in it.
            below: in its place, definitions past this one may be applied.
        """
        random = self.random
        if depth <= 0 or random.random() < 0.1:
            return self.leaf()
        result: dict[str, Any] = {}
        if random.random() < 0.4:
            result["type"] = self.types()
        for _ in range(random.choice((1, 1, 2, 2, 3))):
            group = random.choice(self.groups())
            result.update(group(depth, below))
        return result

    def leaf(self) -> Schema:
        """A schema without schemas in it."""
        random = self.random
        kind = random.randrange(10)
        if kind == 0 and self.year < 4:
            return random.choice((True, False))
        if kind <= 3:
            return {"type": self.types()}
        if kind <= 5:
            return self.values(0, 0)
        return random.choice((self.of_numbers, self.of_strings, self.values))(0, 0)

    def types(self) -> Any:
        """A type, or some."""
        if self.random.random() < 0.7:
            return self.random.choice(TYPES)
        return sorted({self.random.choice(TYPES), self.random.choice(TYPES)})

    def groups(self) -> list[Callable[[int, int], dict[str, Any]]]:
        """Makers of keywords, those most often met first."""
        found: list[Callable[[int, int], dict[str, Any]]] = [
            self.properties,
            self.properties,
            self.required,
            self.items,
            self.all_of,
            self.any_of,
            self.one_of,
            self.negation,
            self.values,
            self.of_numbers,
            self.of_strings,
            self.additional,
            self.patterns,
            self.counts,
            self.dependencies,
            self.reference,
            self.unique,
        ]
        if self.year < 4:
            found += [self.contains, self.names] if self.has_contains else [self.names]
        if self.year < 3:
            found.append(self.condition)
        if self.year < 2:
            found.append(self.unevaluated)
        return found

    # -- keywords

    def properties(self, depth: int, below: int) -> dict[str, Any]:
        keys = self.some(KEYS)
        made: dict[str, Any] = {"properties": {k: self.schema(depth - 1, -1) for k in keys}}
        if self.random.random() < 0.5:
            made["required"] = self.some(keys)
        return made

    def required(self, depth: int, below: int) -> dict[str, Any]:
        return {"required": self.some(KEYS)}

    def additional(self, depth: int, below: int) -> dict[str, Any]:
        if self.random.random() < 0.4:
            inner: Schema = self.random.choice((True, False))
        else:
            inner = self.schema(depth - 1, -1)
        return {"additionalProperties": inner}

    def patterns(self, depth: int, below: int) -> dict[str, Any]:
        keys = self.some(NAME_PATTERNS, most=2)
        return {"patternProperties": {k: self.schema(depth - 1, -1) for k in keys}}

    def names(self, depth: int, below: int) -> dict[str, Any]:
        return {"propertyNames": self.random.choice((self.of_strings, self.values))(0, 0)}

    def counts(self, depth: int, below: int) -> dict[str, Any]:
        what = self.random.choice(("Properties", "Items"))
        least, most = sorted((self.random.randrange(4), self.random.randrange(4)))
        both = {f"min{what}": least, f"max{what}": most}
        keep = self.random.choice(([f"min{what}"], [f"max{what}"], list(both)))
        return {k: both[k] for k in keep}

    def dependencies(self, depth: int, below: int) -> dict[str, Any]:
        keyword = self.random.choice(("dependentRequired", "dependentSchemas"))
        values = {
            k: self.some(KEYS) if keyword == "dependentRequired" else self.schema(depth - 1, below)
            for k in self.some(KEYS, most=2)
        }
        return {keyword if self.year < 2 else "dependencies": values}

    def items(self, depth: int, below: int) -> dict[str, Any]:
        rest = self.schema(depth - 1, -1)
        if self.random.random() < 0.6:
            return {"items": rest}
        first = [self.schema(depth - 1, -1) for _ in range(self.random.choice((1, 2)))]
        made: dict[str, Any] = {("prefixItems" if self.year == 0 else "items"): first}
        if self.random.random() < 0.5:
            made["items" if self.year == 0 else "additionalItems"] = rest
        return made

    def unique(self, depth: int, below: int) -> dict[str, Any]:
        """Items that differ, of few values: more are refused."""
        items = self.random.choice(({"type": "boolean"}, {"enum": [0, 1, "a"]}, {"enum": [[0], 1]}))
        return {"uniqueItems": True, "items": items}

    def contains(self, depth: int, below: int) -> dict[str, Any]:
        made: dict[str, Any] = {"contains": self.schema(depth - 1, -1)}
        if self.year < 2 and self.random.random() < 0.5:
            made["minContains"] = self.random.randrange(3)
        if self.year < 2 and self.random.random() < 0.3:
            made["maxContains"] = self.random.randrange(1, 3)
        return made

    def unevaluated(self, depth: int, below: int) -> dict[str, Any]:
        is_free = self.year != 1 or not self.has_contains
        items = "unevaluatedItems" if is_free else "unevaluatedProperties"
        keyword = self.random.choice(("unevaluatedProperties", items))
        return {keyword: self.random.choice((False, False, self.schema(depth - 1, -1)))}

    def all_of(self, depth: int, below: int) -> dict[str, Any]:
        return {"allOf": self.branches(depth, below)}

    def any_of(self, depth: int, below: int) -> dict[str, Any]:
        return {"anyOf": self.branches(depth, below)}

    def one_of(self, depth: int, below: int) -> dict[str, Any]:
        return {"oneOf": self.branches(depth, below)}

    def branches(self, depth: int, below: int) -> list[Schema]:
        count = self.random.choice((2, 2, 1, 3))
        return [self.schema(depth - 1, below) for _ in range(count)]

    def negation(self, depth: int, below: int) -> dict[str, Any]:
        return {"not": self.schema(depth - 1, below)}

    def condition(self, depth: int, below: int) -> dict[str, Any]:
        made = {"if": self.schema(depth - 1, below)}
        for keyword in self.some(("then", "else")):
            made[keyword] = self.schema(depth - 1, below)
        return made

    def reference(self, depth: int, below: int) -> dict[str, Any]:
        where = "$defs" if self.year < 2 else "definitions"
        choices = [i for i in range(self.definitions) if i > below]
        return {"$ref": f"#/{where}/d{self.random.choice(choices)}"} if choices else {}

    def values(self, depth: int, below: int) -> dict[str, Any]:
        values = [self.value() for _ in range(self.random.choice((1, 2, 3)))]
        if self.year < 4 and self.random.random() < 0.4:
            return {"const": values[0]}
        return {"enum": [v for i, v in enumerate(values) if not _is_in(v, values[:i])]}

    def value(self) -> Any:
        random = self.random
        if random.random() < 0.75:
            return random.choice(SCALARS)
        if random.random() < 0.5:
            return [random.choice(FEW) for _ in range(random.randrange(3))]
        return {k: random.choice(FEW) for k in self.some(KEYS, most=2)}

    def of_numbers(self, depth: int, below: int) -> dict[str, Any]:
        random = self.random
        bound = random.choice((0, 1, 2, 0.5, -1))
        choices: list[dict[str, Any]] = [
            {"minimum": bound},
            {"maximum": bound},
            {"multipleOf": random.choice((1, 2, 0.5, 3))},
        ]
        if self.year < 4:
            choices += [{"exclusiveMinimum": bound}, {"exclusiveMaximum": bound}]
        else:
            choices += [{"minimum": bound, "exclusiveMinimum": True}]
        return random.choice(choices)

    def of_strings(self, depth: int, below: int) -> dict[str, Any]:
        random = self.random
        return random.choice(
            (
                {"maxLength": random.randrange(3)},
                {"minLength": random.randrange(1, 4)},
                {"pattern": random.choice(PATTERNS)},
            )
        )

    def some(self, choices: Any, most: int = 3) -> list[Any]:
        """Some of these, at least one, in a random order."""
        return self.random.sample(list(choices), self.random.randint(1, min(most, len(choices))))


def _is_in(value: Any, values: list[Any]) -> bool:
    return any(json.dumps(value) == json.dumps(other) for other in values)


def schemas(dialect: str = "2020-12", depth: int = 3) -> st.SearchStrategy[Schema]:
    """Hypothesis strategy: a schema document."""
    random = st.randoms(use_true_random=False)
    return random.map(lambda drawn: Builder(drawn, dialect).document(depth))


def small_values() -> list[Any]:
    """Values that tell small schemas apart: scalars, arrays and objects, nested a little."""
    arrays: list[Any] = [[], *([s] for s in SCALARS)]
    arrays += [list(pair) for pair in itertools.product(FEW, repeat=2)]
    arrays += [list(triple) for triple in itertools.product((0, 1, "a"), repeat=3)]
    objects: list[Any] = [
        {k: v for k, v in zip(("a", "b", "x"), values, strict=True) if v is not ...}
        for values in itertools.product((..., 0, 1, "a", None), repeat=3)
    ]
    for values in itertools.product((..., 0, "ab"), (0, "a"), (..., 1, True)):
        objects.append({k: v for k, v in zip(("b", "c", "a"), values, strict=True) if v is not ...})
    objects += [{k: v} for k in ("a", "b", "c", "x") for v in SCALARS]
    inner: list[Any] = [[], [0], ["a", 1], {}, {"a": 0}, {"b": "a"}, {"a": 1, "b": 0}, {"c": None}]
    deep = [[v] for v in inner] + [[0, v] for v in inner]
    deep_objects = [{k: v} for k in KEYS for v in inner] + [{"a": v, "b": 0} for v in inner]
    found = [*SCALARS, *arrays, *objects, *deep, *deep_objects, [[[0]]], {"a": {"a": {"a": 0}}}]
    return list({json.dumps(value): value for value in found}.values())


def mutated(random: Random, value: Any) -> Any:
    """The value with a change somewhere."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        change = random.randrange(4)
        if change == 0:
            return rest
        if change == 1:
            return {**value, random.choice((*KEYS, "x")): random.choice(SCALARS)}
        if change == 2:
            return {**rest, random.choice((*KEYS, "x")): value[key]}
        return {**value, key: mutated(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.8:
        place = random.randrange(len(value))
        change = random.randrange(4)
        if change == 0:
            return value[:place] + value[place + 1 :]
        if change == 1:
            return [*value, random.choice(SCALARS)]
        if change == 2:
            return [*value, value[place]]
        return [*value[:place], mutated(random, value[place]), *value[place + 1 :]]
    if isinstance(value, str) and random.random() < 0.5:
        return value + random.choice("abx")
    return random.choice((*SCALARS, [], {}, [value], {"a": value}))
