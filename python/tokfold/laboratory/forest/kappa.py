"""The size of a form: control states of the compiled automaton (paper, section 4.1)."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tokfold.laboratory.forest.limits import CostLimits
from tokfold.laboratory.forest.productions import Productions
from tokfold.laboratory.form import Form

__all__ = ["Sizes", "kappa", "sizes"]


@dataclass(frozen=True)
class Sizes:
    """What a form is made of, as plain productions.

    Attributes:
        kappa: control states of definition 5, ``1 + 2 nonterminals + symbols + productions``.
        nonterminals: rules and helpers together.
        rules: the rules of the form.
        helpers: nonterminals for repetitions and groups.
        productions: all of them, useful or not.
        symbols: on the right-hand sides; a code point or a class of them is one.
        terminals: different ones.
    """

    kappa: int
    nonterminals: int
    rules: int
    helpers: int
    productions: int
    symbols: int
    terminals: int

    def document(self) -> dict[str, int]:
        """As JSON values."""
        return asdict(self)


def sizes(form: Form | Productions, limits: CostLimits | None = None) -> Sizes:
    """The sizes of a form, of all rules as written, whether the root reaches them or not.

    Raises:
        UnsupportedGrammarError, CostLimitError: as :meth:`Productions.of`.
    """
    plain = Productions.of(form, limits) if isinstance(form, Form) else form
    symbols = sum(len(production.rhs) for production in plain.productions)
    nonterminals = len(plain.names)
    return Sizes(
        kappa=1 + 2 * nonterminals + symbols + len(plain.productions),
        nonterminals=nonterminals,
        rules=plain.rules,
        helpers=nonterminals - plain.rules,
        productions=len(plain.productions),
        symbols=symbols,
        terminals=len(plain.terminals),
    )


def kappa(form: Form | Productions, limits: CostLimits | None = None) -> int:
    """κ(G) of definition 10: the control states of the compiled automaton (lemma 2).

    Raises:
        UnsupportedGrammarError, CostLimitError: as :meth:`Productions.of`.
    """
    return sizes(form, limits).kappa
