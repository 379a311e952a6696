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
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tokfold import _json
from tokfold._sources.annotations import schema_text
from tokfold._sources.schema import MAX_WHITESPACE
from tokfold._sources.schema_errors import part_meant
from tokfold._tags import formats
from tokfold._tags.fields import LARGEST, Fields, Object, fail, guessed_type, kind, short
from tokfold._tags.formats import Format
from tokfold._tags.old_form import old_form
from tokfold._token_names import ids_in_lark, ids_in_text
from tokfold.errors import LimitExceededError, StructuralTagError, UnsupportedGrammarError
from tokfold.interrupt import check_governing
from tokfold.limits import Limits
from tokfold.vocabulary import Vocabulary

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
        fail("", f"a structural tag is a JSON object, not {kind(document)}")
    if document.get("type", "structural_tag") != "structural_tag":
        found = document["type"]
        fail("", f"the type of a structural tag is 'structural_tag', not {short(found)}")
    if "format" not in document:
        if "structures" in document or "triggers" in document:
            fail("", old_form(document))
        fail("", "a structural tag has a 'format', and this one has none")
    Fields(document, "").check_known()
    markers = document.get("markers", "both")
    if markers not in MARKERS:
        fail("", f"'markers' is 'tokens' or 'both', and not {short(markers)}")
    settings = settings._replace(spelled=markers == "both")
    about = _About(settings, isinstance(tag, str))
    return _format(document["format"], "format", 1, about), settings


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
        fail(path, f"the name {short(node.name)} stands twice in one object; leave one out")
    for name, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, dict | list) and name not in ("json_schema", "schema"):
            step = f"[{name}]" if isinstance(name, int) else f".{name}"
            _check_names(value, (path + step).removeprefix("."))


class _About:
    """What is known of the whole tag as its formats are read.

    Args:
        settings: as for :func:`read`.
        is_read: whether the tag was JSON text, so that it holds what JSON has and nothing deep.
    """

    def __init__(self, settings: Settings, is_read: bool) -> None:
        self.vocabulary, self.is_open = settings.vocabulary, settings.additional_properties
        self.any_token = settings.any_token
        self.is_read = is_read
        self.behind = ""
        self._ids: dict[str, int | None] = {}

    def id_of(self, text: str) -> int | None:
        """The id of a token by its text: as XGrammar does, the first of several."""
        if text not in self._ids:
            if self.vocabulary is None:
                self._ids[text] = LARGEST - len(self._ids)
            else:
                data = text.encode("utf-8", "surrogatepass")
                tokens = self.vocabulary.token_bytes
                self._ids[text] = tokens.index(data) if data in tokens else None
        return self._ids[text]


def _format(value: object, path: str, depth: int, about: _About) -> Format:
    if depth > MAX_DEPTH:
        fail(path, f"formats are nested deeper than {MAX_DEPTH} levels")
    check_governing()
    if not isinstance(value, dict):
        fail(path, f"a format is an object, not {kind(value)}")
    name = value.get("type")
    if name is None and "type" not in value:
        name = guessed_type(value, path)
    if not isinstance(name, str):
        fail(path, f"the type of a format is a string, not {kind(name)}")
    read = _READERS.get(name)
    if read is None:
        known = ", ".join(sorted(_READERS))
        fail(path, f"there is no format of type {short(name)}; there are: {known}")
    at = _Fields(value, path, name, depth, about)
    at.check_known()
    return read(at)


