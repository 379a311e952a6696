"""Parts of networks that grammars share.

What a structural tag holds of schemas and patterns is compiled by itself, once, and linked into
the network of every tag that holds it. Inside of those, rules that are found again and again (the
strings and values of JSON) are parts in turn, which all grammars of the process share.
"""

from __future__ import annotations

import os

from tokfold import _core

MAX_BYTES = 64 << 20
"""About so many bytes are kept; the parts not used for longest go first."""

shared = _core.Parts(MAX_BYTES)
"""The parts of the process."""


def _after_fork() -> None:
    """In a child process: another thread of the parent may have been at work here."""
    global shared
    shared = _core.Parts(MAX_BYTES)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
