"""Regular languages: patterns, choices of texts, and what set operations make of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tokfold import _core
from tokfold._sources.characters import check_characters
from tokfold._sources.record import Converted, Source
from tokfold.limits import Limits

Step = tuple[str, str, str, bool] | list[str] | tuple[int, int | None] | str
"""A step of a regular language in postfix notation, as ``_core.regular_grammar`` takes it."""


def said_of_compiled(pattern: re.Pattern[str] | re.Pattern[bytes]) -> str:
    """What to call for a pattern of :mod:`re`, with the flags that it was compiled with."""
    letters = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
    flags = "".join(letter for letter, flag in letters.items() if pattern.flags & flag)
    given = f', flags="{flags}"' if flags else ""
    # Those that only a pattern can say of itself.
    own = {"a": re.ASCII, "x": re.VERBOSE}
    before = "".join(letter for letter, flag in own.items() if pattern.flags & flag)
    text = "pattern.pattern" if isinstance(pattern.pattern, str) else "pattern.pattern.decode()"
    text = f'"(?{before})" + {text}' if before else text
    return (
        f'call Grammar.from_regex({text}, dialect="python"{given}), with search=True '
        "where a match anywhere counts"
    )


@dataclass(frozen=True, eq=False)
class RegularSource(Source):
    """A regular language in postfix notation."""

    steps: list[Step]

    @property
    def is_text(self) -> bool:
        return True

    def convert(self, limits: Limits | None, interrupt: _core.Interrupt | None) -> Converted:
        for step in self.steps:
            texts = step[:1] if isinstance(step, tuple) else step if isinstance(step, list) else ()
            for text in texts:
                if isinstance(text, str):
                    check_characters(text)
        return Converted(_core.regular_grammar(self.steps, limits, interrupt))
