"""Token classes: the vocabulary folded under one grammar."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from tokfold import _artifact, _core
from tokfold._checks import wrong_type
from tokfold._extras import require
from tokfold._lazy import lazy
from tokfold.errors import ArtifactError
from tokfold.grammar import Grammar
from tokfold.interrupt import Interrupt, governing
from tokfold.limits import DEFAULT_LIMITS, Limits
from tokfold.vocabulary import Vocabulary

__all__ = ["ProgressCallback", "TokenClasses", "compile_classes"]

ProgressCallback = Callable[[int, int], None]

KIND = "token-classes"
ALGORITHM = 4
"""Raised whenever the same input may give other classes, so that caches do not mix them."""


class TokenClasses:
    """A vocabulary folded into classes of tokens that a grammar cannot tell apart.

    Two tokens of one class: for every prefix and every continuation, one is valid exactly when
    the other is (CFGzip, theorems 1 and 2; ``docs/design/classes.md`` has the proof for our
    construction). Made by :func:`compile_classes` or :meth:`load`; immutable.

    Classes are numbered by their lowest token id; the last :attr:`num_stop_classes` are those of
    the stop tokens, one each, in the order of their ids.

    Attributes:
        class_of: int32, shape ``(len(vocabulary),)``, read-only: the class of each token id; -1
            where the token is never valid as text (special, padding, or dead under the grammar).
        representative_ids: uint32, shape ``(len(self),)``, read-only: for each class the id of
            its representative, the shortest member, the lowest id on ties.
        num_stop_classes: how many classes at the end are stop tokens.
        prune: whether branches that cannot be completed were dropped.
        grammar_fingerprint: :attr:`Grammar.fingerprint` of the grammar.
        vocabulary_fingerprint: :attr:`Vocabulary.fingerprint` of the vocabulary.
        stats: sizes and, where just compiled, times in seconds (``network_seconds``,
            ``walk_seconds``, ``seconds``).

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> grammar = tokfold.Grammar.from_ebnf("root ::= [ab]+")
        >>> classes = tokfold.compile_classes(grammar, vocabulary)
        >>> classes.class_of.tolist(), len(classes)
        ([0, 0, 0, 1], 2)
    """

    def __init__(
        self,
        class_of: npt.NDArray[np.int32],
        representative_ids: npt.NDArray[np.uint32],
        representatives: list[bytes],
        header: dict[str, Any],
        times: dict[str, float] | None = None,
    ) -> None:
        class_of.flags.writeable = False
        representative_ids.flags.writeable = False
        self.class_of = class_of
        self.representative_ids = representative_ids
        self._representatives = representatives
        self._header = header
        self.num_stop_classes: int = header["num_stop_classes"]
        self.prune: bool = header["prune"]
        self.grammar_fingerprint: str = header["grammar"]
        self.vocabulary_fingerprint: str = header["vocabulary"]
        self.stats: dict[str, int | float] = {**header["stats"], **(times or {})}

    def __len__(self) -> int:
        """The number of classes, those of the stop tokens included."""
        return len(self.representative_ids)

    @property
    def representatives(self) -> list[bytes]:
        """The bytes of each class's representative."""
        return list(self._representatives)

    def members(self, index: int) -> npt.NDArray[np.int64]:
        """The token ids of class ``index``, ascending: int64, shape ``(n,)``, n at least 1.

        Raises:
            IndexError: there is no such class.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"class {index} does not exist: there are {len(self)} classes")
        order, starts = self._by_class
        return order[starts[index] : starts[index + 1]]

    @lazy
    def _by_class(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Token ids by class, and where each class starts."""
        order = np.argsort(self.class_of, kind="stable")
        starts = np.searchsorted(self.class_of[order], np.arange(len(self) + 1))
        return order, starts

    def save(self, path: str | PathLike[str]) -> None:
        """Write the artefact: versioned, checksummed, the same bytes for the same classes.

        Raises:
            ArtifactError: the file could not be written; nothing is left half-written.
        """
        _artifact.write(path, KIND, self._header, self._arrays())

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        blob = b"".join(self._representatives)
        lengths = [len(token) for token in self._representatives]
        return {
            "class_of": self.class_of,
            "representative_ids": self.representative_ids,
            "representative_bytes": np.frombuffer(blob, dtype=np.uint8),
            "representative_ends": np.cumsum(lengths, dtype=np.int64),
        }

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        grammar: Grammar | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> TokenClasses:
        """Read an artefact; the class of each token stays in the file, mapped into memory.

        Args:
            path: a file that :meth:`save` wrote.
            grammar: where given, the artefact must be made for it.
            vocabulary: where given, the artefact must be made for it.

        Raises:
            ArtifactError: damaged, of another version, or made for something else; says what to do.
            MissingFileError: there is no such file; it is a ``FileNotFoundError`` too.
        """
        artifact = _artifact.read(path, KIND)
        classes = cls._from_artifact(artifact.header, artifact.arrays, str(path))
        for what, ours, given in (
            ("grammar", classes.grammar_fingerprint, grammar),
            ("vocabulary", classes.vocabulary_fingerprint, vocabulary),
        ):
            if given is not None and given.fingerprint != ours:
                raise ArtifactError(
                    f"{path}: these classes were made for another {what} "
                    f"({ours[:12]}..., not {given.fingerprint[:12]}...); compile them again"
                )
        return classes

    @classmethod
    def _from_artifact(
        cls, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], path: str
    ) -> TokenClasses:
        # The checksum says that the file is what some writer wrote; these say that it was us.
        try:
            class_of, ids = arrays["class_of"], arrays["representative_ids"]
            ends, blob = arrays["representative_ends"], arrays["representative_bytes"].tobytes()
            sound = (
                (class_of.dtype.str, ids.dtype.str, ends.dtype.str) == ("<i4", "<u4", "<i8")
                and class_of.ndim == ids.ndim == ends.ndim == 1
                and len(ids) == len(ends)
                and (len(ends) == 0 or (ends[0] >= 0 and ends[-1] == len(blob)))
                and bool((np.diff(ends) >= 0).all())
                and bool(((class_of >= -1) & (class_of < len(ids))).all())
                and bool((ids < len(class_of)).all())
            )
            stops = header["num_stop_classes"]
            sound = sound and (
                type(stops) is int
                and 0 <= stops <= len(ids)
                and type(header["prune"]) is bool
                and type(header["grammar"]) is str
                and type(header["vocabulary"]) is str
                and type(header["stats"]) is dict
            )
            if not sound:
                raise ValueError("its parts do not fit together")
            bounds = [0, *ends.tolist()]
            texts = [blob[a:b] for a, b in itertools.pairwise(bounds)]
            return cls(class_of, ids, texts, header)
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path}: not token classes that this version can use ({error}); compile them again"
            ) from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenClasses):
            return NotImplemented
        return self._header == other._header and np.array_equal(self.class_of, other.class_of)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TokenClasses({len(self.class_of)} tokens in {len(self)} classes)"


