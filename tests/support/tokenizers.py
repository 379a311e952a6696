"""Folders of real tokenizers, where TOKFOLD_TOKENIZERS or a sibling of the checkout has them."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["files", "folders"]

ROOT = Path(__file__).resolve().parents[2]


def files(pattern: str) -> list[Path]:
    """The files of such a name, sorted; none where there are none."""
    named = os.environ.get("TOKFOLD_TOKENIZERS")
    found = Path(named) if named else ROOT.parent / "shared" / "tokenizers"
    return sorted(found.rglob(pattern))


def folders() -> list[Path]:
    """The folders with a ``tokenizer.json``, sorted; none where there are none."""
    return [path.parent for path in files("tokenizer.json")]
