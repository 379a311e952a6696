"""What a source means that is given without a word about it: grammar, schema, tag or choices."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterable, Mapping
from os import PathLike
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal

from tokfold import _json
from tokfold._quoting import quoted
from tokfold._sources.regular import said_of_compiled
from tokfold._sources.schema_errors import part_meant, role
from tokfold._sources.types import is_adapter, is_value_of_model, said_of_value
from tokfold._written import is_lark
from tokfold.errors import AmbiguousSourceError
from tokfold.grammar import Grammar
from tokfold.interrupt import Interrupt
from tokfold.limits import Limits

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary

Source = (
    Grammar | str | bool | Mapping[str, Any] | list[str] | tuple[str, ...] | type[Any] | UnionType
)
"""What a grammar is made of without a word about it."""

SourceKind = Literal["grammar", "json_schema", "structural_tag", "choices"]

_SHOWN = 40
"""Characters of a source that an error shows."""


def kind_of(source: object) -> SourceKind:
    """What a source is.

    - a :class:`Grammar`, and text with ``::=``: a grammar;
    - a mapping whose ``type`` is ``"structural_tag"``, which is no type of JSON Schema, or whose
      ``format`` is an object, and XGrammar's own object: a structural tag;
    - any other mapping, a bool, a class, a dataclass, a ``TypedDict``, other types and pydantic's
      ``TypeAdapter``: a JSON Schema;
    - a list or tuple of texts: choices.

    Raises:
        AmbiguousSourceError: it may be meant in several ways, or in none; says what to call.
    """
    if isinstance(source, Grammar):
        return "grammar"
    if isinstance(source, str):
        return _kind_of_text(source)
    if isinstance(source, Mapping):
        if _is_tag(source):
            return "structural_tag"
        _refuse_document(source)
        return "json_schema"
    if isinstance(source, bool) or _is_type(source) or is_adapter(source):
        return "json_schema"
    if hasattr(source, "model_dump_json") and getattr(source, "type", None) == "structural_tag":
        return "structural_tag"
    if isinstance(source, (list, tuple)):
        if source and all(isinstance(text, str) for text in source):
            return "choices"
        if any(map(_is_tool, source)):
            raise AmbiguousSourceError(
                "the list holds tools, and how a model writes their calls depends on the model: "
                "call tokfold.structural_tags.for_model(family, tools), and pass the structural "
                "tag that it returns"
            )
        of_each = (
            "; where each text has a grammar of its own, compile each: a processor takes the list "
            "of what was compiled"
        )
        raise AmbiguousSourceError(
            "a list must hold texts, at least one, and is then a choice of them; a JSON Schema is "
            "a mapping, a bool or a type"
            + ("" if all(isinstance(text, str | int) for text in source) else of_each)
        )
    if isinstance(source, re.Pattern):
        raise AmbiguousSourceError(
            "a compiled pattern does not say whether texts are to match as a whole; "
            + said_of_compiled(source)
        )
    if isinstance(source, PathLike):
        raise AmbiguousSourceError(
            "a path does not say how its file is written; call Grammar.from_file, or read the file "
            "and call Grammar.from_json_schema, Grammar.from_lark or Grammar.from_structural_tag"
        )
    if isinstance(source, (bytes, bytearray)):
        raise AmbiguousSourceError("grammar text must be a str, not bytes; decode it as UTF-8")
    if is_value_of_model(source):
        raise AmbiguousSourceError(said_of_value(source))
    raise AmbiguousSourceError(
        "grammar must be a tokfold.Grammar, grammar text, a JSON Schema (a mapping, a bool, a "
        "type), a structural tag or a list of texts, not " + type(source).__name__
    )


def _kind_of_text(text: str) -> SourceKind:
    shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
    if _is_json(text):
        raise AmbiguousSourceError(
            f"the text {shown} is JSON: a schema, a structural tag, or itself what is to be "
            "written; call Grammar.from_json_schema or Grammar.from_structural_tag, or pass "
            "json.loads(text)"
        )
    if is_lark(text):
        raise AmbiguousSourceError(
            f"the text {shown} is Lark; call Grammar.from_lark(text), and pass the grammar that it "
            "returns"
        )
    if "::=" not in text:
        raise AmbiguousSourceError(
            f"the text {shown} has no rule (name ::= ...), so it is no grammar text; call "
            "Grammar.from_regex for a pattern, Grammar.from_lark for Lark, "
            "Grammar.from_json_schema for the text of a schema, Grammar.from_file for a file, or "
            "pass a list for a choice of texts"
        )
    return "grammar"


def _refuse_document(source: Mapping[Any, Any]) -> None:
    """Refuse a mapping with names that are no keywords, where no keyword constrains anything.

    As a schema it takes any JSON value. It is a document, a misspelled schema, or an example of
    what is to be written.
    """
    if any(role(name) == "constrains" for name in source if isinstance(name, str)):
        return
    for keyword in ("$defs", "definitions"):
        defined = source.get(keyword)
        if isinstance(defined, Mapping) and defined:
            # the name as a step of a JSON pointer, in the fragment of a URI
            name = str(next(iter(defined))).replace("~", "~0").replace("/", "~1")
            reference = json.dumps(f"#/{keyword}/{name.replace('%', '%25')}", ensure_ascii=False)
            raise AmbiguousSourceError(
                f"the schema only defines others under {quoted(keyword)}, and would take any JSON "
                "value; "
                f'say which is meant, as {{"$ref": {reference}, ...}}'
            )
    part = part_meant(source)
    if part is not None:
        raise AmbiguousSourceError(part)
    others = [name for name in source if isinstance(name, str) and _is_no_keyword(name)]
    if others:
        shown = ", ".join(map(quoted, others[:3])) + (", ..." if len(others) > 3 else "")
        raise AmbiguousSourceError(
            f"the mapping has no keyword of JSON Schema that constrains anything, but {shown}: as "
            "a schema it would take any JSON value; pass a schema of what is meant, such as "
            '{"properties": {...}}, or a type, or call Grammar.from_json_schema to take it as it is'
            + _of_a_server(others)
        )


_OF_SERVERS = {
    "json": "Grammar.from_json_schema(source['json'])",
    "json_object": 'Grammar.from_json_schema({"type": "object"})',
    "regex": "Grammar.from_regex(source['regex'])",
    "choice": "Grammar.choices(source['choice'])",
    "grammar": "Grammar.from_ebnf or from_lark(source['grammar'])",
    "ebnf": "Grammar.from_ebnf(source['ebnf'])",
    "structural_tag": "Grammar.from_structural_tag(source['structural_tag'])",
}
"""Fields of what vLLM and SGLang call structured outputs in a request, and what to pass."""


def _of_a_server(names: Iterable[str]) -> str:
    """What to pass where it is the structured outputs of a request to a server."""
    found = next((name for name in names if name in _OF_SERVERS), None)
    if found is None:
        return ""
    return f". Of a request to vLLM or SGLang pass tokfold.{_OF_SERVERS[found]}"


def _is_no_keyword(name: str) -> bool:
    return not name.startswith("x-") and role(name) is None


def _is_tag(source: Mapping[str, Any]) -> bool:
    """Whether it is a structural tag: says so, has a format that is an object, or the old form.

    A JSON Schema has none of them: its ``format`` is a text.
    """
    if source.get("type") == "structural_tag" or isinstance(source.get("format"), Mapping):
        return True
    return "triggers" in source and isinstance(source.get("structures"), list | tuple)


_OF_TOOLS = {
    *("function", "parameters", "inputSchema", "input_schema"),
    *("functionDeclarations", "function_declarations", "toolSpec", "parameter_definitions"),
}


def _is_tool(value: object) -> bool:
    """Whether it is a tool of a request, in one form or another."""
    if isinstance(value, Mapping):
        return value.get("type") == "function" or not _OF_TOOLS.isdisjoint(value)
    return hasattr(value, "model_dump") and any(hasattr(value, name) for name in _OF_TOOLS)


def _is_json(text: str) -> bool:
    try:
        _json.read(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_type(source: object) -> bool:
    """Whether it is a class or another annotation: ``list[int]``, ``Literal["a"]``, ``int | None``.

    Type aliases, ``Annotated`` and ``NewType`` among them.
    """
    if isinstance(source, type) or typing.get_origin(source) is not None:
        return True
    return source is typing.Any or hasattr(source, "__supertype__") or _is_alias(source)


def _is_alias(source: object) -> bool:
    alias = getattr(typing, "TypeAliasType", None)  # of Python 3.12
    return alias is not None and isinstance(source, alias)


def grammar_of(
    source: Any,  # noqa: ANN401 - whatever kind_of knows
    kind: SourceKind,
    vocabulary: Vocabulary | None = None,
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> Grammar:
    """The grammar of a source of a kind; raises what the ``from_`` method of the kind does."""
    if isinstance(source, Grammar):
        return source
    if kind == "json_schema":
        return Grammar.from_json_schema(source, limits=limits, interrupt=interrupt)
    if kind == "structural_tag":
        return Grammar.from_structural_tag(source, vocabulary, limits=limits, interrupt=interrupt)
    if kind == "choices":
        return Grammar.choices(source, limits=limits)
    return Grammar.from_ebnf(source, vocabulary=vocabulary, limits=limits, interrupt=interrupt)
