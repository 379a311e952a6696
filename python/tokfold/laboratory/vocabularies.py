"""Vocabularies for whoever has no tokenizer."""

from __future__ import annotations

from tokfold.vocabulary import Vocabulary

__all__ = ["byte_vocabulary"]


def byte_vocabulary() -> Vocabulary:
    """The 256 bytes as tokens 0 to 255, and token 256, which ends the text."""
    return Vocabulary([*(bytes([b]) for b in range(256)), b"</s>"], [256], name="bytes")