class _Fields(Fields):
    """The fields of a format, so many levels deep in the tag."""

    def __init__(self, value: Object, path: str, format: str, depth: int, about: _About) -> None:
        super().__init__(value, path, format)
        self.depth, self.about = depth, about

    def id(self, value: object, step: str) -> int:
        """A token, by its id or its text."""
        if isinstance(value, str):
            return self._id_of_text(value, step)
        token = self.integer(value, "a token", step)
        if not 0 <= token <= LARGEST:
            self.fail(f"a token id is a number from 0 to {LARGEST}, not {token}", step)
        vocabulary = self.about.vocabulary
        if vocabulary is not None and token >= len(vocabulary):
            self.fail(f"the vocabulary has {len(vocabulary)} tokens, and none is {token}", step)
        return token

    def _id_of_text(self, text: str, step: str) -> int:
        if not text:
            self.fail("the text of a token is not empty; give its text or its id", step)
        if self.about.vocabulary is None and not self.about.any_token:
            self.fail(
                f"the token {short(text)} is given as text, which needs a vocabulary; pass the "
                "vocabulary, or give the id of the token",
                step,
            )
        found = self.about.id_of(text)
        if found is None:
            self.fail(f"the vocabulary has no token {short(text)}", step)
        return found

    def excluded(self) -> tuple[int, ...]:
        """The tokens of ``exclude_tokens``, each once."""
        given = enumerate(self.items("exclude_tokens"))
        return tuple(dict.fromkeys(self.id(one, f".exclude_tokens[{i}]") for i, one in given))

    def inner(self, value: object, step: str) -> Format:
        """A format within this one."""
        return _format(value, self.path + step, self.depth + 1, self.about)

    def content(self) -> Format:
        return self.inner(self.needed("content"), ".content")

    def elements(self) -> tuple[Format, ...]:
        about = self.about
        around, found = about.behind, []
        for i, element in enumerate(self.some("elements")):
            one = self.inner(element, f".elements[{i}]")
            found.append(one)
            if self.format == "sequence":
                text = one.value if isinstance(one, formats.ConstString) else "…"
                about.behind = (about.behind + text)[-SHOWN:]
        about.behind = around
        return tuple(found)

    def tags(self) -> tuple[formats.Tag, ...]:
        tags = []
        for i, item in enumerate(self.some("tags")):
            step = f".tags[{i}]"
            if not isinstance(item, dict) or item.get("type", "tag") != "tag":
                self.fail("each of 'tags' is a format of type 'tag'", step)
            # a tag here is part of the format around it: it is no level of its own
            at = _Fields(item, self.path + step, "tag", self.depth, self.about)
            at.check_known()
            tags.append(_tag(at))
        return tuple(tags)

    def how_many(self) -> tuple[bool, bool]:
        return self.flag("at_least_one"), self.flag("stop_after_first")

    def rules(self) -> Iterator[tuple[Any, str, Format]]:
        """Patterns, each with where it stands and the format of what follows it."""
        for i, item in enumerate(self.some("rules")):
            step = f".rules[{i}]"
            if not isinstance(item, list | tuple) or len(item) != 2:
                self.fail("each of 'rules' is a list of two: a pattern and its format", step)
            yield item[0], f"{step}[0]", self.inner(item[1], f"{step}[1]")


# ------------------------------------------------------------------- text


def _json_schema(at: _Fields) -> Format:
    style = at.value.get("style", "json") if at.format == "json_schema" else "qwen_xml"
    if style not in STYLES or not isinstance(style, str):
        at.fail(f"'style' is one of {', '.join(STYLES)}, and not {short(style)}")
    schema = at.needed("json_schema")
    if not isinstance(schema, dict | bool):
        at.fail(f"'json_schema' is an object, true or false, not {kind(schema)}")
    part = part_meant(schema) if isinstance(schema, dict) else None
    if part is not None:
        at.fail(part)
    try:
        text = _json.dumps(schema) if at.about.is_read else schema_text(schema, "schema")
    except (TypeError, RecursionError, UnsupportedGrammarError, LimitExceededError) as error:
        raise StructuralTagError(
            f"{at.path} ({at.format}): the schema cannot be written as JSON: {error}",
            at.format,
            at.path,
        ) from error
    count: int | None = MAX_WHITESPACE
    if "max_whitespace_cnt" in at.value:
        count = at.budget("max_whitespace_cnt")
    return formats.JsonSchema(
        at.path,
        text,
        style,
        at.flag("any_order"),
        count,
        tuple(sorted(at.texts("excludes"))),
        at.about.is_open,
        at.about.behind,
    )


def _grammar(at: _Fields) -> Format:
    text = at.text("grammar", empty=False)
    syntax = at.value.get("syntax", "ebnf")
    if syntax not in ("ebnf", "lark"):
        at.fail(f"'syntax' is ebnf or lark, and not {short(syntax)}")
    if at.about.vocabulary is None and not at.about.any_token:
        return formats.GrammarText(at.path, text, syntax, None)
    find = ids_in_lark if syntax == "lark" else ids_in_text
    ids = find(text, at.about.vocabulary)
    tokens: tuple[tuple[str | int, ...], ...]
    tokens = tuple((name, *ids[name]) for name in sorted(ids))
    return formats.GrammarText(at.path, text, syntax, tokens)


# ------------------------------------------------------------ composition


def _repeat(at: _Fields) -> Format:
    least = at.integer(at.needed("min"), "min")
    most = at.integer(at.needed("max"), "max")
    if not 0 <= least <= LARGEST:
        at.fail(f"'min' is a number from 0 to {LARGEST}, not {least}")
    if most < -1:
        at.fail(f"'max' is 0 or more, or -1 for no bound, not {most}")
    if 0 <= most < least:
        at.fail(f"'max' is {most}, which is less than 'min', {least}")
    # XGrammar takes a larger bound for none, with a warning.
    return formats.Repeat(at.path, least, most if 0 <= most <= LARGEST else None, at.content())


