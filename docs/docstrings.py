"""Examples of docstrings as the site's reader knows them: each ``>>>`` under ``Examples:``."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

HEAD = re.compile(r"^Example:$", re.MULTILINE)
BARE = re.compile(r"(?<=\n\n)(>>> .*(?:\n.+)*)")


def with_sections(text: str) -> str:
    """The docstring with a section for each example; what has one already stays."""
    text = HEAD.sub("Examples:", text)
    return BARE.sub(lambda found: "Examples:\n    " + found[1].replace("\n", "\n    "), text)


class Examples(Extension):
    """Applies it to all that is read."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        del kwargs
        if obj.docstring is not None:
            obj.docstring.value = with_sections(obj.docstring.value)
