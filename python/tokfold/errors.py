"""Every exception and warning that tokfold raises on purpose.

All derive from :class:`TokfoldError`. Misuse raises; a token that the grammar refuses is no
misuse and returns ``False``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, SupportsIndex

from tokfold._quoting import encodable

if TYPE_CHECKING:
    from tokfold._schema_records import SchemaNote

__all__ = [
    "AlphabetError",
    "AmbiguousSourceError",
    "ArgumentTypeError",
    "ArtifactError",
    "CacheWarning",
    "CancelledError",
    "DeadlineExceededError",
    "DeviceError",
    "FallbackWarning",
    "GrammarSyntaxError",
    "InvalidSchemaError",
    "LimitExceededError",
    "MatcherStateError",
    "MissingExtraError",
    "MissingFileError",
    "ReentrantCompileError",
    "SchemaError",
    "StopTokenWarning",
    "StrictSchemaError",
    "StructuralTagError",
    "TokenBudgetError",
    "TokfoldError",
    "UnsatisfiableSchemaError",
    "UnsupportedGrammarError",
    "UnsupportedSchemaError",
    "UnwritableTextError",
    "VocabularyError",
    "VocabularyWarning",
]

_PLACE = re.compile(r"line (\d+), column (\d+): ")
"""Where the reason of a :class:`SchemaError` stands in text that is no JSON."""
_SCHEMA_IN_LARK = re.compile(r" \(the schema stands at line (\d+), column (\d+)\)$")


class TokfoldError(Exception):
    """Base of all errors of tokfold.

    Attributes:
        row: the row of a batch in which the error arose; None where no batch was at work.

    Example:
        >>> try:
        ...     tokfold.Grammar.from_regex("(a")
        ... except tokfold.TokfoldError as error:
        ...     print(type(error).__name__)
        GrammarSyntaxError
    """

    row: int | None = None

    def __str__(self) -> str:
        return encodable(super().__str__())  # names of files need not be

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str | tuple[Any, ...]:
        made = self.__reduce__()  # which names what the constructor takes
        if self.row is None or isinstance(made, str):
            return made
        return *made[:2], {"row": self.row}


class GrammarSyntaxError(TokfoldError, ValueError):
    """The grammar text is not in the language.

    Attributes:
        line: 1-based line.
        column: 1-based column, in code points.

    Example:
        >>> tokfold.Grammar.from_ebnf('root ::= "a')
        Traceback (most recent call last):
            ...
        tokfold.errors.GrammarSyntaxError: line 1, column 10: this `"` is not closed on its ...
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.line, self.column)


class UnsupportedGrammarError(TokfoldError, ValueError):
    """The grammar is well-formed but holds something that cannot be handled exactly.

    Attributes:
        construct: the construct, as grammar text names it (``"TagDispatch"``, ``"lookahead"``).
        line: 1-based line; 1 where no grammar text says it, and then the message names no line.
        column: 1-based column, in code points; 1 where no grammar text says it.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
        >>> tokfold.compile('root[lazy] ::= "a" root "a" | "a"', vocabulary)
        Traceback (most recent call last):
            ...
        tokfold.errors.UnsupportedGrammarError: line 1, column 1: lazy: rule "root" must be ...
    """

    def __init__(self, message: str, construct: str, line: int, column: int) -> None:
        super().__init__(message)
        self.construct = construct
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.construct, self.line, self.column)


class SchemaError(UnsupportedGrammarError):
    """A JSON Schema cannot be turned into a grammar.

    Attributes:
        pointer: where in the schema, as the fragment of a URI (``"#/properties/age"``).
        keyword: the keyword at fault; empty where it is the schema as a whole.
        reason: what is wrong, and what to do.
        line, column: the place of what is no JSON in the text of a schema; of a schema in Lark, a
            place in the Lark text, else that of its first character. From 1; 1 and 1 where only
            ``pointer`` says it.

    Example:
        >>> try:
        ...     tokfold.Grammar.from_json_schema({"properties": {"age": {"type": "int"}}})
        ... except tokfold.SchemaError as error:
        ...     print(error.pointer, error.keyword)
        #/properties/age type
    """

    def __init__(self, message: str, pointer: str, keyword: str, reason: str) -> None:
        super().__init__(message, keyword or "JSON schema", *_place(reason))
        self.pointer = pointer
        self.keyword = keyword
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.pointer, self.keyword, self.reason)


