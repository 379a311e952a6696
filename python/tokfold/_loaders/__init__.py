"""Readers of tokenizer files and objects, one module a format.

Each reader returns a :class:`~tokfold._loaders.parts.LoadedVocabulary`: the bytes of every token
as the library that owns the format decodes it, and what the format knows of special and stop
tokens. None of them needs a package beyond numpy.

- ``dispatch``: which format a path holds
- ``hf_tokenizer_json``, ``tiktoken_file``, ``tekken``, ``sentencepiece_model``: the files;
  ``transformers_tokenizer``: tokenizer objects. A GGUF is read by llama.cpp: ``tokfold.llama_cpp``
- ``companions``: the files beside a tokenizer; ``resolve``: one size and one set of stop tokens
- ``byte_decoding``: from the text of a token to its bytes
- ``normalizing``: the text of an added token
- ``parts``, ``files``, ``checks``: what all share
"""

from __future__ import annotations

from tokfold._loaders.dispatch import load_path
from tokfold._loaders.parts import Kind, LoadedVocabulary

__all__ = ["Kind", "LoadedVocabulary", "load_path"]
