"""The official test suite: each verdict is right, or the ratchet file names it.

The text of an instance is ``json.dumps(data, ensure_ascii=False)``. Formats are annotations in the
required files, as the suite wants it, and asserted in ``optional/format``; keys come in any order.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from json_schema import data, ratchet
from json_schema.data import Group
from json_schema.languages import RefusedError, language
from strategies.profiles import CASES

DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")
PARTS = ("required", "optional", "format")
SCHEMAS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
BARS = {
    "draft4": 575,
    "draft6": 790,
    "draft7": 880,
    "draft2019-09": 1_150,
    "draft2020-12": 1_200,
}
"""Required tests of which the verdict is right."""


class Judged:
    """What became of the tests of a file."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}
        self.rejected: dict[str, list[str]] = {}
        self.accepted: dict[str, list[str]] = {}
        self.counts: Counter[str] = Counter()

    def take(self, group: Group, schema: Any, options: dict[str, Any]) -> None:
        """Judge the instances of a group."""
        try:
            found = language(schema, **options)
        except RefusedError as error:
            self.refused[group.name] = error.reason
            self.counts["refused"] += len(group.instances)
            return
        for instance in group.instances:
            accepted = found.accepts(json.dumps(instance.value, ensure_ascii=False))
            if accepted == instance.valid:
                self.counts["right"] += 1
                continue
            kind = "accepted" if accepted else "rejected"
            self.counts[kind] += 1
            getattr(self, kind).setdefault(group.name, []).append(instance.description)

    def tree(self) -> ratchet.Tree:
        """What is not right."""
        trees = {"refused": self.refused, "rejected": self.rejected, "accepted": self.accepted}
        return {kind: tree for kind, tree in trees.items() if tree}


def options_of(draft: str, part: str, file: str) -> dict[str, Any]:
    """How the files of a part are read.

    ``1.0`` is an integer from draft-06 on; in draft-04 it is none.
    """
    asserted = part == "format" or file == "format-assertion.json"
    return {
        "key_order": "any",
        "formats": "assert" if asserted else "annotation",
        "integers": "1" if draft == "draft4" else "1.0",
    }


def in_dialect(schema: Any, draft: str) -> Any:
    """The schema with its dialect, which the folder says where the schema does not."""
    if isinstance(schema, dict) and "$schema" not in schema:
        return {"$schema": SCHEMAS[draft], **schema}
    return schema


def judged(folder: Path, draft: str, part: str) -> tuple[ratchet.Tree, Counter[str]]:
    """All files of a part."""
    remotes = data.remotes(folder)
    tree: ratchet.Tree = {}
    counts: Counter[str] = Counter()
    for file, groups in data.suite_files(folder, draft, part):
        found = Judged()
        for group in groups:
            schema = in_dialect(group.schema, draft)
            options = options_of(draft, part, file)
            if data.REMOTES in json.dumps(schema):
                options["resources"] = remotes
            found.take(group, schema, options)
        counts += found.counts
        if found.tree():
            tree[file] = found.tree()
    return tree, counts


@pytest.mark.parametrize("draft", DRAFTS)
def test_verdicts(suite: Path, draft: str) -> None:
    found: ratchet.Tree = {}
    counts: dict[str, Counter[str]] = {}
    for part in PARTS:
        found[part], counts[part] = judged(suite, draft, part)
        CASES[f"tests of the official suite, {draft}, {part}: right"] += counts[part]["right"]
    found["counts"] = {part: dict(sorted(counts[part].items())) for part in PARTS}
    ratchet.check(draft, found, f"tests/json_schema/test_suite.py -k {draft}")
    required, formats = counts["required"], counts["format"]
    assert required["rejected"] + required["accepted"] == 0
    assert required["right"] >= BARS[draft]
    assert formats["accepted"] == 0
