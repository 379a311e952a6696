"""What each token does to the lexer: the annotated transitions, and the rows of the raw store.

The source is *Mask store streamlining* (Tran-Thien, 2025): ``nfa_transition`` and ``mask_store``
there. What is done otherwise here, so that the lexer is Lark's own and not only one that allows all
that Lark's does, stands in docs/design/mask-stores.md.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._lazy import lazy
from tokfold.errors import MatcherStateError
from tokfold.mask_store.byte_automata import ByteAutomaton, terminal_automaton
from tokfold.mask_store.errors import LarkGrammarError
from tokfold.mask_store.grammar import LarkGrammar
from tokfold.mask_store.lexer_types import JoinedRows, LexerLimits
from tokfold.vocabulary import Vocabulary

__all__ = ["ROWS", "Table", "Transitions", "build_transitions", "lexicon"]


Lexicon: TypeAlias = tuple[
    npt.NDArray[np.int32],
    list[int],
    list[tuple[bool, int]],
    list[int],
    list[bool],
    tuple[int, int] | None,
    list[list[int]],
    list[list[int]],
    list[tuple[int, int, bool]],
]
"""A :class:`Table` in parts, ignored terminals, newline terminal with the columns of a tab,
scanners, scanners after each terminal, embedded strings."""


Rows: TypeAlias = dict[str, npt.NDArray[Any]]

ROWS = (
    "letters",
    "sequence_letters",
    "sequence_offsets",
    "parts",
    "own",
    "ends",
    "tokens",
    "token_offsets",
)
"""The rows of a store in numbers, flat, as files hold them and the core takes them: of each letter
terminal, set of scanners, kind of column and column; the letters of all sequences, and where each
begins and the last one ends; rows of the shared parts (source, terminal, scanners, sequence,
tokens), and of the configurations; what ends at the first byte (configuration, terminal, scanners,
part); the tokens of all sets, sorted in each, and where each set begins and the last one ends."""


class Table(NamedTuple):
    """The automata of all terminals in one table, those of lookaheads behind all terminals.

    Attributes:
        moves: int32, flat: for each state 256 states, -1 for none.
        ends: for each state 0, 1, or ``2 + i`` for an end under condition ``i``.
        conditions: whether no match may follow (else one must), and the state that looks.
        offsets: the first state of each terminal, and behind the last one the first that looks.
    """

    moves: npt.NDArray[np.int32]
    ends: list[int]
    conditions: list[tuple[bool, int]]
    offsets: list[int]


class Transitions:
    """The lexer side of a mask store: see :func:`build_transitions`.

    Attributes:
        grammar: whose terminals these are.
        vocabulary: whose tokens.
        table: the automata of the terminals.
        states: for each lexer state its configuration and its terminal in progress.
        start: the state at the start of a text, in which nothing is in progress; it comes after
            all others and its rows are those of part 0.
    """

    def __init__(
        self,
        grammar: LarkGrammar,
        vocabulary: Vocabulary,
        table: Table,
        core: _core.LexerStore,
        rows: Rows | None = None,
    ) -> None:
        self.grammar, self.vocabulary, self.table = grammar, vocabulary, table
        self._core = core
        self.states: list[tuple[int, int]] = core.states()
        self.start: int = len(self.states)
        if rows is not None:
            self.rows = rows

    @lazy
    def rows(self) -> Rows:
        """The rows of all states, by :data:`ROWS`."""
        core = self._core
        letters = np.array(core.letters(), np.uint32)
        parts, own, tokens, token_offsets = core.rows()
        made: list[npt.NDArray[Any]] = [letters, *core.sequences(), parts, own, core.at_once()]
        made += [tokens, token_offsets]
        return {name: array.reshape(-1) for name, array in zip(ROWS, made, strict=True)}

    def sizes(self) -> dict[str, int]:
        """Numbers of joint states, configurations and sets of open questions; the work done."""
        (joints, configurations, questions), work = self._core.sizes()
        return {
            "joint_states": joints,
            "configurations": configurations,
            "open_sets": questions,
            "states": len(self.states) + 1,
            "work": work,
        }

    def release(self) -> None:
        """Let go of single transitions, most of the memory; rows are made first, and stay."""
        _ = self.rows
        self._core.release()

    def joined(self) -> JoinedRows:
        """The raw store in the paper's convention, and its counts.

        Raises:
            MatcherStateError: single transitions were let go of, or never there: see
                :meth:`release`.
        """
        if not self._core.has_ways():
            raise MatcherStateError(
                "a mask store keeps rows for decoding, not single transitions: call "
                "build_transitions() to count them"
            )
        made = self._core.joined()
        counts = made["counts"].astype(np.int64)
        tokens, offsets = made["tokens"], made["token_offsets"]
        return JoinedRows(
            states=counts[:, :2],
            transitions=counts[:, 2],
            row_counts=counts[:, 3],
            rows=made["rows"].astype(np.int64)[:, [0, 3, 4]],
            sequences=_split(made["letters"], made["offsets"]),
            token_sets=list(np.split(tokens, offsets[1:-1])),
        )


def _split(
    letters: npt.NDArray[np.uint32], offsets: npt.NDArray[np.uint32]
) -> list[tuple[int, ...]]:
    flat, ends = letters.tolist(), offsets.tolist()
    return [tuple(flat[a:b]) for a, b in itertools.pairwise(ends)]


def embedded_strings(grammar: LarkGrammar) -> list[tuple[int, int, bool]]:
    """Which strings Lark takes for the names of matches: pattern, string, hidden.

    A match of a regular expression whose text is that of a string terminal of the same priority
    gets the name of the string, in the scanners that have both. Where the expression has the
    string's flags, the string is not looked for on its own there.
    """
    terminals = grammar.terminals
    strings = [(i, t) for i, t in enumerate(terminals) if t.text is not None]
    used = {name for production in grammar.productions for name in production.expansion}
    found = []
    for i, pattern in enumerate(terminals):
        if pattern.text is not None or pattern.is_declared:
            continue
        expression = re.compile(pattern.pattern, grammar.global_flags)
        for j, string in strings:
            if string.priority != pattern.priority or string.text is None:
                continue
            match = expression.match(string.text)
            if match is not None and match.group() == string.text:
                if string.is_ignored and not pattern.is_ignored and string.name in used:
                    raise LarkGrammarError(
                        f"terminal {string.name} is ignored and stands in rules, and "
                        f"{pattern.name} matches its text: what Lark makes of it depends on which "
                        "of them it finds: do not ignore it, or give the two another priority"
                    )
                found.append((i, j, string.flags <= pattern.flags))
    return found


def build_transitions(
    grammar: LarkGrammar,
    vocabulary: Vocabulary,
    *,
    limits: LexerLimits | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Transitions:
    """Walk the vocabulary from every lexer state.

    Args:
        grammar: terminals and scanners.
        vocabulary: its textual tokens are walked; bytes that are not UTF-8 on their own are as
            good as others, and go on where another token left off.
        limits: bounds.
        progress: called with the configurations done and those known so far.

    Raises:
        UnsupportedPatternError: a pattern cannot be said by an automaton exactly.
        LarkGrammarError: a terminal matches nothing, or the empty string.
        LimitExceededError: a bound was reached.
    """
    limits = limits or LexerLimits()
    patterns = [t for t in grammar.terminals if not t.is_declared]
    if not patterns:
        raise LarkGrammarError(
            f"{grammar.source} has no terminal with a pattern: its only text is the empty one, "
            "for which no mask store is needed"
        )
    automata = [
        terminal_automaton(t, grammar.global_flags, max_states=limits.max_terminal_states)
        for t in patterns
    ]
    table = _table(automata)
    core = _core.LexerStore(
        vocabulary._compiled,
        lexicon(grammar, table),
        False,
        limits.max_lexer_states,
        limits.max_walk_work,
        progress,
    )
    return Transitions(grammar, vocabulary, table, core)


def lexicon(grammar: LarkGrammar, table: Table) -> Lexicon:
    """Automata of terminals and the scanners that look for them, as the core takes them."""
    newline = None
    if grammar.indentation is not None:
        terminal = grammar.terminal(grammar.indentation.newline)
        newline = (terminal, grammar.indentation.tab_len)
    return (
        table.moves,
        table.ends,
        table.conditions,
        table.offsets,
        [t.is_ignored for t in grammar.terminals if not t.is_declared],
        newline,
        [list(scanner) for scanner in grammar.scanners],
        _scanners_after(grammar),
        embedded_strings(grammar),
    )


def _scanners_after(grammar: LarkGrammar) -> list[list[int]]:
    """For each terminal the scanners that the parser can be in once it has shifted it.

    The newline of a post-lexer may be dropped, or followed by terminals of the indentation: after
    it the parser can be anywhere.
    """
    after: list[set[int]] = [set() for t in grammar.terminals if not t.is_declared]
    for shifts in grammar.table.shifts:
        for name, state in shifts.items():
            terminal = grammar.terminal(name)
            if terminal < len(after):
                after[terminal].add(grammar.scanner_of_state[state])
    for terminal in range(len(after)):
        newline = grammar.indentation and grammar.indentation.newline
        if grammar.terminals[terminal].name == newline:
            after[terminal] = set(range(len(grammar.scanners)))
    return [sorted(scanners) for scanners in after]


def _table(automata: list[ByteAutomaton]) -> Table:
    count = sum(len(a.ends) for a in automata)
    ends: list[int] = []
    conditions: list[tuple[bool, int]] = []
    offsets: list[int] = []
    moves: list[npt.NDArray[np.int32]] = []
    look_offset, look_ends = count, []
    for automaton in automata:
        offset = len(ends)
        offsets.append(offset)
        moves.append(np.where(automaton.moves >= 0, automaton.moves + offset, -1))
        ends += [end if end < 2 else end + len(conditions) for end in automaton.ends]
        conditions += [(c.negated, c.look_state + look_offset) for c in automaton.conditions]
        look_offset += len(automaton.look_found)
    offsets.append(len(ends))
    look_offset = count
    for automaton in automata:
        moves.append(np.where(automaton.look_moves >= 0, automaton.look_moves + look_offset, -1))
        look_ends += [int(found) for found in automaton.look_found]
        look_offset += len(automaton.look_found)
    table = np.concatenate(moves).astype(np.int32).reshape(-1)
    return Table(table, ends + look_ends, conditions, offsets)
