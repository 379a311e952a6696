"""Cases of ``tokfold replay``: reading them from JSON lines, and running them through our engine.

A case is a grammar, a text, and whether the text is in the language. The engine reads bytes, so a
vocabulary of the 256 bytes serves all cases.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tokfold import (
    CompiledGrammar,
    CompileOptions,
    Grammar,
    Matcher,
    Recognition,
    Vocabulary,
    compile,
    recognize,
)
from tokfold.cli.diagnosis import described
from tokfold.errors import (
    LimitExceededError,
    MissingExtraError,
    TokfoldError,
    UnsupportedGrammarError,
)


class CaseError(TokfoldError):
    """A line of the file cannot be replayed, whatever the engine."""


_KINDS = ("grammar", "json_schema", "regex", "lark", "structural_tag")
_CONVERTED = ("json_schema", "lark", "structural_tag")
"""Kinds whose converters take options."""
_KEYS = {*_KINDS, "root", "options", "text", "bytes", "accepted", "prefix", "source", "note"}
NO_SOURCE = "(no source)"


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the file."""

    line: int
    kind: str
    key: str
    """Equal for equal grammars: JSON of what was written."""
    grammar: Any
    root: str
    options: dict[str, Any]
    text: bytes
    accepted: bool | None
    """None where a report has no verdict: it has no text, or an error came first."""
    prefix: bool | None
    """Whether the text begins some string of the grammar; None where the case does not say."""
    source: str


@dataclass(slots=True)
class Outcome:
    """What our engine says of a case."""

    case: Case
    accepted: bool | None = None
    """None: there was an error."""
    prefix: bool | None = None
    error: str = ""
    """Name of the error for which the grammar or the text was refused."""
    message: str = ""
    where: dict[str, Any] = field(default_factory=dict)
    """Where the text leaves the language, of disagreements."""

    @property
    def agrees(self) -> bool:
        """Whether the engine says what the case says."""
        case = self.case
        return case.accepted in (None, self.accepted) and case.prefix in (None, self.prefix)


def read_cases(data: bytes, name: str) -> list[Case]:
    """Read a file of cases, or a report, which has one."""
    report = _case_of_report(data)
    if report is not None:
        data = report
    cases, has_verdict = [], report is None
    for index, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            cases.append(_case(line, index, has_verdict))
        except (CaseError, RecursionError) as error:
            raise CaseError(f"{name}: line {index}: {error}") from error
    return cases


def _case_of_report(data: bytes) -> bytes | None:
    """The case that ``tokfold report`` wrote, as a line; None if the file is no report of one."""
    if not data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None  # several lines
    if not isinstance(found, dict) or "tokfold" not in found:
        return None
    if not isinstance(found.get("case"), dict):
        raise CaseError("the report has no case: tokfold report GRAMMAR --text TEXT makes one")
    case = {**found["case"]}
    if "bytes" not in case:
        case.setdefault("text", "")
    return json.dumps(case).encode()


def _case(line: bytes, index: int, has_verdict: bool) -> Case:
    """A line; ``has_verdict`` says that it must have one."""
    try:
        found = json.loads(line)
    except UnicodeDecodeError as error:
        raise CaseError(f"byte 0x{line[error.start]:02x} is not UTF-8") from error
    except ValueError as error:
        raise CaseError(f"not a JSON document: {error}") from error
    if not isinstance(found, dict):
        raise CaseError("a case is a JSON object with a grammar, a text and a verdict")
    unknown = sorted(found.keys() - _KEYS)
    if unknown:
        raise CaseError(f'unknown key "{unknown[0]}"; a case has {", ".join(sorted(_KEYS))}')
    kinds = [kind for kind in _KINDS if kind in found]
    if len(kinds) != 1:
        raise CaseError(f"a case has one of {', '.join(_KINDS)}; this one has {len(kinds)}")
    (kind,) = kinds
    if kind in ("grammar", "regex", "lark"):
        _checked(found, kind, str)
    if "root" in found and kind != "grammar":
        raise CaseError(f'"root" names a rule of "grammar"; there is none in "{kind}"')
    if "options" in found and kind not in _CONVERTED:
        raise CaseError(f'"options" are for {", ".join(_CONVERTED)}; "{kind}" takes none')
    accepted = _checked(found, "accepted", bool, *(() if has_verdict else (None,)))
    prefix = _checked(found, "prefix", bool, None)
    if accepted and prefix is False:
        raise CaseError('"accepted" is true and "prefix" false: what is accepted can be read')
    root, options = _checked(found, "root", str, "root"), _checked(found, "options", dict, {})
    return Case(
        line=index,
        kind=kind,
        key=json.dumps([kind, found[kind], root, options]),
        grammar=found[kind],
        root=root,
        options=options,
        text=_text(found),
        accepted=accepted,
        prefix=prefix,
        source=_checked(found, "source", str, NO_SOURCE),
    )


