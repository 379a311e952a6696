"""Texts of bytes through the recognizer: counters for each byte, and the forest at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from tokfold.grammar import Grammar
from tokfold.laboratory.forest.earley import Counters, Earley
from tokfold.laboratory.forest.forest import Forest
from tokfold.laboratory.forest.limits import CostLimits, TextRefusedError
from tokfold.laboratory.forest.live import live_items
from tokfold.laboratory.forest.productions import Productions
from tokfold.laboratory.forest.slots import Slots
from tokfold.laboratory.form import Form

__all__ = ["COUNTERS", "Meter", "earley_counters", "parse"]

COUNTERS = (
    "new_items",
    "predicted",
    "completer_work",
    "leo_items",
    "new_nodes",
    "new_packed_nodes",
    "new_splits",
    "surplus",
    "live_items",
)
"""The counters of a step, in the order shown. All but ``live_items``, a size, can be added up."""


class Meter:
    """What each byte of a text costs.

    The recognizer reads code points. A byte that does not finish one makes nothing: its counters
    are zero, apart from ``live_items``, which stays as it was.

    Attributes:
        earley: the recognizer.
        initial: the counters of what is there before the first byte.
    """

    def __init__(
        self,
        form: Form | Productions | Slots,
        *,
        leo: bool = True,
        live: bool = True,
        limits: CostLimits | None = None,
    ) -> None:
        """Begin a text.

        Args:
            form: a form, its productions, or their slots, which several meters can share.
            leo: whether to take Leo's chains.
            live: whether to count live items, which takes longer than all the rest.
            limits: bounds on grammar and text.

        Raises:
            UnsupportedGrammarError, CostLimitError: as :meth:`Productions.of`.
        """
        plain = Productions.of(form, limits) if isinstance(form, Form) else form
        self.earley = Earley(plain, leo=leo, limits=limits)
        self._live = live_items(self.earley) if live else None
        self.initial = self._document(self.earley.counters[0])
        self._text = bytearray()
        self._pending = b""

    @property
    def accepting(self) -> bool:
        """Whether the text so far is in the language."""
        return not self._pending and self.earley.accepting

    def step(self, byte: int) -> dict[str, int]:
        """Read a byte: :data:`COUNTERS` of this step.

        Raises:
            TextRefusedError: no string of the grammar begins with the text and this byte; the
                meter stays where it is.
            CostLimitError: a bound is reached; the meter stays where it is.
        """
        if not 0 <= byte <= 0xFF:
            raise ValueError(f"{byte} is no byte")
        pending = self._pending + bytes((byte,))
        span = _points(pending)
        if span is None:
            self._refuse(byte)
        first, last, left = span
        if left:
            if not self._expects(first, last):
                self._refuse(byte)
            counters = _NOTHING
        else:
            if not self.earley.step(first):
                self._refuse(byte)
            counters = self.earley.counters[-1]
            if self._live is not None:
                self._live = live_items(self.earley)
        self._pending = pending if left else b""
        self._text.append(byte)
        return self._document(counters)

    def forest(self) -> Forest:
        """The forest of the text so far; without a root where that is not in the language.

        Raises:
            CostLimitError: it has more nodes than the limits allow.
        """
        return Forest(self.earley, whole=not self._pending)

    def run(self, data: bytes) -> Iterator[dict[str, int]]:
        """The counters of each byte; raises as :meth:`step`."""
        for byte in data:
            yield self.step(byte)

    def _expects(self, first: int, last: int) -> bool:
        """Whether a terminal at this place has a code point in a range."""
        terminals = self.earley.slots.grammar.terminals
        here = self.earley.sets[-1]
        return any(
            symbol < 0 and any(a <= last and first <= b for a, b in terminals[~symbol])
            for part in (here.waiting, here.block.waiting)
            for symbol in part
        )

    def _document(self, counters: Counters) -> dict[str, int]:
        found = counters.document()
        if self._live is not None:
            found["live_items"] = self._live
        return found

    def _refuse(self, byte: int) -> NoReturn:
        offset = len(self._text)
        line = self._text.count(b"\n") + 1
        before = self._text[self._text.rfind(b"\n") + 1 :]
        column = sum(b & 0xC0 != 0x80 for b in before) + (not self._pending)
        raise TextRefusedError(
            f"line {line}, column {column}: byte 0x{byte:02x} at offset {offset:,} cannot stand "
            "there: no string of the grammar begins like this; costs are told of texts in the "
            "language and their beginnings",
            offset,
            line,
            column,
        )


_NOTHING = Counters(0, 0, 0, 0, 0, 0, 0)


def _points(data: bytes) -> tuple[int, int, int] | None:
    """The code points that begin with some bytes, and how many bytes are left to come.

    Surrogates are taken as grammars take them, in three bytes. None: there is no such code point.
    """
    lead = data[0]
    if lead < 0x80:
        return lead, lead, 0
    if not 0xC2 <= lead < 0xF5:
        return None
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if any(byte & 0xC0 != 0x80 for byte in data[1:]):
        return None
    value = lead & (0x7F >> size)
    for byte in data[1:]:
        value = value << 6 | byte & 0x3F
    left = size - len(data)
    least = (0x80, 0x800, 0x10000)[size - 2]
    first = max(value << 6 * left, least)
    last = min(((value + 1) << 6 * left) - 1, 0x10FFFF)
    return (first, last, left) if first <= last else None


def earley_counters(
    grammar: Grammar, tokens: Sequence[bytes], *, leo: bool = True, limits: CostLimits | None = None
) -> Mapping[str, Sequence[int]]:
    """The counters of each token of a text, for a column each in a profile.

    Counters of a token are those of its bytes together, ``live_items`` what it leaves.

    Raises:
        UnsupportedGrammarError, CostLimitError, TextRefusedError: as :class:`Meter`.
    """
    meter = Meter(Form.of(grammar), leo=leo, limits=limits)
    columns: dict[str, list[int]] = {f"earley.{name}": [] for name in COUNTERS}
    live = live_items(meter.earley)
    for token in tokens:
        totals = dict.fromkeys(COUNTERS, 0)
        for counters in meter.run(token):
            for name, value in counters.items():
                totals[name] += value
            live = counters["live_items"]
        totals["live_items"] = live
        for name, value in totals.items():
            columns[f"earley.{name}"].append(value)
    return columns


def parse(
    form: Form | Productions | Slots,
    text: bytes,
    *,
    leo: bool = True,
    limits: CostLimits | None = None,
) -> Forest:
    """The packed parse forest of a text; without a root where the text could only begin a string.

    Raises:
        UnsupportedGrammarError, CostLimitError, TextRefusedError: as :class:`Meter`.
    """
    meter = Meter(form, leo=leo, live=False, limits=limits)
    for _ in meter.run(text):
        pass
    return meter.forest()
