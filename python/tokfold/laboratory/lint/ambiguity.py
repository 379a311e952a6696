"""The check for ambiguity: the shortest witness found for each rule, in a text of the root.

There is no algorithm that decides ambiguity, so none found is no proof that there is none; the
report says how far the search went.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokfold.laboratory.form import (
    Expr,
    Place,
)
from tokfold.laboratory.lint.expansions import Expansions, Tree
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding
from tokfold.laboratory.lint.lowering import Lowered
from tokfold.laboratory.lint.operators import operators
from tokfold.laboratory.lint.overlaps import Overlaps, Way
from tokfold.laboratory.lint.texts import expr_text, quoted_text, shortened
from tokfold.laboratory.lint.words import MAX_WORD, Words, meeting, shown_char

__all__ = ["AmbiguityBudget", "Witness", "ambiguity", "witnesses"]


TOLD = 100
"""Ambiguous rules that are told."""
TRIED = 3
"""Ambiguities of one rule that are written out, to find one whose two readings differ in print."""


@dataclass(frozen=True)
class AmbiguityBudget:
    """How far ambiguities are looked for.

    Attributes:
        length: characters of the texts of a rule that are compared.
        nodes: nodes of the trees that are compared.
        work: rows and trees that are made by each of the two searches.
    """

    length: int = 8
    nodes: int = 8
    work: int = 200_000


@dataclass(frozen=True)
class Witness:
    """A text of a rule that can be written in two ways.

    Attributes:
        rule: the rule.
        expr: the part of it that is written in two ways; ``None``: the whole.
        text: the text of the part.
        before: what stands before it in a text of the root.
        after: what stands after it.
        readings: the two ways, as grammar text with what each part reads.
    """

    rule: str
    expr: Expr | None
    text: str
    before: str
    after: str
    readings: tuple[str, str]

    @property
    def whole(self) -> str:
        """A text of the root with two parses."""
        return self.before + self.text + self.after


def witnesses(
    facts: Facts, budget: AmbiguityBudget | None = None
) -> tuple[list[Witness], list[str]]:
    """The shortest witness found for each rule, shortest text of the root first, and notes."""
    budget = budget or AmbiguityBudget()
    if facts.form.root not in facts.useful:
        return [], []
    # A copy reads at least a character: more of them than that are past the length anyway.
    lowered = Lowered(facts, max_copies=max(budget.length, 4))
    words = Words(lowered)
    overlaps = Overlaps(lowered, budget.length, max_work=budget.work)
    expansions = Expansions(lowered, budget.nodes, max_work=budget.work)
    best: dict[str, Witness] = {}
    tried: dict[str, int] = {}
    more: set[str] = set()
    candidates, too_long = _candidates(lowered, words, overlaps, expansions)
    for candidate in candidates:
        rule = lowered.keys[candidate.number][0]
        told = best.get(rule)
        if told is None and len(best) >= TOLD:
            more.add(rule)
            continue
        if tried.get(rule, 0) >= TRIED or (told and told.readings[0] != told.readings[1]):
            continue
        tried[rule] = tried.get(rule, 0) + 1
        witness = _witness(lowered, words, candidate)
        if witness is None:
            too_long += 1
        elif told is None or witness.readings[0] != witness.readings[1]:
            best[rule] = witness
    found = sorted(best.values(), key=lambda w: (len(w.whole), w.whole))
    notes = _notes(lowered, overlaps, expansions, bool(found), too_long)
    if more:
        notes.append(f"ambiguity: {len(more)} more rules are ambiguous and not told")
    return found, notes


def _notes(
    lowered: Lowered, overlaps: Overlaps, expansions: Expansions, found: bool, too_long: int
) -> list[str]:
    complete = overlaps.complete
    reach = (
        f"all texts of each rule of up to {complete} characters were compared, longer ones in part"
        if complete >= 0
        else "texts of the rules were compared in part"
    )
    deep = f"trees of up to {expansions.nodes} nodes"
    said = "no ambiguity was found, which is no proof that there is none"
    if found:
        said = "the witnesses are the shortest found, which is no proof that there are no others"
    notes = [f"ambiguity: {said}: {reach}; {deep}"]
    if lowered.left_out:
        names = ", ".join(list(lowered.left_out)[:8])
        notes.append(f"ambiguity: not looked into, for macros or large counts: {names}")
    if too_long:
        notes.append(
            f"ambiguity: {too_long} more have no text of up to {MAX_WORD:,} characters to show"
        )
    return notes


@dataclass(frozen=True)
class _Candidate:
    """A nonterminal, two productions of it, and how each cuts a text."""

    number: int
    length: int
    text: str
    productions: tuple[int, int]
    cut: list[list[str]]


def _candidates(
    lowered: Lowered, words: Words, overlaps: Overlaps, expansions: Expansions
) -> tuple[list[_Candidate], int]:
    """What was found, the shortest text of the root first, and how many have no text to show."""
    found: list[_Candidate] = []
    too_long = 0

    def add(number: int, productions: tuple[int, int], cut: list[list[str]]) -> None:
        text = "".join(cut[0])
        found.append(
            _Candidate(number, words.around_length(number) + len(text), text, productions, cut)
        )

    for number, overlap in overlaps.found.items():
        text = "".join(
            chr(shown_char(meeting(lowered.sets[one], lowered.sets[other])))
            for one, other in zip(*overlap.rows, strict=True)
        )
        cut = [_pieces(text, way) for way in (overlap.one, overlap.other)]
        add(number, (overlap.one.production, overlap.other.production), cut)
    for number, conflict in expansions.found.items():
        trees = (conflict.one, conflict.other)
        told = _told_apart(words, trees)
        if told is not None:
            add(number, (conflict.one.production, conflict.other.production), told)
        elif words.can_fill([leaf for part in trees[0].parts for leaf in part]):
            too_long += 1
    return sorted(found, key=lambda c: c.length), too_long


def _told_apart(words: Words, trees: tuple[Tree, Tree]) -> list[list[str]] | None:
    """Texts of the parts of two trees with the same leaves, by which the trees are two.

    A leaf that may be empty must not be where its being empty is the other tree: so texts that are
    cut alike do not count, and leaves are given texts that are not empty.
    """
    for write in (words.text, words.filled):
        rows = [[write(part) for part in tree.parts] for tree in trees]
        known = [[piece for piece in row if piece is not None] for row in rows]
        if known == rows and (known[0] != known[1] or trees[0].production != trees[1].production):
            return known
    return None


def _pieces(text: str, way: Way) -> list[str]:
    pieces, at = [], 0
    for size in way.split:
        pieces.append(text[at : at + size])
        at += size
    return pieces


def _witness(lowered: Lowered, words: Words, candidate: _Candidate) -> Witness | None:
    around = words.around(candidate.number) if candidate.length <= MAX_WORD else None
    if around is None:
        return None
    rule, expr, _ = lowered.keys[candidate.number]
    for with_empty in (False, True):
        readings = [
            _reading(lowered, candidate.number, production, pieces, with_empty)
            for production, pieces in zip(candidate.productions, candidate.cut, strict=True)
        ]
        if readings[0] != readings[1]:
            break
    return Witness(rule, expr, candidate.text, *around, (readings[0], readings[1]))


def _reading(
    lowered: Lowered, number: int, production: int, pieces: list[str], with_empty: bool
) -> str:
    """One way to write a nonterminal: what each symbol of the production reads."""
    shown: list[str] = []
    plain = ""
    symbols = lowered.productions[number][production].symbols
    for symbol, piece in zip(symbols, pieces, strict=True):
        if symbol >= 0 and lowered.sets[symbol].ranges == ((ord(piece), ord(piece)),):
            plain += piece
            continue
        if plain:
            shown.append(quoted_text(plain))
            plain = ""
        if symbol >= 0:
            shown.append(f"{_class(lowered, symbol)}({quoted_text(piece)})")
        elif piece or with_empty:
            shown.append(f"{_label(lowered, ~symbol)}({quoted_text(piece)})")
    if plain:
        shown.append(quoted_text(plain))
    return " ".join(shown) if shown else '""'


def _class(lowered: Lowered, symbol: int) -> str:
    return shortened(expr_text(lowered.facts.form, lowered.sets[symbol]), 24)


def _label(lowered: Lowered, number: int) -> str:
    rule, expr, left = lowered.keys[number]
    if expr is None:
        return rule
    text = shortened(expr_text(lowered.facts.form, expr), 40)
    if left != -2:
        return "more of " + (text if " " not in text else f"({text})")
    return text if " " not in text or text.startswith("(") else f"({text})"


def ambiguity(
    facts: Facts, budget: AmbiguityBudget | None = None
) -> tuple[list[Finding], list[str]]:
    """A finding for each ambiguous rule, and how far the search went."""
    found, notes = witnesses(facts, budget)
    return [_finding(facts, witness) for witness in found], notes


def _finding(facts: Facts, witness: Witness) -> Finding:
    place: Place | None = facts.place(witness.rule, witness.expr or facts.bodies[witness.rule])
    part = ""
    if witness.expr is not None:
        part = f", in {shortened(expr_text(facts.form, witness.expr))},"
    rewrite = operators(facts, witness.rule)
    one, other = witness.readings
    return Finding(
        "ambiguous",
        f"{quoted_text(witness.text)} of the rule {witness.rule}{part} is {one} or {other}; "
        f"a whole text: {quoted_text(witness.whole)}",
        place,
        witness.rule,
        "make the operands something that is not the rule itself, and loop over the operators"
        if rewrite is not None
        else "leave one of the two ways; of nested forms, let one rule own what both may read",
        rewrite,
        {
            "text": witness.text,
            "whole_text": witness.whole,
            "readings": list(witness.readings),
        },
    )
