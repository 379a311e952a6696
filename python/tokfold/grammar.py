"""Context-free grammars: the class that users see.

It is one class, and most of its lines document its public methods. What grammars are made of, and
how, stands in :mod:`tokfold._sources`.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, cast

from tokfold._checks import is_one_of, missing_file, wrong_type
from tokfold._lazy import lazy
from tokfold._names import Named, missing, with_our_options
from tokfold._quoting import quoted
from tokfold._schema_records import RuleOrigin, SchemaNote, SchemaPlace
from tokfold._sources.built import Built
from tokfold._sources.operations import Operation, Plan, bounds
from tokfold._sources.record import Lookahead
from tokfold._sources.regular import RegularSource, Step, said_of_compiled
from tokfold._sources.schema import SchemaSource
from tokfold._sources.texts import EbnfSource, LarkSource, TextSource
from tokfold._token_names import ids_in_text
from tokfold._written import is_grammar_text, written_in
from tokfold.errors import (
    ArgumentTypeError,
    GrammarSyntaxError,
    StrictSchemaError,
    StructuralTagError,
    UnsupportedGrammarError,
)
from tokfold.interrupt import Interrupt
from tokfold.limits import DEFAULT_LIMITS, Limits, check_limits

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary

__all__ = ["Grammar"]

Dialect = Literal["draft-04", "openapi-3.0", "draft-06", "draft-07", "2019-09", "2020-12"]


class Grammar(Built, metaclass=Named):
    """A context-free grammar, read from XGrammar's EBNF or llama.cpp's GBNF.

    Make one with :meth:`from_ebnf` or another ``from_`` method. Immutable. ``str(grammar)`` is
    grammar text, and ``Grammar.from_ebnf(str(grammar), grammar.root)`` has the same texts; what
    grammar text cannot say (unique items, members in any order) is an
    :class:`UnsupportedGrammarError`. ``pickle`` keeps every grammar.

    Attributes:
        lookahead: what ``(= ...)`` at the end of a rule means. ``"exact"``: it narrows masks, so
            compilation refuses a grammar with one that the rules do not imply (where they imply
            it, as in what XGrammar's converters print, it narrows nothing). ``"implied"``: it is
            ignored without a look.

    Example:
        >>> grammar = tokfold.Grammar.from_json_schema({"enum": [7, "all"]})
        >>> tokfold.recognize(grammar, "7").accepted, tokfold.recognize(grammar, "8").accepted
        (True, False)
        >>> either = grammar | tokfold.Grammar.choices(["none"])
        >>> tokfold.recognize(either, '"all"').accepted, tokfold.recognize(either, "none").accepted
        (True, True)
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # a checker would believe that there is every name
        __getattr__ = missing

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("make a Grammar with Grammar.from_ebnf(text) or another from_ method")

    @classmethod
    @with_our_options("Grammar.from_ebnf")
    def from_ebnf(
        cls,
        text: str,
        root: str = "root",
        *,
        lookahead: Lookahead = "exact",
        vocabulary: Vocabulary | None = None,
        limits: Limits | None = None,
        interrupt: Interrupt | None = None,
    ) -> Grammar:
        """Read grammar text.

        Args:
            text: XGrammar EBNF or GBNF.
            root: name of the start rule; it may occur in bodies.
            lookahead: see :attr:`lookahead`.
            vocabulary: where tokens that the text names (``<|end|>``) are looked up; all tokens
                with that text are meant. :func:`tokfold.compile` looks them up where there is none;
                until then nothing else can be asked of the grammar.
            limits: bounds on size and nesting.
            interrupt: ends the call early; by default the deadline of ``limits`` does.

        Raises:
            GrammarSyntaxError: the text is not in the language; says where and what to do.
            UnsupportedGrammarError: the text names a token that the vocabulary lacks.
            LimitExceededError: the text is larger than ``limits`` allow.
            CancelledError, DeadlineExceededError: ``interrupt`` ended the call.
        """
        if not isinstance(text, str):
            raise wrong_type("grammar text", "a str", text)
        if not isinstance(root, str):
            raise wrong_type("root", "a str, the name of a rule", root)
        check_limits(limits)
        if not is_one_of(lookahead, ("exact", "implied")):
            raise ValueError(f"lookahead must be 'exact' or 'implied', not {quoted(lookahead)}")
        if vocabulary is not None:
            _check_vocabulary(vocabulary)
        with written_in(text, "grammar text"):
            tokens = None if vocabulary is None else ids_in_text(text, vocabulary)
            source = EbnfSource(text, root, lookahead == "implied", tokens)
            return cls._of(source, limits, interrupt)

    @property
    def lookahead(self) -> Lookahead:
        """What ``(= ...)`` at the end of a rule means; see the class."""
        return self._source.lookahead

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        root: str = "root",
        *,
        limits: Limits | None = None,
    ) -> Grammar:
        """Read a file of grammar text, EBNF or GBNF, in UTF-8.

        Of files in other languages read the text and call :meth:`from_json_schema`,
        :meth:`from_structural_tag` or :meth:`from_lark`.

        Raises:
            GrammarSyntaxError: as :meth:`from_ebnf`; also for bytes that are not UTF-8.
            MissingFileError: there is no such file, or none can have this name; it is a
                ``FileNotFoundError`` too.
            OSError: it cannot be read.
            ArgumentTypeError: ``path`` is no path.
        """
        if not isinstance(path, str | PathLike):
            raise wrong_type("path", "a str or a path", path)
        # Places are told without the byte order mark, which is no part of the text.
        path = os.fsdecode(path)
        try:
            data = Path(path).read_bytes().removeprefix(codecs.BOM_UTF8)
        except (OSError, ValueError) as error:
            if getattr(error, "errno", errno.ENOENT) in (errno.ENOENT, errno.ENAMETOOLONG):
                raise missing_file(path, error) from error
            raise
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            before = data[: error.start].decode("utf-8", "replace")
            line = before.count("\n") + 1
            column = len(before) - (before.rfind("\n") + 1) + 1
            raise GrammarSyntaxError(
                f"{path}: line {line}, column {column}: byte 0x{data[error.start]:02x} is not "
                "UTF-8; a grammar is a text file",
                line,
                column,
            ) from error
        try:
            return cls.from_ebnf(text, root, limits=limits)
        except GrammarSyntaxError as error:
            raise GrammarSyntaxError(f"{path}: {error}", error.line, error.column) from error

    @classmethod
    @with_our_options("Grammar.from_json_schema")
    def from_json_schema(
        cls,
        schema: object,
        *,
        dialect: Dialect | None = None,
        strict: bool = False,
        key_order: Literal["schema", "any"] = "schema",
        whitespace: Literal["any", "compact", "spaced"] = "any",
        max_whitespace: int | None = 32,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        max_digits: int | None = None,
        max_depth: int | None = None,
        integers: Literal["1", "1.0"] = "1",
        escapes: Literal["standard", "any", "plain"] = "standard",
        formats: Literal["assert", "annotation"] | Mapping[str, str | None] = "assert",
        additional_properties: bool = False,
        resources: Mapping[str, object] | None = None,
        lossy: Collection[str] = (),
        limits: Limits | None = None,
        interrupt: Interrupt | None = None,
    ) -> Grammar:
        r"""The grammar of the JSON texts whose values a schema allows.

        It is exact: every keyword of drafts 4, 6, 7, 2019-09 and 2020-12 counts, or is refused by
        name. Of the texts in the form that the options choose, in which no object repeats a name,
        the grammar has those whose values are valid, and it has no text of another form. In this
        form an object has no members but those that its schema names, unless the schema or
        ``additional_properties`` says otherwise.

        Args:
            schema: a JSON Schema as text, mapping or bool; or a type: a pydantic model or
                ``TypeAdapter``, or with pydantic installed a dataclass, a ``TypedDict`` or any
                other annotation. ``default``, ``examples`` and ``example`` of a mapping or a type
                may be no JSON (``math.inf``), and are left out then.
            dialect: of schemas without ``$schema``: ``"draft-04"``, ``"draft-06"``,
                ``"draft-07"``, ``"2019-09"``, ``"2020-12"``, or ``"openapi-3.0"``, which is
                draft-04 with ``nullable``. None: 2020-12, and what older drafts have where 2020-12
                gives it no meaning.
            strict: refuse schemas with warnings among :attr:`notes`.
            key_order: ``"schema"``: names stand in the order in which the schema first mentions
                them, other names last. ``"any"``: in any order.
            whitespace: ``"any"``: JSON's four characters wherever JSON allows them but around the
                text; ``"compact"``: none; ``"spaced"``: one space after commas and colons.
            max_whitespace: the most characters of white space at one place; None for no bound.
            indent: spaces of each level, with a line for each member and item, to 32 levels; as
                ``json.dumps`` does. Where it is given, ``whitespace`` does not count.
            separators: what stands behind an item and behind a name; likewise.
            max_digits: the most digits of a number in a row, so before its point, behind it, and in
                its exponent, from 1 to 1,000; None for no bound. Numbers that the schema lists are
                written as they are.
            max_depth: the most arrays and objects in which a value stands, from 0 to 256; None for
                no bound. Each level has rules of its own, so a low bound costs less.
            integers: ``"1.0"``: integers may have a fraction of zeros.
            escapes: ``"standard"``: strings that no pattern, format or enum restricts may spell
                characters as ``\/`` and ``\uXXXX``; ``"any"``: all strings but names of
                properties; ``"plain"``: none.
            formats: whether ``format`` is a condition or an annotation. A mapping of names to
                patterns of ECMA-262: it is a condition, and these formats are as the patterns say,
                which are searched for as those of ``pattern`` are: write ``^`` and ``$``. A format
                whose pattern is None is an annotation.
            additional_properties: True: objects that do not say otherwise may have other members
                than those that the schema names, as the standard says.
            resources: schemas that references lead to, by their URIs. Nothing is ever fetched.
            lossy: ``{"uniqueItems"}``: where this keyword cannot be said it is left out, and
                :attr:`not_enforced` lists the place.
            limits: bounds on size and work.
            interrupt: ends the call early; by default the deadline of ``limits`` does.

        Raises:
            InvalidSchemaError: it is no schema; says where, as a JSON pointer.
            UnsupportedSchemaError: a keyword means what no grammar can say.
            UnsatisfiableSchemaError: no value is valid.
            ArgumentTypeError: ``schema`` is bytes, a value of a model, or no type that pydantic
                knows.
            StrictSchemaError: it has warnings, under ``strict``; lists each with its pointer.
            LimitExceededError: its conditions multiply past a bound.
            MissingExtraError: a type needs pydantic, which is not installed.
            CancelledError, DeadlineExceededError: ``interrupt`` ended the call.

        >>> grammar = Grammar.from_json_schema({"minLenght": 1, "type": "string", "title": "Word"})
        >>> for note in grammar.notes:
        ...     print(note.level, note.pointer, note.message.partition(";")[0])
        warning #/minLenght no dialect has this keyword, so it is not enforced
        info #/title the keyword is an annotation
        """
        source = SchemaSource.of(
            schema,
            dialect=dialect,
            key_order=key_order,
            whitespace=whitespace,
            max_whitespace=max_whitespace,
            indent=indent,
            separators=separators,
            max_digits=max_digits,
            max_depth=max_depth,
            integers=integers,
            escapes=escapes,
            formats=formats,
            additional_properties=additional_properties,
            resources=resources,
            lossy=lossy,
            limits=limits,
        )
        if not isinstance(strict, bool):
            raise TypeError("strict must be True or False")
        grammar = cls._of(source, limits, interrupt)
        ends = Interrupt._of(interrupt, limits or DEFAULT_LIMITS)
        notes = source.notes(limits, ends) if strict else []
        warnings = tuple(note for note in notes if note.level == "warning")
        if warnings:
            counted = "1 warning" if len(warnings) == 1 else f"{len(warnings)} warnings"
            lines = [f"the schema has {counted}, and strict=True refuses it:", *map(str, warnings)]
            raise StrictSchemaError("\n".join(lines), warnings)
        return grammar

    @classmethod
    def from_regex(
        cls,
        pattern: str,
        *,
        dialect: Literal["ecma", "python", "rust"] = "ecma",
        search: bool = False,
        flags: str = "",
        limits: Limits | None = None,
        interrupt: Interrupt | None = None,
    ) -> Grammar:
        """The grammar of the texts that a regular expression matches as a whole.

        Lookahead, lookbehind, word boundaries, properties of characters and anchors anywhere are
        part of the language; what no automaton can do (backreferences) is refused by name. Counts
        such as ``{1,4096}`` cost the same whatever they are.

        Args:
            pattern: the regular expression.
            dialect: ``"ecma"``: ECMA-262 with the flag ``u``, or as its Annex B says where the
                pattern is none under ``u``, and what other dialects have (``(?i)``) where
                they agree; ``"python"``: Python's ``re``; ``"rust"``: the crate ``regex``.
            search: whether texts that hold a match count, as for ``pattern`` in JSON Schema.
            flags: of ``i``, ``m`` and ``s``.
            limits: bounds on size and work.
            interrupt: ends the call early; by default the deadline of ``limits`` does.

        Raises:
            GrammarSyntaxError: it is no regular expression; says in which column.
            UnsupportedGrammarError: it has a construct that cannot be handled exactly.
            LimitExceededError: its automaton is too large.
            CancelledError, DeadlineExceededError: ``interrupt`` ended the call.

        >>> from tokfold import recognize
        >>> word = Grammar.from_regex(r"(?!if$)[a-z]{1,8}")
        >>> recognize(word, "iffy").accepted, recognize(word, "if").accepted
        (True, False)
        """
        if isinstance(pattern, re.Pattern):
            raise ArgumentTypeError(
                f"a pattern must be a str, not a compiled pattern; {said_of_compiled(pattern)}"
            )
        if not isinstance(pattern, str):
            raise wrong_type("a pattern", "a str", pattern)
        if not is_one_of(dialect, ("ecma", "python", "rust")):
            raise ValueError(f"dialect must be 'ecma', 'python' or 'rust', not {quoted(dialect)}")
        if not isinstance(flags, str) or not set(flags) <= set("ims"):
            raise ValueError(f"flags must be letters of 'ims', not {quoted(flags)}")
        check_limits(limits)
        source = RegularSource([(pattern, dialect, flags, bool(search))])
        return cls._of(source, limits, interrupt)

    @classmethod
    def choices(cls, texts: Iterable[str], *, limits: Limits | None = None) -> Grammar:
        r"""The grammar of some texts.

        Args:
            texts: at least one; 10^5 of them are no trouble.
            limits: bounds on size and work.

        Raises:
            ValueError: there is none.
            TypeError: one is no str.

        >>> str(Grammar.choices(["yes", "no"]))
        'root ::= "yes" | "no"\n'
        """
        if not isinstance(texts, Iterable):
            raise wrong_type("choices", "an iterable of str", texts)
        given = [texts] if isinstance(texts, str) else list(texts)
        if isinstance(texts, str) or not all(isinstance(text, str) for text in given):
            if isinstance(texts, str):
                raise ArgumentTypeError(
                    "choices must be an iterable of str, not one text: pass a list, "
                    f"[{quoted(texts)}]"
                )
            wrong = next(text for text in given if not isinstance(text, str))
            raise ArgumentTypeError(
                f"choices must be an iterable of str, and one is of the type {type(wrong).__name__}"
            )
        if not given:
            raise ValueError("choices must hold at least one text")
        check_limits(limits)
        return cls._of(RegularSource([given]), limits)

    def __and__(self, other: object) -> Grammar:
        """The texts that both grammars have, where both are regular.

        Regular are grammars made by :meth:`from_regex` and :meth:`choices`, and what ``&``, ``~``,
        ``|``, ``+``, :meth:`repeat` and :meth:`optional` make of regular ones.

        Raises:
            UnsupportedGrammarError: one is not regular.
            LimitExceededError: the automaton is too large.
        """
        if not _is_operand(other, "&"):
            return NotImplemented
        steps = [*self._regular("&"), *other._regular("&"), "and"]
        return Grammar._of(RegularSource(steps), self._limits or other._limits)

    def __invert__(self) -> Grammar:
        """All texts that the grammar lacks, where it is regular; errors as for ``&``.

        >>> from tokfold import recognize
        >>> name = Grammar.from_regex("[a-z]+") & ~Grammar.choices(["if", "else"])
        >>> recognize(name, "elsewhere").accepted, recognize(name, "else").accepted
        (True, False)
        """
        return Grammar._of(RegularSource([*self._regular("~"), "not"]), self._limits)

    def _regular(self, operation: str) -> list[Step]:
        source = self._source
        if isinstance(source, RegularSource):
            return source.steps
        plan = source.plan if isinstance(source, Operation) else None
        leaves = [leaf._source for leaf in plan.leaves] if plan is not None else [source]
        of_leaves = [leaf.steps for leaf in leaves if isinstance(leaf, RegularSource)]
        if plan is None or len(of_leaves) < len(leaves):
            raise UnsupportedGrammarError(
                f"{operation} takes regular grammars: those made by Grammar.from_regex and "
                "Grammar.choices, and what &, ~, |, +, repeat and optional make of these. Of other "
                "context-free grammars the texts that two have in common, or that one lacks, need "
                "not be a context-free language; write the condition into the grammar, or as a "
                "pattern in its schema",
                operation,
                1,
                1,
            )
        return plan.steps(of_leaves, (self._limits or DEFAULT_LIMITS).max_automaton_states)

    def __or__(self, other: object) -> Grammar:
        """The texts that one of the grammars has, whatever they were made from.

        Raises:
            ArgumentTypeError: the other is a str; write ``Grammar.choices([text])``.

        >>> from tokfold import recognize
        >>> age = Grammar.from_json_schema({"type": "integer"}) | Grammar.choices(["N/A"])
        >>> recognize(age, "12").accepted, recognize(age, "N/A").accepted
        (True, True)
        """
        if not _is_operand(other, "|"):
            return NotImplemented
        return Grammar._of_operands("or", self, other)

    def __add__(self, other: object) -> Grammar:
        r"""A text of this grammar with one of the other behind it; errors as for ``|``.

        >>> from tokfold import recognize
        >>> line = Grammar.from_json_schema({"type": "integer"}) + Grammar.choices(["\n"])
        >>> recognize(line, "12\n").accepted, recognize(line, "12").accepted
        (True, False)
        """
        if not _is_operand(other, "+"):
            return NotImplemented
        return Grammar._of_operands("then", self, other)

    @classmethod
    def concat(cls, *grammars: Grammar) -> Grammar:
        """Texts of some grammars in a row: ``a + b + c``.

        Args:
            grammars: at least one.

        Raises:
            ValueError: there is none.
            ArgumentTypeError: one is no grammar.

        >>> call = Grammar.concat(
        ...     Grammar.choices(["f(", "g("]),
        ...     Grammar.from_json_schema({"type": "integer"}),
        ...     Grammar.choices([")"]),
        ... )
        >>> from tokfold import recognize
        >>> recognize(call, "g(12)").accepted
        True
        """
        for grammar in grammars:
            if not isinstance(grammar, Grammar):
                raise wrong_type("concat: a grammar", "a tokfold.Grammar", grammar)
        if not grammars:
            raise ValueError('concat takes at least one grammar; Grammar.choices([""]) is no text')
        if len(grammars) == 1:
            return grammars[0]
        return cls._of_operands("then", *grammars)

    def repeat(self, min: int, max: int | None = None) -> Grammar:
        r"""Texts of the grammar in a row, so many of them.

        Bounds are counted while a text is read: large ones cost what small ones do.

        Args:
            min: how many there are at least, from 0 to 4,294,967,295.
            max: how many there are at most, likewise; None for no bound.

        Raises:
            ValueError: a bound is out of range, or ``max`` is less than ``min``.
            ArgumentTypeError: a bound is no int.

        >>> from tokfold import recognize
        >>> lines = (Grammar.from_regex("[a-z]+") + Grammar.choices(["\n"])).repeat(1, 2)
        >>> recognize(lines, "a\nb\n").accepted, recognize(lines, "a\nb\nc\n").accepted
        (True, False)
        """
        return Grammar._of(Operation("repeat", (self,), *bounds(min, max)), self._limits)

    def optional(self) -> Grammar:
        """The texts of the grammar, and the empty text: ``repeat(0, 1)``.

        >>> from tokfold import recognize
        >>> recognize(Grammar.from_json_schema({"type": "integer"}).optional(), "").accepted
        True
        """
        return self.repeat(0, 1)

    @classmethod
    def _of_operands(cls, name: Literal["or", "then"], *operands: Grammar) -> Grammar:
        """What an operation makes: at once, as it is put together when first needed."""
        limits = (operand._limits for operand in operands)
        return cls._of(Operation(name, operands), next(filter(None, limits), None))

    @property
    def notes(self) -> list[SchemaNote]:
        """What a conversion leaves to say, of a JSON Schema, of Lark, and of grammars made of some.

        In the order of the document: warnings of what is not enforced or was probably meant
        otherwise, and for information annotations, and how patterns are read that have what
        ECMA-262 lacks. Of Lark: warnings of lazy quantifiers that Lark heeds and tokfold reads as
        greedy ones. The schema or the text is converted again to find them.

        Raises:
            LimitExceededError, DeadlineExceededError: as the conversion.
        """
        return list(self._notes)

    @property
    def not_enforced(self) -> list[str]:
        """Pointers of what ``lossy`` left out, of a JSON Schema and of grammars made of some."""
        return list(self._not_enforced)

    @lazy
    def _notes(self) -> tuple[SchemaNote, ...]:
        if isinstance(self._source, (SchemaSource, LarkSource)):
            ends = Interrupt._of(None, self._limits or DEFAULT_LIMITS)
            return tuple(self._source.notes(self._limits, ends))
        return tuple(dict.fromkeys(note for leaf in self._leaves for note in leaf._notes))

    @lazy
    def _not_enforced(self) -> tuple[str, ...]:
        places = (place for leaf in self._leaves for place in leaf._not_enforced)
        return self._converted.not_enforced or tuple(dict.fromkeys(places))

    @property
    def _leaves(self) -> tuple[Grammar, ...]:
        """The grammars that operations make it of."""
        plan = self._source.plan if isinstance(self._source, Operation) else None
        return () if plan is None else cast("tuple[Grammar, ...]", plan.leaves)

    @classmethod
    def from_lark(
        cls,
        text: str,
        *,
        start: str = "start",
        dialect: Literal["rust", "python"] = "rust",
        named: Mapping[str, str | Grammar] | None = None,
        vocabulary: Vocabulary | None = None,
        limits: Limits | None = None,
        interrupt: Interrupt | None = None,
    ) -> Grammar:
        r"""The grammar of Lark text, as XGrammar and llguidance read it.

        It is context-free: no lexer cuts the text into terminals first. ``%json``, ``%regex``,
        ``&``, ``~``, ``@name``, ``<|token|>``, ``lazy``, ``suffix`` and ``stop`` are known; a
        construct without an exact meaning is refused by name.

        Args:
            text: the grammar.
            start: the rule to start with.
            dialect: whose regular expressions stand between slashes: those of the crate ``regex``,
                as in llguidance, or of Python's ``re``, as in Lark.
            named: what ``@name`` means: Lark text with a ``start`` of its own, or a grammar.
            vocabulary: where tokens that the text names are looked up, as in :meth:`from_ebnf`.
            limits: bounds on size and work.
            interrupt: ends the call early; by default the deadline of ``limits`` does.

        Raises:
            GrammarSyntaxError: the text is not in the language; says where and what to do.
            UnsupportedGrammarError: a construct cannot be handled exactly.
            SchemaError: a JSON Schema in it cannot be turned into a grammar.
            LimitExceededError: it is too large.
            CancelledError, DeadlineExceededError: ``interrupt`` ended the call.

        >>> from tokfold import recognize
        >>> grammar = Grammar.from_lark('start: NAME ("," NAME)*\nNAME: /[a-z]+/')
        >>> recognize(grammar, "a,bc").accepted
        True
        """
        if not isinstance(text, str):
            raise wrong_type("a Lark grammar", "a str", text)
        if not isinstance(start, str):
            raise wrong_type("start", "a str, the name of a rule", start)
        check_limits(limits)
        if not is_one_of(dialect, ("rust", "python")):
            raise ValueError(f"dialect must be 'rust' or 'python', not {quoted(dialect)}")
        if named is not None and not isinstance(named, Mapping):
            raise wrong_type("named", "a mapping of names to Lark text or grammars", named)
        for name, part in (named or {}).items():
            if not isinstance(name, str):
                raise wrong_type("a name of named", "a str", name)
            if not isinstance(part, str | Grammar):
                raise wrong_type(f"named[{quoted(name)}]", "Lark text or a tokfold.Grammar", part)
        source = LarkSource(text, start, dialect, dict(named or {}))
        if vocabulary is not None:
            _check_vocabulary(vocabulary)
            source = source.over(vocabulary)
        try:
            with written_in(text, "Lark"):
                return cls._of(source, limits, interrupt)
        except (GrammarSyntaxError, UnsupportedGrammarError) as error:
            for name, part in (named or {}).items():
                if isinstance(part, str) and is_grammar_text(part):
                    raise GrammarSyntaxError(
                        f"named[{quoted(name)}] is grammar text (`name ::= ...`), not Lark; pass "
                        "Grammar.from_ebnf(text) in its place",
                        error.line,
                        error.column,
                    ) from error
            raise

    @classmethod
    def from_structural_tag(
        cls,
        tag: object,
        vocabulary: Vocabulary | None = None,
        *,
        additional_properties: bool = False,
        limits: Limits | None = None,
        interrupt: Interrupt | None = None,
    ) -> Grammar:
        """The grammar of a structural tag.

        Schemas and patterns in it are converted once and remembered by their content: see
        :mod:`tokfold.structural_tags`.

        Args:
            tag: a structural tag, as JSON text, as a value, or as XGrammar's own object.
            vocabulary: where token strings are looked up, in tags with token formats, and special
                tokens that stand in texts of the tag. :func:`tokfold.compile` looks these up where
                there is none.
            additional_properties: whether objects of schemas that do not say otherwise have other
                members than those that the schema names.
            limits: bounds on size and work, of each part.
            interrupt: ends the call early; by default the deadline of ``limits`` does.

        Raises:
            StructuralTagError: it is no structural tag; says which part and why.
            SchemaError, UnsupportedGrammarError, GrammarSyntaxError, LimitExceededError: a part
                cannot be expressed; says which.
            CancelledError, DeadlineExceededError: ``interrupt`` ended the call.

        >>> from tokfold import recognize
        >>> schema = {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
        >>> content = {"type": "json_schema", "json_schema": schema}
        >>> tag = {"type": "tag", "begin": "<f>", "content": content, "end": "</f>"}
        >>> recognize(Grammar.from_structural_tag({"format": tag}), '<f>{"a": 1}</f>').accepted
        True
        """
        from tokfold._tags.assembly import of_tag

        if vocabulary is not None:
            _check_vocabulary(vocabulary)
        source = of_tag(tag, vocabulary, None, additional_properties, limits, interrupt)
        return cls._of(source, limits, interrupt)

    def with_tags(self, added: Iterable[object] = (), removed: Iterable[str | int] = ()) -> Grammar:
        """The grammar with other tools: tags of free text or between separators, added or removed.

        Only what is new is converted and compiled; the rest is linked. A text under way goes on
        with the new grammar by :meth:`tokfold.Matcher.moved_to`.

        Args:
            added: for ``triggered_tags`` and ``token_triggered_tags``, tags (``{"begin": ...,
                "content": ..., "end": ...}``); for ``dispatch`` and ``token_dispatch``, pairs of a
                pattern or token and a format. They come after those that are there. For
                ``tags_with_separator`` tags too; where that stands in a tag that free text calls,
                it is meant if the free text cannot call them.
            removed: the texts, or ids of tokens, with which tags begin. A trigger goes with its
                last tag.

        Returns:
            What :meth:`from_structural_tag` gives for the changed structural tag; this grammar
            stays as it is.

        Raises:
            ArgumentTypeError: ``added`` or ``removed`` is no list, or ``removed`` holds something
                else than texts and ids.
            StructuralTagError: the grammar is of no structural tag with one such format; a tag is
                wrong, or to be removed and not there.
            SchemaError, UnsupportedGrammarError, GrammarSyntaxError, LimitExceededError: as
                :meth:`from_structural_tag`.
        """
        from tokfold._tags.assembly import TagSource, of_format
        from tokfold._tags.changing import changed

        for name, given, entry in (("added", added, "tag"), ("removed", removed, "text or id")):
            if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
                raise ArgumentTypeError(
                    f"{name} must be a list, not {type(given).__name__}: pass a list also for one "
                    f"{entry}, {name}=[...]"
                )
        source = self._source
        if not isinstance(source, TagSource):
            raise StructuralTagError(
                "tags are added to a grammar made by Grammar.from_structural_tag", "", ""
            )
        new = changed(source.format, added, removed, source.settings)
        return Grammar._of(of_format(new, source.settings, before=source.written), self._limits)

    def _over(self, vocabulary: Vocabulary) -> Grammar:
        """The same with the tokens of a vocabulary that it names, where it was read without one."""
        if isinstance(self._source, TextSource) and self._converted.unread is None:
            return self
        source = self._source.over(vocabulary)
        return self if source is self._source else Grammar._of(source, self._limits)

    @property
    def _is_unread(self) -> bool:
        """Whether it names tokens and has met no vocabulary."""
        return any(leaf._converted.unread is not None for leaf in (self, *self._leaves))

    @property
    def _schema(self) -> SchemaSource | None:
        """The schema that it is made of."""
        return self._source if isinstance(self._source, SchemaSource) else None

    @property
    def root(self) -> str:
        """Name of the start rule."""
        if isinstance(self._source, Operation):
            return "root"
        is_unread = self._converted.unread is not None
        if is_unread and isinstance(self._source, TextSource):
            return self._source.start
        return self._core.root()

    @property
    def rule_names(self) -> list[str]:
        """Names of the rules, in the order written."""
        return self._core.rule_names()

    @property
    def rule_origins(self) -> Mapping[str, RuleOrigin]:
        """Of a JSON Schema, what each rule is and of which schemas, by its name; else empty.

        Made when first asked for, by another conversion.

        >>> grammar = Grammar.from_json_schema({"properties": {"age": {"type": "integer"}}})
        >>> [str(o.pointers) for o in grammar.rule_origins.values() if "integer" in o.description]
        ["('#/properties/age',)"]
        """
        return self._origins

    @lazy
    def _origins(self) -> Mapping[str, RuleOrigin]:
        if self._schema is None:
            return {}
        ends = Interrupt._of(None, self._limits or DEFAULT_LIMITS)
        origins = self._schema.origins(self._limits, ends)
        return dict(zip(self.rule_names, origins, strict=True))

    def place_in_schema(
        self,
        document: str | bytes,
        read: int,
        *,
        is_whole: bool = True,
        interrupt: Interrupt | None = None,
    ) -> SchemaPlace | None:
        """What a JSON Schema says of the place where a text leaves the grammar.

        Args:
            document: the text.
            read: how many bytes of it the grammar reads: ``read`` of :func:`tokfold.recognize`.
            is_whole: False: the text is cut off at its end, and may go on.
            interrupt: ends the call early; by default the deadline of the grammar's limits does.

        Returns:
            Where that is, and what is expected there. None where the grammar is not made by
            :meth:`from_json_schema`, and where the text does not begin as JSON.

        Raises:
            LimitExceededError: a bound of the grammar's limits was reached.
            CancelledError, DeadlineExceededError: ``interrupt`` ended the call.

        >>> from tokfold import recognize
        >>> grammar = Grammar.from_json_schema({"items": {"type": "integer", "maximum": 9}})
        >>> place = grammar.place_in_schema("[7, 12]", recognize(grammar, "[7, 12]").read)
        >>> place.pointer, str(place.reasons[0])
        ('/1', '#/items: expected an integer that is at most 9, not 12')
        """
        if not isinstance(document, str | bytes | bytearray | memoryview):
            raise wrong_type("document", "a str or bytes", document)
        if self._schema is None:
            return None
        data = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
        ends = Interrupt._of(interrupt, self._limits or DEFAULT_LIMITS)
        return self._schema.place(data, read, is_whole, self._limits, ends)

    @property
    def num_rules(self) -> int:
        """How many rules there are; without the list of their names, which may be long."""
        return self._core.num_rules()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what the grammar says, in hexadecimal."""
        if self._schema is not None:
            return self._schema.fingerprint
        content = f"{self.lookahead}\n{self.root}\n{self._content}"
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def _content(self) -> str:
        """The text; of a grammar that has none, what it is made of: equal for equal sources."""
        try:
            return str(self)
        except UnsupportedGrammarError:
            if (said := self._source.said) is None:
                raise
            return repr(said)

    @property
    def _as_rules(self) -> Grammar:
        """The same grammar as its text says it: rules in place of automata."""
        if not self._core.has_automata():
            return self
        return Grammar.from_ebnf(
            str(self), self.root, lookahead=self.lookahead, limits=self._limits
        )

    def __repr__(self) -> str:
        if self._is_unread:
            return f"Grammar(root={self.root!r}, names tokens of a vocabulary)"
        return f"Grammar(root={self.root!r}, rules={self.num_rules})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grammar):
            return NotImplemented
        if self._schema is not None and other._schema is not None:
            return self._schema == other._schema
        same = self.root == other.root and self.lookahead == other.lookahead
        return same and self._content == other._content

    def __hash__(self) -> int:
        return hash((self.root, self.lookahead, self._content))

    def __reduce__(self) -> tuple[Any, ...]:
        source = self._source
        if isinstance(source, Operation):
            return _joined_again, (source.plan, self._limits)
        return Grammar._of, (source, self._limits)


def _check_vocabulary(vocabulary: Vocabulary) -> None:
    """Refuse what is no vocabulary. Without one, nothing here needs numpy."""
    from tokfold.vocabulary import check_vocabulary

    check_vocabulary(vocabulary)


def _is_operand(other: object, operation: str) -> TypeGuard[Grammar]:
    """Whether an operation takes it."""
    if isinstance(other, str):
        raise ArgumentTypeError(
            f"{operation} takes a tokfold.Grammar, not a str; write Grammar.choices([text]) for "
            "the text itself, Grammar.from_regex or Grammar.from_ebnf for what it says"
        )
    return isinstance(other, Grammar)


def _joined_again(plan: Plan, limits: Limits | None) -> Grammar:
    return Grammar._of(plan.over(plan.leaves), limits)
