"""Matchers of a mask store: one text each, with the interface of :class:`tokfold.Matcher`."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokfold.errors import MatcherStateError, VocabularyError
from tokfold.mask_store.newlines import MISSING, Layout
from tokfold.mask_store.stack_classes import NOTHING
from tokfold.mask_store.stack_classes import Letter as StackLetter
from tokfold.mask_store.store import MaskStore
from tokfold.mask_store.transitions import Way

__all__ = ["Place", "StoreMatcher"]


@dataclass(frozen=True)
class Place:
    """One way in which the text so far may be meant.

    Attributes:
        stack: states of the parser, the start first; the terminal in progress has been read,
            unless it is ignored or the newline of a post-lexer.
        state: of the lexer.
        scanner: in which the terminal in progress began.
        layout: of the post-lexer, before the newline terminal in progress.
    """

    stack: tuple[int, ...]
    state: int
    scanner: int
    layout: Layout


@dataclass(frozen=True)
class _Step:
    places: tuple[Place, ...]
    data: bytes
    is_end: bool = False


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
        """
        self.store = store
        stops = store.vocabulary.stop_token_ids if stop_token_ids is None else stop_token_ids
        self._stops = tuple(sorted({self._id(i) for i in stops}))
        self._other_stops: list[tuple[int, int, int, bool]] = []
        # Words are signed: the last bit is the sign.
        last = 1 << 31
        known = store.vocabulary.stop_token_ids
        for token in set() if self._stops == tuple(known) else {*self._stops, *known}:
            word, bit = token >> 5, 1 << (token & 31)
            signed, others = (-last, last - 1) if bit == last else (bit, ~bit)
            self._other_stops.append((word, signed, others, token in self._stops))
        graph = store.predicates.graph
        start = Place((graph.start,), store.transitions.start, store.scanner(graph.start), Layout())
        self._first = _Step((start,), b"")
        self._steps = [self._first]

    def _id(self, token_id: int) -> int:
        token_id, size = operator.index(token_id), len(self.store.vocabulary)
        if not 0 <= token_id < size:
            raise VocabularyError(
                f"token {token_id} is outside the vocabulary of {size} tokens: pass ids from 0 to "
                f"{size - 1}"
            )
        return token_id

    def _now(self) -> _Step:
        step = self._steps[-1]
        if step.is_end:
            raise MatcherStateError("the text has ended: roll back or reset before going on")
        return step

    def fill_bitmask(self, bitmask: npt.NDArray[np.int32], row: int = 0) -> bool:
        """Write which tokens may come next into a row of a bitmask.

        Args:
            bitmask: int32, C-contiguous, shape ``(rows, ceil(V / 32))`` or ``(ceil(V / 32),)``.
            row: the row.

        Returns:
            Always True: a grammar of terminals never allows every token.

        Raises:
            MatcherStateError: the text has ended.
            TypeError, ValueError: the bitmask has another dtype, shape or layout.
        """
        step = self._now()
        target = self._row_of(bitmask, row)
        store = self.store
        may_end = False
        for i, place in enumerate(step.places):
            stack = place.stack
            union = store.union(place.state, place.scanner, place.layout, stack[-1])
            if union.pending:
                union, _ = store.decided(union, stack)
            mask = union.mask
            if mask is None:
                mask = store.row(union)
            if i:
                np.bitwise_or(target, mask, out=target)
            else:
                target[:] = mask
            may_end = may_end or union.may_end
        for word, bit, others, is_stop in self._other_stops:
            # A stop token given here is never text; one of the vocabulary alone is never allowed.
            value = int(target[word]) & others
            target[word] = value | bit if may_end and is_stop else value
        return True

    def _row_of(self, bitmask: npt.NDArray[np.int32], row: int) -> npt.NDArray[np.int32]:
        if not isinstance(bitmask, np.ndarray) or bitmask.dtype != np.int32:
            raise TypeError("the bitmask must be a numpy array of dtype int32")
        if not bitmask.flags.c_contiguous or bitmask.ndim not in (1, 2):
            raise ValueError("the bitmask must be C-contiguous, of one or two dimensions")
        if bitmask.shape[-1] != self.store.words:
            raise ValueError(
                f"the bitmask has rows of {bitmask.shape[-1]} words, not {self.store.words}"
            )
        rows = bitmask.shape[0] if bitmask.ndim == 2 else 1
        if not 0 <= row < rows:
            raise ValueError(f"the bitmask has no row {row}")
        return bitmask[row] if bitmask.ndim == 2 else bitmask

    def accept_token(self, token_id: int) -> bool:
        """Read a token; False where it cannot follow, and nothing has changed.

        Raises:
            VocabularyError: the vocabulary has no such token.
            MatcherStateError: the text has ended.
        """
        step, token_id = self._now(), self._id(token_id)
        vocabulary = self.store.vocabulary
        if token_id in self._stops:
            if not self.is_accepting:
                return False
            self._steps.append(_Step(step.places, b"", is_end=True))
            return True
        if token_id in vocabulary.stop_token_ids or token_id in vocabulary.special_token_ids:
            return False
        data = vocabulary[token_id]
        return bool(data) and self.accept_bytes(data)

    def accept_tokens(self, token_ids: Sequence[int]) -> int:
        """Read the longest prefix of some tokens that can follow, each as a step; how many."""
        for count, token_id in enumerate(token_ids):
            if self.is_terminated or not self.accept_token(token_id):
                return count
        return len(token_ids)

    def accept_string(self, text: str) -> bool:
        """Read the UTF-8 of a text as one step; as :meth:`accept_token`."""
        return self.accept_bytes(text.encode())

    def accept_bytes(self, data: bytes) -> bool:
        """Read bytes as one step, however they would be tokenized; as :meth:`accept_token`."""
        places = self._now().places
        for piece in self._pieces(data) if data else ():
            places = self._advanced(places, piece)
            if not places:
                return False
        self._steps.append(_Step(places, data))
        return True

    def _pieces(self, data: bytes) -> Iterable[bytes]:
        """Longest tokens first: lexer states are known behind tokens only."""
        vocabulary = self.store.vocabulary
        if len(data) <= 1:
            return [data]
        return [vocabulary[i] for i in vocabulary.encode_greedy(data)]

    def _advanced(self, places: Iterable[Place], data: bytes) -> tuple[Place, ...]:
        found: dict[Place, None] = {}
        for place in places:
            for way in self.store.ways(place.state, data):
                for after in self._after(place, way, data):
                    found[after] = None
        return tuple(found)

    def _after(self, place: Place, way: Way, data: bytes) -> Iterable[Place]:
        """Where a way leads: no place if the parser does not read its letters."""
        store = self.store
        if not store.is_in(place.scanner, way.scanners):
            return
        newlines = store.newlines
        if way.state is None:
            return
        newline = newlines.newline
        _, terminal = store.transitions.states[way.state]
        is_newline = terminal == newline
        read = newlines.read(way.letters, place.layout)
        if read is None:
            return
        letters, layout = read
        stack, scanner = self._read(place.stack, letters, keep_last=not is_newline)
        if stack is None:
            return
        if is_newline:
            begun = bool(way.letters) and way.letters[-1].column.kind == "open"
            for column in self._columns(place, way, data, begun=begun):
                yield Place(
                    stack,
                    way.state,
                    store.scanner(stack[-1]),
                    Layout(layout.parens, layout.columns, column),
                )
            return
        if store.grammar.terminals[terminal].is_ignored:
            scanner = store.scanner(stack[-1])
        elif not way.letters:
            scanner = place.scanner
        yield Place(stack, way.state, scanner, layout)

    def _read(
        self, stack: tuple[int, ...], letters: Sequence[StackLetter], *, keep_last: bool
    ) -> tuple[tuple[int, ...] | None, int]:
        """Read letters; with ``keep_last`` off the last one is tried but not kept.

        Returns:
            The stack (None if refused), and the scanner before the last letter.
        """
        graph, current = self.store.predicates.graph, list(stack)
        scanner = self.store.scanner(current[-1])
        for i, letter in enumerate(letters):
            if letter.states is not None and current[-1] not in letter.states:
                return None, scanner
            if letter.terminal == NOTHING:
                continue
            scanner = self.store.scanner(current[-1])
            if (
                i == len(letters) - 1
                and not keep_last
                and letter.terminal == self.store.newlines.newline
            ):
                if not graph.shift(list(current), letter.terminal):
                    return None, scanner
            elif not graph.shift(current, letter.terminal):
                return None, scanner
        return tuple(current), scanner

    def _columns(self, place: Place, way: Way, data: bytes, *, begun: bool) -> set[int]:
        """The column that a newline terminal in progress has reached."""
        tab = 1
        if self.store.grammar.indentation is not None:
            tab = self.store.grammar.indentation.tab_len
        if not begun:
            return {_column(place.layout.column, data, tab)}
        return {
            _column(MISSING, data[start:], tab) for start in self._begins(place.state, way, data)
        }

    def _begins(self, state: int, way: Way, data: bytes) -> set[int]:
        """Where in a token the newline terminal that is in progress at its end can have begun."""
        store, newline = self.store, self.store.newlines.newline
        found: set[int] = set()
        # States of the lexer byte by byte, with where the newline terminal in progress began.
        front: set[tuple[int, tuple[object, ...], int]] = {(state, (), -1)}
        for i in range(len(data)):
            after = set()
            for current, letters, start in front:
                for step in store.ways(current, data[i : i + 1]):
                    if step.state is None:
                        continue
                    is_newline = store.transitions.states[step.state][1] == newline
                    began = i if step.letters else start
                    after.add((step.state, letters, began if is_newline else -1))
            front = after
        for final, _, start in front:
            if final == way.state and start >= 0:
                found.add(start)
        return found

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        step = self._steps[-1]
        return not step.is_end and any(self._may_end(place) for place in step.places)

    def _may_end(self, place: Place) -> bool:
        store = self.store
        letters = store.end_letters(place.state, place.scanner, place.layout)
        if letters is None:
            return False
        stack, _ = self._read(place.stack, letters[:-1], keep_last=True)
        return stack is not None and store.predicates.graph.is_complete(stack)

    def rollback(self, count: int = 1) -> None:
        """Take back the last steps, over a stop token too.

        Raises:
            MatcherStateError: there are fewer steps; nothing has changed.
        """
        if count < 0:
            raise ValueError(f"count must be 0 or more, not {count}")
        if count > self.num_steps:
            raise MatcherStateError(
                f"{count} steps cannot be taken back: {self.num_steps} were accepted"
            )
        if count:
            del self._steps[-count:]

    def reset(self) -> None:
        """Take back all steps."""
        self._steps = [self._first]

    def fork(self) -> StoreMatcher:
        """A matcher at the same place that goes its own way from here."""
        forked = object.__new__(type(self))
        forked.store, forked._stops = self.store, self._stops
        forked._other_stops = self._other_stops
        forked._first, forked._steps = self._first, list(self._steps)
        return forked

    __copy__ = fork

    @property
    def places(self) -> tuple[Place, ...]:
        """The ways in which the text so far may be meant."""
        return self._steps[-1].places

    @property
    def is_terminated(self) -> bool:
        """Whether the text has ended by a stop token."""
        return self._steps[-1].is_end

    @property
    def num_steps(self) -> int:
        """Steps accepted, which is how many can be rolled back."""
        return len(self._steps) - 1

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """The stop tokens in force, ascending."""
        return self._stops

    @property
    def text(self) -> bytes:
        """Everything read since the start."""
        return b"".join(step.data for step in self._steps)

    @property
    def state(self) -> str:
        """Where the matcher stands, as a value: equal states allow the same texts to follow."""
        step = self._steps[-1]
        places = [
            [p.state, p.scanner, p.layout.parens, p.layout.columns, p.layout.column, p.stack]
            for p in step.places
        ]
        body = json.dumps([step.is_end, sorted(places)])
        return hashlib.sha256(body.encode()).hexdigest()

    def __repr__(self) -> str:
        return f"<StoreMatcher after {self.num_steps} steps>"


def _column(before: int, data: bytes, tab: int) -> int:
    """The column after some bytes of a newline terminal."""
    line = data.rpartition(b"\n")
    if not line[1] and before == MISSING:
        return MISSING
    width = line[2].count(b" ") + tab * line[2].count(b"\t")
    return width if line[1] else before + width
