"""Structural tags: token strings, resolved as XGrammar's compiler does it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tokfold import _json

__all__ = ["with_token_ids"]

_TOKEN_LISTS = ("exclude_tokens", "trigger_tokens")


def with_token_ids(text: str, token_id: Callable[[str], int]) -> str:
    """A structural tag in which tokens are ids.

    Args:
        text: the tag, as JSON. What is no JSON comes back as it is, for XGrammar to complain.
        token_id: the id of a token's text.
    """
    if text.startswith("\ufeff"):
        return text
    try:
        document = _json.read(text)
    except json.JSONDecodeError:
        return text
    return _json.dumps(_resolve(document, token_id))


def _resolve(node: Any, token_id: Callable[[str], int]) -> Any:  # noqa: ANN401 - JSON
    """Replace token strings in the formats of a structural tag; schemas are left alone."""
    if isinstance(node, list):
        return [_resolve(item, token_id) for item in node]
    if not isinstance(node, dict):
        return node

    def resolved(value: Any) -> Any:  # noqa: ANN401
        return token_id(value) if isinstance(value, str) else value

    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "json_schema":
            result[key] = value
        elif key == "token" and node.get("type") == "token":
            result[key] = resolved(value)
        elif key in _TOKEN_LISTS and isinstance(value, list):
            result[key] = [resolved(item) for item in value]
        elif key == "rules" and node.get("type") == "token_dispatch" and isinstance(value, list):
            result[key] = [[resolved(rule[0]), _resolve(rule[1], token_id)] for rule in value]
        else:
            result[key] = _resolve(value, token_id)
    return result
