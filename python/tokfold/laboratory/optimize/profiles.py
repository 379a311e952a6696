"""What each engine likes: the rewrites that may be tried for it, and what a form costs it.

The weights are ratios of times that were measured on pairs of equivalent grammars with the
vocabulary of Llama 3 (``docs/laboratory/optimize.md`` has the pairs). They rank forms of one
grammar; they are no times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokfold._quoting import quoted
from tokfold.laboratory.form import Alt, Chars, Expr, Literal, Ref, Repeat, Seq, postorder
from tokfold.laboratory.optimize.algebra import alternatives, parts_of, size
from tokfold.laboratory.optimize.facts import Facts, width
from tokfold.laboratory.optimize.rewrites.chain import denest_chains
from tokfold.laboratory.optimize.rewrites.factor import factor_prefixes, factor_suffixes
from tokfold.laboratory.optimize.rewrites.inline import inline_root, inline_small, inline_wide
from tokfold.laboratory.optimize.rewrites.loops import loops_to_recursion, spell_repetitions
from tokfold.laboratory.optimize.rewrites.recursion import (
    normalize_ambiguity,
    normalize_recursion,
)
from tokfold.laboratory.optimize.rewrites.root import fresh_root
from tokfold.laboratory.optimize.system import OptimizeError, System

__all__ = ["PROFILES", "Move", "Profile", "profile_of"]


@dataclass(frozen=True)
class Move:
    """A rewrite that an engine may or may not gain from.

    Attributes:
        name: for the report.
        apply: changes a system; True if it did.
    """

    name: str
    apply: Callable[[System], bool]


@dataclass(frozen=True)
class Profile:
    """An engine, as the search sees it.

    Attributes:
        engine: ``own``, ``xgrammar`` or ``llguidance``.
        recursion: what becomes of rules that begin or end with themselves.
        moves: tried one after the other; kept where the cost falls.
        finish: spelling that the engine needs in any case.
        weights: of the parts of the cost, by name.
    """

    engine: str
    recursion: Callable[[System], bool]
    moves: tuple[Move, ...]
    finish: tuple[Callable[[System], bool], ...]
    weights: dict[str, float]

    def cost(self, system: System) -> float:
        """What the form of a grammar costs this engine; only comparisons mean anything."""
        counts = features(system)
        return sum(weight * counts[name] for name, weight in self.weights.items())


def features(system: System) -> dict[str, float]:
    """What is counted of a form.

    ``size``, names, classes and literals; ``rules``; ``calls``, names in right-hand sides;
    ``leaves``, of rules the ASCII characters that they can end with, so that a token runs past
    their end; ``passes``, of passes of repetitions that are a rule of their own in XGrammar, the
    characters that can be a whole pass; ``ends``, rules that begin and end with themselves;
    ``left``, rules that begin with themselves; ``shared``, alternatives that begin with the same
    call.
    """
    facts = Facts(system)
    counts = dict.fromkeys(
        ("size", "rules", "calls", "leaves", "passes", "ends", "left", "shared"), 0.0
    )
    for name in system.open_rules():
        body = system.rules[name]
        counts["size"] += size(body)
        counts["rules"] += 1
        counts["leaves"] += width(facts.rules[name].last)
        begins: dict[Expr, int] = {}
        for part in alternatives(body):
            parts = parts_of(part)
            if not parts:
                continue
            if parts[0] is Ref(name):
                counts["ends" if parts[-1] is Ref(name) else "left"] += 1
            begins[parts[0]] = begins.get(parts[0], 0) + 1
        counts["shared"] += sum(n - 1 for first, n in begins.items() if isinstance(first, Ref))
        for node in postorder((body,)):
            counts["calls"] += isinstance(node, Ref)
            if isinstance(node, Repeat) and node.most is None and not _native(system, node.body):
                counts["passes"] += width(facts.of(node.body).alone)
    return counts


def _native(system: System, body: Expr) -> bool:
    """Whether XGrammar loops over a body without a rule for each pass."""
    if isinstance(body, Seq | Chars):
        return True
    if isinstance(body, Ref):
        if body.name in system.fixed:
            return False
        body = system.rules[body.name]
    plain = (Literal, Chars)
    choices = body.parts if isinstance(body, Alt) else (body,)
    return all(isinstance(part, plain) for choice in choices for part in parts_of(choice))


def _sparing(system: System) -> bool:
    """Repetition where one pass can be one of several characters."""
    facts = Facts(system)

    def is_loop(body: Expr) -> bool:
        return width(facts.of(body).alone) >= 2

    return normalize_ambiguity(system, is_loop)


_LISTS = Move("flatten chains and lists", denest_chains)
_PREFIXES = Move("factor common beginnings", factor_prefixes)
_SUFFIXES = Move("factor common ends", factor_suffixes)
_SMALL = Move("inline small rules", inline_small)
_WIDE = Move("inline rules that end in wide classes", inline_wide)
_LOOPS = Move("write loops as right recursion", loops_to_recursion)

PROFILES: dict[str, Profile] = {
    "own": Profile(
        "own",
        normalize_recursion,
        (_LISTS, _PREFIXES),
        (inline_root,),
        {"rules": 1.0, "calls": 1.0, "ends": 50.0, "shared": 2.0, "size": 0.02},
    ),
    "xgrammar": Profile(
        "xgrammar",
        _sparing,
        (_LISTS, _SMALL, _WIDE, _LOOPS),
        (spell_repetitions, fresh_root),
        {
            "passes": 400.0,
            "leaves": 1.0,
            "ends": 400.0,
            "rules": 4.0,
            "calls": 1.0,
            "shared": 4.0,
            "size": 0.2,
        },
    ),
    "llguidance": Profile(
        "llguidance",
        normalize_recursion,
        (_LISTS, _PREFIXES, _SUFFIXES, _SMALL),
        (inline_root,),
        {"rules": 2.0, "calls": 2.0, "ends": 50.0, "left": 2.0, "shared": 4.0, "size": 0.1},
    ),
}
"""Profiles by the name of the engine."""


def profile_of(engine: str) -> Profile:
    """The profile of an engine.

    Raises:
        OptimizeError: there is none of this name.
    """
    if engine not in PROFILES:
        raise OptimizeError(f"no engine is named {quoted(engine)}; there are {', '.join(PROFILES)}")
    return PROFILES[engine]
