"""From the letters of a token to terminals for the parser: what the post-lexer makes of newlines.

As ``lark.indenter.Indenter`` does it, which is Lark's: inside of parentheses a newline is dropped,
outside it is followed by indents and dedents, as its column compares with those of the lines that
the text stands in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tokfold.mask_store.grammar import Indentation, LarkGrammar, Production
from tokfold.mask_store.stack_classes import NOTHING, Letter
from tokfold.mask_store.transitions import NO_SCANNER, Column, Transitions
from tokfold.mask_store.transitions import Letter as LexerLetter

__all__ = ["MISSING", "Layout", "NewlineRules", "is_balanced"]

MISSING = -1
"""The column of a newline terminal that has no line feed."""


@dataclass(frozen=True)
class Layout:
    """What the post-lexer remembers, and the newline terminal in progress.

    Attributes:
        parens: parentheses that are open.
        columns: columns of the lines that the text stands in, ascending.
        column: that of the newline terminal in progress; :data:`MISSING` if it has no line feed
            yet; of no meaning if none is in progress.
    """

    parens: int = 0
    columns: tuple[int, ...] = (0,)
    column: int = MISSING
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.parens, self.columns, self.column)))

    def __hash__(self) -> int:
        # Asked for with each mask: not worked out each time.
        return self._hash


class NewlineRules:
    """Letters of the lexer as letters for the parser, for one grammar."""

    def __init__(self, grammar: LarkGrammar, transitions: Transitions) -> None:
        self._ignored = [t.is_ignored for t in grammar.terminals]
        self._states = _states_of(grammar, transitions)
        indentation: Indentation | None = grammar.indentation
        self.newline = NOTHING
        self._opens: frozenset[int] = frozenset()
        self._closes: frozenset[int] = frozenset()
        if indentation is not None:
            names = {t.name: i for i, t in enumerate(grammar.terminals)}
            self.newline = names[indentation.newline]
            # The parser refuses a terminal that no rule mentions.
            nowhere = Letter(NOTHING, frozenset())
            indent, dedent = names.get(indentation.indent), names.get(indentation.dedent)
            self._indent = nowhere if indent is None else Letter(indent)
            self._dedent = nowhere if dedent is None else Letter(dedent)
            self._opens = frozenset(names[n] for n in indentation.open_parens if n in names)
            self._closes = frozenset(names[n] for n in indentation.close_parens if n in names)
        self.is_balanced = indentation is None or is_balanced(grammar.productions, indentation)

    def asks(self, letters: Sequence[LexerLetter]) -> bool:
        """Whether what the letters are for the parser depends on the layout.

        A parenthesis that closes none is an error of the post-lexer, but where the rules keep
        parentheses in balance the parser has refused it before.
        """
        return any(
            letter.terminal == self.newline
            or (not self.is_balanced and letter.terminal in self._closes)
            for letter in letters
        )

    def closes(self, letters: Sequence[LexerLetter]) -> int:
        """How many parentheses the letters close."""
        return sum(letter.terminal in self._closes for letter in letters)

    def read(
        self, letters: Sequence[LexerLetter], layout: Layout
    ) -> tuple[tuple[Letter, ...], Layout] | None:
        """What the parser reads.

        A newline terminal that is still in progress counts as one for the parser outside of
        parentheses, and leaves the layout as it is.

        Returns:
            Letters for the parser, and the layout after them (its ``column`` is not kept up).
            None where the post-lexer fails, whatever the parser says.
        """
        out: list[Letter] = []
        parens, columns = layout.parens, layout.columns
        for terminal, scanners, column in letters:
            states = self._states[scanners] if scanners else None
            if terminal == self.newline:
                if parens > 0:
                    _check(out, states)
                    continue
                if column.kind == "missing":
                    return None
                out.append(_with(Letter(terminal, states), out))
                if column.kind == "open":
                    continue
                at = column.value if column.kind == "at" else layout.column + column.value
                if column.kind == "after" and layout.column == MISSING:
                    return None
                if at > columns[-1]:
                    columns = (*columns, at)
                    out.append(self._indent)
                while at < columns[-1]:
                    columns = columns[:-1]
                    out.append(self._dedent)
                if at != columns[-1]:
                    return None
            elif self._ignored[terminal]:
                _check(out, states)
            else:
                out.append(_with(Letter(terminal, states), out))
                if terminal in self._opens:
                    parens += 1
                elif terminal in self._closes:
                    parens -= 1
                    if parens < 0:
                        return None
        return tuple(out), Layout(parens, columns)

    def ended(self, layout: Layout) -> tuple[tuple[Letter, ...], Layout] | None:
        """As :meth:`read` for the newline terminal in progress, where it ends here."""
        return self.read((LexerLetter(self.newline, NO_SCANNER, Column("after", 0)),), layout)

    def end(self, layout: Layout) -> tuple[Letter, ...]:
        """What the post-lexer adds where the text ends."""
        return (self._dedent,) * (len(layout.columns) - 1) if self.newline != NOTHING else ()


def is_balanced(productions: Sequence[Production], indentation: Indentation) -> bool:
    """Whether each production alone closes what it opens, and nothing else."""
    for production in productions:
        depth = 0
        for symbol in production.expansion:
            depth += (symbol in indentation.open_parens) - (symbol in indentation.close_parens)
            if depth < 0:
                return False
        if depth:
            return False
    return True


def _states_of(grammar: LarkGrammar, transitions: Transitions) -> list[frozenset[int] | None]:
    """For each set of scanners the states of the parser that have one of them."""
    sets = transitions.scanner_sets
    by_set: list[frozenset[int] | None] = []
    for row in sets:
        if row.all():
            by_set.append(None)
        else:
            states = (s for s, scanner in enumerate(grammar.scanner_of_state) if row[scanner])
            by_set.append(frozenset(states))
    return by_set


def _check(out: list[Letter], states: frozenset[int] | None) -> None:
    """Ask for the top of the stack without reading."""
    if states is not None:
        out.append(_with(Letter(NOTHING, states), out))


def _with(letter: Letter, out: list[Letter]) -> Letter:
    """A letter together with what was asked of the same top before it."""
    if not out or out[-1].terminal != NOTHING:
        return letter
    asked = out.pop().states
    if letter.states is None or asked is None:
        return Letter(letter.terminal, asked if letter.states is None else letter.states)
    return Letter(letter.terminal, letter.states & asked)
