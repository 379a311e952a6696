"""Grammar text and Lark, which may name tokens of a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tokfold import _core
from tokfold._quoting import quoted
from tokfold._schema_records import SchemaNote
from tokfold._sources.characters import check_characters, lone_surrogate
from tokfold._sources.record import Converted, Lookahead, Operand, Source
from tokfold._sources.schema_errors import in_lark
from tokfold._token_names import ids_in_text, ids_of_texts, names_in_lark
from tokfold.errors import GrammarSyntaxError, SchemaError, UnsupportedGrammarError
from tokfold.limits import Limits

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class TextSource(Source):
    """A text whose tokens are looked up in a vocabulary, once there is one."""

    text: str
    start: str


@dataclass(frozen=True, eq=False)
class EbnfSource(TextSource):
    """XGrammar's EBNF or llama.cpp's GBNF.

    Attributes:
        ignores_lookahead: whether ``(= ...)`` is ignored without a look.
        tokens: ids of the tokens that the text names; None without a vocabulary.
    """

    ignores_lookahead: bool = False
    tokens: dict[str, list[int]] | None = None

    @property
    def lookahead(self) -> Lookahead:
        return "implied" if self.ignores_lookahead else "exact"

    @property
    def said(self) -> tuple[object, ...] | None:
        return None if self.tokens else ("text", self.text, self.start, self.lookahead)

    def convert(self, limits: Limits | None, interrupt: _core.Interrupt | None) -> Converted:
        text, root = self.text, self.start

        def read(tokens: dict[str, list[int]] | None) -> _core.Grammar:
            try:
                return _core.Grammar(text, root, limits, interrupt, tokens)
            except UnicodeEncodeError as error:
                if error.object == root:
                    raise GrammarSyntaxError(
                        f"line 1, column 1: no rule is named {quoted(root)}: a lone surrogate is "
                        "no character; pass the name of the start rule as the text has it",
                        1,
                        1,
                    ) from error
                raise lone_surrogate(text, error) from error

        try:
            return Converted(read(self.tokens))
        except UnsupportedGrammarError as error:
            if self.tokens is not None or not _names_token(error):
                raise
            # All else is looked at now: as if each name were that of a token.
            read(ids_in_text(text, None))
            return Converted(unread=_needs_vocabulary(error, "from_ebnf"))

    def over(self, vocabulary: Vocabulary) -> EbnfSource:
        return replace(self, tokens=ids_in_text(self.text, vocabulary))


@dataclass(frozen=True, eq=False)
class LarkSource(TextSource):
    """Lark, in the dialect of llguidance.

    Attributes:
        dialect: of its regular expressions.
        named: what ``%import`` finds, grammars and texts by name.
        tokens: ids of the tokens that the texts name; None without a vocabulary.
    """

    dialect: str
    named: dict[str, Operand | str]
    tokens: dict[str, list[int]] | None = None

    @property
    def said(self) -> tuple[object, ...]:
        parts = sorted(
            (name, f"text {part}" if isinstance(part, str) else part.fingerprint)
            for name, part in self.named.items()
        )
        tokens = sorted((self.tokens or {}).items())
        return "lark", self.text, self.start, self.dialect, parts, tokens

    def convert(self, limits: Limits | None, interrupt: _core.Interrupt | None) -> Converted:
        for each in (self.text, self.start, *self.named, *self.named.values()):
            if isinstance(each, str):
                check_characters(each)
        for name, part in self.named.items():
            if not isinstance(part, str) and part._is_unread:
                error = UnsupportedGrammarError(
                    f"the grammar {quoted(name)} of named= names tokens of a vocabulary; pass the "
                    "vocabulary, Grammar.from_lark(text, vocabulary=vocabulary), as "
                    "tokfold.compile(grammar, vocabulary) does by itself",
                    name,
                    1,
                    1,
                )
                return Converted(unread=error)
        named = {
            name: value if isinstance(value, str) else value._core
            for name, value in self.named.items()
        }

        def read(tokens: dict[str, list[int]] | None) -> _core.Grammar:
            try:
                return _core.read_lark(
                    self.text, self.start, self.dialect, named, tokens, {}, limits, interrupt
                )
            except SchemaError as error:
                raise in_lark(error) from error

        try:
            return Converted(read(self.tokens))
        except UnsupportedGrammarError as error:
            if self.tokens is not None or not _names_token(error):
                raise
            # As with grammar text.
            read({name: [0] for name in _names_in(self.text, self.named)})
            return Converted(unread=_needs_vocabulary(error, "from_lark"))

    def notes(self, limits: Limits | None, ends: _core.Interrupt | None) -> list[SchemaNote]:
        """What there is to say of its terminals; the text is read again."""
        found = _core.lark_notes(self.text, self.start, self.dialect, limits, ends)
        return [
            SchemaNote("warning", f"line {line}, column {column}", name, message)
            for line, column, name, message in found
        ]

    def over(self, vocabulary: Vocabulary) -> LarkSource:
        tokens = ids_of_texts(_names_in(self.text, self.named), vocabulary)
        named = {
            name: part if isinstance(part, str) else part._over(vocabulary)
            for name, part in self.named.items()
        }
        return replace(self, tokens=tokens, named=named)


def _names_in(text: str, named: Mapping[str, object]) -> set[str]:
    """What may be names of tokens in Lark text, and in the texts that it imports."""
    return names_in_lark([text, *(value for value in named.values() if isinstance(value, str))])


def _names_token(error: UnsupportedGrammarError) -> bool:
    return error.construct.startswith(("<", "!<"))  # the one construct that begins so


def _needs_vocabulary(error: UnsupportedGrammarError, method: str) -> UnsupportedGrammarError:
    return UnsupportedGrammarError(
        f"{error}; or pass the vocabulary, Grammar.{method}(text, vocabulary=vocabulary), as "
        "tokfold.compile(grammar, vocabulary) does by itself",
        error.construct,
        error.line,
        error.column,
    )
