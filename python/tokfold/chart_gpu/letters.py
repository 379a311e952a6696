"""What a chart reads: bytes, or terminals as the grammar has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tokfold._quoting import quoted
from tokfold.errors import AlphabetError

__all__ = ["Alphabet", "AlphabetName", "byte_sets"]

AlphabetName: TypeAlias = Literal["bytes", "terminals", "words"]


class Alphabet:
    """What the letters of a chart are.

    ``"bytes"``: a letter is a byte, and a text is read as it is. ``"terminals"``: each literal and
    each character class of the grammar, as written, is a letter, and a text is a sequence of them
    that something else has found. ``"words"``: as ``"terminals"``, but a literal is the words that
    blanks divide it into, and blanks are nothing: ``"DT NN"`` is two letters.

    Attributes:
        name: which of the three.
        words: of terminals and words, what each letter stands for: a literal's text, or a class
            as a sequence of code points' ranges.
    """

    def __init__(self, name: AlphabetName) -> None:
        self.name: AlphabetName = name
        self.words: list[str | tuple[tuple[int, int], ...]] = []
        self._numbers: dict[str | tuple[tuple[int, int], ...], int] = {}

    def __len__(self) -> int:
        return 256 if self.name == "bytes" else len(self.words)

    def letters_of_literal(self, data: bytes) -> list[int]:
        """The letters of a literal of the grammar; new ones are added."""
        if self.name == "bytes":
            return list(data)
        text = data.decode("utf-8", "surrogatepass")
        return [self._number(word) for word in (text.split() if self.name == "words" else [text])]

    def letter_of_class(self, ranges: Sequence[tuple[int, int]]) -> int:
        """The letter of a character class of the grammar; a new one is added."""
        return self._number(tuple(ranges))

    def _number(self, word: str | tuple[tuple[int, int], ...]) -> int:
        number = self._numbers.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
        return number

    def encode(self, text: bytes | Sequence[str]) -> list[int]:
        """The letters of a text: of bytes, or of terminals one by one.

        Raises:
            AlphabetError: one is no letter of the grammar.
            TypeError: the text is of the other kind.
        """
        if self.name == "bytes":
            if not isinstance(text, bytes | bytearray):
                raise TypeError(f"the letters are bytes: pass bytes, not {type(text).__name__}")
            return list(text)
        if isinstance(text, bytes | bytearray | str):
            raise TypeError(
                f"the letters are {self.name}: pass a list of str, not {type(text).__name__}"
            )
        letters = []
        for place, word in enumerate(text):
            number = self._numbers.get(word)
            if number is None:
                raise AlphabetError(
                    f"letter {place} of the text, {quoted(word)}, is none of the {len(self.words)} "
                    f"{self.name} of the grammar",
                    word,
                    place,
                )
            letters.append(number)
        return letters


def byte_sets(first: int, last: int) -> int:
    """The bytes from first to last, as bits."""
    return (1 << (last + 1)) - (1 << first)
