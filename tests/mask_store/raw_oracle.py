"""Masks from the rows before any predicate, each read by Lark's table from the whole stack.

Knows nothing of stores, classes and minimal automata: the rows are those of the lexer, the table
is Lark's, indentation is followed here. So that whole files can be compared, what was read is
remembered by the states of the stack that the reading looked at, and by no others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mask_store.lalr_oracle import Engine, Hypothesis
from mask_store.lexer_views import NO_SCANNER, Column, Letter, LexerView
from tokfold.mask_store.grammar import END
from tokfold.mask_store.transitions import Transitions


@dataclass
class Trie:
    """Rows by their letters, one after the other."""

    sets: list[int] = field(default_factory=list)
    """The token sets of the rows that end here."""
    children: dict[Letter, Trie] = field(default_factory=dict)

    def add(self, letters: tuple[Letter, ...], tokens: int) -> None:
        node = self
        for letter in letters:
            node = node.children.setdefault(letter, Trie())
        node.sets.append(tokens)


@dataclass(frozen=True)
class Standing:
    """The parser and the post-lexer in the middle of a row: ``kept`` states of the stack below."""

    kept: int
    pushed: tuple[int, ...]
    columns: tuple[int, ...]
    level: int


class RawReader:
    def __init__(self, transitions: Transitions) -> None:
        self.t, self.g = LexerView(transitions), transitions.grammar
        self.sets = self.t.scanner_sets
        self.newline = None
        if self.g.indentation is not None:
            self.newline = self.g.terminal(self.g.indentation.newline)
        self._parts = grouped(self.t.shared_rows.tolist(), 1)
        self._own = grouped(self.t.own_rows.tolist(), 2)
        self._at_once = grouped(self.t.at_once.tolist(), 2)
        self._tries: dict[Any, tuple[Trie, Trie]] = {}
        self._memo: dict[Any, Any] = {}
        self._interned: dict[int, int] = {}
        self.rows_read = 0
        self.misses = 0
        # While a trie is read:
        self._stack: tuple[int, ...] = ()
        self._lowest = 0
        self._before = Hypothesis(0, (), 0)
        self._column = 0

    def mask(self, engine: Engine) -> int:
        """The tokens that may come next, as bits; the end of the text is not among them."""
        mask = 0
        for h in engine.front:
            for key in self._groups(h):
                for asks, trie in enumerate(self._trie(key)):
                    if trie.sets or trie.children:
                        mask |= self._remembered((key, asks), trie, h, engine.column)
        return mask

    def _groups(self, h: Hypothesis) -> list[Any]:
        if h.state == self.t.start:
            return [("part", 0, False)]
        pair = self.t.states[h.state]
        keys: list[Any] = [("own", *pair, h.scanner)]
        for scanners, part in self._at_once.get(pair, ()):
            if self.sets[scanners][h.scanner]:
                keys.append(("part", part, pair[1] == self.newline))
        return keys

    def _trie(self, key: Any) -> tuple[Trie, Trie]:
        """Rows without the newline of a post-lexer, and those with it."""
        tries = self._tries.get(key)
        if tries is None:
            tries = self._tries[key] = (Trie(), Trie())
            for letters, tokens in self._rows(key):
                tries[any(x.terminal == self.newline for x in letters)].add(letters, tokens)
        return tries

    def _rows(self, key: Any) -> list[tuple[tuple[Letter, ...], int]]:
        if key[0] == "own":
            _, configuration, terminal, scanner = key
            found = self._own.get((configuration, terminal), ())
            chosen = [(s, n) for scanners, s, n in found if self.sets[scanners][scanner]]
            before: tuple[Letter, ...] = ()
        else:
            _, part, ended = key
            chosen = self._parts.get((part,), [])
            # The newline in progress ends where the last token did.
            before = (Letter(self.newline, NO_SCANNER, Column("after", 0)),) if ended else ()
        letters = self.t.letters
        return [(before + tuple(letters[i] for i in self.t.sequences[s]), n) for s, n in chosen]

    def _bits(self, sets: list[int]) -> int:
        """The union of token sets, as bits."""
        flags = np.zeros(len(self.t.vocabulary), np.uint8)
        for number in sets:
            flags[self.t.token_sets[number]] = 1
        packed = np.packbits(flags, bitorder="little").tobytes()
        return int.from_bytes(packed, "little")

    def _remembered(self, key: Any, trie: Trie, h: Hypothesis, column: int) -> int:
        if key[1]:
            key = (key, h.level, h.columns, column, h.fed)
        found = self._memo.get(key)
        depth = len(h.stack)
        while isinstance(found, dict):
            depth -= 1
            found = found.get(h.stack[depth])
        if found is None:
            found = self.read(trie, h, column)
            node = self._memo.setdefault(key, {})
            for place in range(len(h.stack) - 1, self._lowest, -1):
                node = node.setdefault(h.stack[place], {})
            node[h.stack[self._lowest]] = found
        return found

    def read(self, trie: Trie, h: Hypothesis, column: int) -> int:
        """The tokens of the rows that the table reads; notes how far down it looked."""
        self._stack, self._before, self._column = h.stack, h, column
        self._lowest = len(h.stack) - 1
        self.misses += 1
        found: list[int] = []
        waiting = [(trie, Standing(len(h.stack), (), h.columns, h.level))]
        while waiting:
            node, at = waiting.pop()
            found += node.sets
            for letter, child in node.children.items():
                self.rows_read += 1
                after = self._letter(at, letter)
                if after is not None:
                    waiting.append((child, after))
        mask = self._bits(found)
        return self._interned.setdefault(mask, mask)

    def _letter(self, at: Standing, letter: Letter) -> Standing | None:
        terminal, scanners, (kind, value) = letter
        known = self.g.terminals[terminal]
        if scanners != NO_SCANNER:
            scanner = self.g.scanner_of_state[self._top(at.kept, at.pushed)]
            if not self.sets[scanners][scanner]:
                return None
            if known.is_ignored:
                return at
            if terminal != self.newline or at.level == 0:
                fed = self._feed(at, known.name)
                if fed is None:
                    return None
                at = fed
            rules = self.g.indentation
            if rules is not None:
                change = (known.name in rules.open_parens) - (known.name in rules.close_parens)
                at = Standing(at.kept, at.pushed, at.columns, at.level + change)
        if kind in ("none", "open") or at.level > 0:
            return at
        if kind == "missing" or (kind == "after" and not self._before.fed):
            return None
        return self._indented(at, value if kind == "at" else self._column + value)

    def _indented(self, at: Standing, column: int) -> Standing | None:
        rules, columns = self.g.indentation, at.columns
        assert rules is not None
        fed: Standing | None = at
        if column > columns[-1]:
            columns = (*columns, column)
            fed = self._feed(at, rules.indent)
        while fed is not None and column < columns[-1]:
            columns = columns[:-1]
            fed = self._feed(fed, rules.dedent)
        if fed is None or column != columns[-1]:
            return None
        return Standing(fed.kept, fed.pushed, columns, at.level)

    def _top(self, kept: int, pushed: tuple[int, ...]) -> int:
        if pushed:
            return pushed[-1]
        self._lowest = min(self._lowest, kept - 1)
        return self._stack[kept - 1]

    def _feed(self, at: Standing, name: str) -> Standing | None:
        table, kept, pushed = self.g.table, at.kept, at.pushed
        while True:
            top = self._top(kept, pushed)
            if name in table.shifts[top]:
                pushed = (*pushed, table.shifts[top][name])
                return Standing(kept, pushed, at.columns, at.level)
            if name not in table.reductions[top]:
                return None
            production = self.g.productions[table.reductions[top][name]]
            size = len(production.expansion)
            below = max(size - len(pushed), 0)
            kept, pushed = kept - below, pushed[: len(pushed) - size] if not below else ()
            pushed = (*pushed, table.gotos[self._top(kept, pushed)][production.origin])
            if name == END and pushed[-1] == table.end_states[self.g.start]:
                return Standing(kept, pushed, at.columns, at.level)


def grouped(rows: list[list[int]], width: int) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    groups: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[:width]), []).append(tuple(row[width:]))
    return groups
