"""Inside matrices: how likely the model writes a string of a rule, between any two states.

``I_A[s, t]`` is the weight of all strings of the nonterminal ``A`` that take the automaton of the
model from ``s`` to ``t``: the least solution of ``I_A = sum over A -> X1..Xn of I_X1 ... I_Xn``.
It is found for one strongly connected set of rules after the other. Rules that repeat at one end
only are linear equations and are solved at once; where rules nest, each sweep solves the equations
of one end for the values that the last sweep gave everything else. All values grow from zero to
the least solution.

Each parse counts, so the grammar must be unambiguous.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tokfold.laboratory.fidelity.errors import NotConvergedError
from tokfold.laboratory.fidelity.linear import Matrix, eliminate, product
from tokfold.laboratory.fidelity.productions import Productions, Symbol, Terminal

__all__ = ["Inside", "solve_inside"]

TOLERANCE = 1e-13
"""Of what is still missing from an entry, in proportion to it."""
ROUNDING = 3e-14
"""How much rounding may change an entry between two sweeps, in proportion to it."""
WORST = 1e-10
"""What may be missing, in proportion, where sweeps converge so slowly that rounding hides it."""
MAX_SWEEPS = 2_000


@dataclass(frozen=True)
class Inside:
    """The solution.

    Attributes:
        matrices: by nonterminal, shape ``(S, S)`` each; empty ones have no key.
        sweeps: the most sweeps that a set of rules took.
        products: products of matrices made, a measure of the work.
    """

    matrices: dict[int, Matrix]
    sweeps: int
    products: int


def solve_inside(
    productions: Productions,
    terminal: Callable[[Terminal], Matrix],
    size: int,
    *,
    max_sweeps: int = MAX_SWEEPS,
) -> Inside:
    """Solve for the inside matrices of all nonterminals.

    Args:
        productions: trimmed.
        terminal: the matrix of a terminal, shape ``(size, size)``.
        size: number of states.
        max_sweeps: bound on sweeps over one strongly connected set of rules.

    Raises:
        NotConvergedError: more sweeps would be needed, or a value is infinite.
    """
    solver = _Solver(productions, terminal, size, max_sweeps)
    for component in productions.components():
        if any(productions.rules[lhs] for lhs in component):
            solver.solve(component)
    return Inside(solver.known, solver.sweeps, solver.products)


class _Solver:
    def __init__(
        self,
        productions: Productions,
        terminal: Callable[[Terminal], Matrix],
        size: int,
        max_sweeps: int,
    ) -> None:
        self._rules, self._names = productions.rules, productions.names
        self._terminal, self._size, self._max = terminal, size, max_sweeps
        self.known: dict[int, Matrix] = {}
        self._runs: dict[tuple[Symbol, ...], Matrix] = {}
        self.sweeps = 0
        self.products = 0

    def solve(self, component: list[int]) -> None:
        """Find the matrices of rules that need each other; those that they call are known."""
        members = frozenset(component)
        self._runs.clear()
        calls = [
            [at for at, symbol in enumerate(rhs) if symbol in members]
            for lhs in component
            for rhs in self._rules[lhs]
        ]
        lengths = [len(rhs) for lhs in component for rhs in self._rules[lhs]]
        pairs = list(zip(calls, lengths, strict=True))
        if all(not at or at == [length - 1] for at, length in pairs):
            self.known.update(self._solved(component, members, from_left=False))
            return
        if all(not at or at == [0] for at, _ in pairs):
            self.known.update(self._solved(component, members, from_left=True))
            return
        begins = any(at and at[0] == 0 and at[-1] != length - 1 for at, length in pairs)
        ends = any(at and at[-1] == length - 1 for at, length in pairs)
        self._sweep(component, members, begins, ends)

    def _sweep(
        self, component: list[int], members: frozenset[int], begins: bool, ends: bool
    ) -> None:
        for lhs in component:
            self.known[lhs] = np.zeros((self._size, self._size))
        changes: list[float] = []
        rate = 0.0
        for sweep in range(1, self._max + 1):
            from_left = begins and (not ends or sweep % 2 == 0)
            new = self._solved(component, members, from_left=from_left)
            change = 0.0
            for lhs in component:
                # In proportion to each entry: small ones must settle like large ones.
                shares = np.abs(new[lhs] - self.known[lhs])
                np.divide(shares, new[lhs], out=shares, where=new[lhs] > 0)
                change = max(change, float(shares.max()))
                self.known[lhs] = new[lhs]
            changes.append(change)
            self.sweeps = max(self.sweeps, sweep)
            if not np.isfinite(change):
                break
            # Over two sweeps, since the two ends take turns; rounding has no rate.
            if sweep > 2 and changes[-3] > 1e-11:
                rate = min(math.sqrt(max(change, 1e-16) / changes[-3]), 1.0)
            # What is still to come is about the change times rate / (1 - rate).
            if change <= max(TOLERANCE * (1 - rate), ROUNDING):
                if WORST * (1 - rate) > ROUNDING:
                    return
                break
        names = ", ".join(self._names[lhs] for lhs in component[:5])
        raise NotConvergedError(
            f"the inside values of the rules {names} did not settle in {sweep} sweeps; the last "
            f"one shrank the change by {rate:.6g}: with this model the grammar nests (nearly) "
            "without end. Raise max_sweeps, or use a model that closes what it opens",
            sweep,
            rate,
        )

    def _solved(
        self, component: list[int], members: frozenset[int], *, from_left: bool
    ) -> dict[int, Matrix]:
        """Solve for all members, those at one end of a right-hand side unknown, others as known."""
        blocks: dict[tuple[int, int], Matrix] = {}
        constants = {lhs: np.zeros((self._size, self._size)) for lhs in component}
        for lhs in component:
            for rhs in self._rules[lhs]:
                end = None
                if rhs:
                    end = rhs[0] if from_left else rhs[-1]
                if isinstance(end, int) and end in members:
                    rest = rhs[1:] if from_left else rhs[:-1]
                    more = self._string(rest, members)
                    # From the left the unknown stands left of its factor: transposed.
                    more = more.T if from_left else more
                    known = blocks.get((lhs, end))
                    blocks[lhs, end] = more if known is None else known + more
                else:
                    string = self._string(rhs, members)
                    constants[lhs] += string.T if from_left else string
        found = eliminate(blocks, constants)
        return {lhs: found[lhs].T if from_left else found[lhs] for lhs in component}

    def _string(self, symbols: tuple[Symbol, ...], members: frozenset[int]) -> Matrix:
        """The product of the matrices of some symbols, those of other components joined first."""
        total: Matrix | None = None
        at = 0
        while at < len(symbols):
            to = at + 1
            if symbols[at] not in members:
                while to < len(symbols) and symbols[to] not in members:
                    to += 1
                part = self._settled(symbols[at:to])
            else:
                part = self._one(symbols[at])
            total = part if total is None else self._product(total, part)
            at = to
        return np.eye(self._size) if total is None else total

    def _settled(self, symbols: tuple[Symbol, ...]) -> Matrix:
        """The product of matrices that do not change while this component is solved."""
        known = self._runs.get(symbols)
        if known is None:
            known = self._one(symbols[0])
            for symbol in symbols[1:]:
                known = self._product(known, self._one(symbol))
            self._runs[symbols] = known
        return known

    def _product(self, left: Matrix, right: Matrix) -> Matrix:
        self.products += 1
        return product(left, right)

    def _one(self, symbol: Symbol) -> Matrix:
        if isinstance(symbol, int):
            return self.known[symbol]
        return self._terminal(symbol)
