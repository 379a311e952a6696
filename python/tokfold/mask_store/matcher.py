"""Matchers of a mask store: one text each, with the interface of :class:`tokfold.Matcher`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._checks import (
    bitmask_row,
    checked_count,
    checked_parents,
    checked_stops,
    checked_token,
    checked_tokens,
    no_bytes,
    utf8_of,
    wrong_type,
)
from tokfold.errors import MatcherStateError, VocabularyError
from tokfold.mask_store.store import MaskStore
from tokfold.vocabulary import Vocabulary

__all__ = ["StoreMatcher"]

_MAX_FORCED_BYTES = 4096
_MOST_FORCED_BYTES = 1 << 18


class StoreMatcher:
    """One text on its way through a grammar of terminals and rules.

    A token is allowed in the mask exactly when :meth:`accept_token` would take it. A text is taken
    as long as some terminals that its lexer can still make of it are read by the table.
    """

    def __init__(self, store: MaskStore, *, stop_token_ids: Sequence[int] | None = None) -> None:
        """Begin a text.

        Args:
            store: shared between matchers.
            stop_token_ids: stop tokens in place of the vocabulary's.

        Raises:
            VocabularyError: a stop token is outside the vocabulary.
            ArgumentTypeError: an argument has another type.
        """
        if not isinstance(store, MaskStore):
            raise wrong_type("store", "a tokfold.mask_store.MaskStore", store)
        self.store = store
        vocabulary = store.vocabulary
        known = vocabulary.stop_token_ids
        given = checked_stops(stop_token_ids, vocabulary)
        self._stops = tuple(sorted({*(known if given is None else given)}))
        # A stop token of the vocabulary that is none here is no text either.
        silent = sorted({*known, *vocabulary.special_token_ids} - set(self._stops))
        self._core = _core.StoreText(store._core, list(self._stops), silent)

    def fill_bitmask(self, bitmask: npt.NDArray[np.int32], row: int = 0) -> bool:
        """Write which tokens may come next into a row of a bitmask.

        Args:
            bitmask: int32, C-contiguous, shape ``(rows, ceil(V / 32))`` or ``(ceil(V / 32),)``.
            row: the row.

        Returns:
            Always True: a grammar of terminals never allows every token.

        Raises:
            MatcherStateError: the text has ended.
            LimitExceededError: a bound of the parser's side was reached; the row means nothing.
            TypeError, ValueError: the bitmask has another dtype, shape or layout.
        """
        self._core.fill(bitmask_row(bitmask, row, self.store.words))
        return True

    def fill_bitmask_draft(
        self,
        token_ids: Sequence[int],
        bitmask: npt.NDArray[np.int32],
        parents: Sequence[int] | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Write the rows of all nodes of a tree of draft tokens; the matcher stays where it is.

        Row 0 is what may come next; row ``i + 1`` what may come after node ``i``. The row of a node
        that is not allowed, or that ends the text, is empty.

        Args:
            token_ids: the token of each node.
            bitmask: int32, C-contiguous, shape ``(rows, ceil(V / 32))`` with a row more than nodes.
            parents: the node before each node, which stands before it; -1 for the matcher's place.
                By default the tokens are a chain.

        Returns:
            bool, shape ``(len(token_ids),)``: whether each token is allowed where it stands.

        Raises:
            VocabularyError, MatcherStateError, LimitExceededError: as :meth:`accept_token`. The
                rows then mean nothing.
                MatcherStateError too where a parent does not stand before its node.
            ValueError: the bitmask has too few rows, there are not as many parents as tokens, or a
                parent is below -1.
        """
        ids = checked_tokens(token_ids, self.vocabulary)
        before = range(-1, len(ids) - 1) if parents is None else checked_parents(parents)
        if len(before) != len(ids):
            raise ValueError("as many parents as tokens are needed")
        bitmask_row(bitmask, 0, self.store.words)
        if bitmask.ndim != 2 or bitmask.shape[0] <= len(ids):
            raise ValueError(f"the bitmask needs {len(ids) + 1} rows")
        self.fill_bitmask(bitmask, 0)
        nodes: list[_core.StoreText | None] = []
        for i, (token_id, parent) in enumerate(zip(ids, before, strict=True)):
            node = (self._core if parent < 0 else nodes[parent]) or None
            forked = None if node is None or node.is_ended() else node.fork()
            if forked is not None and not forked.accept(token_id):
                forked = None
            nodes.append(forked)
            if forked is None or forked.is_ended():
                bitmask[i + 1] = 0
            else:
                forked.fill(bitmask_row(bitmask, i + 1, self.store.words))
        return np.array([node is not None for node in nodes], dtype=np.bool_)

    def accept_token(self, token_id: int) -> bool:
        """Read a token; False where it cannot follow, and nothing has changed.

        Raises:
            VocabularyError: the vocabulary has no such token.
            MatcherStateError: the text has ended.
            LimitExceededError: a bound of the parser's side was reached; nothing has changed.
        """
        return self._core.accept(checked_token(token_id, self.vocabulary))

    def accept_tokens(self, token_ids: Sequence[int]) -> int:
        """Read the longest prefix of some tokens that can follow, each as a step; how many."""
        return self._core.accept_many(checked_tokens(token_ids, self.vocabulary))

    def accept_string(self, text: str) -> bool:
        """Read the UTF-8 of a text as one step; as :meth:`accept_token`.

        A text with a lone surrogate has no UTF-8, and no grammar takes it.
        """
        data = utf8_of(text)
        return data is not None and self.accept_bytes(data)

    def accept_bytes(self, data: bytes) -> bool:
        """Read bytes as one step, however they would be tokenized; as :meth:`accept_token`.

        Raises:
            ArgumentTypeError: ``data`` is no bytes; a str is for :meth:`accept_string`.
            As :meth:`accept_token`.
        """
        if not isinstance(data, bytes):
            raise no_bytes(data)
        # Longest tokens first: lexer states are known behind tokens only.
        vocabulary = self.store.vocabulary
        ids = vocabulary.encode_greedy(data) if len(data) > 1 else None
        pieces = [data] * bool(data) if ids is None else [vocabulary[i] for i in ids]
        return self._core.accept_pieces(pieces)

    def rollback(self, count: int = 1) -> None:
        """Take back the last steps, over a stop token too.

        Raises:
            MatcherStateError: there are fewer steps; nothing has changed.
            ArgumentTypeError, ValueError: ``count`` is no whole number, or negative.
        """
        self._core.rollback(checked_count(count, "count"))

    def reset(self) -> None:
        """Take back all steps."""
        self._core.rollback(self._core.steps())

    def fork(self) -> StoreMatcher:
        """A matcher at the same place that goes its own way from here."""
        forked = object.__new__(type(self))
        forked.store, forked._stops, forked._core = self.store, self._stops, self._core.fork()
        return forked

    __copy__ = fork

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here, or has ended."""
        return self.is_terminated or self._core.may_end()

    @property
    def is_terminated(self) -> bool:
        """Whether the text has ended by a stop token."""
        return self._core.is_ended()

    @property
    def num_steps(self) -> int:
        """Steps accepted, which is how many can be rolled back."""
        return self._core.steps()

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary whose tokens are read."""
        return self.store.vocabulary

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """The stop tokens in force, ascending."""
        return self._stops

    @property
    def text(self) -> bytes:
        """Everything read since the start."""
        return self._core.text()

    def _allowed(self) -> list[bytes]:
        """The bytes of the tokens of text that may come next."""
        row = np.zeros(self.store.words, np.int32)
        self.fill_bitmask(row)
        ids = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        return [self.store.vocabulary[i] for i in ids.tolist() if i not in self._stops]

    @property
    def expected_bytes(self) -> bytes:
        """The bytes that may come next, ascending; none after the end."""
        if self.is_terminated:
            return b""
        return bytes(sorted({token[0] for token in self._allowed()}))

    def forced_bytes(self, limit: int = _MAX_FORCED_BYTES) -> bytes:
        """What must come next, whatever is chosen; empty where there is a choice.

        Ends where the text may end, where a byte may be chosen, or after ``limit`` bytes, and after
        256 KiB in any case; and within a token that no shorter tokens spell.

        Raises:
            MatcherStateError: the text has ended.
        """
        limit = min(checked_count(limit, "limit"), _MOST_FORCED_BYTES)
        forced, ahead = b"", self.fork()
        while len(forced) < limit and not ahead._core.may_end():
            more = _common_prefix(ahead._allowed())
            forced += more
            try:
                if not more or not ahead.accept_bytes(more):
                    break
            except VocabularyError:
                break
        return forced[:limit]

    @property
    def state(self) -> str:
        """Where the matcher stands, as a value: equal states allow the same texts to follow."""
        places = sorted(map(json.dumps, self._core.places()))
        body = json.dumps([self.is_terminated, places])
        return hashlib.sha256(body.encode()).hexdigest()

    def __deepcopy__(self, memo: dict[int, object]) -> StoreMatcher:
        return self.fork()

    def __reduce__(self) -> tuple[object, ...]:
        raise MatcherStateError(
            "a matcher of a mask store cannot be pickled: send its text, and read it again"
        )

    def __repr__(self) -> str:
        return f"<StoreMatcher after {self.num_steps} steps>"


def _common_prefix(tokens: Sequence[bytes]) -> bytes:
    """The longest prefix that all have; none of no tokens."""
    if not tokens:
        return b""
    first, last = min(tokens), max(tokens)
    length = next((i for i, byte in enumerate(first) if byte != last[i]), len(first))
    return first[:length]
