"""``tokfold replay``: a file of grammars, texts and verdicts against our own engine."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.inputs import STDIN, read_text
from tokfold.cli.options import AsJson
from tokfold.cli.render import escaped, number, quoted_list, seconds, table
from tokfold.cli.replay_cases import CaseError, Outcome, read_cases, run_cases

FAILURES = 20


def replay(
    cases: Annotated[
        str,
        typer.Argument(
            metavar="CASES",
            help="A file of JSON lines, or - for standard input.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
    failures: Annotated[
        int, typer.Option(min=0, metavar="N", help="Cases to list that do not agree.")
    ] = FAILURES,
) -> None:
    r"""Replay grammars, texts and verdicts, as test suites hold them, and keep score.

    Each line of the file is one JSON object, a case:

      grammar | json_schema | regex | lark | structural_tag: the grammar
      root      start rule of grammar text, if not root
      options   an object: options of the converter
      text | bytes: the text, or its bytes in base64
      accepted  true or false: is the text in the language?
      prefix    true or false, may be missing: does it begin such a text?
      source    where the case comes from: scores are kept by source
      note      anything

    A file that tokfold report wrote is one such case. Where it has no verdict,
    the case agrees if the grammar and the text are read without an error.

    tokfold's own engine reads the text byte by byte. A grammar that it refuses
    is counted under the name of the error, apart from verdicts that differ.

    Exit code: 0 all cases agree; 1 some do not; 2 the file cannot be read.

    [bold]Examples[/bold]
      tokfold replay cases.jsonl
      tokfold replay cases.jsonl --failures 100
      tokfold replay cases.jsonl --json | jq .total
      echo '{"regex": "a+", "text": "aa", "accepted": true}' | tokfold replay -
    """
    name = "standard input" if cases == STDIN else cases
    read = read_cases(read_text(cases), name)
    began = time.perf_counter()
    with steps() as step, step("Replaying") as report:
        try:
            outcomes = run_cases(read, report)
        except CaseError as error:
            raise CaseError(f"{name}: {error}") from error
    elapsed = time.perf_counter() - began
    sources: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        sources.setdefault(outcome.case.source, []).append(outcome)
    total = _score(outcomes)
    document = {
        "file": cases,
        "grammars": len({case.key for case in read}),
        "seconds": elapsed,
        "total": total,
        "sources": {source: _score(of) for source, of in sorted(sources.items())},
        "disagreements": [
            _disagreement(outcome)
            for outcome in [o for o in outcomes if not o.error and not o.agrees][:failures]
        ],
        "refused": [
            {
                "line": outcome.case.line,
                "source": outcome.case.source,
                "error": outcome.error,
                "message": outcome.message,
            }
            for outcome in [o for o in outcomes if o.error][:failures]
        ],
    }
    if as_json:
        print_json(document)
    else:
        _show(stdout(), name, document)
    if total["agreed"] < len(outcomes):
        raise typer.Exit(1)


def _score(outcomes: list[Outcome]) -> dict[str, Any]:
    judged = [outcome for outcome in outcomes if not outcome.error]
    agreed = sum(outcome.agrees for outcome in judged)
    errors = Counter(outcome.error for outcome in outcomes if outcome.error)
    return {
        "cases": len(outcomes),
        "agreed": agreed,
        "disagreed": len(judged) - agreed,
        "refused": len(outcomes) - len(judged),
        "refused_by_error": dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
    }


def _disagreement(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "line": case.line,
        "source": case.source,
        "kind": case.kind,
        "text": escaped(case.text),
        "expected": {"accepted": case.accepted, "prefix": case.prefix},
        "found": {"accepted": outcome.accepted, "prefix": outcome.prefix},
        "where": outcome.where,
    }


def _show(console: Console, name: str, document: dict[str, Any]) -> None:
    total = document["total"]
    if total["cases"]:
        console.print(_scores(document))
    if total["refused"]:
        refused = table("error", ">cases", title="Grammars and texts that were refused")
        for error, count in total["refused_by_error"].items():
            refused.add_row(Text(error), number(count))
        console.print(refused)
        _show_left_out(console, name, document["refused"], total["refused"], "refused")
    if total["disagreed"]:
        console.print(Text("Disagreements", style="bold"))
        _show_left_out(console, name, document["disagreements"], total["disagreed"], "disagreed")
    verdict = Text.assemble(
        (f"{number(total['agreed'])} of {number(total['cases'])} agree", "bold"),
        f"; {number(document['grammars'])} grammars, {seconds(document['seconds'])}",
    )
    console.print(verdict)


def _scores(document: dict[str, Any]) -> Table:
    result = table("source", ">cases", ">agreed", ">disagreed", ">refused", title="Verdicts")
    rows = list(document["sources"].items())
    if len(rows) > 1:
        rows.append(("in all", document["total"]))
    for source, score in rows:
        wrong = "bold red" if score["disagreed"] else ""
        style = "bold" if source == "in all" else ""
        result.add_row(
            Text(source, style=style),
            number(score["cases"]),
            number(score["agreed"]),
            Text(number(score["disagreed"]), style=wrong),
            number(score["refused"]),
        )
    return result


def _show_left_out(
    console: Console, name: str, listed: list[dict[str, Any]], total: int, what: str
) -> None:
    """The cases that are listed, each on a line or two, and how many more there are."""
    for row in listed:
        place = (f"{name}:{row['line']}", "bold")
        if what == "refused":
            message = " ".join(row["message"].split())
            console.print(Text.assemble(place, f": {message}"), soft_wrap=True)
            continue
        shown = quoted_list([row["text"]], console.width)
        console.print(
            Text.assemble(place, f": {shown} ", (_verdicts(row), "red"), _place(row["where"])),
            soft_wrap=True,
        )
    if len(listed) < total:
        console.print(f"... and {number(total - len(listed))} more: see --failures", style="dim")
    console.print()


def _verdicts(row: dict[str, Any]) -> str:
    expected, found = row["expected"], row["found"]
    if expected["accepted"] not in (None, found["accepted"]):
        said = {True: "accepted", False: "refused"}
        return f"should be {said[expected['accepted']]}, is {said[found['accepted']]}"
    said = {True: "the beginning of a text", False: "no beginning of any text"}
    return f"should be {said[expected['prefix']]}, is {said[found['prefix']]}"


def _place(where: dict[str, Any]) -> str:
    if "line" not in where:
        return ""
    expected = ", ".join(where["expected"]) or "nothing"
    end = " or the end" if where["may_end"] else ""
    return (
        f"\n  at {where['line']}:{where['column']} found {where['found']}, expected {expected}{end}"
    )
