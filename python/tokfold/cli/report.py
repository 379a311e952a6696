"""``tokfold report``: versions, platform and a reproduction, in one file for an issue."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import platform
import sys
import sysconfig
import warnings
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import tokfold
from tokfold import Grammar, Matcher, Vocabulary, _json, compile, recognize
from tokfold.cli.console import print_json, report_note
from tokfold.cli.inputs import (
    STDIN,
    GrammarKind,
    chosen_kind,
    decoded,
    describe_vocabulary,
    kind_of_file,
    read_grammar,
    read_text,
    read_tokenizer,
)
from tokfold.cli.options import Chomp, IsLark, IsRegex, IsSchema, IsTag, Root
from tokfold.cli.render import escaped
from tokfold.errors import TokfoldError
from tokfold.explanation import allowed_bits

PACKAGES = (
    "numpy",
    "torch",
    "transformers",
    "tokenizers",
    "pydantic",
    "xgrammar",
    "llguidance",
    "mlx-lm",
    "llama-cpp-python",
    "vllm",
    "sglang",
    "triton",
)
"""What a result may depend on, where it is installed."""
SHOWN = 8
"""Tokens that may come next, of which a report has the text."""
_KEYS = {
    GrammarKind.EBNF: "grammar",
    GrammarKind.JSON_SCHEMA: "json_schema",
    GrammarKind.REGEX: "regex",
    GrammarKind.LARK: "lark",
    GrammarKind.STRUCTURAL_TAG: "structural_tag",
}
"""The names that ``tokfold replay`` has for kinds of grammars."""


def report(
    grammar: Annotated[
        str | None,
        typer.Argument(
            metavar="[GRAMMAR]", help="Grammar file, as for tokfold explain.", show_default=False
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="FILE", help="The text at which it happens.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer", "-t", metavar="PATH", help="Tokenizer, as for tokfold explain."
        ),
    ] = None,
    options: Annotated[
        str | None,
        typer.Option(
            "--options",
            metavar="JSON",
            help="""Options of Grammar.from_json_schema: '{"key_order": "any"}'.""",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report there.")
    ] = None,
    root: Root = None,
    chomp: Chomp = False,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
) -> None:
    """Write what an issue needs: versions, platform, and the case as one JSON file.

    With a grammar the report says whether it is read, or the error. With a
    text it says whether the text is accepted, and where it stops. With a
    tokenizer it also says which token is refused and why, or which tokens may
    come next. It holds no paths and, of the environment, the variables that
    begin with TOKFOLD_ alone. Read it before you send it: the grammar and the
    text are in it.

    tokfold replay report.json runs the case again.

    Exit code: 0; 2 if a file cannot be read.

    [bold]Examples[/bold]
      tokfold report
      tokfold report schema.json --text answer.json -t path/to/model -o report.json
      tokfold report schema.json --options '{"key_order": "any"}'
    """
    kind = chosen_kind(schema, regex, lark, tag)
    if grammar is None and text is not None:
        raise TokfoldError("--text goes with a grammar; name the file of the grammar first")
    if grammar == STDIN and kind is not GrammarKind.REGEX:
        raise TokfoldError("a report reads the grammar from a file; name one")
    chosen = _options(options, grammar)
    document: dict[str, Any] = {
        "tokfold": tokfold.__version__,
        "python": _python(),
        "platform": _platform(),
        "packages": _packages(),
        "environment": _environment(),
    }
    vocabulary = None if tokenizer is None else read_tokenizer(tokenizer)
    if tokenizer is not None and vocabulary is not None:
        document["vocabulary"] = describe_vocabulary(Path(tokenizer).name, vocabulary)
    if grammar is not None:
        data = None if text is None else read_text(text, chomp)
        kind, case = _case(grammar, kind, root, chosen, data)
        read = _Reading(grammar, kind, root, chosen)
        document["result"] = result = _result(read, data, vocabulary)
        accepted = {"accepted": result["accepted"]} if "accepted" in result else {}
        document["case"] = {**case, **accepted, "source": "tokfold report"}
    if output is None:
        print_json(document)
        return
    output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    report_note("info", f"{output} is written; read it, then attach it to the issue")


class _OptionsError(TokfoldError):
    """The options are wrong, not the case."""


@dataclass(frozen=True)
class _Reading:
    """What the grammar is read from."""

    source: str
    kind: GrammarKind
    root: str | None
    options: dict[str, Any]

    def grammar(self) -> Grammar:
        """The grammar; an option that the converter does not have is an error of its own."""
        try:
            return read_grammar(self.source, self.kind, self.root, self.options)[0]
        except TypeError as error:
            raise _OptionsError(f"--options: {error}") from error


def _options(text: str | None, grammar: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    if grammar is None:
        raise TokfoldError("--options go with a grammar; name the file of the grammar first")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise TokfoldError(f"--options: not a JSON document: {error}") from error
    if not isinstance(found, dict):
        raise TokfoldError(f"--options takes an object of JSON, not {json.dumps(found)[:40]}")
    return found


def _environment() -> dict[str, str]:
    """The variables of tokfold; of those that are paths only that they are set."""
    ours = ((k, v) for k, v in sorted(os.environ.items()) if k.startswith("TOKFOLD_"))
    return {k: "(a path)" if os.sep in v or v.startswith("~") else v for k, v in ours}


def _python() -> dict[str, Any]:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    }


def _platform() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "cpus": os.cpu_count(),
        "bits": sys.maxsize.bit_length() + 1,
    }


def _packages() -> dict[str, str]:
    """Versions of the packages that are installed; nothing is imported."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _case(
    grammar: str,
    kind: GrammarKind | None,
    root: str | None,
    options: dict[str, Any],
    data: bytes | None,
) -> tuple[GrammarKind, dict[str, Any]]:
    """The grammar and the text as a case of ``tokfold replay``, and the kind of the grammar."""
    kind = kind or kind_of_file(grammar)
    source: Any = grammar if kind is GrammarKind.REGEX else decoded(read_text(grammar), grammar)
    if kind in (GrammarKind.JSON_SCHEMA, GrammarKind.STRUCTURAL_TAG):
        # What is no JSON is reported as the text that it is, and so is what Python changes.
        with contextlib.suppress(ValueError, RecursionError):
            document = _json.read(source)
            if isinstance(document, dict) and document.get("type") == "structural_tag":
                kind = GrammarKind.STRUCTURAL_TAG
            value = json.loads(source)
            source = value if _json.dumps(value) == _json.dumps(document) else source
    case = {_KEYS[kind]: source}
    if root is not None:
        case["root"] = root
    if options:
        case["options"] = options
    if data is None:
        return kind, case
    try:
        case["text"] = data.decode()
    except UnicodeDecodeError:
        case["bytes"] = base64.b64encode(data).decode()
    return kind, case


