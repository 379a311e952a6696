"""Files of what is known not to be right, which may only become fewer.

A file holds what is refused, rejected though valid, and accepted though invalid. A test compares
it with what it finds, and both directions fail: what is worse is a fault, and what is better is to
be written down, so that it stays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "ratchets"
UPDATE = os.environ.get("TOKFOLD_RATCHET") == "update"
WIDTH = 100

Tree = dict[str, Any]


def check(name: str, found: Tree, test: str, part: set[str] | None = None) -> None:
    """Compare what was found with a file, or write it there.

    Args:
        name: of the file.
        found: a tree of dicts whose leaves are lists and texts.
        test: the test, as pytest names it, for the message.
        part: the keys at the top that were looked at; None for all.
    """
    path = FOLDER / f"{name}.json"
    known: Tree = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    looked = known if part is None else {k: v for k, v in known.items() if k in part}
    if UPDATE:
        kept = {} if part is None else {k: v for k, v in known.items() if k not in part}
        path.parent.mkdir(exist_ok=True)
        whole = {**kept, **found}
        whole = whole if part is None else dict(sorted(whole.items()))
        path.write_text(written(whole) + "\n", encoding="utf-8")
        return
    before, now = set(_lines(looked)), set(_lines(found))
    worse, better = sorted(now - before), sorted(before - now)
    message = []
    if worse:
        message.append(f"{len(worse)} that {path.name} does not hold:")
        message += [f"  {line}" for line in worse[:400]]
    if better:
        message.append(f"{len(better)} of {path.name} that are not found any more:")
        message += [f"  {line}" for line in better[:40]]
        message.append(
            "if these are right now, write that down with "
            f"`TOKFOLD_RATCHET=update python -m pytest -p no:xdist {test}`"
        )
    assert not message, "\n".join(message)


def _lines(tree: Any, before: str = "") -> Iterator[str]:
    """A line for each leaf."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _lines(value, f"{before} / {key}" if before else key)
    elif isinstance(tree, list):
        for value in tree:
            yield from _lines(value, before)
    else:
        yield f"{before}: {tree}"


def written(value: Any, indent: int = 0) -> str:
    """JSON for people: what fits stands on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    space = " " * (indent + 2)
    if isinstance(value, dict):
        items = [
            f"{space}{json.dumps(k, ensure_ascii=False)}: {written(v, indent + 2)}"
            for k, v in value.items()
        ]
    else:
        items = [space + written(v, indent + 2) for v in value]
    left, right = "{}" if isinstance(value, dict) else "[]"
    return left + "\n" + ",\n".join(items) + "\n" + " " * indent + right
