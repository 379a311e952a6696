"""Reading what the user names: grammars of every kind, tokenizers, texts."""

from __future__ import annotations

import codecs
import enum
import importlib.resources
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokfold import Grammar, _json
from tokfold._extras import how_to_install, xgrammar_reason
from tokfold.errors import (
    GrammarSyntaxError,
    LimitExceededError,
    MissingExtraError,
    TokfoldError,
    UnsupportedGrammarError,
)

if TYPE_CHECKING:
    from tokfold import Vocabulary

STDIN = "-"
TEKKEN = "tekken"


class GrammarKind(enum.Enum):
    """How a grammar is written."""

    EBNF = "grammar text"
    JSON_SCHEMA = "JSON Schema"
    REGEX = "regular expression"
    LARK = "Lark grammar"
    STRUCTURAL_TAG = "structural tag"


_BY_EXTENSION = {
    ".json": GrammarKind.JSON_SCHEMA,
    ".lark": GrammarKind.LARK,
}


def chosen_kind(schema: bool, regex: bool, lark: bool, tag: bool) -> GrammarKind | None:
    """The kind that the flags ask for, None where they leave it to the name of the file."""
    flags = {
        "--schema": (schema, GrammarKind.JSON_SCHEMA),
        "--regex": (regex, GrammarKind.REGEX),
        "--lark": (lark, GrammarKind.LARK),
        "--tag": (tag, GrammarKind.STRUCTURAL_TAG),
    }
    given = [(flag, kind) for flag, (is_set, kind) in flags.items() if is_set]
    if len(given) > 1:
        names = " and ".join(flag for flag, _ in given)
        raise TokfoldError(f"{names} contradict each other; give one of them")
    return given[0][1] if given else None


def kind_of_file(source: str) -> GrammarKind:
    """The kind that the extension of a file says; a structural tag is JSON like a schema."""
    return _BY_EXTENSION.get(Path(source).suffix.lower(), GrammarKind.EBNF)


def read_text(path: str, chomp: bool = False) -> bytes:
    """The bytes of a file, or of standard input; ``chomp`` leaves out a line end at the end."""
    data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    return data.removesuffix(b"\n").removesuffix(b"\r") if chomp else data


def read_replayed_text(grammar: str, source: str, chomp: bool) -> bytes:
    """The bytes of a text that is to go through the grammar of the file ``grammar``."""
    if grammar == source == STDIN:
        raise TokfoldError("grammar and text cannot both come from standard input; name one file")
    return read_text(source, chomp)


def read_grammar(
    source: str,
    kind: GrammarKind | None = None,
    root: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Grammar, GrammarKind]:
    """Read a grammar, and say how it was written.

    ``source`` is a file, ``-`` for standard input, or for :attr:`GrammarKind.REGEX` the pattern.
    Without ``kind`` the extension of the file says how it is written.
    """
    kind = kind or kind_of_file(source)
    if root is not None and kind is not GrammarKind.EBNF:
        raise TokfoldError(f"--root names a rule of grammar text; a {kind.value} has none")
    options = options or {}
    if kind is not GrammarKind.JSON_SCHEMA:
        refuse_options(options, kind)
    if kind is GrammarKind.REGEX:
        return _converted(source, kind, source, {}), kind
    data = read_text(source)
    name = "standard input" if source == STDIN else source
    text = decoded(data, name)
    if kind is GrammarKind.EBNF:
        with located(name):
            return Grammar.from_ebnf(text, root or "root"), kind
    if kind is GrammarKind.JSON_SCHEMA:
        kind = _checked_json(text, name)
        if kind is not GrammarKind.JSON_SCHEMA:
            refuse_options(options, kind)
    return _converted(text, kind, name, options), kind


def refuse_options(options: Mapping[str, Any], kind: GrammarKind) -> None:
    """Refuse options of JSON Schemas for another kind."""
    for name in options:
        flag = name.replace("_", "-").removesuffix("s" if name == "resources" else "")
        raise TokfoldError(f"--{flag} is an option of JSON Schemas; a {kind.value} has none")