def _result(reading: _Reading, data: bytes | None, vocabulary: Vocabulary | None) -> dict[str, Any]:
    """What tokfold makes of the case: a verdict and a place, and the error where there is one."""
    found: dict[str, Any] = {}
    try:
        grammar = reading.grammar()
        found["grammar"] = "is read"
        if data is not None:
            found.update(_verdict(grammar, data))
        if vocabulary is not None:
            found.update(_tokens(grammar, data or b"", vocabulary))
    except _OptionsError:
        raise
    except TokfoldError as error:
        cause = error.__cause__ if isinstance(error.__cause__, TokfoldError) else error
        found["error"] = type(cause).__name__
        found["message"] = str(error).replace(reading.source, Path(reading.source).name)
    return found


def _verdict(grammar: Grammar, data: bytes) -> dict[str, Any]:
    found = recognize(grammar, data)
    return {
        "accepted": found.accepted,
        "prefix": found.read == len(data),
        "bytes_read": found.read,
        "line": found.line,
        "column": found.column,
    }


def _tokens(grammar: Grammar, data: bytes, vocabulary: Vocabulary) -> dict[str, Any]:
    """How far the text goes token by token, why it stops there, or what may come next."""
    matcher = Matcher(compile(grammar, vocabulary, classes="never"))
    tokens = vocabulary.encode_greedy(data)
    for index, token in enumerate(tokens):
        if not matcher.accept_token(token):
            why = matcher.explain(token)
            return {"tokens": tokens, "tokens_read": index, "reason": why.reason}
    found = {"tokens": tokens, "tokens_read": len(tokens)}
    return {**found, "next": _next(matcher, vocabulary)}


def _next(matcher: Matcher, vocabulary: Vocabulary) -> dict[str, Any]:
    """How many tokens may come next, the first of them, and the stop tokens among them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty mask is in the report
        bits = allowed_bits(matcher)
    allowed = np.flatnonzero(bits).tolist()
    return {
        "allowed_tokens": len(allowed),
        "first": {str(token): escaped(vocabulary[token]) for token in allowed[:SHOWN]},
        "stop_tokens": [token for token in vocabulary.stop_token_ids if bits[token]],
    }
