"""A slow engine: Lark's table, the lexer states of the store, and all hypotheses side by side."""

from __future__ import annotations

from dataclasses import dataclass

from mask_store.lexer_views import Letter, LexerView
from tokfold.mask_store.grammar import END, LarkGrammar
from tokfold.mask_store.transitions import Transitions


@dataclass(frozen=True)
class Hypothesis:
    """How a text can have been read so far."""

    state: int
    stack: tuple[int, ...]
    scanner: int
    """The scanner in which what is in progress began."""
    columns: tuple[int, ...] = (0,)
    level: int = 0
    fed: bool = False
    """Whether a newline in progress has a line feed."""


def feed(grammar: LarkGrammar, stack: tuple[int, ...], name: str) -> tuple[int, ...] | None:
    """The stack after a terminal; ``None`` if the table refuses it."""
    table = grammar.table
    while True:
        top = stack[-1]
        if name in table.shifts[top]:
            return (*stack, table.shifts[top][name])
        if name not in table.reductions[top]:
            return None
        production = grammar.productions[table.reductions[top][name]]
        stack = stack[: len(stack) - len(production.expansion)]
        stack = (*stack, table.gotos[stack[-1]][production.origin])
        if name == END and stack[-1] == table.end_states[grammar.start]:
            return stack


class Engine:
    def __init__(self, transitions: Transitions) -> None:
        self.transitions = transitions
        self.t, self.g = LexerView(transitions), transitions.grammar
        self.sets = self.t.scanner_sets
        start = self.g.table.start_states[self.g.start]
        self.front = {Hypothesis(transitions.start, (start,), 0)}
        self.column = 0

    def scanner(self, stack: tuple[int, ...]) -> int:
        return self.g.scanner_of_state[stack[-1]]

    def accept(self, token: bytes) -> bool:
        """Reads the bytes of a token; False if no hypothesis is left."""
        after = set()
        for h in self.front:
            for way in self.t.advance(h.state, token):
                if not self.sets[way.scanners][h.scanner]:
                    continue
                assert way.state is not None
                made = self.read(h, way.letters, way.state, token)
                if made is not None:
                    after.add(made)
        for byte in token:
            if byte == 10:
                self.column = 0
            elif byte in b" \t":
                self.column += 1 if byte == 32 else (self.g.indentation or _TABS).tab_len
        self.front = after
        return bool(after)

    def read(
        self, h: Hypothesis, letters: tuple[Letter, ...], state: int, token: bytes
    ) -> Hypothesis | None:
        stack, columns, level = h.stack, h.columns, h.level
        scanner, fed = h.scanner, h.fed or b"\n" in token
        for letter in letters:
            terminal = self.g.terminals[letter.terminal]
            if letter.scanners != 0:
                scanner = self.scanner(stack)
                if not self.sets[letter.scanners][scanner]:
                    return None
                if terminal.is_ignored:
                    continue
                if letter.column.kind == "none" or level == 0:
                    fed_stack = feed(self.g, stack, terminal.name)
                    if fed_stack is None:
                        return None
                    stack = fed_stack
                indentation = self.g.indentation
                if indentation and terminal.name in indentation.open_parens:
                    level += 1
                if indentation and terminal.name in indentation.close_parens:
                    level -= 1
            kind, value = letter.column
            if kind == "open":
                fed = bool(value)
            elif kind != "none" and level == 0:
                if kind == "missing" or (kind == "after" and not h.fed):
                    return None
                column = value if kind == "at" else self.column + value
                indented = self.indent(stack, columns, column)
                if indented is None:
                    return None
                stack, columns = indented
        last = self.t.states[state][1]
        if not letters or self.g.terminals[last].is_ignored:
            # What is in progress is as before, or ignored and began here.
            ignored = self.g.terminals[last].is_ignored
            scanner = self.scanner(stack) if ignored else scanner
        return Hypothesis(state, stack, scanner, columns, level, fed)

    def indent(
        self, stack: tuple[int, ...], columns: tuple[int, ...], column: int
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        indentation = self.g.indentation
        assert indentation is not None
        if column > columns[-1]:
            fed = feed(self.g, stack, indentation.indent)
            return None if fed is None else (fed, (*columns, column))
        while column < columns[-1]:
            columns = columns[:-1]
            fed = feed(self.g, stack, indentation.dedent)
            if fed is None:
                return None
            stack = fed
        return (stack, columns) if column == columns[-1] else None

    def complete(self) -> bool:
        """Whether the text may end here."""
        return any(self.ends(h) for h in self.front)

    def ends(self, h: Hypothesis) -> bool:
        if not self.sets[self.t.complete(h.state)][h.scanner]:
            return False
        stack, columns = h.stack, h.columns
        indentation = self.g.indentation
        if indentation is not None:
            terminal = self.t.states[h.state][1] if h.state != self.t.start else None
            if terminal == self.g.terminal(indentation.newline) and h.level == 0:
                indented = self.indent(stack, columns, self.column) if h.fed else None
                if indented is None:
                    return False
                stack, columns = indented
            for _ in columns[1:]:
                fed = feed(self.g, stack, indentation.dedent)
                if fed is None:
                    return False
                stack = fed
        return feed(self.g, stack, END) is not None


class _TABS:
    tab_len = 8


def accepts(transitions: Transitions, tokens: list[bytes]) -> bool:
    """Whether a text is accepted, token by token."""
    engine = Engine(transitions)
    return all(engine.accept(token) for token in tokens) and engine.complete()
