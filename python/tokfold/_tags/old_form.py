"""The form that structural tags had once, told in the form that they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokfold import _json

__all__ = ["old_form"]

_LONGEST = 2_000
"""Characters of a tag that an error shows whole."""

_PATTERN = (
    '{"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": [...], "tags": '
    '[{"type": "tag", "begin": "...", "content": {"type": "json_schema", "json_schema": {...}}, '
    '"end": "..."}]}}'
)


def old_form(document: Mapping[str, Any]) -> str:
    """What to say to a tag of the old form: the same tag as it is written now.

    Args:
        document: has ``structures`` of begin, schema and end, and ``triggers``, or one of them.

    Example:
        >>> structure = {"begin": "<a>", "schema": True, "end": "</a>"}
        >>> old_form({"structures": [structure], "triggers": ["<a"]}).partition(": {")[0]
        'this is the old form of structural tags; write it so'
    """
    what = "this is the old form of structural tags; write it so: "
    tags = []
    structures = document.get("structures")
    for one in structures if isinstance(structures, list | tuple) else ():
        if not isinstance(one, Mapping) or not {"begin", "end"} <= one.keys():
            return what + _PATTERN
        schema = one.get("schema", True)
        if isinstance(schema, str):  # some clients write it as text
            try:
                schema = _json.loads(schema)
            except ValueError:
                return what + _PATTERN
        content = {"type": "json_schema", "json_schema": schema}
        tags.append({"type": "tag", "begin": one["begin"], "content": content, "end": one["end"]})
    if not tags or not document.get("triggers"):
        return what + _PATTERN
    format = {"type": "triggered_tags", "triggers": document["triggers"], "tags": tags}
    try:
        text = _json.dumps({"type": "structural_tag", "format": format})
    except (TypeError, ValueError, RecursionError):
        return what + _PATTERN
    return what + (text if len(text) <= _LONGEST else _PATTERN)