def compile_classes(
    grammar: Grammar,
    vocabulary: Vocabulary,
    limits: Limits | None = None,
    progress: bool | ProgressCallback | None = None,
    prune: bool = True,
    cache_dir: str | PathLike[str] | None = None,
    *,
    interrupt: Interrupt | None = None,
) -> TokenClasses:
    """Fold a vocabulary into classes of tokens that a grammar cannot tell apart.

    Takes tens of milliseconds for a grammar of the size of C++ and a vocabulary of 128,000
    tokens. The GIL is released; Ctrl-C stops the work. Deterministic.

    Args:
        grammar: the grammar.
        vocabulary: the vocabulary. Stop tokens become classes of their own; special tokens
            that the grammar does not name, ids without bytes, and tokens that it can never take,
            get class -1.
        limits: bounds on size and work; see :class:`Limits`.
        progress: ``True`` for a progress bar on the terminal (extra ``cli``), or a function of
            the tokens done and the tokens to do; while the network is made, none is done. What
            it raises ends the work.
        prune: drop branches that cannot be completed, so that a valid token is one with which
            the text can still be completed. ``False`` keeps them, as XGrammar does.
        cache_dir: a folder of compiled artefacts, shared between processes. Found there, the
            classes are loaded; otherwise they are compiled and stored.
        interrupt: ends the call early; by default the deadline of ``limits`` does.

    Returns:
        The classes.

    Raises:
        UnsupportedGrammarError: the grammar holds something that cannot be compressed exactly,
            or, with ``prune``, has no string at all.
        LimitExceededError: a bound of ``limits`` was reached.
        CancelledError, DeadlineExceededError: ``interrupt`` ended the call.
        ArtifactError: ``cache_dir`` is a file. A folder that cannot be written is a warning.
        KeyboardInterrupt: Ctrl-C.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> grammar = tokfold.Grammar.from_ebnf('root ::= "ab"')
        >>> classes = tokfold.compile_classes(grammar, vocabulary)
        >>> len(classes)
        4
    """
    if not isinstance(grammar, Grammar):
        raise TypeError(f"grammar must be a tokfold.Grammar, not {type(grammar).__name__}")
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(f"vocabulary must be a tokfold.Vocabulary, not {type(vocabulary).__name__}")
    if not isinstance(prune, bool):
        raise wrong_type("prune", "True or False", prune)
    limits = limits or DEFAULT_LIMITS
    ends = Interrupt._of(interrupt, limits)
    grammar = grammar._over(vocabulary)
    if cache_dir is None:
        return _compile(grammar, vocabulary, limits, progress, prune, ends)
    from tokfold._cache import ArtifactCache

    made: list[TokenClasses] = []

    def make() -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        made.append(_compile(grammar, vocabulary, limits, progress, prune, ends))
        return made[0]._header, made[0]._arrays()

    expect = {"grammar": grammar.fingerprint, "vocabulary": vocabulary.fingerprint}
    key = _cache_key(expect, limits, prune)

    def read(artifact: _artifact.Artifact, path: str) -> TokenClasses:
        return TokenClasses._from_artifact(artifact.header, artifact.arrays, path)

    artifact = ArtifactCache(cache_dir).get_or_make(key, KIND, make, expect=expect, check=read)
    return made[0] if made else read(artifact, str(cache_dir))


