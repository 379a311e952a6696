"""Structural tags as they come, to :mod:`formats <tokfold._tags.formats>`.

A tag comes as JSON text, as a dict, or as an object with ``model_dump`` (XGrammar's
``StructuralTag``). Everything is checked here, so that what follows need not: a fault is a
:class:`StructuralTagError` with the path of the format.

What XGrammar 0.2.9 lets pass without a meaning is a fault here: text after the JSON, a ``style``
that is no string, an excluded text that is empty, an empty pattern of ``dispatch``, a format
without ``type`` that could be several.

Cost: linear in the tag; a schema is written as JSON once. Recursion goes as deep as formats are
nested, at most 100 levels, as in XGrammar.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, get_args

from tokfold import _json
from tokfold._sources.annotations import schema_text
from tokfold._sources.schema import MAX_WHITESPACE
from tokfold._sources.schema_errors import part_meant
from tokfold._tags import fields, formats
from tokfold._tags.fields import LARGEST, Object, fail, kind, short
from tokfold._tags.formats import Format
from tokfold._tags.old_form import old_form
from tokfold._token_names import ids_in_lark, ids_in_text
from tokfold.errors import LimitExceededError, StructuralTagError, UnsupportedGrammarError
from tokfold.interrupt import check_governing
from tokfold.limits import Limits
from tokfold.vocabulary import Vocabulary

__all__ = ["MARKERS", "MAX_DEPTH", "STYLES", "Settings", "document_of", "read", "read_tag"]

MARKERS = ("tokens", "both")
"""How a marker that is a special token may be written: as that, or spelled by other tokens too."""

MAX_DEPTH = 100
"""Levels of formats within formats."""

SHOWN = 200
"""Characters of the text before a schema that errors show: its end has the name of a tool."""

STYLES = (
    "json",
    "qwen_xml",
    "minimax_xml",
    "minimax_m3_xml",
    "deepseek_xml",
    "glm_xml",
    "cohere_xml",
    "kimi_k3_xml",
    "deepseek_v4_1_xml",
    "gemma",
)
"""How the content of ``json_schema`` may be written."""


class Settings(NamedTuple):
    """What a tag is read with."""

    vocabulary: Vocabulary | None = None
    """Finds the ids of tokens that are given as text, and bounds ids."""
    additional_properties: bool = False
    """Whether objects of schemas that do not say otherwise have other members."""
    spelled: bool = True
    """Whether a marker that is a special token may be spelled by other tokens too."""
    any_token: bool = False
    """Whether every token that is given as text is there, as some token, to check a tag alone."""
    limits: Limits | None = None
    """Bounds on size and work."""


def read(tag: object, settings: Settings = Settings()) -> Format:  # noqa: B008 - a constant
    """Read and check a structural tag: JSON text, a dict, or an object with ``model_dump``."""
    return read_tag(tag, settings)[0]


def read_tag(tag: object, settings: Settings) -> tuple[Format, Settings]:
    """As :func:`read`; the settings with what the tag itself says of them."""
    document = document_of(tag)
    if not isinstance(document, dict):
        fail("", "", f"a structural tag is a JSON object, not {kind(document)}")
    if document.get("type", "structural_tag") != "structural_tag":
        found = document["type"]
        fail("", "", f"the type of a structural tag is 'structural_tag', not {short(found)}")
    if "format" not in document:
        if "structures" in document or "triggers" in document:
            fail("", "", old_form(document))
        fail("", "", "a structural tag has a 'format', and this one has none")
    fields.check_known(document, "", "")
    markers = document.get("markers", "both")
    if markers not in MARKERS:
        fail("", "", f"'markers' is 'tokens' or 'both', and not {short(markers)}")
    settings = settings._replace(spelled=markers == "both")
    return _Reader(settings, isinstance(tag, str)).format(document["format"], "format", 1), settings


def document_of(tag: object) -> Any:  # noqa: ANN401 - JSON
    """A structural tag as a value."""
    dump = getattr(tag, "model_dump", None)
    if callable(dump):
        return dump()
    if not isinstance(tag, str):
        return tag
    try:
        document = _json.read(tag)
        if isinstance(document, dict | list):
            _check_names(document, "")
    except json.JSONDecodeError as error:
        raise StructuralTagError(
            f"the structural tag is no JSON: line {error.lineno}, column {error.colno}: "
            f'{error.msg}; write {{"type": "structural_tag", "format": {{...}}}}',
            "",
            "",
        ) from error
    except (RecursionError, MemoryError) as error:
        raise StructuralTagError("the structural tag is nested too deeply", "", "") from error
    return document


def _check_names(node: dict[str, Any] | list[Any], path: str) -> None:
    """Refuse a name that stands twice in an object of a tag; what reads schemas finds it there."""
    if isinstance(node, _json.Repeated):
        fail(path, "", f"the name {short(node.name)} stands twice in one object; leave one out")
    for name, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, dict | list) and name not in ("json_schema", "schema"):
            step = f"[{name}]" if isinstance(name, int) else f".{name}"
            _check_names(value, (path + step).removeprefix("."))


class _Reader:
    """Reads formats; one for each tag.

    Args:
        settings: as for :func:`read`.
        is_read: whether the tag was JSON text, so that it holds what JSON has and nothing deep.
    """

    def __init__(self, settings: Settings, is_read: bool) -> None:
        self._vocabulary, self._is_open = settings.vocabulary, settings.additional_properties
        self._any_token = settings.any_token
        self._is_read = is_read
        self._ids: dict[str, int | None] = {}
        self._behind = ""

    def format(self, value: object, path: str, depth: int) -> Format:
        if depth > MAX_DEPTH:
            fail(path, "", f"formats are nested deeper than {MAX_DEPTH} levels")
        check_governing()
        if not isinstance(value, dict):
            fail(path, "", f"a format is an object, not {kind(value)}")
        name = value.get("type")
        if name is None and "type" not in value:
            name = fields.guessed_type(value, path)
        if not isinstance(name, str):
            fail(path, "", f"the type of a format is a string, not {kind(name)}")
        read = _READERS.get(name)
        if read is None:
            known = ", ".join(sorted(_READERS))
            fail(path, "", f"there is no format of type {short(name)}; there are: {known}")
        fields.check_known(value, path, name)
        return read(self, value, path, depth)

    # ------------------------------------------------------------------- text

    def const_string(self, value: Object, path: str, depth: int) -> Format:
        return formats.ConstString(path, fields.text(value, "value", path, "const_string"))

    def json_schema(self, value: Object, path: str, depth: int) -> Format:
        style = value.get("style", "json")
        if style not in STYLES or not isinstance(style, str):
            known = ", ".join(STYLES)
            fail(path, "json_schema", f"'style' is one of {known}, and not {short(style)}")
        return self._schema(value, path, "json_schema", style)

    def qwen_xml_parameter(self, value: Object, path: str, depth: int) -> Format:
        return self._schema(value, path, "qwen_xml_parameter", "qwen_xml")

    def _schema(self, value: Object, path: str, name: str, style: str) -> Format:
        schema = fields.needed(value, "json_schema", path, name)
        if not isinstance(schema, dict | bool):
            fail(path, name, f"'json_schema' is an object, true or false, not {kind(schema)}")
        part = part_meant(schema) if isinstance(schema, dict) else None
        if part is not None:
            fail(path, name, part)
        try:
            text = _json.dumps(schema) if self._is_read else schema_text(schema, "schema")
        except (TypeError, RecursionError, UnsupportedGrammarError, LimitExceededError) as error:
            raise StructuralTagError(
                f"{path} ({name}): the schema cannot be written as JSON: {error}", name, path
            ) from error
        count: int | None = MAX_WHITESPACE
        if "max_whitespace_cnt" in value:
            count = fields.budget(value, "max_whitespace_cnt", path, name)
        return formats.JsonSchema(
            path,
            text,
            style,
            fields.flag(value, "any_order", path, name, False),
            count,
            tuple(sorted(fields.texts(value, "excludes", path, name))),
            self._is_open,
            self._behind,
        )

    def grammar(self, value: Object, path: str, depth: int) -> Format:
        text = fields.text(value, "grammar", path, "grammar", empty=False)
        syntax = value.get("syntax", "ebnf")
        if syntax not in ("ebnf", "lark"):
            fail(path, "grammar", f"'syntax' is ebnf or lark, and not {short(syntax)}")
        if self._vocabulary is None and not self._any_token:
            return formats.GrammarText(path, text, syntax, None)
        find = ids_in_lark if syntax == "lark" else ids_in_text
        ids = find(text, self._vocabulary)
        tokens: tuple[tuple[str | int, ...], ...]
        tokens = tuple((name, *ids[name]) for name in sorted(ids))
        return formats.GrammarText(path, text, syntax, tokens)

    def regex(self, value: Object, path: str, depth: int) -> Format:
        return formats.Regex(path, fields.text(value, "pattern", path, "regex", empty=False))

    def any_text(self, value: Object, path: str, depth: int) -> Format:
        return formats.AnyText(
            path,
            fields.texts(value, "excludes", path, "any_text"),
            fields.budget(value, "max_tokens", path, "any_text"),
            fields.budget(value, "max_chars", path, "any_text"),
        )

    # ----------------------------------------------------------------- tokens

    def token(self, value: Object, path: str, depth: int) -> formats.Token:
        found = fields.needed(value, "token", path, "token")
        return formats.Token(path, self._id(found, f"{path}.token", "token"))

    def exclude_token(self, value: Object, path: str, depth: int) -> Format:
        return formats.ExcludeToken(
            path, self._all_ids(value, "exclude_tokens", path, "exclude_token")
        )

    def any_tokens(self, value: Object, path: str, depth: int) -> Format:
        return formats.AnyTokens(
            path,
            self._all_ids(value, "exclude_tokens", path, "any_tokens"),
            fields.budget(value, "max_tokens", path, "any_tokens"),
        )

    def _all_ids(self, value: Object, key: str, path: str, name: str) -> tuple[int, ...]:
        given = fields.items(value.get(key, ()), key, path, name)
        found = (self._id(item, f"{path}.{key}[{i}]", name) for i, item in enumerate(given))
        return tuple(dict.fromkeys(found))

    def _id(self, value: object, path: str, name: str) -> int:
        if isinstance(value, str):
            return self._id_of_text(value, path, name)
        token = fields.integer(value, "a token", path, name)
        if not 0 <= token <= LARGEST:
            fail(path, name, f"a token id is a number from 0 to {LARGEST}, not {token}")
        if self._vocabulary is not None and token >= len(self._vocabulary):
            fail(
                path,
                name,
                f"the vocabulary has {len(self._vocabulary)} tokens, and none is {token}",
            )
        return token

    def _id_of_text(self, text: str, path: str, name: str) -> int:
        if not text:
            fail(path, name, "the text of a token is not empty; give its text or its id")
        vocabulary = self._vocabulary
        if vocabulary is None and not self._any_token:
            fail(
                path,
                name,
                f"the token {short(text)} is given as text, which needs a vocabulary; pass the "
                "vocabulary, or give the id of the token",
            )
        if text not in self._ids:
            if vocabulary is None:
                self._ids[text] = LARGEST - len(self._ids)
            else:
                data = text.encode("utf-8", "surrogatepass")
                tokens = vocabulary.token_bytes
                # as XGrammar does, the first of several
                self._ids[text] = tokens.index(data) if data in tokens else None
        found = self._ids[text]
        if found is None:
            fail(path, name, f"the vocabulary has no token {short(text)}")
        return found

    # ------------------------------------------------------------ composition

    def sequence(self, value: Object, path: str, depth: int) -> Format:
        return formats.Sequence(path, self._elements(value, path, depth, "sequence"))

    def or_(self, value: Object, path: str, depth: int) -> Format:
        return formats.Or(path, self._elements(value, path, depth, "or"))

    def _elements(self, value: Object, path: str, depth: int, name: str) -> tuple[Format, ...]:
        elements = fields.needed(value, "elements", path, name)
        fields.items(elements, "elements", path, name, empty=False)
        around, found = self._behind, []
        for i, element in enumerate(elements):
            one = self.format(element, f"{path}.elements[{i}]", depth + 1)
            found.append(one)
            if name == "sequence":
                text = one.value if isinstance(one, formats.ConstString) else "…"
                self._behind = (self._behind + text)[-SHOWN:]
        self._behind = around
        return tuple(found)

    def _content(self, value: Object, path: str, depth: int, name: str) -> Format:
        content = fields.needed(value, "content", path, name)
        return self.format(content, f"{path}.content", depth + 1)

    def optional(self, value: Object, path: str, depth: int) -> Format:
        return formats.Optional(path, self._content(value, path, depth, "optional"))

    def plus(self, value: Object, path: str, depth: int) -> Format:
        return formats.Plus(path, self._content(value, path, depth, "plus"))

    def star(self, value: Object, path: str, depth: int) -> Format:
        return formats.Star(path, self._content(value, path, depth, "star"))

    def repeat(self, value: Object, path: str, depth: int) -> Format:
        least = fields.integer(fields.needed(value, "min", path, "repeat"), "min", path, "repeat")
        most = fields.integer(fields.needed(value, "max", path, "repeat"), "max", path, "repeat")
        if not 0 <= least <= LARGEST:
            fail(path, "repeat", f"'min' is a number from 0 to {LARGEST}, not {least}")
        if most < -1:
            fail(path, "repeat", f"'max' is 0 or more, or -1 for no bound, not {most}")
        if 0 <= most < least:
            fail(path, "repeat", f"'max' is {most}, which is less than 'min', {least}")
        content = self._content(value, path, depth, "repeat")
        # XGrammar takes a larger bound for none, with a warning.
        return formats.Repeat(path, least, most if 0 <= most <= LARGEST else None, content)

    def tag(self, value: Object, path: str, depth: int) -> formats.Tag:
        begin = fields.needed(value, "begin", path, "tag")
        if isinstance(begin, dict):
            begin = self._token_of_tag(begin, f"{path}.begin")
        elif not isinstance(begin, str):
            fail(path, "tag", f"'begin' is a string or a token, not {kind(begin)}")
        else:
            fields.checked_characters(begin, "begin", path, "tag")
        around, self._behind = self._behind, begin[-SHOWN:] if isinstance(begin, str) else ""
        content = self._content(value, path, depth, "tag")
        self._behind = around
        end = fields.needed(value, "end", path, "tag")
        if isinstance(end, dict):
            return formats.Tag(path, begin, content, self._token_of_tag(end, f"{path}.end"))
        ends = [end] if isinstance(end, str) else end
        if not isinstance(ends, list | tuple):
            fail(path, "tag", f"'end' is a string, a list of them or a token, not {kind(end)}")
        for item in fields.items(ends, "end", path, "tag", empty=False):
            if not isinstance(item, str):
                fail(path, "tag", f"the list 'end' holds strings, not {kind(item)}")
            fields.checked_characters(item, "end", path, "tag")
        return formats.Tag(path, begin, content, tuple(dict.fromkeys(ends)))

    def _token_of_tag(self, value: Object, path: str) -> formats.Token:
        if value.get("type", "token") != "token":
            fail(path, "tag", "the one format that can begin or end a tag is 'token'")
        fields.check_known(value, path, "token")
        return self.token(value, path, 0)

    def _tags(self, value: Object, path: str, depth: int, name: str) -> tuple[formats.Tag, ...]:
        given = fields.needed(value, "tags", path, name)
        tags = []
        for i, item in enumerate(fields.items(given, "tags", path, name, empty=False)):
            where = f"{path}.tags[{i}]"
            if not isinstance(item, dict) or item.get("type", "tag") != "tag":
                fail(where, name, "each of 'tags' is a format of type 'tag'")
            fields.check_known(item, where, "tag")
            # a tag here is part of the format around it: it is no level of its own
            tags.append(self.tag(item, where, depth))
        return tuple(tags)

    # ---------------------------------------------- free text that dispatches

    def triggered_tags(self, value: Object, path: str, depth: int) -> Format:
        name = "triggered_tags"
        fields.needed(value, "triggers", path, name)
        triggers = fields.texts(value, "triggers", path, name, unique=False)
        if not triggers:
            fail(path, name, "'triggers' is empty; say which texts begin a tag")
        return formats.TriggeredTags(
            path,
            formats.Triggers(triggers),
            self._tags(value, path, depth, name),
            fields.flag(value, "at_least_one", path, name, False),
            fields.flag(value, "stop_after_first", path, name, False),
            fields.texts(value, "excludes", path, name),
        )

    def token_triggered_tags(self, value: Object, path: str, depth: int) -> Format:
        name = "token_triggered_tags"
        given = fields.needed(value, "trigger_tokens", path, name)
        triggers = tuple(
            self._id(item, f"{path}.trigger_tokens[{i}]", name)
            for i, item in enumerate(fields.items(given, "trigger_tokens", path, name, empty=False))
        )
        return formats.TokenTriggeredTags(
            path,
            triggers,
            self._tags(value, path, depth, name),
            fields.flag(value, "at_least_one", path, name, False),
            fields.flag(value, "stop_after_first", path, name, False),
            self._all_ids(value, "exclude_tokens", path, name),
        )

    def tags_with_separator(self, value: Object, path: str, depth: int) -> Format:
        name = "tags_with_separator"
        return formats.TagsWithSeparator(
            path,
            self._tags(value, path, depth, name),
            fields.text(value, "separator", path, name),
            fields.flag(value, "at_least_one", path, name, False),
            fields.flag(value, "stop_after_first", path, name, False),
        )

    def _rules(
        self, value: Object, path: str, depth: int, name: str
    ) -> Iterable[tuple[Any, str, Format]]:
        given = fields.needed(value, "rules", path, name)
        for i, item in enumerate(fields.items(given, "rules", path, name, empty=False)):
            where = f"{path}.rules[{i}]"
            if not isinstance(item, list | tuple) or len(item) != 2:
                fail(where, name, "each of 'rules' is a list of two: a pattern and its format")
            yield item[0], f"{where}[0]", self.format(item[1], f"{where}[1]", depth + 1)

    def dispatch(self, value: Object, path: str, depth: int) -> Format:
        rules = []
        for pattern, where, content in self._rules(value, path, depth, "dispatch"):
            if not isinstance(pattern, str):
                fail(where, "dispatch", f"a pattern is a string, not {kind(pattern)}")
            if not pattern:
                fail(where, "dispatch", "the pattern is empty, and stands everywhere in a text")
            fields.checked_characters(pattern, "pattern", where, "dispatch")
            rules.append((pattern, content))
        return formats.Dispatch(
            path,
            tuple(rules),
            fields.flag(value, "loop", path, "dispatch", True),
            fields.texts(value, "excludes", path, "dispatch"),
        )

    def token_dispatch(self, value: Object, path: str, depth: int) -> Format:
        name = "token_dispatch"
        rules = tuple(
            (self._id(pattern, where, name), content)
            for pattern, where, content in self._rules(value, path, depth, name)
        )
        return formats.TokenDispatch(
            path,
            rules,
            fields.flag(value, "loop", path, name, True),
            self._all_ids(value, "exclude_tokens", path, name),
        )


_READERS: dict[str, Callable[[_Reader, Object, str, int], Format]] = {
    name: getattr(_Reader, "or_" if name == "or" else name)
    for name in (*(one.type for one in get_args(Format)), "qwen_xml_parameter")
}
