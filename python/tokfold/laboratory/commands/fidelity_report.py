"""What ``tokfold fidelity`` says: a document, and its lines."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table
from rich.text import Text

from tokfold import Grammar
from tokfold.cli.console import stdout
from tokfold.cli.render import escaped, number, quoted

if TYPE_CHECKING:
    from tokfold.engine import CompiledGrammar
    from tokfold.laboratory.fidelity import Estimate, ExactSurvival, Sample, Sequences

__all__ = ["document", "exact_document", "finite", "show_document"]

_SHOWN = 72


def document(
    compiled: CompiledGrammar,
    model: str,
    masked: Sequences,
    drawn: Sample | None,
    sampler: str,
    estimate: Estimate,
    computed: dict[str, Any] | None,
    *,
    texts: int,
) -> dict[str, Any]:
    """What was found, as JSON values.

    Args:
        compiled: the grammar over the vocabulary of the model.
        model: what the model is called.
        masked: texts drawn with masks.
        drawn: those of another sampler.
        sampler: its name.
        estimate: of log h, by the one or the other.
        computed: of :func:`exact_document`.
        texts: how many texts to hold.
    """
    tokens = masked.tokens if drawn is None else drawn.tokens
    return {
        "model": model,
        "samples": len(masked.tokens),
        "sampler": sampler,
        "log_h": asdict(estimate) | {"is_reliable": estimate.is_reliable},
        "kl": asdict(masked.kl),
        "log_weights": _quantiles(masked.log_weights),
        "cut": int(masked.cut.sum()),
        "dead": int(masked.dead.sum()),
        "steps": int(sum(map(len, masked.tokens))),
        "least_mass": _least_mass(masked.log_masses),
        "exact": computed,
        "texts": [_shown(compiled, text) for text in tokens[:texts]],
    }


def exact_document(survival: ExactSurvival, grammar: Grammar) -> dict[str, Any]:
    """What can be computed exactly, as JSON values: h, and where it is not 0 the distances."""
    from tokfold.laboratory.fidelity import kl_divergence, total_variation

    document: dict[str, Any] = {
        "log_h": survival.log_h,
        "is_proved_unambiguous": survival.proof is not None,
        "kl": None,
        "total_variation": None,
        "first_step": None,
    }
    if survival.h > 0:
        document["kl"] = asdict(kl_divergence(survival, grammar, max_nodes=500))
        variation = total_variation(survival, grammar, tolerance=0.01, max_nodes=1_000)
        document["total_variation"] = asdict(variation)
        document["first_step"] = asdict(survival.begin().fidelity())
    return document


def _quantiles(log_weights: Any) -> dict[str, float]:  # noqa: ANN401
    names = {"lowest": 0.0, "quarter": 0.25, "median": 0.5, "three_quarters": 0.75, "highest": 1.0}
    ordered = np.sort(log_weights)
    return {name: float(ordered[round(q * (len(ordered) - 1))]) for name, q in names.items()}


def _least_mass(log_masses: list[Any]) -> float:
    return math.exp(min((float(masses.min()) for masses in log_masses if len(masses)), default=0.0))


def _shown(compiled: CompiledGrammar, tokens: list[int]) -> dict[str, Any]:
    stops = compiled.vocabulary.stop_token_ids
    ended = bool(tokens) and tokens[-1] in stops
    data = compiled.vocabulary.decode(tokens[:-1] if ended else tokens)
    return {"text": escaped(data), "tokens": len(tokens), "ended": ended}


def finite(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The same with infinities and NaN as text: JSON has none."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def show_document(document: dict[str, Any]) -> None:
    """Print what :func:`document` holds as lines."""
    console = stdout()
    log_h, kl, exact = document["log_h"], document["kl"], document["exact"]
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True, style="dim")
    rows.add_column(overflow="fold")
    add = rows.add_row
    add("model", Text(document["model"]))
    add(
        "drawn with masks",
        f"{number(document['samples'])} texts, {number(document['steps'])} tokens",
    )
    for what, why in (("cut", "at --max-tokens"), ("dead", "every allowed token impossible")):
        if document[what]:
            add(what, f"{document[what] / document['samples']:.0%}, {why}")
    add("least allowed mass", f"{document['least_mass']:.3g}")
    quantiles = document["log_weights"]
    add("log weights", "  ".join(f"{name} {value:.3f}" for name, value in quantiles.items()))
    percent = f"{log_h['level']:.0%}"
    add("log h", f"{log_h['log_h']:.3f}, {percent} {log_h['low']:.3f} to {log_h['high']:.3f}")
    if document["cut"]:
        add("", f"of texts within --max-tokens; of all at most {log_h['log_h_upper']:.3f}")
    add("effective samples", f"{log_h['ess']:.1f}{'' if log_h['is_reliable'] else ', too few'}")
    at_least = "at least " if kl["is_lower_bound"] else ""
    add("KL, masked to true", f"{at_least}{kl['kl']:.3f} nats, {kl['low']:.3f} to {kl['high']:.3f}")
    if exact is not None:
        add("exact log h", f"{exact['log_h']:.6f}")
    if exact is not None and exact["kl"] is not None:
        divergence, variation = exact["kl"], exact["total_variation"]
        rest = ""
        if divergence["left_out"] > 0:
            rest = f" or more: a share of {divergence['left_out']:.1g} not followed to the end"
        add("exact KL", f"{divergence['kl']:.6f}{rest}")
        add("exact total variation", f"{variation['low']:.4f} to {variation['high']:.4f}")
        first = exact["first_step"]
        add("first step", f"KL {first['kl']:.4f}, at most {first['kl_bound']:.4f} by the spread")
        distance, bound = first["total_variation"], first["total_variation_bound"]
        add("", f"total variation {distance:.4f}, at most {bound:.4f}")
    console.print(rows)
    for drawn in document["texts"]:
        text = drawn["text"]
        cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        end = "" if drawn["ended"] else "  (cut)"
        console.print(Text.assemble(("  ", ""), quoted(cut), (end, "dim")), soft_wrap=True)
