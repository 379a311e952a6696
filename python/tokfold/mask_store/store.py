"""The mask store: which tokens are allowed, by lexer state and by what the stack says.

The rows of a lexer state are sequences of letters with the tokens that make them. Rows that the
minimal automaton cannot tell apart are one; what is left is walked down the parser's stack all at
once: a *union* is what remains of the rows after reading a part of the stack, with the tokens
allowed so far. Unions are made when a stack first asks for them and kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tokfold.mask_store.canonical import ACCEPT, REJECT
from tokfold.mask_store.grammar import END, LarkGrammar
from tokfold.mask_store.newlines import Layout, NewlineRules
from tokfold.mask_store.predicates import Predicates
from tokfold.mask_store.stack_classes import NOTHING, Letter
from tokfold.mask_store.transitions import (
    NO_SCANNER,
    Column,
    LexerLimits,
    Way,
    build_transitions,
)
from tokfold.mask_store.transitions import Letter as LexerLetter
from tokfold.vocabulary import Vocabulary

__all__ = ["MaskStore", "Union"]

_Rows = tuple[tuple[tuple[LexerLetter, ...], int], ...]
_OUTSIDE = Layout()
_ANYWHERE = Layout(parens=2**31)
"""For rows that do not ask for the layout: never short of parentheses to close."""


class Union:
    """Rows that a part of the stack has not decided yet.

    Attributes:
        allowed: tokens allowed already, as the bits of an int; the bit behind the last token
            stands for the end of the text.
        pending: for each state of the minimal automaton the tokens that it decides.
        following: the union after each state of the parser, as far as it was asked for.
        mask: the row of a bitmask, once nothing is pending; made when first asked for.
        may_end: with it, whether the text may end.
    """

    __slots__ = ("allowed", "following", "mask", "may_end", "pending")

    def __init__(self, allowed: int, pending: dict[int, int]) -> None:
        self.allowed, self.pending = allowed, pending
        self.following: dict[int, Union] = {}
        self.mask: npt.NDArray[np.int32] | None = None
        self.may_end = False


class MaskStore:
    """All that decoding needs of a grammar and a vocabulary; shared by any number of matchers.

    Attributes:
        grammar: terminals and rules.
        vocabulary: whose tokens the masks are of.
        transitions: the lexer's side.
        predicates: the parser's side.
        newlines: the post-lexer.
    """

    def __init__(
        self,
        grammar: LarkGrammar,
        vocabulary: Vocabulary,
        *,
        limits: LexerLimits | None = None,
        max_kept: int = 200_000,
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """Build the store.

        Args:
            grammar: as :func:`tokfold.mask_store.lark_reader.read_lark` gives it.
            vocabulary: special tokens are never allowed; stop tokens where the text may end.
            limits: bounds of the lexer's side.
            max_kept: places where walks down the stack begin that are remembered; then all are
                forgotten.
            progress: called with the lexer states done and those known so far.

        Raises:
            LarkGrammarError: the grammar cannot be used; the message says why.
            LimitExceededError: a bound was reached.
        """
        predicates = Predicates(grammar)
        transitions = build_transitions(grammar, vocabulary, limits=limits, progress=progress)
        self.grammar, self.vocabulary = grammar, vocabulary
        self.predicates, self.transitions = predicates, transitions
        self.newlines = NewlineRules(grammar, transitions)
        self.words = -(-len(vocabulary) // 32)
        self._sets = [_bits(tokens, len(vocabulary)) for tokens in transitions.token_sets]
        letters = transitions.letters
        self._sequences = [tuple(letters[i] for i in s) for s in transitions.sequences]
        self._parts = _grouped(transitions.shared_rows, 1)
        self._own = _grouped(transitions.own_rows, 2)
        self._at_once = _grouped(transitions.at_once, 2)
        self._holds = [set(np.flatnonzero(row).tolist()) for row in transitions.scanner_sets]
        self._rowsets: dict[tuple[int, int], tuple[_Rows, ...]] = {}
        self._interned: dict[_Rows, _Rows] = {}
        self._split: dict[int, tuple[_Rows, _Rows, int]] = {}
        self._readings: dict[tuple[int, Layout], dict[int, int]] = {}
        self._unions: dict[tuple[int, tuple[tuple[int, int], ...]], Union] = {}
        self._kept: dict[int, int] = {}
        self._masks: dict[int, npt.NDArray[np.int32]] = {}
        self._max_kept = max_kept
        self._starts: dict[tuple[int, int, Layout, int], Union] = {}
        self._closing: dict[int, int] = {}
        self._pieces: dict[tuple[int, Layout, int], Union] = {}
        self._ways: dict[tuple[int, bytes], list[Way]] = {}
        self._stops = sum(1 << token for token in vocabulary.stop_token_ids)
        self._end_letter = Letter(predicates.graph.terminals[END])
        self._reading_memo: dict[tuple[Letter, ...], int] = {}

    def scanner(self, top: int) -> int:
        """The scanner that the lexer takes with a state on top of the stack."""
        return self.grammar.scanner_of_state[top]

    def is_in(self, scanner: int, scanners: int) -> bool:
        """Whether a set of scanners has one; the empty set has none."""
        return scanner in self._holds[scanners]

    def ways(self, state: int, data: bytes) -> list[Way]:
        """Every way of a text from a lexer state; remembered for tokens."""
        key = (state, data)
        found = self._ways.get(key)
        if found is None:
            found = self._ways[key] = self.transitions.advance(state, data)
        return found

    def union(self, state: int, scanner: int, layout: Layout, top: int) -> Union:
        """Where the walk down the stack begins.

        Args:
            state: of the lexer.
            scanner: in which the terminal in progress began.
            layout: of the post-lexer.
            top: the state on top of the stack.
        """
        key = (state, scanner, layout, top)
        union = self._starts.get(key)
        if union is None:
            relevant = self._relevant(state, scanner, layout)
            fewer = (state, scanner, relevant, top)
            union = self._starts.get(fewer)
            if union is None:
                pieces = [
                    self._piece(rows, relevant, top)
                    for rows in self._rows_of(state, scanner)
                    if rows
                ]
                union = self._united([*pieces, self._end(state, scanner, relevant, top)])
                self._starts[fewer] = union
            if len(self._starts) >= self._max_kept:
                self._forget()
            self._starts[key] = union
        return union

    def _forget(self) -> None:
        """Drop what is made anew when it is asked for; layouts without end must not fill memory."""
        for kept in (self._starts, self._pieces, self._readings, self._unions):
            kept.clear()
        self._masks.clear()
        self._kept.clear()

    def end_letters(self, state: int, scanner: int, layout: Layout) -> tuple[Letter, ...] | None:
        """What the parser still has to read where the text ends, the end included.

        Returns:
            None where the text cannot end for the lexer or the post-lexer.
        """
        if not self.is_in(scanner, self.transitions.complete(state)):
            return None
        letters: tuple[Letter, ...] = ()
        if self._is_newline(state):
            ended = self.newlines.ended(layout)
            if ended is None:
                return None
            letters, layout = ended
        return (*letters, *self.newlines.end(layout), self._end_letter)

    def _end(self, state: int, scanner: int, layout: Layout, top: int) -> Union:
        letters = self.end_letters(state, scanner, layout)
        if letters is None:
            return self._union(0, {})
        decides = self.predicates.classes.state(self._reading(letters), top)
        end = 1 << len(self.vocabulary)
        if decides <= ACCEPT:
            return self._union(end if decides == ACCEPT else 0, {})
        return self._union(0, {decides: end})

    def _is_newline(self, state: int) -> bool:
        """Whether the newline terminal of the post-lexer is in progress."""
        return (
            state < self.transitions.start
            and self.transitions.states[state][1] == self.newlines.newline
        )

    def below(self, union: Union, state: int) -> Union:
        """The union after reading one more state of the stack."""
        following = union.following.get(state)
        if following is None:
            automaton = self.predicates.classes.automaton
            allowed, pending = union.allowed, defaultdict[int, int](int)
            for source, tokens in union.pending.items():
                target = automaton.moves(source)[state]
                if target == ACCEPT:
                    allowed |= tokens
                elif target != REJECT:
                    pending[target] |= tokens
            following = union.following[state] = self._union(allowed, pending)
        return following

    def decided(self, union: Union, stack: Sequence[int]) -> tuple[Union, int]:
        """Walk down a stack until nothing is pending.

        Returns:
            The union at the end, and how many states of the stack were read, the top included.
        """
        place = len(stack) - 2
        while union.pending:
            state = stack[place]
            union = union.following.get(state) or self.below(union, state)
            place -= 1
        return union, len(stack) - 1 - place

    def row(self, union: Union) -> npt.NDArray[np.int32]:
        """The tokens of a decided union as the row of a bitmask: int32, ``(words,)``.

        The stop tokens of the vocabulary are in it where the text may end.
        """
        if union.mask is None:
            known = self._masks.get(union.allowed)
            size = len(self.vocabulary)
            union.may_end = bool(union.allowed >> size & 1)
            tokens = union.allowed & ((1 << size) - 1) & ~self._stops
            if union.may_end:
                tokens |= self._stops
            if known is None:
                data = tokens.to_bytes(self.words * 4, "little")
                known = np.frombuffer(data, dtype="<i4").astype(np.int32, copy=False)
                self._masks[union.allowed] = known
            union.mask = known
        return union.mask

    def raw_rows(self, state: int, scanner: int) -> Iterator[tuple[tuple[LexerLetter, ...], int]]:
        """The rows of a lexer state before any predicate: letters, and tokens as bits."""
        for rows in self._rows_of(state, scanner):
            for letters, tokens in rows:
                yield letters, self._sets[tokens]

    def reads(self, stack: Sequence[int], letters: Sequence[Letter]) -> bool:
        """Whether the table reads some letters from a whole stack, one after the other."""
        current, graph = list(stack), self.predicates.graph
        for letter in letters:
            if letter.states is not None and current[-1] not in letter.states:
                return False
            if letter.terminal != NOTHING and not graph.shift(current, letter.terminal):
                return False
        return True

    def row_count(self) -> dict[str, int]:
        """How much is there: rows of both kinds, distinct token sets, unions made so far."""
        return {
            "shared_rows": len(self.transitions.shared_rows),
            "own_rows": len(self.transitions.own_rows),
            "token_sets": len(self._sets),
            "sequences": len(self._sequences),
            "stack_states": len(self.predicates.classes.automaton),
            "unions": len(self._unions),
            "starts": len(self._starts),
        }

    def _rows_of(self, state: int, scanner: int) -> tuple[_Rows, ...]:
        """The rows of a lexer state in groups; groups are shared between states."""
        key = (state, scanner)
        groups = self._rowsets.get(key)
        if groups is None:
            if state == self.transitions.start:
                made = [self._part(0)]
            else:
                configuration, terminal = self.transitions.states[state]
                own = [
                    (self._sequences[s], tokens)
                    for scanners, s, tokens in self._own.get((configuration, terminal), ())
                    if self.is_in(scanner, scanners)
                ]
                made = [self._shared(tuple(own))]
                for scanners, part in self._at_once.get((configuration, terminal), ()):
                    if self.is_in(scanner, scanners):
                        made.append(self._part(part, ended=terminal == self.newlines.newline))
            groups = self._rowsets[key] = tuple(made)
            for rows in groups:
                self._divide(rows)
        return groups

    def _part(self, part: int, *, ended: bool = False) -> _Rows:
        # A newline terminal that ends between two tokens ends where the last token did.
        before: tuple[LexerLetter, ...] = ()
        if ended:
            before = (LexerLetter(self.newlines.newline, NO_SCANNER, Column("after", 0)),)
        rows = ((before + self._sequences[s], tokens) for s, tokens in self._parts.get((part,), ()))
        return self._shared(tuple(rows))

    def _shared(self, rows: _Rows) -> _Rows:
        return self._interned.setdefault(rows, rows)

    def _divide(self, rows: _Rows) -> tuple[_Rows, _Rows, int]:
        """Rows that do not ask for the layout, those that do, and the parentheses they close."""
        divided = self._split.get(id(rows))
        if divided is None:
            asking = tuple(r for r in rows if self.newlines.asks(r[0]))
            plain = tuple(r for r in rows if not self.newlines.asks(r[0]))
            closes = max((self.newlines.closes(r[0]) for r in asking), default=-1)
            divided = self._split[id(rows)] = (self._shared(plain), self._shared(asking), closes)
        return divided

    def _relevant(self, state: int, scanner: int, layout: Layout) -> Layout:
        """As much of a layout as the rows of a state can ask for; so few layouts are kept."""
        if self.grammar.indentation is None:
            return _OUTSIDE
        key = (state << 16) | scanner
        closes = self._closing.get(key)
        if closes is None:
            groups = self._rows_of(state, scanner)
            closes = max((self._divide(rows)[2] for rows in groups), default=-1)
            self._closing[key] = closes
        if layout.parens > max(closes, 0) and self.newlines.is_balanced:
            # Deep in parentheses all newlines are dropped, and no text ends there.
            return Layout(max(closes, 0) + 1, (0,))
        if self._is_newline(state) or layout.column == _OUTSIDE.column:
            return layout
        return Layout(layout.parens, layout.columns)

    def _piece(self, rows: _Rows, layout: Layout, top: int) -> Union:
        plain, asking, _ = self._divide(rows)
        pieces = []
        for part, wanted in ((plain, _ANYWHERE), (asking, layout)):
            if part:
                key = (id(part), wanted, top)
                union = self._pieces.get(key)
                if union is None:
                    union = self._pieces[key] = self._begun(part, wanted, top)
                pieces.append(union)
        return pieces[0] if len(pieces) == 1 else self._united(pieces)

    def _begun(self, rows: _Rows, layout: Layout, top: int) -> Union:
        allowed, pending = 0, defaultdict[int, int](int)
        classes = self.predicates.classes
        for reading, tokens in self._read(rows, layout).items():
            state = classes.state(reading, top)
            if state == ACCEPT:
                allowed |= tokens
            elif state != REJECT:
                pending[state] |= tokens
        return self._union(allowed, pending)

    def _read(self, rows: _Rows, layout: Layout) -> Mapping[int, int]:
        """The tokens of each reading: rows that nothing tells apart are joined."""
        key = (id(rows), layout)
        readings = self._readings.get(key)
        if readings is None:
            readings = defaultdict(int)
            for letters, tokens in rows:
                read = self.newlines.read(letters, layout)
                if read is not None:
                    readings[self._reading(read[0])] |= self._sets[tokens]
            keep = self._kept.setdefault
            readings = {r: keep(tokens, tokens) for r, tokens in readings.items()}
            self._readings[key] = readings
        return readings

    def _reading(self, letters: tuple[Letter, ...]) -> int:
        reading = self._reading_memo.get(letters)
        if reading is None:
            reading = self._reading_memo[letters] = self.predicates.classes.reading(letters)
        return reading

    def _united(self, unions: Iterable[Union]) -> Union:
        allowed, pending = 0, defaultdict[int, int](int)
        for union in unions:
            allowed |= union.allowed
            for state, tokens in union.pending.items():
                pending[state] |= tokens
        return self._union(allowed, pending)

    def _union(self, allowed: int, pending: Mapping[int, int]) -> Union:
        """The union with these; what is allowed already need not be decided."""
        # Few sets of tokens occur, and a set is kilobytes: each is kept once.
        keep = self._kept.setdefault
        allowed = keep(allowed, allowed)
        left = {s: keep(rest, rest) for s, tokens in pending.items() if (rest := tokens & ~allowed)}
        key = (id(allowed), tuple(sorted((s, id(tokens)) for s, tokens in left.items())))
        union = self._unions.get(key)
        if union is None:
            union = self._unions[key] = Union(allowed, left)
        return union


def _bits(tokens: npt.NDArray[np.uint32], size: int) -> int:
    flags = np.zeros(size, np.uint8)
    flags[tokens] = 1
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _grouped(
    rows: npt.NDArray[np.int64], width: int
) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """Rows by their first columns."""
    groups: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    for row in rows.tolist():
        groups[tuple(row[:width])].append(tuple(row[width:]))
    return groups
