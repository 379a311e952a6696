"""Reading files so that whatever is wrong with them is said by name."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from tokfold._quoting import named, quoted
from tokfold.errors import VocabularyError

MAX_FILE_BYTES = 128 << 20
"""Largest file read; the largest tokenizer file in use has some 35 MB."""


def read_bytes(path: Path) -> bytes:
    """Content of a regular file of bounded size."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise VocabularyError(f"{path}: expected a regular file")
        if status.st_size > MAX_FILE_BYTES:
            raise VocabularyError(
                f"{path}: {status.st_size} bytes; a tokenizer file has at most {MAX_FILE_BYTES}"
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, VocabularyError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise VocabularyError(f"{named(str(path))}: cannot be read: {reason}") from error
    if not data:
        raise VocabularyError(f"{path}: the file is empty")
    return data


def parse_json_object(data: bytes, path: Path) -> dict[str, Any]:
    """Parse a JSON object."""
    # Looking at the first byte keeps a large binary file from being decoded for nothing.
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{"):
        raise VocabularyError(f"{path}: expected a JSON object, found {quoted(start[:16])}")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise VocabularyError(
            f"{path}: expected a JSON object, but the file is damaged or truncated "
            f"({len(data)} bytes): {error}"
        ) from error
    assert isinstance(content, dict)  # it began with a brace
    return content


def describe(value: object) -> str:
    """Say in a few words what a JSON value is, for "expected ..., found ..." messages."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        keys = ", ".join(quoted(key, 40) for key in list(value)[:6])
        return f"an object with {keys}{', ...' if len(value) > 6 else ''}" if keys else "{}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return quoted(value, 40)
