"""Which language a text is written in that the reader of another one refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from tokfold.errors import GrammarSyntaxError, UnsupportedGrammarError

Language = Literal["grammar text", "Lark"]

_RULE_OF_TEXT = re.compile(
    r"^[ \t]*[A-Za-z0-9_][\w.\-]*(?:\[[^\]\r\n]*\])?[ \t]*::=", re.ASCII | re.MULTILINE
)
_OBJECT = re.compile(r"\s*(?=\{\s*[\"}])")
"""What stands before an object of JSON, which begins no grammar."""
_RULE_OF_LARK = re.compile(
    r"""
    ^[ \t]*
    (?: [?!]{0,2} [A-Za-z_][\w\-]*
        (?:\{[^}\r\n]*\})? (?:\[[^\]\r\n]*\])? (?:\.-?\d+)? [ \t]* : (?![:=])
    | %(?:declare|extend|grammar_options|ignore|import|llguidance|override)\b )
    """,
    re.ASCII | re.MULTILINE | re.VERBOSE,
)


def is_lark(text: str) -> bool:
    """Whether a text that is no grammar text looks like Lark."""
    return _RULE_OF_LARK.search(text) is not None and _RULE_OF_TEXT.search(text) is None


def is_grammar_text(text: str) -> bool:
    """Whether a text that is no Lark looks like grammar text."""
    return _RULE_OF_TEXT.search(text) is not None and _RULE_OF_LARK.search(text) is None


@contextmanager
def written_in(text: str, language: Language, *, in_tag: bool = False) -> Iterator[None]:
    """Say of a text that is refused where it is written in another language, and what to call.

    In the ``grammar`` of a structural tag nothing is called.
    """
    try:
        yield
    except (GrammarSyntaxError, UnsupportedGrammarError) as error:
        before = _OBJECT.match(text.removeprefix("\ufeff"))
        if before is not None:
            line = before[0].count("\n") + 1
            column = before.end() - before[0].rfind("\n")
            advice = (
                "call Grammar.from_json_schema(text) for a schema, or "
                "Grammar.from_structural_tag(text) for a structural tag"
            )
            if in_tag:
                advice = 'write a format of type "json_schema" for a schema'
            raise GrammarSyntaxError(
                f"line {line}, column {column}: this is JSON (`{{...}}`), not {language}; {advice}",
                line,
                column,
            ) from error
        if language == "Lark":
            found = _RULE_OF_TEXT.search(text)
            is_so = "is grammar text (`name ::= ...`), not Lark (`name: ...`)"
            advice = 'leave "syntax" out' if in_tag else "call Grammar.from_ebnf(text)"
        else:
            found = _RULE_OF_LARK.search(text) if is_lark(text) else None
            is_so = "is Lark (`name: ...`), not grammar text (`name ::= ...`)"
            advice = 'add "syntax": "lark"' if in_tag else "call Grammar.from_lark(text)"
        if found is None:
            raise
        line = text.count("\n", 0, found.start()) + 1
        column = len(found[0]) - len(found[0].lstrip()) + 1
        raise GrammarSyntaxError(
            f"line {line}, column {column}: this {is_so}; {advice}", line, column
        ) from error
