"""What every source of a grammar can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from tokfold._core import Grammar as CoreGrammar
from tokfold._core import Interrupt as CoreInterrupt
from tokfold._core import Tags as CoreTags
from tokfold.errors import UnsupportedGrammarError
from tokfold.limits import Limits

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary

Lookahead = Literal["exact", "implied"]


class Converted(NamedTuple):
    """What becomes of a source at once.

    Attributes:
        core: the grammar in the core; None where :meth:`Source.join` makes it when it is first
            needed, and where the source is not read to its end.
        not_enforced: pointers of what ``lossy`` left out.
        frame: of text around parts, the text in the core.
        unread: why a text is not read to its end: it names tokens, and there is no vocabulary.
    """

    core: CoreGrammar | None = None
    not_enforced: tuple[str, ...] = ()
    frame: CoreGrammar | None = None
    unread: UnsupportedGrammarError | None = None


class Part(Protocol):
    """What a frame needs of its parts."""

    @property
    def _core(self) -> CoreGrammar: ...

    @property
    def _compilable(self) -> CoreGrammar: ...

    @property
    def _is_text(self) -> bool: ...

    @property
    def _tags(self) -> CoreTags | None: ...


class Operand(Protocol):
    """What sources need of the grammars that they are made of."""

    @property
    def _core(self) -> CoreGrammar: ...

    @property
    def _without_lookahead(self) -> CoreGrammar: ...

    @property
    def _source(self) -> Source: ...

    @property
    def _key(self) -> Hashable: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def _is_unread(self) -> bool: ...

    def _over(self, vocabulary: Vocabulary) -> Operand: ...


class Source(ABC):
    """What a grammar is made of: a record that never changes."""

    @property
    def lookahead(self) -> Lookahead:
        """What ``(= ...)`` at the end of a rule means: see ``Grammar.lookahead``."""
        return "exact"

    @property
    def is_text(self) -> bool | None:
        """Whether it takes no tokens whole; None where only the grammar says so."""
        return None

    @property
    def key(self) -> Hashable | None:
        """Equal for sources whose grammars are plainly equal; None where nothing is plain."""
        return None

    @property
    def said(self) -> tuple[object, ...] | None:
        """Values whose ``repr`` says all of it; None where there are none."""
        return None

    @abstractmethod
    def convert(self, limits: Limits | None, interrupt: CoreInterrupt | None) -> Converted:
        """What becomes of it at once; raises what the ``from_`` method of the source does."""

    def join(self, frame: CoreGrammar | None, limits: Limits | None) -> CoreGrammar:
        """The grammar of :attr:`Converted.frame`, where :meth:`convert` left it for later."""
        raise AssertionError("the source was converted at once")

    def over(self, vocabulary: Vocabulary) -> Source:
        """The same with the tokens of a vocabulary that it names; itself where it names none."""
        return self
