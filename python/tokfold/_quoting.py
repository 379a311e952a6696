"""Values of callers in messages: short, however large or deep they are, and always printable."""

from __future__ import annotations

from itertools import islice
from typing import Any

MOST = 200
"""Characters of a message that one value takes at most."""


def quoted(value: object, most: int = MOST) -> str:
    """``repr(value)``, cut where it is long; the name of the type where it cannot be had.

    It takes no longer for a large or deep value than for a small one, and UTF-8 can write it.
    """
    left = most

    def pruned(part: Any) -> Any:  # noqa: ANN401 - any value
        """What can be seen of a part: each of its parts takes a character or more."""
        nonlocal left
        left -= 1
        if left < 0:
            return None
        kind = type(part)
        if kind in (str, bytes, bytearray):
            return part[:most]
        if kind in (list, tuple, set, frozenset):
            return kind(map(pruned, islice(part, most)))
        if kind is dict:
            return {pruned(key): pruned(found) for key, found in islice(part.items(), most)}
        return part

    try:
        text = repr(pruned(value))
    except Exception:  # whatever the parts do, the message is about something else
        text = f"<{type(value).__name__}>"
    text = encodable(text[: most + 1])
    return text if len(text) <= most else f"{text[: most - 3]}..."


def named(path: str) -> str:
    """The name of a file, without its middle where it is too long to be shown."""
    half = (MOST - 3) // 2
    return path if len(path) <= MOST else f"{path[:half]}...{path[-half:]}"


def encodable(text: str) -> str:
    """A text, with an escape for each lone surrogate, as names of files may have them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
