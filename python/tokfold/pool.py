"""What masks remember, shared by all grammars over one vocabulary."""

from __future__ import annotations

import sys
from os import PathLike

import numpy as np

from tokfold import _artifact, _core
from tokfold._checks import whole_number, wrong_type
from tokfold._quoting import quoted
from tokfold.errors import ArtifactError, VocabularyError
from tokfold.vocabulary import Vocabulary

__all__ = ["MaskPool", "shared_pool"]

KIND = "mask-pool"
ALGORITHM = 2
"""Raised when states get other digests, or the trie other numbers."""
DEFAULT_BYTES = 64 << 20


class MaskPool:
    """Masks of parts of grammars, kept by what the parts do (XGrammar 2, section 3.3).

    A JSON string does the same in every schema, so what a mask looks at there is looked at once.
    Parts are found by a 256-bit digest of the network below them, so two that are written in
    different ways and mean the same by the same automaton are one. Safe between threads. It serves
    masks that walk the whole vocabulary: those over classes cost less than finding them here.

    Every :class:`tokfold.Vocabulary` has a pool that :func:`tokfold.compile` uses; make one
    to bound it otherwise, or to keep it on disk.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> pool = tokfold.MaskPool(vocabulary, max_bytes=1 << 20)
        >>> options = tokfold.CompileOptions(pool=pool)
        >>> compiled = tokfold.compile('root ::= "a"+', vocabulary, options=options)
        >>> pool.max_bytes
        1048576
    """

    def __init__(self, vocabulary: Vocabulary, max_bytes: int = DEFAULT_BYTES) -> None:
        """An empty pool.

        Args:
            vocabulary: the vocabulary of all grammars that will share the pool.
            max_bytes: bound on what is held; what was not used for longest goes first.
        """
        if not isinstance(vocabulary, Vocabulary):
            raise wrong_type("vocabulary", "a tokfold.Vocabulary", vocabulary)
        self.max_bytes = _bytes(max_bytes)
        self._fingerprint = vocabulary.fingerprint
        self._core = _core.Pool(vocabulary._compiled, min(self.max_bytes, sys.maxsize))

    def counters(self) -> dict[str, int]:
        """``entries`` and ``bytes`` held; ``hits`` and ``misses`` so far; ``evicted`` entries."""
        return self._core.counters()

    def clear(self) -> None:
        """Forget everything."""
        self._core.clear()

    def save(self, path: str | PathLike[str], max_bytes: int | None = None) -> None:
        """Write what the pool holds to a file, for :meth:`load` in this or another process.

        The file appears whole or not at all. What other processes saved there meanwhile, and this
        pool never loaded, is replaced: load first to keep it.

        Args:
            path: the file.
            max_bytes: what was not used for longest is left out past this.

        Raises:
            ArtifactError: the file cannot be written.
        """
        most = self.max_bytes if max_bytes is None else _bytes(max_bytes)
        data = self._core.to_bytes(min(most, sys.maxsize))
        _artifact.write(
            path,
            KIND,
            {"algorithm": ALGORITHM, "vocabulary": self._fingerprint},
            {"answers": np.frombuffer(data, dtype=np.uint8)},
        )

    def load(self, path: str | PathLike[str]) -> int:
        """Take up what :meth:`save` wrote; returns how many masks. What is held stays.

        Raises:
            ArtifactError: the file is damaged, or of another version.
            VocabularyError: it is for another vocabulary.
            MissingFileError: there is no such file; it is a ``FileNotFoundError`` too.
        """
        artifact = _artifact.read(path, KIND)
        if artifact.header.get("algorithm") != ALGORITHM:
            raise ArtifactError(f"{path}: masks of another version of tokfold: make them again")
        if artifact.header.get("vocabulary") != self._fingerprint:
            raise VocabularyError(f"{path}: these masks are for another vocabulary")
        answers = artifact.arrays.get("answers")
        if answers is None or answers.dtype != np.uint8 or answers.ndim != 1:
            raise ArtifactError(f"{path}: the saved masks are damaged")
        try:
            return self._core.add_bytes(answers.tobytes())
        except VocabularyError as error:
            raise ArtifactError(f"{path}: {error}") from error

    def __repr__(self) -> str:
        held = self.counters()
        return f"<MaskPool of {held['entries']} masks, {held['bytes']} bytes>"


def _bytes(max_bytes: object) -> int:
    number = whole_number(max_bytes)
    if number is None or number < 0:
        raise ValueError(f"max_bytes must be a number of bytes, not {quoted(max_bytes)}")
    return number


def shared_pool(vocabulary: Vocabulary) -> MaskPool:
    """The pool of a vocabulary, which grammars share that are compiled without one of their own."""
    return vocabulary._keep("_pool", MaskPool)