def _cache_key(fingerprints: dict[str, str], limits: Limits, prune: bool) -> str:
    parts: dict[str, object] = {
        **fingerprints,
        **limits.as_fields(),
        "prune": prune,
        "algorithm": ALGORITHM,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _compile(
    grammar: Grammar,
    vocabulary: Vocabulary,
    limits: Limits,
    progress: bool | ProgressCallback | None,
    prune: bool,
    interrupt: _core.Interrupt | None,
) -> TokenClasses:
    began = time.perf_counter()
    with _reporting(progress) as report, governing(interrupt):
        class_of, ids, num_stop, stats = _core.compile_classes(
            grammar._compilable,
            vocabulary._compiled,
            prune=prune,
            skip_lookahead=grammar.lookahead == "implied",
            limits=limits,
            progress=report,
            interrupt=interrupt,
        )
    times = {name: stats.pop(name) for name in ("network_seconds", "walk_seconds")}
    times["seconds"] = time.perf_counter() - began
    header = {
        "algorithm": ALGORITHM,
        "grammar": grammar.fingerprint,
        "num_stop_classes": num_stop,
        "prune": prune,
        "stats": stats,
        "vocabulary": vocabulary.fingerprint,
    }
    representatives = [vocabulary[index] for index in ids.tolist()]
    return TokenClasses(class_of, ids, representatives, header, times)


@contextmanager
def _reporting(progress: bool | ProgressCallback | None) -> Iterator[ProgressCallback | None]:
    """The progress callback for the core: none, the caller's, or one that moves a bar."""
    if progress is None or progress is False:
        yield None
        return
    if progress is not True:
        yield progress
        return
    bars = require("rich.progress", "cli", "progress=True")
    with bars.Progress(transient=True) as bar:
        task = bar.add_task("Folding the vocabulary", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
