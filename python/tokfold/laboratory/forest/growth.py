"""How the cost of a step grows along texts that are pumped: constant, linear, quadratic.

The class of a counter is that of the worst family of texts ``u x^k z y^k w`` found. What it is
along that family is exact: the greatest value for each ``k`` is measured, and is a polynomial of
that degree as far as it was pumped, since its finite differences are constant. That no family is
worse is not proved, but bounds are: an Earley set has at most as many items as dotted productions
times positions, and each item of it at most one packed node for each position, so that no counter
here grows faster than quadratically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial
from typing import Literal

from tokfold._quoting import quoted
from tokfold.laboratory.forest.earley import Earley
from tokfold.laboratory.forest.limits import CostLimits
from tokfold.laboratory.forest.live import live_items
from tokfold.laboratory.forest.productions import Productions
from tokfold.laboratory.forest.pumps import Pump, pumps
from tokfold.laboratory.forest.slots import Slots
from tokfold.laboratory.form import Form

__all__ = ["GROWING", "Fit", "Growth", "GrowthReport", "fit", "growth", "series"]

GROWING = ("new_packed_nodes", "surplus", "new_items", "completer_work", "live_items")
"""The counters that are classed."""
_NAMES = ("constant", "linear", "quadratic", "cubic")
_SHORT, _LONG = 8, 24
_BURN_IN = 10
_FINALISTS = 6
_PERIODS = (1, 2, 3, 4)

Side = Literal["opening", "closing"]
_Entry = tuple[tuple[int, int], int, int, Side]
"""The rank of a short series, and which: the negated size and number of its family, the side."""


@dataclass(frozen=True)
class Fit:
    """A polynomial through the last values of a series.

    Attributes:
        degree: of the polynomial.
        period: values this far apart are on one polynomial; 2 where odd and even differ.
        leading: its greatest leading coefficient, for each pass.
    """

    degree: int
    period: int
    leading: Fraction


@dataclass(frozen=True)
class Growth:
    """How one counter grows.

    Attributes:
        counter: one of :data:`GROWING`.
        leo: whether Leo's chains were taken.
        name: ``constant``, ``linear``, ``quadratic``, or ``unsettled`` where the worst family of
            texts shows no polynomial, or where recursions are there but too long to be pumped.
            A finite language is constant.
        fit: None where unsettled, and where the language is finite.
        witness: the family; None where there is nothing to pump.
        side: where the greatest values are: while ``x`` is repeated, or in what follows.
        values: the greatest values for 1, 2, ... passes.
    """

    counter: str
    leo: bool
    name: str
    fit: Fit | None
    witness: Pump | None
    side: Side
    values: tuple[int, ...]

    @property
    def degree(self) -> int | None:
        """0 constant, 1 linear, 2 quadratic; None unsettled."""
        if self.fit is not None:
            return self.fit.degree
        return 0 if self.name == "constant" else None

    def text(self, times: int) -> str:
        """The witness as far as its greatest values; empty where there is none.

        Raises:
            ValueError: ``times`` is negative.
        """
        if times < 0:
            raise ValueError("a text is pumped no less than 0 times")
        if self.witness is None:
            return ""
        if self.side == "opening":
            return self.witness.head + self.witness.opening * times
        return self.witness.text(times)


@dataclass(frozen=True)
class GrowthReport:
    """How the counters grow, with and without Leo.

    Attributes:
        classes: by counter and whether Leo's chains were taken.
        finite: whether there is nothing to pump, since the language is finite.
        tried: families of texts that were tried.
        untried: families that were left out for want of work, and recursive nonterminals that have
            none, because their words are too long or the grammar is too large.
    """

    classes: Mapping[tuple[str, bool], Growth]
    finite: bool
    tried: int
    untried: int

    @property
    def ambiguity_cost(self) -> Growth:
        """Structural ambiguity cost (definition 14): new packed nodes, chains left on demand."""
        return self.classes["new_packed_nodes", True]


def fit(values: Sequence[int]) -> Fit | None:
    """The polynomial of least degree through all values after the first ten, or None.

    Exact: for some period ``p`` the ``d + 1``-st differences over ``p`` are all zero, at least two
    of them.
    """
    tail = list(values[_BURN_IN:])
    for degree in range(len(_NAMES)):
        for period in _PERIODS:
            differences = tail
            for _ in range(degree):
                differences = _differences(differences, period)
            over = _differences(differences, period)
            if len(over) >= 2 and not any(over):
                scale = factorial(degree) * period**degree
                return Fit(degree, period, Fraction(max(differences), scale))
    return None


def _differences(values: Sequence[int], period: int) -> list[int]:
    return [b - a for a, b in zip(values, values[period:], strict=False)]


class _OutOfWorkError(Exception):
    """A series takes more work than there is left."""


@dataclass
class Work:
    """What is left of a bound on Earley items made and pairs put together.

    Attributes:
        left: how many.
    """

    left: int

    def take(self, amount: int) -> None:
        """Use some of it."""
        self.left -= amount
        if self.left < 0:
            raise _OutOfWorkError


def series(
    slots: Slots,
    pump: Pump,
    times: int,
    *,
    leo: bool,
    work: Work | None = None,
    limits: CostLimits | None = None,
) -> dict[tuple[str, Side], list[int]] | None:
    """The greatest values of the counters for 1 to ``times`` passes; None: more work than is left.

    On the opening side the values are those of one pass more, on the closing side of all that
    follows. Live items are counted where the opening and the closing passes end.

    Raises:
        CostLimitError: a text is longer than the limits allow.
    """
    earley = Earley(slots, leo=leo, limits=limits)
    found: dict[tuple[str, Side], list[int]] = {}
    bound = Work(1 << 62) if work is None else work

    def read(text: str) -> None:
        for char in text:
            if not earley.step(ord(char)):
                raise AssertionError(
                    f"{quoted(pump)} is not in the language"
                )  # its derivation is wrong
            counters = earley.counters[-1]
            bound.take(1 + counters.new_items + counters.completer_work)

    def count_live() -> int:
        live = live_items(earley)
        bound.take(live)
        return live

    def note(side: Side, begin: int, live: int) -> None:
        for name in GROWING[:-1]:
            best = max(getattr(c, name) for c in earley.counters[begin + 1 :])
            found.setdefault((name, side), []).append(best)
        found.setdefault(("live_items", side), []).append(live)

    try:
        read(pump.head)
        for count in range(1, times + 1):
            begin = earley.position
            read(pump.opening)
            live = count_live()
            note("opening", begin, live)
            here = earley.position
            read(pump.middle + pump.closing * count)
            if pump.closing:
                live = max(live, count_live())
            read(pump.tail)
            if earley.position > here:
                note("closing", here, live)
                earley.truncate(here)
    except _OutOfWorkError:
        return None
    return found


def _rank(values: Sequence[int]) -> tuple[int, int]:
    """Whether the second and the first differences of a short series are positive."""
    a, b, c = values[-5], values[-3], values[-1]
    return int(c - 2 * b + a > 0), int(c > a)


def growth(
    form: Form | Productions | Slots,
    *,
    max_work: int = 6_000_000,
    limits: CostLimits | None = None,
) -> GrowthReport:
    """How the cost of a step grows along the worst texts found.

    Args:
        form: a form, its productions, or their slots.
        max_work: Earley items made and pairs put together while families are tried, both with and
            without Leo, and as many again for a longer look at the worst. Families for which none
            is left are counted in the report.
        limits: bounds on the grammar and on each text.

    Raises:
        UnsupportedGrammarError, CostLimitError: as :meth:`Productions.of`, or because a text of
            the search is longer than the limits allow.
    """
    if max_work < 1:
        raise ValueError(f"max_work must be at least 1, not {max_work}")
    plain = Productions.of(form, limits) if isinstance(form, Form) else form
    slots = plain if isinstance(plain, Slots) else Slots(plain)
    families, untried = pumps(slots.grammar)
    finite = not families and not untried
    ranked: dict[tuple[str, bool], list[_Entry]] = {
        (name, leo): [] for name in GROWING for leo in (False, True)
    }
    work = Work(max_work)
    dropped: set[int] = set()
    for number, pump in enumerate(families):
        for leo in (False, True):
            found = None
            if work.left >= 0:
                found = series(slots, pump, _SHORT, leo=leo, work=work, limits=limits)
            if found is None:
                dropped.add(number)
                continue
            for (name, side), values in found.items():
                ranked[name, leo].append((_rank(values), -pump.size, -number, side))
    work = Work(max_work)
    long: dict[tuple[int, bool], dict[tuple[str, Side], list[int]] | None] = {}
    classes: dict[tuple[str, bool], Growth] = {}
    for (name, leo), entries in ranked.items():
        called = "constant" if finite else "unsettled"
        best = Growth(name, leo, called, None, None, "opening", ())
        entries.sort(reverse=True)
        for _, _, negative, side in _finalists(entries):
            number = -negative
            if (number, leo) not in long:
                long[number, leo] = None
                if work.left >= 0:
                    pump = families[number]
                    found = series(slots, pump, _LONG, leo=leo, work=work, limits=limits)
                    long[number, leo] = found
            found = long[number, leo]
            if found is None:
                dropped.add(number)
                continue
            fitted = fit(found[name, side])
            called = "unsettled" if fitted is None else _NAMES[fitted.degree]
            shown = tuple(found[name, side])
            made = Growth(name, leo, called, fitted, families[number], side, shown)
            if best.witness is None or _order(made) > _order(best):
                best = made
        classes[name, leo] = best
    tried = len(families) - len(dropped)
    return GrowthReport(classes, finite, tried, len(dropped) + untried)


def _finalists(
    entries: Sequence[_Entry],
) -> list[_Entry]:
    """The first few of each rank: a short series can look worse than it is."""
    taken: dict[tuple[int, int], int] = {}
    chosen = []
    for entry in entries:
        taken[entry[0]] = taken.get(entry[0], 0) + 1
        if taken[entry[0]] <= _FINALISTS:
            chosen.append(entry)
    return chosen


def _order(growth: Growth) -> tuple[Fraction, Fraction]:
    """What the worst has most of: the degree, then the rate for each code point of the text.

    A series that shows no polynomial and still grows counts as more than linear, so that it does
    not hide behind others; only a quadratic one is worse.
    """
    if growth.fit is None:
        growing = max(growth.values[-8:]) > max(growth.values[:-8])
        return Fraction(3, 2) if growing else Fraction(-1), Fraction(0)
    pump, degree = growth.witness, growth.fit.degree
    assert pump is not None
    size = len(pump.opening) + (len(pump.closing) if growth.side == "closing" else 0)
    return Fraction(degree), growth.fit.leading / size**degree
