"""MaskBench: no invalid instance is accepted, and no valid one rejected but for its key order.

The text of an instance is ``json.dumps(data, ensure_ascii=False)``. The quick profile takes a third
of the schemas, the long profile (``TOKFOLD_HYPOTHESIS=long``) all of them; the third that nothing
is tuned on is in the long profile alone.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from json_schema import data, ratchet
from json_schema.data import Group
from json_schema.languages import Language, RefusedError, language
from json_schema.order import Order, arranged
from strategies.profiles import CASES, LONG

SHARDS = 8
QUICK = 1
"""The third of the quick profile."""
SHARE_REFUSED = 150 / 11_306
SHARE_OF_OTHER_ORDER = 362 / 11_306
"""Of all schemas of MaskBench, with room for what a sample differs by."""


@dataclass
class Judged:
    """What became of some schemas."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    """By name: the reason for each key order."""
    accepted: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    other_order: dict[str, int] = field(default_factory=dict)

    def language(self, group: Group, key_order: str = "schema") -> Language | None:
        """The language of a schema; a refusal is written down."""
        try:
            return language(group.schema, key_order=key_order)
        except RefusedError as error:
            reason = f"{error.reason} at {error.pointer}".removesuffix(" at ")
            self.refused.setdefault(group.name, {})[key_order] = reason
            self.counts[f"refused in {key_order} order"] += 1
            return None


def text_of(value: Any) -> str:
    """The text by which MaskBench gives an instance."""
    return json.dumps(value, ensure_ascii=False)


def judge(group: Group, judged: Judged) -> None:
    """Judge all instances of a schema, with keys in the schema's order and in any."""
    ordered = judged.language(group)
    any_order = judged.language(group, key_order="any")
    if ordered is None:
        return
    others = 0
    for index, instance in enumerate(group.instances):
        text = text_of(instance.value)
        what = f"{group.name} / {index}: {instance.description}"
        first = ordered.accepts(text)
        second = instance.valid if any_order is None else any_order.accepts(text)
        judged.counts["instances"] += 1
        if not instance.valid:
            if first or second:
                judged.accepted.append(what)
            continue
        if not second:
            judged.rejected.append(what)
        if not first:
            others += 1
            if not is_only_order(ordered, group.schema, instance.value):
                judged.unexplained.append(what)
    judged.counts["right in schema order"] += not others
    judged.counts["right in any order"] += any_order is not None
    if others:
        judged.other_order[group.name] = others


def is_only_order(ordered: Language, schema: Any, value: Any) -> bool:
    """Whether a rejected value is accepted with its keys in the schema's order."""
    value = Order(schema).sorted(value)
    if ordered.accepts(text_of(value)):
        return True
    return ordered.compiled is not None and arranged(ordered.compiled, value) is not None


def names_of(folder: Path, shard: int) -> list[str]:
    """The schemas of a shard."""
    names = [n for n in data.maskbench_names(folder) if LONG or data.third(n) == QUICK]
    return names[shard::SHARDS]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_verdicts(maskbench: Path, shard: int) -> None:
    judged = Judged()
    names = names_of(maskbench, shard)
    for name in names:
        judge(data.maskbench_group(maskbench, name), judged)
    for what, count in judged.counts.items():
        CASES[f"MaskBench: {what}"] += count
    CASES["MaskBench: schemas"] += len(names)
    assert judged.accepted == []
    assert judged.rejected == []
    assert judged.unexplained == []
    found: ratchet.Tree = {
        name: {
            **({"refused": judged.refused[name]} if name in judged.refused else {}),
            **({"other order": judged.other_order[name]} if name in judged.other_order else {}),
        }
        for name in names
        if name in judged.refused or name in judged.other_order
    }
    ratchet.check("maskbench", found, "tests/json_schema/test_maskbench.py", set(names))


@pytest.mark.parametrize("order", ["schema", "any"])
def test_the_bars(maskbench: Path, order: str) -> None:
    """Of all that the ratchet file holds, so many are refused at most."""
    path = ratchet.FOLDER / "maskbench.json"
    known: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    names = data.maskbench_names(maskbench)
    refused = [name for name, what in known.items() if order in what.get("refused", ())]
    assert len(refused) <= len(names) * SHARE_REFUSED
    other = [name for name, what in known.items() if "other order" in what]
    assert len(other) <= len(names) * SHARE_OF_OTHER_ORDER