_REQUIRED = object()
_NAMES = {str: "a string", bool: "true or false", dict: "an object"}


def _checked(found: dict[str, Any], key: str, type_: type, default: Any = _REQUIRED) -> Any:  # noqa: ANN401
    value = found.get(key, default)
    if value is _REQUIRED:
        raise CaseError(f'"{key}" is missing: {_NAMES[type_]}')
    if value is not default and not isinstance(value, type_):
        raise CaseError(f'"{key}" must be {_NAMES[type_]}, not {json.dumps(value)[:40]}')
    return value


def _text(found: dict[str, Any]) -> bytes:
    if ("text" in found) == ("bytes" in found):
        raise CaseError('a case has either "text", a string, or "bytes", in base64')
    if "text" in found:
        text: str = _checked(found, "text", str)
        # JSON can spell lone surrogates; their bytes are no UTF-8, and no grammar has them.
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(_checked(found, "bytes", str), validate=True)
    except binascii.Error as error:
        raise CaseError(f'"bytes" is not base64: {error}') from error


def run_cases(cases: list[Case], report: Callable[[int, int], None]) -> list[Outcome]:
    """Run cases, each grammar compiled once; outcomes in the order of the cases.

    Grammars are taken one after the other, so that one at a time is in memory.
    """
    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)], name="bytes")
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.key, []).append(case)
    outcomes: list[Outcome] = []
    for group in groups.values():
        outcomes.extend(_group(group, vocabulary))
        report(len(outcomes), len(cases))
    return sorted(outcomes, key=lambda outcome: outcome.case.line)


def _group(group: list[Case], vocabulary: Vocabulary) -> Iterator[Outcome]:
    try:
        options = CompileOptions(check_tokens=False)
        compiled = compile(_grammar(group[0]), vocabulary, classes="never", options=options)
    except (CaseError, MissingExtraError):
        raise  # nothing is wrong with the grammar
    except TokfoldError as error:
        yield from (Outcome(case, error=_name(error), message=str(error)) for case in group)
        return
    for case in group:
        try:
            yield _outcome(case, compiled)
        except TokfoldError as error:
            yield Outcome(case, error=_name(error), message=str(error))


def _grammar(case: Case) -> Grammar:
    if case.kind == "grammar":
        return Grammar.from_ebnf(case.grammar, case.root)
    try:
        grammar: Grammar = getattr(Grammar, f"from_{case.kind}")(case.grammar, **case.options)
    except TokfoldError as error:
        if isinstance(error, TypeError):
            raise CaseError(f"line {case.line}: {case.kind}: {error}") from error
        raise
    except (TypeError, ValueError) as error:  # of an option that there is not, or that is wrong
        raise CaseError(f"line {case.line}: {case.kind}: {error}") from error
    return grammar


def _name(error: TokfoldError) -> str:
    """The error and what it names: construct or limit."""
    what = ""
    if isinstance(error, UnsupportedGrammarError):
        what = f": {error.construct}"
    elif isinstance(error, LimitExceededError):
        what = f": {error.limit}"
    return type(error).__name__ + what


def _outcome(case: Case, compiled: CompiledGrammar) -> Outcome:
    matcher = Matcher(compiled)
    prefix = matcher.accept_bytes(case.text)
    outcome = Outcome(case, accepted=prefix and matcher.is_accepting, prefix=prefix)
    if not outcome.agrees:
        outcome.where = _where(case.text, compiled)
    return outcome


def _where(text: bytes, compiled: CompiledGrammar) -> dict[str, Any]:
    """Where our recognizer, another algorithm than the engine's, says that the text leaves."""
    try:
        result: Recognition = recognize(compiled.grammar, text)
        document = described(compiled.grammar, text, result).document()
    except LimitExceededError as error:
        return {"error": str(error)}
    return {"recognized": document.pop("accepted"), **document}