def _place(reason: str) -> tuple[int, int]:
    """Line and column of which the reason of an error speaks."""
    found = _PLACE.match(reason) or _SCHEMA_IN_LARK.search(reason)
    return (int(found[1]), int(found[2])) if found else (1, 1)


class InvalidSchemaError(SchemaError):
    """The document is no schema: no JSON, a value of a wrong type, a reference to nothing.

    Example:
        >>> tokfold.Grammar.from_json_schema({"type": "int"})
        Traceback (most recent call last):
            ...
        tokfold.errors.InvalidSchemaError: #: type: expected one of null, boolean, integer, ...
    """


class UnsupportedSchemaError(SchemaError):
    """The schema means something that no grammar can say, or that tokfold does not know.

    Example:
        >>> tokfold.Grammar.from_json_schema({"$ref": "https://example.com/address.json"})
        Traceback (most recent call last):
            ...
        tokfold.errors.UnsupportedSchemaError: #: $ref: the document ...
    """


class UnsatisfiableSchemaError(SchemaError):
    """No value satisfies the schema.

    Example:
        >>> tokfold.Grammar.from_json_schema({"type": "integer", "minimum": 2, "maximum": 1})
        Traceback (most recent call last):
            ...
        tokfold.errors.UnsatisfiableSchemaError: #: minimum: no value satisfies the schema: ...
    """


class StrictSchemaError(SchemaError):
    """The schema has warnings, and ``strict`` refuses such schemas.

    ``pointer``, ``keyword`` and ``reason`` are those of the first warning.

    Attributes:
        warnings: all warnings, as in :attr:`tokfold.Grammar.notes`.

    Example:
        >>> tokfold.Grammar.from_json_schema({"format": "color-name"}, strict=True)
        Traceback (most recent call last):
            ...
        tokfold.errors.StrictSchemaError: the schema has 2 warnings, and strict=True ...
    """

    def __init__(self, message: str, warnings: tuple[SchemaNote, ...]) -> None:
        first = warnings[0]
        super().__init__(message, first.pointer, first.keyword, first.message)
        self.warnings = warnings

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.warnings)


class StructuralTagError(TokfoldError, ValueError):
    """A structural tag is malformed, or asks for what means nothing.

    Attributes:
        format: type of the format at fault (``"triggered_tags"``); empty for the tag itself.
        path: where it stands in the tag (``"format.tags[3].content"``); empty for the whole.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
        >>> tokfold.compile({"type": "structural_tag", "format": {"type": "tagged"}}, vocabulary)
        Traceback (most recent call last):
            ...
        tokfold.errors.StructuralTagError: format: there is no format of type 'tagged'; ...
    """

    def __init__(self, message: str, format: str, path: str) -> None:
        super().__init__(message)
        self.format = format
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.format, self.path)


class ArgumentTypeError(TokfoldError, TypeError):
    """An argument is of a type that the call does not take.

    Example:
        >>> tokfold.Grammar.from_ebnf(7)
        Traceback (most recent call last):
            ...
        tokfold.errors.ArgumentTypeError: grammar text must be a str, not int
    """


class MissingFileError(TokfoldError, FileNotFoundError):
    """There is no file of that name.

    Example:
        >>> tokfold.Grammar.from_file("nowhere.gbnf")
        Traceback (most recent call last):
            ...
        tokfold.errors.MissingFileError: [Errno 2] No such file or directory: 'nowhere.gbnf'
    """


class AmbiguousSourceError(TokfoldError, TypeError):
    """:func:`tokfold.compile` cannot tell what a source means; says which call does.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
        >>> tokfold.compile("[a-z]+", vocabulary)
        Traceback (most recent call last):
            ...
        tokfold.errors.AmbiguousSourceError: the text '[a-z]+' has no rule (name ::= ...), ...
    """


