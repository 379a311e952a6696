"""What lint says: findings, and the report that holds them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tokfold.errors import TokfoldError
from tokfold.grammar import Grammar
from tokfold.laboratory.form import Form, Place
from tokfold.laboratory.lint.catalogue import CATALOGUE, Engine, Severity

__all__ = [
    "Finding",
    "MendError",
    "Rewrite",
    "Same",
    "Severity",
    "apply_rewrite",
    "few",
    "report_order",
]


class MendError(TokfoldError):
    """A finding has no rewrite that could be applied."""


class Same(enum.Enum):
    """What a rewrite does to the language."""

    LANGUAGE = "the same texts, other trees"
    SMALLER = "fewer texts: see the finding"


@dataclass(frozen=True)
class Rewrite:
    """Rules that take the place of others.

    Attributes:
        rules: for each rule that changes its new text, ``None`` where it goes. A name that the
            grammar does not have is a new rule.
        same: what this does to the language.
    """

    rules: tuple[tuple[str, str | None], ...]
    same: Same = Same.LANGUAGE

    def __str__(self) -> str:
        return "\n".join(
            f"(remove rule {name})" if text is None else text for name, text in self.rules
        )


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a grammar, or that it may suffer from.

    Attributes:
        code: what kind, a key of :data:`tokfold.laboratory.lint.CATALOGUE`.
        message: what is there.
        place: where in the grammar text; ``None`` where the grammar has no text, or the whole of
            it is meant.
        rule: the rule; empty where none is meant.
        mend: what to do.
        rewrite: the rules as they should be, where that can be worked out.
        details: the facts of the message as JSON values: texts, counts, names.
    """

    code: str
    message: str
    place: Place | None
    rule: str
    mend: str
    rewrite: Rewrite | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return CATALOGUE[self.code].severity

    @property
    def engine(self) -> Engine | None:
        """The engine that it is a matter of; ``None``: of the grammar, whatever the engine."""
        return CATALOGUE[self.code].engine

    @property
    def why(self) -> str:
        """Why it matters."""
        return CATALOGUE[self.code].why

    def document(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {
            "code": self.code,
            "severity": self.severity.word,
            "engine": None if self.engine is None else self.engine.value,
            "rule": self.rule or None,
            "line": None if self.place is None else self.place.line,
            "column": None if self.place is None else self.place.column,
            "message": self.message,
            "why": self.why,
            "mend": self.mend,
            "rewrite": None
            if self.rewrite is None
            else {
                "rules": [{"rule": name, "text": text} for name, text in self.rewrite.rules],
                "same_texts": self.rewrite.same is Same.LANGUAGE,
            },
            "details": dict(self.details),
        }


MAX_OF_RULE = 20
"""Findings of one check in one rule; what is beyond is noted. Findings show the rule and hold its
rewrite, so without a bound a report could be as large as the rule squared."""


def few(found: Iterable[Finding], notes: list[str]) -> Iterator[Finding]:
    """The first findings of one check in one rule, made only as far as they are told."""
    for number, finding in enumerate(found):
        if number == MAX_OF_RULE:
            code = finding.code
            notes.append(f"{finding.rule}: more than {MAX_OF_RULE} findings {code} or alike")
            return
        yield finding


def report_order(finding: Finding) -> tuple[int, int, int, str, str]:
    """Worst first, then by place."""
    place = finding.place or Place(0, 0)
    return -finding.severity, place.line, place.column, finding.code, finding.message


def apply_rewrite(form: Form, finding: Finding) -> Grammar:
    """The grammar with the rewrite of one finding applied.

    Raises:
        MendError: the finding has none.
        LimitExceededError: the result is larger than the limits of the grammar allow.
    """
    if finding.rewrite is None:
        raise MendError(f"{finding.code} in {finding.rule or 'the grammar'}: {finding.mend}")
    changed = dict(finding.rewrite.rules)
    lines = [
        changed.pop(name, text) for name, text in zip(form.rules, _rule_texts(form), strict=True)
    ]
    text = "\n".join(line for line in [*lines, *changed.values()] if line is not None)
    return Grammar.from_ebnf(
        text + "\n", form.root, lookahead=form.lookahead, limits=form.source._limits
    )


def _rule_texts(form: Form) -> list[str]:
    """The text of each rule: the printer writes a line for each, and no line end in any."""
    return str(form).splitlines()
