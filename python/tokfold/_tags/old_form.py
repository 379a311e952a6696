"""The form that structural tags had once, told in the form that they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tokfold import _json

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
    try:
        tag = in_new_form(document)
        text = _json.dumps(tag)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return what + _PATTERN
    if not (tag["format"]["tags"] and tag["format"]["triggers"]):
        return what + _PATTERN
    return what + (text if len(text) <= _LONGEST else _PATTERN)


def _read(text: str, path: str) -> object:
    return _json.read(text)


def in_new_form(
    document: Mapping[str, Any], read: Callable[[str, str], object] = _read
) -> dict[str, Any]:
    """The same tag as it is written now. A schema that is missing allows any JSON.

    Args:
        document: the tag.
        read: reads a schema that is text, and names its place where it is none.

    Raises:
        KeyError, TypeError, AttributeError: it is none of the old form.
        ValueError: a schema that is text is no JSON.
    """
    tags = []
    for i, one in enumerate(document["structures"]):
        schema = one.get("schema")
        if isinstance(schema, str):  # some clients write it as text
            schema = read(schema, f"structures[{i}].schema")
        content = {"type": "json_schema", "json_schema": True if schema is None else schema}
        tags.append({"type": "tag", "begin": one["begin"], "content": content, "end": one["end"]})
    format = {"type": "triggered_tags", "triggers": document["triggers"], "tags": tags}
    if document.get("at_least_one"):
        format["at_least_one"] = True
    return {"type": "structural_tag", "format": format}
