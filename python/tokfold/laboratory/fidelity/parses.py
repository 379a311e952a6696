"""Parses of one string, and a shortest string of each rule."""

from __future__ import annotations

import numpy as np

from tokfold.laboratory.fidelity.inside import solve_inside
from tokfold.laboratory.fidelity.linear import Matrix
from tokfold.laboratory.fidelity.productions import Productions, Symbol, Terminal

__all__ = ["count_parses", "shortest_strings"]


def count_parses(productions: Productions, data: bytes, start: int | None = None) -> float:
    """How many parses a string has from a nonterminal; the grammar must have no cycles."""
    size = len(data) + 1

    def terminal(values: Terminal) -> Matrix:
        matrix = np.zeros((size, size))
        for at, byte in enumerate(data):
            matrix[at, at + 1] = byte in values
        return matrix

    first = productions.start if start is None else start
    whole = Productions(productions.names, productions.rules, first).trimmed()
    inside = solve_inside(whole, terminal, size)
    return float(inside.matrices[first][0, -1]) if first in inside.matrices else 0.0


def shortest_strings(productions: Productions) -> list[bytes]:
    """A shortest string of each nonterminal; empty for those that derive none."""
    lengths: dict[int, int] = {}
    best: dict[int, tuple[Symbol, ...]] = {}
    while True:
        changed = False
        for lhs, body in enumerate(productions.rules):
            for rhs in body:
                parts = [lengths.get(s) if isinstance(s, int) else 1 for s in rhs]
                known = [part for part in parts if part is not None]
                if len(known) == len(parts) and sum(known) < lengths.get(lhs, 1 << 60):
                    lengths[lhs], best[lhs] = sum(known), rhs
                    changed = True
        if not changed:
            break
    strings: list[bytes | None] = [None] * len(productions.rules)
    # Shorter ones never need longer ones; those of equal length are unit rules: settle by rounds.
    for lhs in sorted(lengths, key=lengths.__getitem__):
        work = [lhs]
        while work:
            top = work[-1]
            missing = [s for s in best[top] if isinstance(s, int) and strings[s] is None]
            if missing:
                work += missing
                continue
            work.pop()
            strings[top] = b"".join(
                (strings[s] or b"") if isinstance(s, int) else bytes([min(s)]) for s in best[top]
            )
    return [string or b"" for string in strings]
