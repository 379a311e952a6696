"""What a JSON Schema says of itself, of its grammar and of a text: records, and nothing else."""

from __future__ import annotations

from typing import Literal, NamedTuple


class SchemaNote(NamedTuple):
    """What there is to say of a keyword that is not a condition, or not as it stands.

    Of Lark text: of a pattern that means something else there.

    Attributes:
        level: ``"warning"``: a condition that is not enforced, or a keyword that was probably meant
            otherwise; ``"info"``: an annotation, or a keyword that changes nothing.
        pointer: where it stands (``"#/properties/age/description"``); of Lark text, line and column
            (``"line 2, column 9"``).
        keyword: the keyword; empty where it is the schema as a whole; of Lark text, the terminal.
        message: why it is no condition, and what to write; of a pattern, how it is read.
    """

    level: Literal["warning", "info"]
    pointer: str
    keyword: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}"


class SchemaReason(NamedTuple):
    """What is expected at a place of a document.

    Attributes:
        pointers: the schemas that expect it (``("#/properties/age",)``); empty where it is the form
            of the text that the options choose.
        message: what is expected (``"expected an integer between 0 and 150, not 151"``).
    """

    pointers: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return f"{', '.join(self.pointers)}: {self.message}" if self.pointers else self.message


class SchemaPlace(NamedTuple):
    """What a JSON Schema says of a place of a document.

    Attributes:
        pointer: the JSON pointer of the value in the document (``"/people/3/age"``); empty for the
            document itself.
        reasons: what is expected there; one of them is to be met.
    """

    pointer: str
    reasons: tuple[SchemaReason, ...]


class RuleOrigin(NamedTuple):
    """What a rule of the grammar of a JSON Schema is.

    Attributes:
        pointers: the schemas that it comes from; empty for white space and the like.
        description: what it has, in words (``"an integer between 0 and 150"``).
    """

    pointers: tuple[str, ...]
    description: str
