"""What a matcher knows, as a vector of fixed size."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from tokfold._quoting import quoted
from tokfold.bitmask import allocate_bitmask
from tokfold.engine import CompiledGrammar
from tokfold.laboratory.neural.configurations import Configurations
from tokfold.matcher import Matcher

__all__ = ["DEFAULT_KINDS", "GrammarFeatures", "Kind"]

Kind: TypeAlias = Literal["bytes", "ending", "shape", "tops", "beneath", "classes"]

DEFAULT_KINDS: tuple[Kind, ...] = ("bytes", "ending", "shape", "tops", "beneath")

_Row: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Place:
    """What features are written from."""

    matcher: Matcher
    live: Configurations
    expected: npt.NDArray[np.uint8]
    allowed: int


_Writer: TypeAlias = Callable[[_Row, _Place], None]


class GrammarFeatures:
    """Turns where a matcher stands into numbers between 0 and about 10.

    A function of the live configurations and the vocabulary alone: equal states have equal
    features, however they were reached. Kinds:

    * ``"bytes"`` (256): the bytes that may come next;
    * ``"ending"`` (2): whether the text may end; whether one byte is forced;
    * ``"shape"`` (4): logarithms of one more than the tops of live stacks, the height of the
      shortest and of the tallest, and the share of tokens that are allowed;
    * ``"tops"``: the states of the grammar's network on top of live stacks;
    * ``"beneath"``: the states directly beneath them, which say where the innermost rules return;
    * ``"classes"``: the token classes that are allowed.

    Attributes:
        compiled: the grammar and the vocabulary.
        kinds: which kinds, in this order.
        size: numbers in a vector.
        names: what each number is, for people.
    """

    def __init__(
        self,
        compiled: CompiledGrammar,
        kinds: Iterable[Kind] = DEFAULT_KINDS,
        *,
        max_states: int = 1_024,
    ) -> None:
        """Choose features.

        Args:
            compiled: what :func:`tokfold.compile` made.
            kinds: at least one, none twice.
            max_states: columns for states, at most. Networks with more states fold theirs: several
                share a column. States that count the passes of a large repetition share one more.

        Raises:
            ValueError: a kind is unknown, comes twice, or there is none; or ``"classes"`` is asked
                for and there are none (yet).
        """
        chosen = tuple(kinds)
        unknown = [kind for kind in chosen if kind not in get_args(Kind)]
        if unknown or not chosen or len(set(chosen)) < len(chosen):
            raise ValueError(
                f"kinds must be some of {', '.join(get_args(Kind))}, none twice, not "
                f"{quoted(chosen)}"
            )
        if max_states < 1:
            raise ValueError(f"max_states must be 1 or more, not {max_states}")
        classes = compiled.classes
        if "classes" in chosen and classes is None:
            raise ValueError(
                'there are no token classes: compile with classes="now", call wait(), or leave '
                'out "classes"'
            )
        self.compiled = compiled
        self.kinds = chosen
        self._states = min(compiled._core.network_states, max_states)
        self._num_classes = 0 if classes is None else len(classes)
        numbers = [str(state) for state in range(self._states)] + ["of a counted repetition"]
        columns: dict[Kind, list[str]] = {
            "bytes": [f"byte 0x{byte:02x} may come" for byte in range(256)],
            "ending": ["the text may end", "one byte is forced"],
            "shape": ["tops", "shortest stack", "tallest stack", "share of tokens allowed"],
            "tops": [f"state {number} on top" for number in numbers],
            "beneath": [f"state {number} beneath a top" for number in numbers],
            "classes": [f"token class {number} may come" for number in range(self._num_classes)],
        }
        writers: dict[Kind, _Writer] = {
            "bytes": self._bytes,
            "ending": self._ending,
            "shape": self._shape,
            "tops": self._tops,
            "beneath": self._beneath,
            "classes": self._classes,
        }
        self.names = tuple(name for kind in chosen for name in columns[kind])
        self.size = len(self.names)
        self._writers: list[tuple[slice, _Writer]] = []
        start = 0
        for kind in chosen:
            end = start + len(columns[kind])
            self._writers.append((slice(start, end), writers[kind]))
            start = end

    @property
    def signature(self) -> bytes:
        """16 bytes that say what the columns mean; equal for the same grammar in any process."""
        vocabulary = self.compiled.vocabulary.fingerprint
        what = (self.compiled._core.fingerprint, vocabulary, self.kinds, self._states, self.size)
        return hashlib.sha256(repr(what).encode()).digest()[:16]

    def write(self, matcher: Matcher, allowed: int, out: _Row) -> None:
        """Write the features of one place.

        Args:
            matcher: a matcher of the same compiled grammar whose text has not ended.
            allowed: how many tokens its mask allows.
            out: float32, shape ``(size,)``; overwritten.

        Raises:
            ValueError: the matcher is of another compiled grammar.
            MatcherStateError: as for :meth:`Matcher.fill_class_bitmask`, where there are classes.
        """
        if matcher.compiled is not self.compiled:
            raise ValueError("the matcher is of another compiled grammar than the features")
        expected = np.frombuffer(matcher.expected_bytes, np.uint8)
        place = _Place(matcher, Configurations.of(matcher), expected, allowed)
        out[:] = 0
        for columns, writer in self._writers:
            writer(out[columns], place)

    # ------------------------------------------------------------------ kinds

    def _bytes(self, out: _Row, place: _Place) -> None:
        out[place.expected] = 1

    def _ending(self, out: _Row, place: _Place) -> None:
        accepting = place.live.accepting
        out[0] = accepting
        out[1] = not accepting and len(place.matcher.forced_bytes(1)) == 1

    def _shape(self, out: _Row, place: _Place) -> None:
        out[:3] = np.log1p((len(place.live.top), *place.live.heights()))
        out[3] = place.allowed / len(self.compiled.vocabulary)

    def _tops(self, out: _Row, place: _Place) -> None:
        out[self._columns(place.live.states())] = 1

    def _beneath(self, out: _Row, place: _Place) -> None:
        out[self._columns(place.live.states_beneath())] = 1

    def _classes(self, out: _Row, place: _Place) -> None:
        mask = allocate_bitmask(1, self._num_classes)
        place.matcher.fill_class_bitmask(mask)
        out[:] = np.unpackbits(mask.view(np.uint8), bitorder="little", count=self._num_classes)

    def _columns(self, states: Iterable[int]) -> list[int]:
        listed = self.compiled._core.network_states
        return [state % self._states if state < listed else self._states for state in states]

    def __repr__(self) -> str:
        return f"<GrammarFeatures of {self.size} numbers: {', '.join(self.kinds)}>"