def decoded(data: bytes, name: str) -> str:
    """The text of a grammar file, without the mark that some editors put before it."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TokfoldError(
            f"{name}: line {line}: byte 0x{data[error.start]:02x} is not UTF-8; "
            "a grammar is a text file"
        ) from error


def _checked_json(text: str, name: str) -> GrammarKind:
    """Which of the two JSON formats it is; the converters' own errors do not say where."""
    try:
        document = _json.read(text)
    except (ValueError, RecursionError) as error:
        raise TokfoldError(f"{name}: not a JSON document: {error}") from error
    if isinstance(document, dict) and document.get("type") == "structural_tag":
        return GrammarKind.STRUCTURAL_TAG
    return GrammarKind.JSON_SCHEMA


def _converted(text: str, kind: GrammarKind, name: str, options: Mapping[str, Any]) -> Grammar:
    converters: dict[GrammarKind, Callable[..., Grammar]] = {
        GrammarKind.JSON_SCHEMA: Grammar.from_json_schema,
        GrammarKind.REGEX: Grammar.from_regex,
        GrammarKind.LARK: Grammar.from_lark,
        GrammarKind.STRUCTURAL_TAG: Grammar.from_structural_tag,
    }
    try:
        with located(name):
            return converters[kind](text, **options)
    except TokfoldError:
        raise
    except (RuntimeError, ValueError) as error:  # what XGrammar's converters raise
        if kind is GrammarKind.JSON_SCHEMA and isinstance(error, ValueError):
            raise TokfoldError(str(error)) from error  # of an option: the text is a document
        reason = xgrammar_reason(error)
        raise TokfoldError(f"{name}: no {kind.value} that can be read: {reason}") from error


@contextmanager
def located(name: str) -> Iterator[None]:
    """Name the file in errors that name only the place in it."""
    try:
        yield
    except (GrammarSyntaxError, UnsupportedGrammarError, LimitExceededError) as error:
        raise TokfoldError(f"{name}: {error}") from error


def read_packaged_tekken() -> Vocabulary:
    """Mistral's Tekken vocabulary, the newest that the installed package mistral-common holds."""
    try:
        folder = importlib.resources.files("mistral_common") / "data"
        names = [entry.name for entry in folder.iterdir()]
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise MissingExtraError(
            "the vocabulary 'tekken' comes with the package mistral-common, which is not "
            f"installed: {how_to_install('demo')}",
            name="mistral_common",
        ) from error
    dated = sorted(name for name in names if re.fullmatch(r"tekken\w*\.json", name))
    if not dated:
        raise TokfoldError(
            "this version of mistral-common holds no tekken.json; "
            f"{how_to_install('demo', '--upgrade ')}"
        )
    with importlib.resources.as_file(folder / dated[-1]) as path:
        from tokfold import Vocabulary

        return Vocabulary.from_file(path)


def read_tokenizer(name: str) -> Vocabulary:
    """The vocabulary of a tokenizer file or folder, or ``tekken``."""
    if name == TEKKEN and not Path(name).exists():
        return read_packaged_tekken()
    from tokfold import StopTokenWarning, Vocabulary

    with warnings.catch_warnings():
        # No command is held to a model, which may end its texts with other tokens.
        warnings.simplefilter("ignore", StopTokenWarning)
        return Vocabulary.from_file(name)


def read_tokenizer_or_bytes(name: str | None) -> Vocabulary:
    """The vocabulary of a tokenizer; without one, a token for each byte."""
    from tokfold.vocabulary import byte_vocabulary

    return byte_vocabulary() if name is None else read_tokenizer(name)


def describe_grammar(source: str, kind: GrammarKind, grammar: Grammar) -> dict[str, Any]:
    """What a report says of a grammar, as JSON values."""
    return {
        "file": source,
        "kind": kind.value,
        "root": grammar.root,
        "rules": grammar.num_rules,
        "fingerprint": grammar.fingerprint,
    }


def describe_vocabulary(source: str, vocabulary: Vocabulary) -> dict[str, Any]:
    """What a report says of a vocabulary, as JSON values."""
    return {
        "file": source,
        "name": vocabulary.name,
        "size": len(vocabulary),
        "stop_token_ids": list(vocabulary.stop_token_ids),
        "special_tokens": len(vocabulary.special_token_ids),
        "fingerprint": vocabulary.fingerprint,
    }
