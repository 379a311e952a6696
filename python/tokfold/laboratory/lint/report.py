"""``lint``: all checks of one grammar, and the report."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tokfold._lazy import lazy
from tokfold._quoting import quoted
from tokfold._schema_records import RuleOrigin
from tokfold.errors import GrammarSyntaxError, TokfoldError
from tokfold.grammar import Grammar
from tokfold.laboratory.form import Form, Place
from tokfold.laboratory.lint.ambiguity import AmbiguityBudget, ambiguity
from tokfold.laboratory.lint.catalogue import CATALOGUE, Engine, Severity
from tokfold.laboratory.lint.engines import engines as engine_checks
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding, MendError, apply_rewrite, report_order
from tokfold.laboratory.lint.schemas import origins_of
from tokfold.laboratory.lint.structure import structure
from tokfold.laboratory.lint.tokens import TokenBudget, tokens
from tokfold.laboratory.lint.writing import writing
from tokfold.vocabulary import Vocabulary

__all__ = ["Report", "UnknownCodeError", "lint"]

MAX_UNDEFINED = 100
"""Undefined rules that are told; each takes reading the text again."""


_OF_CONVERTERS = ("unreachable-rule", "unsupported")
"""What a converted grammar is not asked for: its rules were written by the converter, which leaves
some over and adds lookahead that they imply, and llguidance has converters of its own."""
_CONVERTED = f"converted to grammar text: {' and '.join(_OF_CONVERTERS)} are not looked for"


class UnknownCodeError(TokfoldError, ValueError):
    """A code to ignore that there is none of."""


@dataclass(frozen=True)
class Report:
    """What lint says of a grammar.

    Attributes:
        findings: worst first, then by place.
        notes: how far was looked, and what was not looked into.
        form: the grammar; ``None`` where its text is none.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    form: Form | None
    _grammar: Grammar | None = None

    def origin(self, finding: Finding) -> RuleOrigin | None:
        """Which schemas the rule of a finding comes from, where the grammar is of a JSON Schema."""
        return self._origins.get(finding.rule)

    @lazy
    def _origins(self) -> Mapping[str, RuleOrigin]:
        return {} if self._grammar is None else origins_of(self._grammar)

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings that are so bad or worse."""
        return tuple(finding for finding in self.findings if finding.severity >= severity)

    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity, the worst first."""
        return {
            severity.word: sum(finding.severity is severity for finding in self.findings)
            for severity in sorted(Severity, reverse=True)
        }

    def mended(self, finding: Finding) -> Grammar:
        """The grammar with the rewrite of one finding applied.

        Raises:
            MendError: the finding has no rewrite.
            LimitExceededError: the result is larger than the limits of the grammar allow.
        """
        if self.form is None:
            raise MendError("the text is no grammar: mend it first")
        return apply_rewrite(self.form, finding)

    def document(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "counts": self.counts(),
            "findings": [self._finding(finding) for finding in self.findings],
            "notes": list(self.notes),
        }

    def _finding(self, finding: Finding) -> dict[str, Any]:
        origin = self.origin(finding)
        if origin is None:
            return finding.document()
        said = {"pointers": list(origin.pointers), "description": origin.description}
        return {**finding.document(), "schema": said}


def lint(
    grammar: Grammar | Form | str,
    vocabulary: Vocabulary | None = None,
    *,
    root: str = "root",
    engines: Collection[Engine] = tuple(Engine),
    ignore: Iterable[str] = (),
    ambiguity_budget: AmbiguityBudget | None = None,
    token_budget: TokenBudget | None = None,
    quick: bool = False,
) -> Report:
    """Look for what is wrong with a grammar, and for what it may suffer from.

    A grammar whose lookahead is implied was written by a converter, of a JSON Schema, say.
    ``unreachable-rule`` and ``unsupported`` are not looked for in it; a note says so.

    Args:
        grammar: the grammar, or its text; of text, errors are findings.
        vocabulary: with it, what the grammar and the vocabulary do to each other is looked for too.
        root: the start rule of grammar text.
        engines: the engines whose rules of thumb are of interest.
        ignore: codes that are left out.
        ambiguity_budget: how far ambiguities are looked for.
        token_budget: how far states are explored.
        quick: leave out the search for ambiguities.

    Raises:
        UnknownCodeError: ``ignore`` names a code that there is none of.
        LimitExceededError: the text is larger than the limits of a grammar.
    """
    ignored = set(ignore)
    unknown = sorted(ignored - set(CATALOGUE))
    if unknown:
        raise UnknownCodeError(
            f"there is no code {quoted(unknown[0])} to ignore; the codes are {', '.join(CATALOGUE)}"
        )
    found: list[Finding] = []
    notes: list[str] = []
    form: Form | None
    if isinstance(grammar, str):
        form, found = _read(grammar, root)
    else:
        form = grammar if isinstance(grammar, Form) else Form.of(grammar)
    if form is not None and form.lookahead == "implied":
        ignored.update(_OF_CONVERTERS)
        notes.append(_CONVERTED)
    if form is not None:
        stubs = {finding.rule for finding in found}
        facts = Facts(form)
        checks = [*structure(facts), *writing(facts, notes)]
        found.extend(finding for finding in checks if finding.rule not in stubs)
        if stubs:
            notes.append("only rules and their way of writing were looked at: rules are undefined")
        else:
            _look_on(
                facts, found, notes, vocabulary, engines, ambiguity_budget, token_budget, quick
            )
    kept = [finding for finding in found if finding.code not in ignored]
    whole = grammar if isinstance(grammar, Grammar) else None
    return Report(tuple(sorted(kept, key=report_order)), tuple(notes), form, whole)


def _look_on(
    facts: Facts,
    found: list[Finding],
    notes: list[str],
    vocabulary: Vocabulary | None,
    engines: Collection[Engine],
    ambiguity_budget: AmbiguityBudget | None,
    token_budget: TokenBudget | None,
    quick: bool,
) -> None:
    """The checks that need a grammar without undefined rules."""
    more, told = engine_checks(facts, set(engines), vocabulary)
    found.extend(more)
    notes.extend(told)
    if quick:
        notes.append("ambiguity: not looked for")
    else:
        more, told = ambiguity(facts, ambiguity_budget)
        found.extend(more)
        notes.extend(told)
    if vocabulary is not None:
        more, told = tokens(facts, vocabulary, token_budget)
        found.extend(more)
        notes.extend(told)


_UNDEFINED = re.compile(r'the rule "([^"]+)" is not defined')


def _read(text: str, root: str) -> tuple[Form | None, list[Finding]]:
    """The form of a text, with stubs for its undefined rules, and what is wrong with the text."""
    found: list[Finding] = []
    stubs = ""
    while True:
        try:
            return Form.of(Grammar.from_ebnf(text + stubs, root)), found
        except GrammarSyntaxError as error:
            place = Place(error.line, error.column)
            said = re.sub(r"^line \d+, column \d+: ", "", str(error))
            match = _UNDEFINED.search(said)
            what, _, mend = said.partition("; ")
            if match is None or len(found) >= MAX_UNDEFINED:
                found.append(
                    Finding("syntax-error", what, place, "", mend or "write it as the text asks")
                )
                return None, found
            name = match[1]
            found.append(Finding("undefined-rule", what, place, name, mend))
            # A character for private use, another for each: it meets nothing of the grammar.
            stubs += f'\n{name} ::= "\\U{0xF0000 + len(found):08x}"\n'
