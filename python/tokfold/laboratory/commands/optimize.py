"""``tokfold optimize``: the same language, written as an engine likes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.inputs import (
    chosen_kind,
    describe_grammar,
    located,
    read_grammar,
    read_replayed_text,
    read_tokenizer_or_bytes,
)
from tokfold.cli.options import AsJson, Chomp, GrammarFile, IsLark, IsRegex, IsSchema, IsTag, Root
from tokfold.cli.render import number, seconds
from tokfold.errors import TokfoldError

if TYPE_CHECKING:
    from tokfold.laboratory.optimize import Measurement, Optimized, Timing

__all__ = ["optimize"]

_TREES = "strings are the same; parse trees, names of rules and precedence in them are not"


def optimize(
    grammar: GrammarFile,
    engine: Annotated[
        str, typer.Option("--for", metavar="ENGINE", help="own, xgrammar or llguidance.")
    ] = "own",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the grammar there, not here."),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A text, or - for standard input: choose the form by times along it.",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer", "-t", metavar="PATH", help="For --measure; else each byte is a token."
        ),
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Show each rewrite.")] = False,
    as_json: AsJson = False,
    root: Root = None,
    chomp: Chomp = False,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
) -> None:
    r"""Rewrite a grammar: the same strings, cheaper for an engine.

    Prints a report in comments, then the grammar, so that the output is a
    grammar file. The languages are compared: no grammar is printed where
    they differ. Parse trees change.

    Exit code: 0 done; 2 an error.

    [bold]Examples[/bold]
      tokfold optimize sql.gbnf --for xgrammar --out fast.gbnf
      tokfold optimize expr.gbnf --for xgrammar --log
      tokfold optimize json.gbnf --for llguidance --measure doc.json -t tokenizer.json
    """
    from tokfold.laboratory.optimize import Measurement, optimize

    if tokenizer is not None and measure is None:
        raise TokfoldError("--tokenizer is for --measure: name a text to measure with")
    data = b"" if measure is None else read_replayed_text(grammar, measure, chomp)
    with steps() as step:
        with step(f"Reading {grammar}"):
            read, kind = read_grammar(grammar, chosen_kind(schema, regex, lark, tag), root)
            measured: Measurement | None = None
            if measure is not None:
                measured = Measurement(read_tokenizer_or_bytes(tokenizer), data)
        with step("Rewriting"), located(grammar):
            found = optimize(read, engine, measure=measured)
    if out is not None:
        out.write_text(str(found.grammar), encoding="utf-8")
    if as_json:
        source = describe_grammar(grammar, kind, read)
        print_json({"grammar": source, **document(found), "written": out and str(out)})
        return
    lines = list(report(found, log=log))
    console = stdout()
    if out is not None:
        lines.append(f"written: {out}")
    mark = "# " if out is None else ""
    for line in lines:
        console.print(f"{mark}{line}".rstrip(), soft_wrap=True)
    if out is None:
        typer.echo(f"\n{found.grammar}", nl=False)


def report(found: Optimized, *, log: bool) -> Iterator[str]:
    """The lines of the report.

    Args:
        found: the result.
        log: each rewrite, instead of how many of each law.
    """
    before, after = (grammar.num_rules for grammar in (found.original, found.grammar))
    yield f"for {found.engine}: {number(before)} rules before, {number(after)} after"
    yield f"equality: {found.certificate or 'not compared: ' + found.uncertified}"
    yield _TREES
    if found.grammar.root != found.original.root:
        yield f"the start rule is now {found.grammar.root}"
    costs = "{:,.0f} before, {:,.0f} after".format(*found.cost)
    yield f"cost in the profile of {found.engine}: {costs}"
    for timing in found.times:
        chosen = " (taken)" if timing.name == found.form else ""
        yield f"{timing.name}{chosen}: {_time(timing)}"
    if not found.is_changed:
        yield "nothing was rewritten"
    elif log:
        for rewrite in found.log:
            yield from str(rewrite).splitlines()
    else:
        for law, count in Counter(_law(rewrite.law) for rewrite in found.log).most_common():
            yield f"{count:>6} x {law}"


def _law(law: str) -> str:
    return "inline" if law.startswith("inline ") else law


def _time(timing: Timing) -> str:
    if timing.refused:
        return f"refused: {timing.refused.splitlines()[0]}"
    compiled, step = seconds(timing.compile_seconds), seconds(timing.mean_us / 1e6)
    return f"compiled in {compiled}, {step} a token over {number(len(timing.step_us))} tokens"


def document(found: Optimized) -> dict[str, Any]:
    """The result as JSON values."""
    verdict = found.certificate
    return {
        "engine": found.engine,
        "form": found.form,
        "root": found.grammar.root,
        "text": str(found.grammar),
        "certificate": None
        if verdict is None
        else {"kind": verdict.kind, "depth": verdict.depth, "pairs": verdict.pairs},
        "uncertified": found.uncertified,
        "trees": _TREES,
        "cost": {"before": found.cost[0], "after": found.cost[1]},
        "times": [
            {
                "form": timing.name,
                "compile_seconds": timing.compile_seconds,
                "mean_us": timing.mean_us if len(timing.step_us) else None,
                "tokens": len(timing.step_us),
                "refused": timing.refused,
            }
            for timing in found.times
        ],
        "choices": [
            {"move": c.move, "before": c.before, "after": c.after, "kept": c.kept}
            for c in found.choices
        ],
        "log": [
            {"rule": r.rule, "law": r.law, "before": r.before, "after": r.after} for r in found.log
        ],
    }
