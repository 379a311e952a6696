"""What a step of our own engine costs, by its counters; and which steps cost others more.

For our own engine a model predicts microseconds: its counters are the engine's own, and say nearly
all about the work. For other engines what can be seen is part of the work only, so there is a
ranking: which of two steps, texts or grammars is the more costly, and nothing in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from tokfold._quoting import quoted
from tokfold.laboratory.cost_model.fitting import (
    Affine,
    CostModelError,
    Floats,
    average_ranks,
    columns,
    fit_affine,
)
from tokfold.laboratory.instruments.base import Pass

__all__ = ["FEATURES", "CostModel", "CostRanking", "fit_cost_model", "fit_ranking"]

FORMAT = 1
FEATURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "own": (
        ("mask.sets_visited", "mask.memo_misses", "mask.trie_nodes", "mask.bytes_made"),
        ("step.work", "step.completions", "step.earley_sets", "step.bytes"),
    ),
    "xgrammar": (
        ("mask.uncertain_bytes", "mask.tried_states", "mask.listed", "state.states"),
        (),
    ),
    "llguidance": (
        ("mask.rows", "mask.all_items", "mask.lexer_cost", "mask.trie_nodes_walked"),
        (),
    ),
}
"""The counters that each engine's masks and steps are modelled by."""

Counters = dict[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class CostModel:
    """Microseconds of our own engine's masks and steps, by their counters.

    Attributes:
        mask: of one mask.
        step: of reading one token.
        about: what it was fitted on: machine, vocabulary, versions, and how well it does.
    """

    mask: Affine
    step: Affine
    about: dict[str, Any] = field(default_factory=dict)

    def predict_mask(self, counters: Counters) -> Floats:
        """Microseconds of each mask, shape ``(T,)``."""
        return self.mask(counters)

    def predict(self, counters: Counters) -> Floats:
        """Microseconds of both, shape ``(T,)``."""
        return self.mask(counters) + self.step(counters)

    def to_json(self) -> str:
        """Text that :meth:`from_json` reads."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> CostModel:
        """Read a model.

        Raises:
            CostModelError: it is none, or one of another format.
        """
        try:
            document = json.loads(text)
            if document["format"] != FORMAT:
                raise CostModelError(
                    f"a cost model of format {document['format']}, not {FORMAT}: calibrate again"
                )
            parts = [
                Affine(tuple(part["names"]), tuple(part["coefficients"]), part["intercept"])
                for part in (document["mask"], document["step"])
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise CostModelError(f"no cost model: {error}") from error
        return cls(parts[0], parts[1], document.get("about", {}))

    @classmethod
    def shipped(cls) -> CostModel:
        """The model that comes with the package: see :attr:`about` for machine and vocabulary.

        On another machine the order of steps stands, and the microseconds do not: calibrate.
        """
        data = resources.files("tokfold.laboratory.cost_model") / "own.json"
        return cls.from_json(data.read_text(encoding="utf-8"))


def fit_cost_model(passes: Sequence[Pass], about: Mapping[str, Any] | None = None) -> CostModel:
    """Fit a model of our own engine to passes over training texts.

    Each pass weighs the same, and steps whose masks had to be made weigh as much together as steps
    whose masks were remembered: those are many, and all alike.

    Raises:
        CostModelError: there is no pass, or its counters are not those of our engine.
    """
    of_masks, of_steps = FEATURES["own"]
    masks, mask_times, weights = _gather(passes, of_masks, "mask")
    is_made = masks[:, of_masks.index("mask.memo_misses")] > 0
    if is_made.any() and not is_made.all():
        weights = weights.copy()
        weights[is_made] *= weights[~is_made].sum() / weights[is_made].sum()
    steps, step_times, step_weights = _gather(passes, of_steps, "step")
    return CostModel(
        fit_affine(of_masks, masks, mask_times, weights),
        fit_affine(of_steps, steps, step_times, step_weights),
        dict(about or {}),
    )


def _gather(
    passes: Sequence[Pass], names: Sequence[str], part: str
) -> tuple[Floats, Floats, Floats]:
    """Counters, times and weights of all steps of all passes."""
    if not passes:
        raise CostModelError("there is nothing to fit to")
    tables, times, weights = [], [], []
    for one in passes:
        measured = {"mask": one.mask, "step": one.step, "total": one.total}[part]("min")
        tables.append(columns(one.counters, names))
        times.append(measured)
        weights.append(np.full(len(measured), 1 / max(len(measured), 1)))
    return np.concatenate(tables), np.concatenate(times), np.concatenate(weights)


class CostRanking:
    """Which steps or texts cost an engine more; never how much.

    Attributes:
        engine: the engine's name.
        about: as for :class:`CostModel`.
    """

    def __init__(self, engine: str, score: Affine, about: dict[str, Any] | None = None) -> None:
        self.engine = engine
        self.about = about or {}
        # In units of the training texts' median: there are no microseconds in it to be read.
        self._score = score

    def ranks(self, counters: Counters) -> Floats:
        """The rank of each step among these, from 0 (cheapest) to 1, shape ``(T,)``."""
        score = self._score(counters)
        return average_ranks(score) / max(len(score) - 1, 1)

    def order(self, texts: Mapping[str, Counters]) -> list[str]:
        """Names of texts by what a step costs in them on average, the costliest first."""
        means = {name: float(self._score(counters).mean()) for name, counters in texts.items()}
        return sorted(means, key=lambda name: (-means[name], name))

    def __repr__(self) -> str:
        return f"<CostRanking of {self.engine}>"


def fit_ranking(
    engine: str,
    passes: Sequence[Pass],
    about: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
) -> CostRanking:
    """Fit a ranking of a foreign engine's steps, mask and reading together, to training texts.

    Args:
        engine: its name.
        passes: over training texts.
        about: as for :class:`CostModel`.
        names: the counters to rank by; None: those of :data:`FEATURES`.

    Raises:
        CostModelError: as :func:`fit_cost_model`; the engine has no counters to rank by.
    """
    if names is None and engine not in FEATURES:
        raise CostModelError(f"no counters are known to rank {quoted(engine)} by: name some")
    chosen = tuple(names) if names is not None else FEATURES[engine][0] + FEATURES[engine][1]
    table, times, weights = _gather(passes, chosen, "total")
    return CostRanking(
        engine, fit_affine(chosen, table, times / np.median(times), weights), dict(about or {})
    )
