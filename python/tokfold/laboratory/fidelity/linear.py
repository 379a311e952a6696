"""Matrices without negative numbers: products, stars and systems of equations, no subtraction.

Nothing here cancels, so small values keep their digits and what is zero stays exactly zero.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tokfold.laboratory.fidelity.errors import NotConvergedError

__all__ = ["Matrix", "eliminate", "product", "star"]

Matrix = npt.NDArray[np.float64]
MAX_DOUBLINGS = 64


def _any(matrix: Matrix, axis: int) -> npt.NDArray[np.bool_]:
    return np.asarray(matrix.any(axis=axis))


def product(left: Matrix, right: Matrix) -> Matrix:
    """The product of two matrices, over the inner places where both have anything.

    A model of bytes enters a state for each byte, so most inside matrices have a few columns only.
    """
    inner = _any(left, 0) & _any(right, 1)
    count = int(inner.sum())
    if count * 3 > len(inner) * 2:
        return left @ right
    if count == 0:
        return np.zeros((left.shape[0], right.shape[1]))
    rows = _any(left, 1)
    if int(rows.sum()) * 2 > len(rows):
        return left[:, inner] @ right[inner]
    out = np.zeros((left.shape[0], right.shape[1]))
    out[rows] = left[np.ix_(rows, inner)] @ right[inner]
    return out


def star(matrix: Matrix) -> Matrix:
    """``I + M + M^2 + ...``.

    Raises:
        NotConvergedError: the sum is infinite, or as good as.
    """
    return _Star(matrix).times(np.eye(len(matrix)))


class _Star:
    """``I + M + M^2 + ...`` by way of the columns, or rows, in which ``M`` has anything."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        columns, rows = np.flatnonzero(_any(matrix, 0)), np.flatnonzero(_any(matrix, 1))
        self._by_columns = len(columns) <= len(rows)
        self._places = columns if self._by_columns else rows
        self._core = _doubled(matrix[np.ix_(self._places, self._places)])

    def times(self, right: Matrix) -> Matrix:
        """The star times a matrix."""
        places, matrix = self._places, self._matrix
        if self._by_columns:
            return right + product(matrix[:, places], product(self._core, right[places]))
        out = right.copy()
        out[places] += product(self._core, product(matrix[places], right))
        return out


def _doubled(matrix: Matrix) -> Matrix:
    """The star of a matrix, by doubling: ``S <- S + S P``, ``P <- P P``."""
    total = np.eye(len(matrix))
    power = matrix
    for doubling in range(MAX_DOUBLINGS):
        if not power.any():
            return total
        new = total + product(total, power)
        if not np.isfinite(new).all():
            raise NotConvergedError(
                "a repetition has infinite weight: the grammar repeats the empty string, or the "
                "model never leaves it",
                doubling,
                float("inf"),
            )
        if np.array_equal(new, total):
            return total
        total, power = new, product(power, power)
    raise NotConvergedError(
        f"a repetition did not end within 2^{MAX_DOUBLINGS} rounds: the model (nearly) never "
        "leaves it",
        MAX_DOUBLINGS,
        1.0,
    )


def eliminate(
    blocks: Mapping[tuple[int, int], Matrix], constants: Mapping[int, Matrix]
) -> dict[int, Matrix]:
    """The least solution of ``X_i = C_i + sum_j B_ij X_j``, by elimination of blocks.

    Args:
        blocks: ``B``, where it is not zero.
        constants: ``C`` for each unknown.
    """
    rows: dict[int, dict[int, Matrix]] = {i: {} for i in constants}
    for (i, j), block in blocks.items():
        rows[i][j] = block
    right = dict(constants)
    order = sorted(constants)
    for at, i in enumerate(order):
        own = rows[i].pop(i, None)
        if own is not None:
            closed = _Star(own)
            rows[i] = {j: closed.times(block) for j, block in rows[i].items()}
            right[i] = closed.times(right[i])
        for k in order[at + 1 :]:
            factor = rows[k].pop(i, None)
            if factor is None:
                continue
            right[k] = right[k] + product(factor, right[i])
            for j, block in rows[i].items():
                more = product(factor, block)
                rows[k][j] = rows[k][j] + more if j in rows[k] else more
    for i in reversed(order):
        for j, block in rows[i].items():
            right[i] = right[i] + product(block, right[j])
    return right