def _tag(at: _Fields) -> formats.Tag:
    begin = at.needed("begin")
    if isinstance(begin, dict):
        begin = _token_of_tag(at, begin, ".begin")
    elif not isinstance(begin, str):
        at.fail(f"'begin' is a string or a token, not {kind(begin)}")
    else:
        at.characters(begin, "begin")
    about = at.about
    around, about.behind = about.behind, begin[-SHOWN:] if isinstance(begin, str) else ""
    content = at.content()
    about.behind = around
    end = at.needed("end")
    if isinstance(end, dict):
        return formats.Tag(at.path, begin, content, _token_of_tag(at, end, ".end"))
    if not isinstance(end, str | list | tuple):
        at.fail(f"'end' is a string, a list of them or a token, not {kind(end)}")
    ends = [end] if isinstance(end, str) else at.some("end")
    for item in ends:
        if not isinstance(item, str):
            at.fail(f"the list 'end' holds strings, not {kind(item)}")
        at.characters(item, "end")
    return formats.Tag(at.path, begin, content, tuple(dict.fromkeys(ends)))


def _token_of_tag(tag: _Fields, value: Object, step: str) -> formats.Token:
    if value.get("type", "token") != "token":
        tag.fail("the one format that can begin or end a tag is 'token'", step)
    at = _Fields(value, tag.path + step, "token", 0, tag.about)
    at.check_known()
    return _token(at)


def _token(at: _Fields) -> formats.Token:
    return formats.Token(at.path, at.id(at.needed("token"), ".token"))


# ---------------------------------------------- free text that dispatches


def _triggered_tags(at: _Fields) -> Format:
    at.needed("triggers")
    triggers = at.texts("triggers", unique=False)
    if not triggers:
        at.fail("'triggers' is empty; say which texts begin a tag")
    return formats.TriggeredTags(
        at.path, formats.Triggers(triggers), at.tags(), *at.how_many(), at.texts("excludes")
    )


def _token_triggered_tags(at: _Fields) -> Format:
    given = enumerate(at.some("trigger_tokens"))
    triggers = tuple(at.id(item, f".trigger_tokens[{i}]") for i, item in given)
    return formats.TokenTriggeredTags(at.path, triggers, at.tags(), *at.how_many(), at.excluded())


def _dispatch(at: _Fields) -> Format:
    rules = []
    for pattern, step, content in at.rules():
        if not isinstance(pattern, str):
            at.fail(f"a pattern is a string, not {kind(pattern)}", step)
        if not pattern:
            at.fail("the pattern is empty, and stands everywhere in a text", step)
        rules.append((at.characters(pattern, "pattern", step), content))
    return formats.Dispatch(at.path, tuple(rules), at.flag("loop", True), at.texts("excludes"))


def _token_dispatch(at: _Fields) -> Format:
    rules = tuple((at.id(pattern, step), content) for pattern, step, content in at.rules())
    return formats.TokenDispatch(at.path, rules, at.flag("loop", True), at.excluded())


_READERS: dict[str, Callable[[_Fields], Format]] = {
    "const_string": lambda at: formats.ConstString(at.path, at.text("value")),
    "json_schema": _json_schema,
    "qwen_xml_parameter": _json_schema,
    "grammar": _grammar,
    "regex": lambda at: formats.Regex(at.path, at.text("pattern", empty=False)),
    "any_text": lambda at: formats.AnyText(
        at.path, at.texts("excludes"), at.budget("max_tokens"), at.budget("max_chars")
    ),
    "token": _token,
    "exclude_token": lambda at: formats.ExcludeToken(at.path, at.excluded()),
    "any_tokens": lambda at: formats.AnyTokens(at.path, at.excluded(), at.budget("max_tokens")),
    "sequence": lambda at: formats.Sequence(at.path, at.elements()),
    "or": lambda at: formats.Or(at.path, at.elements()),
    "optional": lambda at: formats.Optional(at.path, at.content()),
    "plus": lambda at: formats.Plus(at.path, at.content()),
    "star": lambda at: formats.Star(at.path, at.content()),
    "repeat": _repeat,
    "tag": _tag,
    "triggered_tags": _triggered_tags,
    "token_triggered_tags": _token_triggered_tags,
    "tags_with_separator": lambda at: formats.TagsWithSeparator(
        at.path, at.tags(), at.text("separator"), *at.how_many()
    ),
    "dispatch": _dispatch,
    "token_dispatch": _token_dispatch,
}
"""What reads each type of format."""