class VocabularyError(TokfoldError, ValueError):
    """The vocabulary cannot be read or used.

    Example:
        >>> tokfold.Vocabulary([b"a"], stop_token_ids=[1])
        Traceback (most recent call last):
            ...
        tokfold.errors.VocabularyError: stop_token_ids: id 1 is outside [0, 1); leave it ...
    """


class UnwritableTextError(VocabularyError):
    """The tokens of a vocabulary cannot begin, or cannot end, any text of a grammar.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
        >>> tokfold.compile('root ::= "b"', vocabulary)
        Traceback (most recent call last):
            ...
        tokfold.errors.UnwritableTextError: no token of the vocabulary 'vocabulary' begins a ...
    """


class LimitExceededError(TokfoldError):
    """A bound was reached before the work was done; nothing was half-done.

    Attributes:
        limit: name of the bound: a field of :class:`tokfold.Limits`, or the argument that set it.
        value: the bound in force.
        pointer: of a JSON Schema, where in it the bound was reached, as the fragment of a URI
            (``"#/properties/age"``); None where that is no one place, and of everything else.

    Example:
        >>> few = tokfold.Limits(max_grammar_bytes=10)
        >>> tokfold.Grammar.from_ebnf('root ::= "a" "b"', limits=few)
        Traceback (most recent call last):
            ...
        tokfold.errors.LimitExceededError: limit max_grammar_bytes = 10 reached: the ...
    """

    def __init__(self, message: str, limit: str, value: int, pointer: str | None = None) -> None:
        super().__init__(message)
        self.limit = limit
        self.value = value
        self.pointer = pointer

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.limit, self.value, self.pointer)


class DeadlineExceededError(LimitExceededError, TimeoutError):
    """A call ran past its deadline; the state is as it was before the call.

    What the call made until then is kept, so that the same call goes further the next time.

    Attributes:
        limit: the field of :class:`tokfold.Limits` that set the deadline
            (``"max_mask_milliseconds"``), or ``"milliseconds"`` of an :class:`tokfold.Interrupt`.
        value: the time that was allowed, in milliseconds.

    Example:
        >>> grammar = tokfold.Grammar.from_ebnf('root ::= "a" root | ""')
        >>> tokfold.recognize(grammar, "a" * 100_000, interrupt=tokfold.Interrupt(milliseconds=0))
        Traceback (most recent call last):
            ...
        tokfold.errors.DeadlineExceededError: deadline milliseconds = 0 ms passed: the call ...
    """


class CancelledError(TokfoldError):
    """Another thread cancelled the call; the state is as it was before the call.

    Example:
        >>> interrupt = tokfold.Interrupt()
        >>> interrupt.cancel()  # from any thread
        >>> grammar = tokfold.Grammar.from_ebnf('root ::= "a"')
        >>> tokfold.recognize(grammar, "a", interrupt=interrupt)
        Traceback (most recent call last):
            ...
        tokfold.errors.CancelledError: another thread cancelled the call
    """


class MatcherStateError(TokfoldError, RuntimeError):
    """A matcher was asked for something that its state does not allow.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
        >>> matcher = tokfold.Matcher(tokfold.compile('root ::= "a"', vocabulary))
        >>> matcher.rollback(2)
        Traceback (most recent call last):
            ...
        tokfold.errors.MatcherStateError: 2 steps cannot be taken back: 0 were accepted
    """


class ReentrantCompileError(TokfoldError, RuntimeError):
    """A :class:`tokfold.GrammarCompiler` is asked for the grammar that the same thread compiles.

    The ``admit`` of a compiler runs before the compilation ends, so a request for the same grammar
    in it would wait for itself.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
        >>> def admit(compiled):
        ...     compiler.compile_grammar('root ::= "a"')
        >>> compiler = tokfold.GrammarCompiler(vocabulary, admit=admit)
        >>> compiler.compile_grammar('root ::= "a"')
        Traceback (most recent call last):
            ...
        tokfold.errors.ReentrantCompileError: this thread compiles this grammar already, and ...
    """


