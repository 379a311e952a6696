"""Random schemas of objects with many names, and instances of them.

An object has 6 to 14 known names. So few keywords restrict each that most schemas have instances,
and so many kinds of keywords that those that speak of several names meet one another.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

from hypothesis import strategies as st

Schema = Any

NAMES = (*"abcdefg", "aa", "ab", "abc", "h1", "h10", "é", 'n"o')
OTHERS = ("x", "xy", "ü", "aaa", "", "h", "h100")
"""Names that `properties` does not list."""
KINDS = ("p", "q", "r", "s", "t", "u")
LEAVES: tuple[tuple[Schema, tuple[Any, ...]], ...] = (
    ({"type": "integer"}, (0, 1, 7, -2)),
    ({"type": "integer", "minimum": 1, "maximum": 3}, (1, 2, 3)),
    ({"type": "string"}, ("", "u", "v")),
    ({"type": "string", "pattern": "^[uv]*$"}, ("", "u", "vu")),
    ({"enum": ["u", 1, None]}, ("u", 1, None)),
    ({"const": True}, (True,)),
    ({"type": "boolean"}, (True, False)),
    ({"type": ["null", "integer"]}, (None, 1)),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, ([], [1], [0, 2])),
    ({}, (1, "u", None, [], {})),
)
"""Schemas of values, each with values of it."""
ANY_VALUES: tuple[Any, ...] = (0, 1, 2, "u", "w", True, False, None, [], [1], {}, {"a": 1})


class WideBuilder:
    """Draws schemas of objects, and instances.

    Args:
        random: a generator.
    """

    def __init__(self, random: Random) -> None:
        self.random = random

    def document(self) -> Schema:
        """A schema whose root is an object of many names."""
        random = self.random
        if random.random() < 0.2:
            return self.discriminated()
        root = self.wide(1)
        defs: dict[str, Schema] = {}
        if random.random() < 0.25:
            defs["part"] = self.wide(0)
            for _ in range(random.randint(1, 2)):
                root["properties"][random.choice(list(root["properties"]))] = {
                    "$ref": "#/$defs/part"
                }
        if random.random() < 0.15:
            root["properties"][random.choice(list(root["properties"]))] = {"$ref": "#"}
        return {"$defs": defs, **root} if defs else root

    def wide(self, depth: int) -> dict[str, Schema]:
        """An object schema of 6 to 14 names.

        Args:
            depth: how many levels of such objects its values may have.
        """
        random = self.random
        names = random.sample(NAMES, random.randint(6, len(NAMES) if depth else 8))
        properties = {name: self.leaf() for name in names}
        if depth and random.random() < 0.3:
            properties[random.choice(names)] = self.wide(depth - 1)
        made: dict[str, Schema] = {"type": "object", "properties": properties}
        if random.random() < 0.7:
            made["required"] = self.some(names, 6)
        if random.random() < 0.8:
            made["additionalProperties"] = random.choice((False, False, True, self.leaf()))
        count = random.choice((0, 1, 1, 2, 2, 3)) if depth else random.choice((0, 0, 1))
        for _ in range(count):
            self.add(made, random.choice(self.groups())(names))
        return made

    def add(self, made: dict[str, Schema], more: dict[str, Schema]) -> None:
        """Puts keywords beside others, or into `allOf` where they are taken."""
        if self.random.random() < 0.6 and not set(more) & set(made):
            made.update(more)
        elif "unevaluatedProperties" not in more:
            made.setdefault("allOf", []).append(more)

    def leaf(self) -> Schema:
        """A schema of a value."""
        return self.random.choice(LEAVES)[0]

    def discriminated(self) -> Schema:
        """Objects of some kinds, each with names of its own."""
        random = self.random
        kinds = KINDS[: random.randint(2, len(KINDS))]
        shared = random.sample(NAMES[:4], 2)
        branches = []
        for kind in kinds:
            names = random.sample(NAMES, random.randint(2, 6))
            properties: dict[str, Schema] = {n: self.leaf() for n in names}
            items = [("kind", {"const": kind}), *properties.items()]
            random.shuffle(items)
            branch: dict[str, Schema] = {
                "properties": dict(items),
                "required": ["kind", *self.some(names, 4)],
            }
            if random.random() < 0.6:
                branch["additionalProperties"] = False
            elif random.random() < 0.5:
                self.add(branch, random.choice(self.groups())(names))
            branches.append(branch)
        root: dict[str, Schema] = {"type": "object"}
        if random.random() < 0.5:
            root["properties"] = {"kind": {"enum": list(kinds)}}
            root["required"] = ["kind"]
        if random.random() < 0.5:
            root.setdefault("properties", {}).update({n: self.leaf() for n in shared})
        root[random.choice(("oneOf", "anyOf"))] = branches
        if random.random() < 0.3:
            root["unevaluatedProperties"] = False
        if random.random() < 0.3:
            root = {"type": "object", "properties": {"o": root, "n": self.leaf()}}
        return root

    def groups(self) -> list[Callable[[list[str]], dict[str, Schema]]]:
        """Makers of keywords that speak of several names."""
        return [
            self.patterns,
            self.property_names,
            self.counts,
            self.dependent_required,
            self.dependent_required,
            self.dependent_schemas,
            self.condition,
            self.condition,
            self.negation,
            self.of_required,
            self.of_required,
            self.of_branches,
            self.unevaluated,
            self.forbidden,
        ]

    def patterns(self, names: list[str]) -> dict[str, Schema]:
        patterns = self.random.sample(("^x", "^[a-c]$", "[b-e]", "^.$", "é", "^a", "0$"), 2)
        return {"patternProperties": {p: self.leaf() for p in patterns}}

    def property_names(self, names: list[str]) -> dict[str, Schema]:
        choices: tuple[Schema, ...] = (
            {"pattern": "^[a-m]"},
            {"pattern": "[^b]$"},
            {"maxLength": 1},
            {"enum": [*names[:-1], "x"]},
            {"not": {"const": names[0]}},
        )
        return {"propertyNames": self.random.choice(choices)}

    def counts(self, names: list[str]) -> dict[str, Schema]:
        least, most = self.random.randint(0, 4), self.random.randint(3, 8)
        both = {"minProperties": least, "maxProperties": max(least, most)}
        keep = self.random.choice((["minProperties"], ["maxProperties"], list(both)))
        return {k: both[k] for k in keep}

    def dependent_required(self, names: list[str]) -> dict[str, Schema]:
        return {"dependentRequired": {n: self.some(names, 3) for n in self.some(names, 3)}}

    def dependent_schemas(self, names: list[str]) -> dict[str, Schema]:
        return {"dependentSchemas": {n: self.branch(names) for n in self.some(names, 2)}}

    def condition(self, names: list[str]) -> dict[str, Schema]:
        made = {"if": self.branch(names)}
        for keyword in self.some(("then", "else"), 2):
            made[keyword] = self.branch(names)
        return made

    def negation(self, names: list[str]) -> dict[str, Schema]:
        return {"not": self.branch(names)}

    def of_required(self, names: list[str]) -> dict[str, Schema]:
        keyword = self.random.choice(("anyOf", "oneOf"))
        return {keyword: [{"required": self.some(names, 3)} for _ in range(3)]}

    def of_branches(self, names: list[str]) -> dict[str, Schema]:
        keyword = self.random.choice(("anyOf", "oneOf", "allOf"))
        return {keyword: [self.branch(names) for _ in range(self.random.randint(2, 3))]}

    def unevaluated(self, names: list[str]) -> dict[str, Schema]:
        return {"unevaluatedProperties": self.random.choice((False, self.leaf()))}

    def forbidden(self, names: list[str]) -> dict[str, Schema]:
        return {"properties": dict.fromkeys(self.some(names, 2), False)}

    def branch(self, names: list[str]) -> dict[str, Schema]:
        """A schema of a few members, as it stands under a condition."""
        random = self.random
        chosen = self.some(names, 2)
        made: dict[str, Schema] = {}
        if random.random() < 0.7:
            made["required"] = chosen
        if not made or random.random() < 0.6:
            made["properties"] = {n: self.leaf() for n in self.some([*chosen, names[0]], 2)}
        return made

    def some(self, choices: Any, most: int) -> list[Any]:
        """Some of these, at least one, in a random order."""
        return self.random.sample(list(choices), self.random.randint(1, min(most, len(choices))))

    # -- instances

    def instance(self, schema: Schema, root: Schema, depth: int = 3) -> Any:
        """A value that often is valid, or nearly so."""
        random = self.random
        if random.random() < 0.03 or schema is False:
            return random.choice(ANY_VALUES)
        if isinstance(schema, dict) and "$ref" in schema:
            target = root if schema["$ref"] == "#" else root["$defs"]["part"]
            return self.instance(target, root, depth - 1) if depth > 0 else {}
        for leaf, values in LEAVES:
            if schema == leaf:
                return random.choice(values)
        if not isinstance(schema, dict) or not _is_object(schema):
            return schema["const"] if isinstance(schema, dict) and "const" in schema else 1
        properties = dict(schema.get("properties", {}))
        required = set(schema.get("required", ()))
        for keyword in ("oneOf", "anyOf"):
            if keyword in schema and random.random() < 0.9:
                branch = random.choice(schema[keyword])
                properties.update(branch.get("properties", {}))
                required.update(branch.get("required", ()))
        rate = random.choice((0.1, 0.4, 0.7, 1.0))
        value: dict[str, Any] = {}
        for name in sorted({*properties, *required}):
            inner = properties.get(name, {})
            if inner is not False and (name in required or random.random() < rate):
                value[name] = self.instance(inner, root, depth - 1)
        if random.random() < 0.3:
            value[random.choice(OTHERS)] = random.choice(ANY_VALUES)
        return self.shuffled(value)

    def shuffled(self, value: Any) -> Any:
        """The value with all members in a random order."""
        if isinstance(value, dict):
            items = [(k, self.shuffled(v)) for k, v in value.items()]
            self.random.shuffle(items)
            return dict(items)
        if isinstance(value, list):
            return [self.shuffled(v) for v in value]
        return value

    def changed(self, value: Any) -> Any:
        """The value with a member removed, added, renamed or changed, at the root or below."""
        random = self.random
        if not isinstance(value, dict):
            return random.choice(ANY_VALUES)
        inner = [k for k, v in value.items() if isinstance(v, dict)]
        if inner and random.random() < 0.4:
            name = random.choice(inner)
            return {**value, name: self.changed(value[name])}
        change = random.randrange(4) if value else 1
        other = random.choice((*NAMES, *OTHERS))
        if change == 1:
            return self.shuffled({**value, other: random.choice(ANY_VALUES)})
        name = random.choice(list(value))
        rest = {k: v for k, v in value.items() if k != name}
        if change == 0:
            return rest
        if change == 2:
            return self.shuffled({**rest, other: value[name]})
        return {**value, name: random.choice(ANY_VALUES)}


BITS = (0, 1)
"""The values in a small object."""


class SmallBuilder(WideBuilder):
    """Draws objects of six names, each of which is absent, 0 or 1: all of them can be tried."""

    size = 6

    def document(self) -> Schema:
        random = self.random
        names = random.sample(NAMES, self.size)
        schema: dict[str, Schema] = {
            "type": "object",
            "properties": {name: self.bit() for name in names},
            "additionalProperties": False,
        }
        if random.random() < 0.6:
            schema["required"] = self.some(names, 4)
        for _ in range(random.choice((1, 1, 2, 2, 3))):
            self.add(schema, random.choice(self.groups())(names))
        return schema

    def bit(self) -> Schema:
        return self.random.choice(({"enum": [0, 1]}, {"enum": [0, 1]}, {"const": 1}, {"enum": [0]}))

    def leaf(self) -> Schema:
        return self.random.choice(({"const": 0}, {"const": 1}, {"maximum": 0}, {}))

    def patterns(self, names: list[str]) -> dict[str, Schema]:
        return {
            "patternProperties": {
                f"^({'|'.join(map(re.escape, self.some(names, 3)))})$": self.leaf()
            }
        }


class PresenceBuilder(SmallBuilder):
    """Draws objects of so many names that sets of them are not written out; all values are 0."""

    size = 13

    def bit(self) -> Schema:
        return {"const": 0}

    def leaf(self) -> Schema:
        return self.random.choice(({}, {}, {"const": 0}, {"const": 1}))

    def groups(self) -> list[Callable[[list[str]], dict[str, Schema]]]:
        return [self.counts, self.counts, *super().groups()]

    def counts(self, names: list[str]) -> dict[str, Schema]:
        least, most = self.random.randint(0, 8), self.random.randint(1, 12)
        both = {"minProperties": least, "maxProperties": max(least, most)}
        keep = self.random.choice((["minProperties"], ["maxProperties"], list(both)))
        return {k: both[k] for k in keep}


def small_instances(names: list[str], values: Iterable[int] = BITS) -> Iterator[dict[str, int]]:
    """All objects whose members have these values."""
    for chosen in itertools.product((None, *values), repeat=len(names)):
        yield {k: v for k, v in zip(names, chosen, strict=True) if v is not None}


SEEDS = st.integers(0, 1 << 40)
"""Seeds and not Hypothesis' own generators: the first schemas of those are all alike."""


def small_builders() -> st.SearchStrategy[SmallBuilder]:
    """Hypothesis strategy: makers of small objects."""
    kinds = st.sampled_from((SmallBuilder, SmallBuilder, PresenceBuilder))
    return st.builds(lambda kind, seed: kind(Random(seed)), kinds, SEEDS)


def _is_object(schema: dict[str, Any]) -> bool:
    return any(k in schema for k in ("properties", "required", "oneOf", "anyOf"))


def wide_builders() -> st.SearchStrategy[WideBuilder]:
    """Hypothesis strategy: makers of schemas and instances."""
    return SEEDS.map(lambda seed: WideBuilder(Random(seed)))
