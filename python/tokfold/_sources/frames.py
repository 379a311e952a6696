"""Text around parts that are grammars, and choices of tags."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from tokfold._core import Grammar as CoreGrammar
from tokfold._core import Interrupt as CoreInterrupt
from tokfold._core import Tags as CoreTags
from tokfold._core import check_composed
from tokfold._sources.record import Converted, Lookahead, Part, Source
from tokfold._sources.texts import EbnfSource
from tokfold.limits import Limits


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """Grammar text in which the names of ``parts`` are rules defined elsewhere.

    Lookahead is implied, in the text and in the parts. It is put together when first needed: our
    engine makes its network of parts that are compiled by themselves.
    """

    text: str
    parts: Mapping[str, Part]

    @property
    def lookahead(self) -> Lookahead:
        return "implied"

    @property
    def key(self) -> Hashable:
        """The parts are compared as objects: each schema is converted once."""
        return self.text, *((name, part._tags or part._core) for name, part in self.parts.items())

    def convert(self, limits: Limits | None, interrupt: CoreInterrupt | None) -> Converted:
        stubs = "".join(f'{name} ::= "-"\n' for name in self.parts)
        text = EbnfSource(f"{self.text}\n{stubs}", "root", True)
        frame = text.convert(limits, interrupt).core
        assert frame is not None, "frames name no tokens"
        if not self.parts:
            return Converted(frame, frame=frame)
        pieces = [(name, part._tags or part._core) for name, part in self.parts.items()]
        check_composed(frame, pieces, limits)
        return Converted(frame=frame)

    def join(self, frame: CoreGrammar | None, limits: Limits | None) -> CoreGrammar:
        assert frame is not None
        return frame.composed([(name, part._core) for name, part in self.parts.items()])


@dataclass(frozen=True, eq=False)
class TagsSource(Source):
    """A choice of tags, whose lookahead is implied, for a frame to hold.

    Our engine makes a part of the tags as they are; the grammar is put together when something
    else needs it.
    """

    tags: CoreTags

    @property
    def lookahead(self) -> Lookahead:
        return "implied"

    @property
    def is_text(self) -> bool:
        return True

    def convert(self, limits: Limits | None, interrupt: CoreInterrupt | None) -> Converted:
        return Converted()

    def join(self, frame: CoreGrammar | None, limits: Limits | None) -> CoreGrammar:
        return self.tags.grammar()