class TokenBudgetError(TokfoldError, ValueError):
    """The tokens that are left cannot complete the text.

    Attributes:
        needed: the fewest that can, the stop token counted; None where no tokens of the vocabulary
            complete the text, however many there are.
        tokens_left: the tokens that are left.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
        >>> compiled = tokfold.compile('root ::= "aaa"', vocabulary)
        >>> tokfold.Matcher(compiled, max_tokens=3)
        Traceback (most recent call last):
            ...
        tokfold.errors.TokenBudgetError: 3 tokens are left, and the shortest completion of ...
    """

    def __init__(self, message: str, needed: int | None, tokens_left: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.tokens_left = tokens_left

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.needed, self.tokens_left)


class AlphabetError(TokfoldError, ValueError):
    """A text has something that is no letter of the grammar.

    Attributes:
        letter: what it is.
        place: where it stands, from 0, in letters.

    Example:
        >>> import tokfold.chart_gpu
        >>> grammar = tokfold.Grammar.from_ebnf('root ::= "DT NN"')
        >>> binary = tokfold.chart_gpu.BinaryGrammar.of(grammar, "words")
        >>> binary.encode(["DT", "VB"])
        Traceback (most recent call last):
            ...
        tokfold.errors.AlphabetError: letter 1 of the text, 'VB', is none of the 2 words of ...
    """

    def __init__(self, message: str, letter: object, place: int) -> None:
        super().__init__(message)
        self.letter = letter
        self.place = place

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.letter, self.place)


class DeviceError(TokfoldError, RuntimeError):
    """A device cannot do what was asked of it.

    Attributes:
        reason: ``"missing"``: there is none, or what drives it is not installed; ``"memory"``:
            its memory is used up; ``"compiler"``: kernels cannot be compiled for it.

    Example:
        >>> from tokfold.chart_gpu import DeviceGrammar
        >>> grammar = tokfold.Grammar.from_ebnf('root ::= "a"')
        >>> DeviceGrammar(grammar, device="cuda:99")
        Traceback (most recent call last):
            ...
        tokfold.errors.DeviceError: the device cuda:99 cannot be used: Found no NVIDIA ...
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.reason)


class ArtifactError(TokfoldError):
    """A saved artefact is damaged, of another version, or made for something else.

    Example:
        >>> tokfold.CompileOptions(cache_dir="/dev/null")
        Traceback (most recent call last):
            ...
        tokfold.errors.ArtifactError: /dev/null: not a folder, so it cannot be a cache; ...
    """


class MissingExtraError(TokfoldError, ImportError):
    """An optional dependency is missing; the message names the extra that brings it.

    Example:
        >>> issubclass(tokfold.MissingExtraError, ImportError)
        True
    """


class CacheWarning(UserWarning):
    """A cache folder or an entry in it cannot be used; the work is done all the same.

    Example:
        >>> issubclass(tokfold.CacheWarning, UserWarning)
        True
    """


class FallbackWarning(UserWarning):
    """Something could not be compressed exactly; the full vocabulary is used instead.

    Example:
        >>> issubclass(tokfold.FallbackWarning, UserWarning)
        True
    """


class StopTokenWarning(UserWarning):
    """A grammar ends its text with a token at which the model does not stop, or with none.

    A grammar of finitely many texts, which nothing ends, is an :class:`UnwritableTextError`.

    Example:
        >>> import warnings
        >>> vocabulary = tokfold.Vocabulary([b"a"])
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     compiled = tokfold.compile('root ::= "a"+', vocabulary)
        >>> print([warning.category.__name__ for warning in caught])
        ['StopTokenWarning']
    """


class VocabularyWarning(UserWarning):
    """No tokens of a vocabulary complete a text of the grammar, or its size leaves tokens out.

    Example:
        >>> import warnings
        >>> vocabulary = tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     compiled = tokfold.compile('root ::= "a" "b"', vocabulary)
        >>> print([warning.category.__name__ for warning in caught])
        ['VocabularyWarning']
    """
