"""A grammar of terminals and rules, as the Lark package compiles it.

Lark reads the file: EBNF, templates, imports, priorities, flags. What it has made of it is kept
here as plain data, so that nothing behind this module knows Lark. It is filled in by
:func:`tokfold.mask_store.lark_reader.read_lark`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["END", "Indentation", "LarkGrammar", "LexerKind", "ParseTable", "Production", "Terminal"]

END = "$END"
"""Lark's name for the end of the text in its tables."""

LexerKind = Literal["basic", "contextual"]


@dataclass(frozen=True)
class Terminal:
    """A terminal, as the lexer sees it.

    Attributes:
        name: Lark's name; generated ones begin with ``__``.
        pattern: a regular expression for Python's :mod:`re`, flags written into it; empty for a
            declared terminal.
        text: the text of a terminal that is written as a string; ``None`` for regular expressions
            and declared terminals.
        flags: letters such as ``i``, as written after the pattern.
        priority: the number after the dot; higher is tried first.
        min_width: characters of the shortest match.
        max_width: characters of the longest match; ``None`` without a bound.
        is_ignored: the lexer drops it (``%ignore``).
        is_declared: it has no pattern (``%declare``); only the post-lexer makes it.
    """

    name: str
    pattern: str
    text: str | None
    flags: frozenset[str]
    priority: int
    min_width: int
    max_width: int | None
    is_ignored: bool
    is_declared: bool


@dataclass(frozen=True)
class Production:
    """``origin -> expansion``, after Lark has written out repetitions, options and templates.

    Attributes:
        origin: the name of a rule.
        expansion: names of terminals and rules. A name is that of a rule if a production has it
            as its origin.
        priority: as written at the rule; Lark's LALR decides conflicts between reductions by it.
        alias: name after ``->``; for messages.
    """

    origin: str
    expansion: tuple[str, ...]
    priority: int | None = None
    alias: str | None = None


@dataclass(frozen=True)
class Indentation:
    """A post-lexer that makes terminals of the indentation, as ``lark.indenter.Indenter``.

    Outside of parentheses each ``newline`` terminal is followed by one ``indent``, by ``dedent``
    terminals or by nothing, as its column compares with those of the lines it stands in. Inside,
    it is dropped. The column counts the blanks after the last line feed of the terminal, tabs as
    ``tab_len``. The core works it out (``mask_store::decode::layout``).
    """

    newline: str
    indent: str
    dedent: str
    open_parens: frozenset[str]
    close_parens: frozenset[str]
    tab_len: int

    def is_balanced(self, productions: Sequence[Production]) -> bool:
        """Whether each production alone closes what it opens, and nothing else."""
        for production in productions:
            depth = 0
            for symbol in production.expansion:
                depth += (symbol in self.open_parens) - (symbol in self.close_parens)
                if depth < 0:
                    return False
            if depth:
                return False
        return True


@dataclass(frozen=True)
class ParseTable:
    """Lark's own LALR(1) table: the one that decides what is accepted.

    Conflicts between shift and reduction are already decided for the shift, those between
    reductions by priority, as Lark does.

    Attributes:
        shifts: for each state the terminals that it shifts, and to which state.
        reductions: for each state the terminals (or :data:`END`) on which it reduces, and the
            index of the production.
        gotos: for each state the rules it goes on with, and to which state.
        start_states: the first state for each start symbol.
        end_states: the state in which the text is complete, for each start symbol.
    """

    shifts: tuple[Mapping[str, int], ...]
    reductions: tuple[Mapping[str, int], ...]
    gotos: tuple[Mapping[str, int], ...]
    start_states: Mapping[str, int]
    end_states: Mapping[str, int]

    def accepted(self, state: int) -> frozenset[str]:
        """The terminals on which a state does something: what the contextual lexer looks for."""
        names = frozenset(self.shifts[state]) | frozenset(self.reductions[state])
        return names - {END}


@dataclass(frozen=True)
class LarkGrammar:
    """Terminals, productions and Lark's table for them.

    Attributes:
        terminals: those with a pattern in the order in which Lark's lexer tries them (priority,
            then width, then length of the pattern, then name), then the declared ones. Terminals
            are known by their index here.
        productions: in Lark's order.
        start: the start symbol of the texts to be decoded.
        starts: all start symbols for which the table was made.
        table: Lark's LALR(1) table.
        lexer: ``"contextual"``: each state of the parser has a scanner for what it accepts;
            ``"basic"``: one scanner for all.
        indentation: the post-lexer, if there is one.
        scanners: sets of terminals (by index, sorted): the distinct scanners that the lexer has,
            ignored terminals and the newline of the post-lexer included.
        scanner_of_state: the scanner for each state of the table.
        source: where the grammar was read from; for messages.
    """

    terminals: tuple[Terminal, ...]
    productions: tuple[Production, ...]
    start: str
    starts: tuple[str, ...]
    table: ParseTable
    lexer: LexerKind
    indentation: Indentation | None
    scanners: tuple[tuple[int, ...], ...]
    scanner_of_state: tuple[int, ...]
    source: str = "grammar"
    global_flags: int = 0
    _by_name: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = {terminal.name: i for i, terminal in enumerate(self.terminals)}
        object.__setattr__(self, "_by_name", names)

    def terminal(self, name: str) -> int:
        """The index of a terminal.

        Raises:
            KeyError: there is none of this name.
        """
        return self._by_name[name]
