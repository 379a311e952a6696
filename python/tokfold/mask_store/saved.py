"""Mask stores as files: grammar, lexer states, rows; checksummed, tokens mapped into memory."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tokfold import _artifact, _core
from tokfold._quoting import quoted
from tokfold.errors import ArtifactError, MatcherStateError
from tokfold.mask_store.grammar import (
    Indentation,
    LarkGrammar,
    ParseTable,
    Production,
    Terminal,
)
from tokfold.mask_store.transitions import ROWS, Table, Transitions, lexicon
from tokfold.vocabulary import Vocabulary

__all__ = ["KIND", "checked", "read", "write"]

KIND = "mask-store"
_VERSION = 1
_LEXER = (
    "scanner_sets",
    "questions",
    "question_offsets",
    "entries",
    "entry_offsets",
    "configurations",
    "states",
)


def write(transitions: Transitions, path: str | os.PathLike[str]) -> None:
    """Write a store."""
    table, rows = transitions.table, transitions.rows
    arrays: dict[str, npt.NDArray[Any]] = {
        "grammar": np.frombuffer(_grammar_text(transitions.grammar), np.uint8),
        "table_moves": table.moves,
        "table_ends": np.array(table.ends, np.uint32),
        "table_conditions": np.array(table.conditions, np.uint32).reshape(-1),
        "table_offsets": np.array(table.offsets, np.uint32),
        **{f"lexer_{name}": array for name, array in transitions._core.saved().items()},
        **{f"rows_{name}": array for name, array in rows.items()},
    }
    header: dict[str, _artifact.JSON] = {
        "version": _VERSION,
        "source": transitions.grammar.source,
        "vocabulary": transitions.vocabulary.fingerprint,
        "tokens": len(transitions.vocabulary),
    }
    _artifact.write(path, KIND, header, arrays)


def read(path: str | os.PathLike[str], vocabulary: Vocabulary, *, mmap: bool) -> Transitions:
    """Read a store."""
    artifact = _artifact.read(path, KIND, mmap=mmap)
    header, arrays = artifact.header, artifact.arrays
    if header.get("version") != _VERSION:
        raise ArtifactError(
            f"{os.fspath(path)}: a mask store of version {quoted(header.get('version'))}, this "
            f"tokfold reads version {_VERSION}: build it again"
        )
    if header.get("vocabulary") != vocabulary.fingerprint:
        raise ArtifactError(
            f"{os.fspath(path)}: the mask store was built for another vocabulary, of "
            f"{header.get('tokens')} tokens: load that one, or build the store for this one of "
            f"{len(vocabulary)}"
        )
    with checked(path):
        grammar = _grammar(json.loads(arrays["grammar"].tobytes()))
        conditions = arrays["table_conditions"].reshape(-1, 2).tolist()
        table = Table(
            arrays["table_moves"],
            arrays["table_ends"].tolist(),
            [(bool(negated), state) for negated, state in conditions],
            arrays["table_offsets"].tolist(),
        )
        core = _core.LexerStore.restored(
            lexicon(grammar, table), *(arrays[f"lexer_{name}"] for name in _LEXER)
        )
        rows = {name: arrays[f"rows_{name}"] for name in ROWS}
    return Transitions(grammar, vocabulary, table, core, rows)


@contextlib.contextmanager
def checked(path: str | os.PathLike[str]) -> Iterator[None]:
    """What does not fit together in a file is an error of the file."""
    try:
        yield
    except (
        *(KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError),
        MatcherStateError,
    ) as error:
        raise ArtifactError(
            f"{os.fspath(path)}: the mask store holds something else than it should: "
            f"{quoted(error)}; build it again"
        ) from error


def _grammar_text(grammar: LarkGrammar) -> bytes:
    """A grammar as canonical JSON: equal grammars, equal bytes."""
    plain = {f.name: getattr(grammar, f.name) for f in dataclasses.fields(grammar) if f.init}
    return json.dumps(plain, default=_plain, sort_keys=True).encode()


def _plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a grammar holds {type(value).__name__}")


def _grammar(plain: dict[str, Any]) -> LarkGrammar:
    terminals = tuple(Terminal(**{**t, "flags": frozenset(t["flags"])}) for t in plain["terminals"])
    productions = tuple(
        Production(**{**p, "expansion": tuple(p["expansion"])}) for p in plain["productions"]
    )
    table: dict[str, Any] = {
        name: tuple(rows) if isinstance(rows, list) else rows
        for name, rows in plain["table"].items()
    }
    indentation = plain["indentation"]
    if indentation is not None:
        parens = {n: frozenset(indentation[n]) for n in ("open_parens", "close_parens")}
        indentation = Indentation(**{**indentation, **parens})
    return LarkGrammar(
        **{
            **plain,
            "terminals": terminals,
            "productions": productions,
            "starts": tuple(plain["starts"]),
            "table": ParseTable(**table),
            "indentation": indentation,
            "scanners": tuple(tuple(scanner) for scanner in plain["scanners"]),
            "scanner_of_state": tuple(plain["scanner_of_state"]),
        }
    )
