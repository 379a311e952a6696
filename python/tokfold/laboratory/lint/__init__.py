"""Lint for grammars: what is wrong, what is slow, and how to write it instead.

``lint(grammar)`` looks at the rules and their way of writing, searches for ambiguities, and knows
what each engine refuses or suffers from; with a vocabulary it also looks at what tokens and grammar
do to each other. See ``docs/laboratory/lint.md`` for all codes.

- ``report``: all checks; ``catalogue``, ``findings``: their codes and what they say
- checks: ``structure``, ``writing``, ``whitespace``, ``runs``, ``operators``, ``engines``; with a
  vocabulary ``tokens``, ``straddling``, ``lexemes``
- ambiguity: ``ambiguity`` (the search) over ``expansions`` and ``overlaps``
- with what: ``facts``, ``cycles``, ``lowering``, ``exploring``, ``words``, ``texts``, ``schemas``;
  ``rewriting``: the mends
"""

from __future__ import annotations

from tokfold.laboratory.lint.ambiguity import AmbiguityBudget
from tokfold.laboratory.lint.catalogue import CATALOGUE, Code, Engine, Severity
from tokfold.laboratory.lint.findings import Finding, MendError, Rewrite, Same
from tokfold.laboratory.lint.report import Report, UnknownCodeError, lint
from tokfold.laboratory.lint.tokens import TokenBudget

__all__ = [
    "CATALOGUE",
    "AmbiguityBudget",
    "Code",
    "Engine",
    "Finding",
    "MendError",
    "Report",
    "Rewrite",
    "Same",
    "Severity",
    "TokenBudget",
    "UnknownCodeError",
    "lint",
]
