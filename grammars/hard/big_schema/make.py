# SPDX-License-Identifier: Apache-2.0
"""Prints the grammar of a large JSON Schema of some ten thousand rules; with --schema, the schema.

    python grammars/hard/big_schema/make.py > big_schema.gbnf
    python grammars/hard/big_schema/make.py --schema > big_schema.json

An own definition in JSON Schema 2020-12 (json-schema.org), built as descriptions of large APIs are:
a list of resources of many kinds, told apart by "kind", each of some twenty members, which refer to
shared parts and to one another. Members come from the lists below in turn, so it is the same each
time.

What is hard: the number of rules; hundreds of objects whose names begin alike; choices between
parts that differ late; free names beside known ones; counts; parts that refer to each other in
rings. Names stand in the order in which the schema first mentions them, over all kinds.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


def words(text: str) -> list[str]:
    """What white space separates."""
    return text.split()


AREAS = words("account billing catalog delivery event identity network policy storage support")
THINGS = words("""address batch channel device entry group host item job key limit message node
order""")
STEMS = words("""active alias amount area base batch capacity category channel code color comment
count created currency custom default delay depth description details display duration enabled end
entries external factor filter flags format group height history hours image index interval key
kind-of label language last length level limit links list locale location maximum measure message
minimum mode model name next notes number offset options order origin owner parent path period
phone position price priority quantity range rate reason reference region replica role rule
schedule scope score selector sequence size source start state status step storage summary tags
target template threshold time title token total type-of unit update usage value version volume
weight width zone""")
ENDINGS = ("", "Id", "Name", "At", "Count", "Ref", "s")
STATES = words("pending active paused failing failed retired archived deleted unknown blocked")
PARTS = 200
"""Shared parts, most of which refer to others."""
KINDS = 40
"""Kinds of resources."""
MEMBERS = 9
"""Of each part and, twice as many, of each resource."""


def names(start: int) -> Iterator[str]:
    """Names of members, none twice."""
    for number in itertools.count():
        stem = STEMS[(start + number * 7) % len(STEMS)]
        ending = ENDINGS[(start + number * number) % len(ENDINGS)]
        yield stem.replace("-", "") + ending if number < len(STEMS) else f"{stem}{number}"


def part_name(number: int) -> str:
    """``accountAddress``, ``billingBatch2``..."""
    area, thing = AREAS[number % len(AREAS)], THINGS[number % len(THINGS)]
    return f"{area}{thing.capitalize()}{number // 10 or ''}"


def reference(number: int) -> Schema:
    """To a part."""
    return {"$ref": f"#/$defs/{part_name(number % PARTS)}"}


def value(number: int) -> Schema:
    """What a member is; what differs in ``number`` differs in kind."""
    low = number % 50
    choices: list[Schema] = [
        {"type": "string"},
        {"type": "integer", "minimum": low, "maximum": low * 37 + 120},
        reference(number * 3 + 1),
        {"enum": [f"{state}{number % 3 or ''}" for state in STATES[number % 5 : number % 5 + 5]]},
        {"type": "boolean"},
        {"type": "array", "items": reference(number * 5 + 2), "maxItems": 3 + number % 9},
        {"type": "string", "minLength": 1, "maxLength": 8 + number % 56},
        {"anyOf": [reference(number + 11), {"type": "null"}]},
        {"type": "number"},
        {"type": "string", "pattern": f"^[a-z][a-z0-9-]{{0,{number % 20 + 4}}}$"},
        {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
        {
            "oneOf": [
                {"const": number},
                {"type": "string", "format": "date"},
                {"const": -number - 1},
            ]
        },
        {"type": "string", "format": ("date-time", "uuid", "ipv4", "email", "uri")[number % 5]},
        {"type": "array", "items": {"enum": STATES[number % 4 :]}, "minItems": 1},
        {"anyOf": [reference(number * 7), reference(number * 7 + 1), {"type": "string"}]},
        {"type": "object", "additionalProperties": reference(number * 11 + 3), "maxProperties": 4},
    ]
    return choices[number % len(choices)]


def an_object(number: int, members: int, required: int) -> Schema:
    """An object of so many members, so many of them required, closed but for one in eight."""
    taken = list(itertools.islice(names(number * 13), members))
    schema: Schema = {
        "type": "object",
        "properties": {name: value(number + at * 3) for at, name in enumerate(taken)},
        "required": taken[: 2 * required : 2],
    }
    if number % 8:
        schema["additionalProperties"] = False
    return schema


def part(number: int) -> Schema:
    """A shared part: few of these are required, so that there is an end to it."""
    schema = an_object(number, MEMBERS, 2)
    for at, name in enumerate(schema["required"]):
        schema["properties"][name] = value((0, 1, 3, 4, 6)[(number + at) % 5] + 16 * number)
    return schema


def resource(area: int) -> Schema:
    """A resource: its kind and name come first."""
    schema = an_object(1000 + area, 2 * MEMBERS, 3)
    heads: Schema = {
        "kind": {"const": f"{AREAS[area % len(AREAS)]}.{THINGS[area % len(THINGS)]}"},
        "apiVersion": {"enum": ["v1", "v1beta1", "v2"]},
        "name": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"},
    }
    heads |= {name: of for name, of in schema["properties"].items() if name not in heads}
    schema["properties"] = heads | {"children": {"$ref": "#/$defs/resources"}}
    schema["required"] = ["kind", "name", *schema["required"]]
    return schema


def schema() -> Schema:
    """All of it."""
    definitions = {part_name(number): part(number) for number in range(PARTS)}
    definitions |= {f"resource{area}": resource(area) for area in range(KINDS)}
    of_any_kind = {"anyOf": [{"$ref": f"#/$defs/resource{area}"} for area in range(KINDS)]}
    definitions["resources"] = {"type": "array", "items": of_any_kind}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "apiVersion": {"const": "v2"},
            "items": {"$ref": "#/$defs/resources"},
            "extensions": {"type": "object", "additionalProperties": reference(17)},
        },
        "required": ["apiVersion", "items"],
        "additionalProperties": False,
        "$defs": definitions,
    }


if __name__ == "__main__":
    if "--schema" in sys.argv:
        print(json.dumps(schema(), indent=1))
    else:
        import tokfold

        print(tokfold.Grammar.from_json_schema(schema()), end="")
