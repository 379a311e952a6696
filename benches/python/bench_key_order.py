"""What the order of names does to a model that writes them in an order of its own.

    python benches/python/bench_key_order.py FOLDER

FOLDER is of MaskBench's layout (`bench_maskbench.py`). Each valid instance with objects of several
names is a text that a model means to write: with its names as the collection has them (*given*), or
in a random order in each object (*shuffled*). It is read by four grammars of its schema: names in
the order of the schema, or in any; objects open, or closed where the schema does not say otherwise.
What counts is the first byte that a mask forbids:

- *as meant*: there is none;
- *invents a name*: the closing quotation mark of a name that the schema has, and that was passed
  over. In an open object any longer name may follow, so that the mask drives the model into one;
- *another name*: a byte of a name, or the end of the object: the model must write a name that the
  schema has due instead, or go on where it wanted to end;
- *otherwise*: a value.

Instances that the grammar in any order does not take as they are, since they have other members or
spellings than it, are left out. The figures are counts, so the machine does not matter.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import bench_common as common
import tokfold
from tokfold import Grammar, Limits, TokfoldError

WAYS = [(order, is_open) for order in ("schema", "any") for is_open in (True, False)]
OUTCOMES = ("as meant", "invents a name", "another name", "otherwise")


def main() -> None:
    """Count and print."""
    assert __doc__ is not None
    parser = common.described(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--schemas", type=int, metavar="N", help="the first N schemas alone")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.json"))[: options.schemas]
    if not files:
        parser.error(f"{options.folder} holds no file NAME.json")
    chance = random.Random(options.seed)
    counts: dict[tuple[str, str, bool], Counter[str]] = {}
    for file in files:
        count(json.loads(file.read_bytes()), chance, counts)
    rows = []
    for (written, order, is_open), found in sorted(counts.items(), reverse=True):
        total = found.total()
        shares = [f"{100 * found[outcome] / total:.1f} %" for outcome in OUTCOMES]
        rows.append([written, order, "open" if is_open else "closed", f"{total:,}", *shares])
    columns = ["names", "key_order", "objects", "texts", *OUTCOMES]
    common.show(common.console(width=110), "The first byte that a mask forbids", columns, rows)


def count(
    case: dict[str, Any],
    chance: random.Random,
    counts: dict[tuple[str, str, bool], Counter[str]],
) -> None:
    """Count the instances of a schema."""
    values = [test["data"] for test in case["tests"] if test["valid"]]
    values = [value for value in values if most_names(value) > 1]
    try:
        grammars = {way: grammar_of(case["schema"], *way) for way in WAYS} if values else {}
    except TokfoldError:
        return
    for value in values:
        for is_open in (True, False):
            if not tokfold.recognize(grammars["any", is_open], json.dumps(value)).accepted:
                continue
            for written, meant in (("given", value), ("shuffled", shuffled(value, chance))):
                text = json.dumps(meant).encode()
                for order in ("schema", "any"):
                    outcome = outcome_of(grammars[order, is_open], text)
                    counts.setdefault((written, order, is_open), Counter())[outcome] += 1


def grammar_of(schema: Any, order: Any, is_open: bool) -> Grammar:
    """The grammar of a schema by two options."""
    limits = Limits(max_compile_milliseconds=2_000)
    return Grammar.from_json_schema(
        schema, key_order=order, additional_properties=is_open, limits=limits
    )


def outcome_of(grammar: Grammar, text: bytes) -> str:
    """What becomes of a text."""
    found = tokfold.recognize(grammar, text)
    if found.accepted:
        return "as meant"
    place, is_name = found.read, stands_in_name(text[: found.read])
    if is_name:
        return "invents a name" if text[place : place + 1] == b'"' else "another name"
    return "another name" if text[place : place + 1] in (b"}", b",") else "otherwise"


def stands_in_name(text: bytes) -> bool:
    """Whether a text stops behind the first quotation mark of a name of an object, in the name."""
    opened: list[int] = []
    is_string = is_name = follows_mark = False
    place = 0
    while place < len(text):
        byte = text[place]
        if is_string:
            if byte == ord("\\"):
                place += 1
            elif byte == ord('"'):
                is_string = is_name = False
        elif byte == ord('"'):
            is_string = True
            is_name = follows_mark and opened[-1:] == [ord("{")]
        if not is_string:
            if byte in b"{[":
                opened.append(byte)
            elif byte in b"}]":
                opened.pop()
            if byte not in b' \n"':
                follows_mark = byte in b"{,"
        place += 1
    return is_name


def most_names(value: object) -> int:
    """The most names of an object in a value."""
    parts = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(parts, list):
        return 0
    own = len(parts) if isinstance(value, dict) else 0
    return max([own, *map(most_names, parts)])


def shuffled(value: Any, chance: random.Random) -> Any:
    """The value, with the names of each object in a random order."""
    if isinstance(value, list):
        return [shuffled(part, chance) for part in value]
    if not isinstance(value, dict):
        return value
    names = list(value)
    chance.shuffle(names)
    return {name: shuffled(value[name], chance) for name in names}


if __name__ == "__main__":
    main()
