"""Readers of tokenizer files and objects, one module a format.

Each reader returns a :class:`~tokfold._loaders.parts.LoadedVocabulary`: the bytes of every token
as the library that owns the format decodes it, and what the format knows of special and stop
tokens. None of them needs a package beyond numpy.
"""

from __future__ import annotations

from tokfold._loaders.dispatch import load_path
from tokfold._loaders.parts import Kind, LoadedVocabulary

__all__ = ["Kind", "LoadedVocabulary", "load_path"]
