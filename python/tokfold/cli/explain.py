"""``tokfold explain``: why our own engine stops at a place of a text, or what may come there."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from tokfold import (
    CompileOptions,
    Explanation,
    Grammar,
    Matcher,
    Recognition,
    Vocabulary,
    compile,
)
from tokfold._schema_records import SchemaPlace
from tokfold.cli.check import show_notes, show_spot
from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.diagnosis import Diagnosis, described, place_document, place_notes
from tokfold.cli.inputs import (
    STDIN,
    chosen_kind,
    describe_grammar,
    describe_vocabulary,
    located,
    read_grammar,
    read_replayed_text,
    read_tokenizer,
)
from tokfold.cli.options import (
    AsJson,
    Chomp,
    GrammarFile,
    IsLark,
    IsRegex,
    IsSchema,
    IsTag,
    Root,
    TextFile,
    Tokenizer,
)
from tokfold.cli.render import byte_ranges, escaped, number, quoted, quoted_list, unescaped
from tokfold.cli.schema_options import (
    Dialect,
    NotesChoice,
    ShownNotes,
    Strict,
    given_options,
    note_documents,
    show_schema_notes,
)
from tokfold.errors import TokfoldError, VocabularyError
from tokfold.explanation import allowed_bits, open_rules, place_in_schema

SAMPLES = 16
MAX_RULES = 8
"""Names of open rules that are shown, the outermost and the innermost of them."""
NOTES = 13
"""Cells that the names of notes take."""


def explain(
    grammar: GrammarFile,
    tokenizer: Tokenizer,
    text: TextFile,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help=r"Explain this token after the whole text; escapes are \n, \t, \xHH, \u{H...}, "
            r"and \\ for a backslash.",
        ),
    ] = None,
    token_id: Annotated[
        int | None, typer.Option(metavar="N", help="Explain the token with this number there.")
    ] = None,
    as_json: AsJson = False,
    root: Root = None,
    chomp: Chomp = False,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
    dialect: Dialect = None,
    strict: Strict = False,
    notes: ShownNotes = NotesChoice.WARNINGS,
) -> None:
    """Say why a token is not allowed, where a text stops, or what may come next.

    The text goes through tokfold's own engine, split into the longest tokens
    that fit. Where it stops: the place, the rules open there, what was
    expected, the token, and the allowed tokens most like it. If all of it can
    be read: what may come next, or what stands against --token.

    Exit code: 0 the text goes on, and --token may follow; 1 not so; 2 an error.

    [bold]Examples[/bold]
      tokfold explain json.gbnf -t tekken --text answer.txt
      tokfold explain json.gbnf -t tekken --text half.txt --chomp --token '},'
      tokfold explain sql.gbnf -t path/to/model --text query.sql --token-id 1534
      printf '{"a' | tokfold explain json.gbnf -t tekken --text - --json
    """
    if token is not None and token_id is not None:
        raise TokfoldError("--token and --token-id contradict each other; give one of them")
    data = read_replayed_text(grammar, text, chomp)
    options = given_options(dialect=dialect, strict=strict)
    with steps() as step:
        read, kind = read_grammar(grammar, chosen_kind(schema, regex, lark, tag), root, options)
        with step("Loading the vocabulary"):
            vocabulary = read_tokenizer(tokenizer)
        asked = _asked(vocabulary, token, token_id)
        with step("Reading the text"):
            with located(grammar):
                compiled = compile(
                    read, vocabulary, classes="never", options=CompileOptions(check_tokens=False)
                )  # one mask: they cost more
            matcher = Matcher(compiled)
            tokens = vocabulary.encode_greedy(data)
            taken = next((i for i, t in enumerate(tokens) if not matcher.accept_token(t)), None)
        refusal = None if taken is None else matcher.explain(tokens[taken])
        answer = refusal or (None if asked is None else matcher.explain(asked))
    spot = None if refusal is None else _spot(read, data, matcher, refusal)
    document = {
        "grammar": describe_grammar(grammar, kind, read),
        "vocabulary": describe_vocabulary(tokenizer, vocabulary),
        "text": {"file": text, "bytes": len(data), "tokens": len(tokens)},
        "tokens_read": len(tokens) if taken is None else taken,
        "bytes_read": len(data) if spot is None else spot.read,
        "refused": None if spot is None else spot.document(),
        "may_end": matcher.is_accepting if spot is None else spot.complete,
        "token": None if answer is None else _token_document(vocabulary, answer),
        "next": _next(matcher) if taken is None else None,
    }
    # A token that is asked for is part of what is said of the place.
    place = answer.place if answer is not None else place_in_schema(matcher)
    if as_json:
        document["schema_notes"] = note_documents(read, notes)
        document["place"] = place_document(spot.place if spot is not None else place)
        print_json(document)
    else:
        show_schema_notes(grammar, read, notes)
        _show(stdout(), document, spot, place)
    if answer is not None and not answer.allowed:
        raise typer.Exit(1)


def _asked(vocabulary: Vocabulary, token: str | None, token_id: int | None) -> int | None:
    """The token that the options name."""
    if token_id is not None:
        if not 0 <= token_id < len(vocabulary):
            raise VocabularyError(
                f"--token-id {token_id}: {vocabulary.name} has tokens 0 to {len(vocabulary) - 1}"
            )
        return token_id
    if token is None:
        return None
    try:
        wanted = unescaped(token)
    except ValueError as error:
        raise TokfoldError(f"--token {quoted(token)}: {error}") from error
    if not wanted:
        raise TokfoldError("--token is empty; an id without bytes is named by --token-id")
    excluded = {*vocabulary.stop_token_ids, *vocabulary.special_token_ids}
    found = [i for i, of in enumerate(vocabulary.token_bytes) if of == wanted]
    if not found:
        split = [quoted(escaped(vocabulary[i])) for i in vocabulary.encode_greedy(wanted)]
        raise VocabularyError(
            f"--token {quoted(escaped(wanted))} is no token of {vocabulary.name}, whose tokens for "
            f"it are {' '.join(split)}; append all but the last to the text, and ask for that"
        )
    return min(found, key=lambda i: (i in excluded, i))


def _spot(grammar: Grammar, data: bytes, matcher: Matcher, refusal: Explanation) -> Diagnosis:
    """Where in the text the matcher stopped, as ``tokfold check`` says it."""
    good = matcher.text + refusal.token[: refusal.read]
    at = Matcher(matcher.compiled)
    at.accept_bytes(good)
    before = good.decode("utf-8", "ignore")
    result = Recognition(
        accepted=False,
        read=len(good),
        complete=at.is_accepting,
        line=before.count("\n") + 1,
        column=len(before) - (before.rfind("\n") + 1) + 1,
        expected=refusal.expected,
    )
    return described(grammar, data, result)


def _token(vocabulary: Vocabulary, token_id: int) -> dict[str, Any]:
    data = vocabulary[token_id]
    return {"id": token_id, "text": escaped(data), "bytes": list(data)}


def _token_document(vocabulary: Vocabulary, found: Explanation) -> dict[str, Any]:
    return {
        **_token(vocabulary, found.token_id),
        "allowed": found.allowed,
        "reason": found.reason,
        "read": found.read,
        "expected_bytes": list(found.expected),
        "open_rules": list(found.open_rules),
        "innermost_rules": list(found.innermost_rules),
        "nearest": [_token(vocabulary, i) for i in found.nearest],
    }


def _next(matcher: Matcher) -> dict[str, Any]:
    """What may follow the whole text."""
    vocabulary = matcher.compiled.vocabulary
    bits = allowed_bits(matcher)
    stops = [i for i in matcher.stop_token_ids if bits[i]]
    allowed = np.setdiff1d(np.flatnonzero(bits), np.array(stops, dtype=np.int64))
    spread = allowed[:: max(1, len(allowed) // SAMPLES)][:SAMPLES].tolist()
    path, innermost = open_rules(matcher)
    _, expected = matcher._core.readable(b"")
    return {
        "allowed_tokens": len(allowed) + len(stops),
        "allowed_stop_tokens": stops,
        "forced": escaped(matcher.forced_bytes()),
        "expected": byte_ranges(expected),
        "expected_bytes": list(expected),
        "open_rules": list(path),
        "innermost_rules": list(innermost),
        "sample": [_token(vocabulary, i) for i in spread],
    }


def _show(
    console: Console,
    document: dict[str, Any],
    spot: Diagnosis | None,
    place: SchemaPlace | None,
) -> None:
    file = document["text"]["file"]
    label = "standard input" if file == STDIN else file
    width = console.width - NOTES
    token, follows = document["token"], document["next"]
    if spot is not None:
        where = (f"{label}:{spot.line}:{spot.column}", "bold")
        console.print(Text.assemble(where, ": ", ("refused", "bold red")), soft_wrap=True)
        show_spot(console, spot)
        notes = [
            ("found", spot.found),
            ("expected", spot.expectation),
            *(place_notes(spot.place) or _rule_notes(token)),
            ("token", f"{document['tokens_read'] + 1} of the text, {_said(token)}"),
            ("nearest", _quoted_tokens(token["nearest"], width)),
            ("hint", spot.hint),
        ]
        show_notes(console, notes)
        return
    end = "may end here" if document["may_end"] else "must go on"
    size = f"{number(document['text']['bytes'])} bytes in {number(document['text']['tokens'])}"
    verdict = Text.assemble((label, "bold"), ": ", ("all of it can be read", "bold green"))
    console.print(verdict, f"({size} tokens), and it {end}", soft_wrap=True)
    total = number(document["vocabulary"]["size"])
    notes = [
        *(place_notes(place) or _rule_notes(follows)),
        ("expected", ", ".join(follows["expected"]) or "nothing: no text goes on from here"),
        ("forced", quoted(follows["forced"]) if follows["forced"] else ""),
        ("allowed", f"{number(follows['allowed_tokens'])} of {total} tokens"),
        ("such as", _quoted_tokens(follows["sample"], width)),
    ]
    if token is not None:
        notes.append(("token", _said(token)))
        if token["id"] not in document["vocabulary"]["stop_token_ids"]:  # those are like no text
            notes.append(("nearest", _quoted_tokens(token["nearest"], width)))
    show_notes(console, notes)


def _rule_notes(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The open rules, where the grammar is none of a JSON Schema, whose rules are generated."""
    return [
        ("open rules", _rules(document["open_rules"])),
        ("going on", _rules(document["innermost_rules"], ", ")),
    ]


def _said(token: dict[str, Any]) -> str:
    verdict = "allowed" if token["allowed"] else "not allowed"
    return f"{quoted(token['text'])}, number {token['id']}: {verdict}, {token['reason']}"


def _rules(names: list[str], separator: str = " > ") -> str:
    if len(names) > MAX_RULES:
        left_out = f"({number(len(names) - MAX_RULES)} more)"
        names = [*names[: MAX_RULES // 2], left_out, *names[-MAX_RULES // 2 :]]
    return separator.join(names)


def _quoted_tokens(tokens: list[dict[str, Any]], width: int) -> str:
    return quoted_list((token["text"] for token in tokens), width)
