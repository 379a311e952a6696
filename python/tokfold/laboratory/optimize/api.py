"""A grammar for a grammar: the same strings, cheaper for an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tokfold.errors import LimitExceededError, UnsupportedGrammarError
from tokfold.grammar import Grammar
from tokfold.laboratory.equivalence import Verdict, compare
from tokfold.laboratory.form import Form, postorder
from tokfold.laboratory.instruments.profile import text_tokens
from tokfold.laboratory.optimize.measure import Timing, time_forms
from tokfold.laboratory.optimize.profiles import profile_of
from tokfold.laboratory.optimize.search import Choice, candidates, search
from tokfold.laboratory.optimize.system import OptimizeError, Rewrite, System
from tokfold.vocabulary import Vocabulary

__all__ = ["MAX_PARTS", "Check", "Measurement", "Optimized", "RewriteFaultError", "optimize"]

Check = Callable[[Grammar, Grammar], Verdict]
"""Compares the languages of two grammars, the one given first."""

MAX_PARTS = 200_000
"""Distinct expressions that a grammar may have to be optimized: seconds."""
CHECK_PAIRS = 20_000
"""Pairs of states that the certificate looks at; ``docs/laboratory/optimize.md`` names it."""
NOISE = 1.05


class RewriteFaultError(OptimizeError):
    """A rewrite changed the language: a fault of tokfold, please report it with the grammar.

    Attributes:
        verdict: with the text that tells the grammars apart.
    """

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.verdict)


@dataclass(frozen=True)
class Measurement:
    """A text to choose the form by.

    Attributes:
        vocabulary: the vocabulary; the text is cut into its longest tokens.
        text: the beginning of a string of the grammar.
        max_tokens: how many of its tokens to go through.
        rounds: how often; the least time of each step counts.
        seconds: for all of it.
    """

    vocabulary: Vocabulary
    text: bytes
    max_tokens: int = 1_000
    rounds: int = 3
    seconds: float = 20.0


@dataclass(frozen=True)
class Optimized:
    """A grammar and what was done to it. Trees of texts are others than before; strings are not.

    Attributes:
        grammar: the result. Its start rule may have another name: see :attr:`Grammar.root`.
        original: what was given.
        engine: for which engine.
        form: which form it is: ``searched``, or, where times were measured, the fastest of
            ``as written``, ``canonical`` and ``searched``.
        log: the rewrites, in order.
        choices: the moves that the search tried, with the profile's cost before and after.
        cost: the profile's cost of the grammar given, and of the result.
        certificate: what the comparison of the languages found; None where it could not be made.
        uncertified: why not; empty where it could.
        times: of the forms measured, the grammar as given first, by the name ``given``; empty
            where nothing was measured.
    """

    grammar: Grammar
    original: Grammar
    engine: str
    form: str
    log: tuple[Rewrite, ...]
    choices: tuple[Choice, ...]
    cost: tuple[float, float]
    certificate: Verdict | None
    uncertified: str = ""
    times: tuple[Timing, ...] = field(default=(), compare=False)

    @property
    def is_changed(self) -> bool:
        """Whether anything was rewritten."""
        return bool(self.log)


def optimize(
    grammar: Grammar,
    engine: str = "own",
    *,
    measure: Measurement | None = None,
    check: Check | None = None,
    max_parts: int = MAX_PARTS,
) -> Optimized:
    """Rewrite a grammar into one of the same language that costs an engine less.

    Args:
        grammar: the grammar. Rules with options, exact lookahead or macros stay as they are.
        engine: ``own``, ``xgrammar`` or ``llguidance``.
        measure: choose the form by times on a text, instead of by the profile alone.
        check: compares languages; :func:`tokfold.laboratory.equivalence.compare`, with at most
            20,000 pairs, unless another is given.
        max_parts: bound on the distinct expressions of the grammar.

    Raises:
        OptimizeError: no engine has this name, or it takes no form of the grammar measured.
        LimitExceededError: the grammar is larger than ``max_parts``.
        RewriteFaultError: the result has another language; no grammar is handed out then.
        TextRefusedError: the text to be measured is not in the language.
        MissingExtraError: times are asked for and the engine is not installed.
    """
    profile = profile_of(engine)
    form = Form.of(grammar, grammar.root)
    parts = len(postorder(rule.body for rule in form.rules.values()))
    if parts > max_parts:
        raise LimitExceededError(
            f"the grammar has {parts:,} parts, more than max_parts allows ({max_parts:,}); "
            "raise it, or optimize parts of the grammar",
            "max_parts",
            max_parts,
        )
    found, choices = search(form, profile)
    name, system, times = "searched", found, list[Timing]()
    if measure is not None:
        forms = [*candidates(form, profile), (name, found)]
        name, system, times = _fastest(grammar, engine, forms, measure)
    result = system.form().grammar()
    certificate, reason = _certified(grammar, result, check or _compare)
    before = System.untouched(form)
    return Optimized(
        grammar=result,
        original=grammar,
        engine=engine,
        form=name,
        log=tuple(system.log),
        choices=tuple(choices),
        cost=(profile.cost(before), profile.cost(system)),
        certificate=certificate,
        uncertified=reason,
        times=tuple(times),
    )


def _fastest(
    grammar: Grammar, engine: str, forms: list[tuple[str, System]], measure: Measurement
) -> tuple[str, System, list[Timing]]:
    token_ids, _ = text_tokens(grammar, measure.vocabulary, measure.text)
    grammars = [("given", grammar), *((name, made.form().grammar()) for name, made in forms)]
    times = time_forms(
        grammars,
        engine,
        measure.vocabulary,
        token_ids[: measure.max_tokens],
        rounds=measure.rounds,
        seconds=measure.seconds,
    )
    timed = {timing.name: timing for timing in times}
    if all(timing.refused for timing in times):
        raise OptimizeError(f"{engine} takes no form of this grammar: {times[0].refused}")
    # A form that is less rewritten must be faster by more than times vary.
    name, system = min(
        forms, key=lambda pair: timed[pair[0]].mean_us * (1 if pair[0] == "searched" else NOISE)
    )
    return name, system, times


def _compare(left: Grammar, right: Grammar) -> Verdict:
    return compare(left, right, max_pairs=CHECK_PAIRS)


def _certified(given: Grammar, result: Grammar, check: Check) -> tuple[Verdict | None, str]:
    try:
        verdict = check(given, result)
    except (UnsupportedGrammarError, LimitExceededError) as error:
        return None, str(error)
    if verdict.kind == "different":
        raise RewriteFaultError(
            f"the rewritten grammar is not equal to the one given: {verdict}; this is a fault of "
            "tokfold, please report it with the grammar",
            verdict,
        )
    return verdict, ""
