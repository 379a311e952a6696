"""``tokfold maskdiff``: where the masks of two engines differ, and which contradicts itself."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.inputs import (
    chosen_kind,
    describe_grammar,
    describe_vocabulary,
    located,
    read_grammar,
    read_replayed_text,
    read_tokenizer_or_bytes,
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
    TokenizerOrBytes,
)
from tokfold.cli.render import escaped, number, quoted, quoted_list, table
from tokfold.laboratory.instruments import InstrumentError
from tokfold.laboratory.instruments.maskdiff import (
    MAX_TRIED,
    Fault,
    MaskDiff,
    MaskDifference,
    TokenVerdict,
    mask_diff,
)
from tokfold.laboratory.instruments.profile import ENGINES

__all__ = ["maskdiff"]

ROWS = 20
WIDTH = 30


def maskdiff(
    grammar: GrammarFile,
    text: TextFile,
    engines: Annotated[str, typer.Option(metavar="A,B", help="The two engines.")] = "own,xgrammar",
    tokenizer: TokenizerOrBytes = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every place of the text, not only the first.")
    ] = False,
    max_tried: Annotated[
        int, typer.Option(min=1, metavar="N", help="Tokens to try on both engines at a place.")
    ] = MAX_TRIED,
    rows: Annotated[
        int, typer.Option(min=0, metavar="N", help="Tokens to list at each place.")
    ] = ROWS,
    as_json: AsJson = False,
    root: Root = None,
    chomp: Chomp = False,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
) -> None:
    """Find the first token on which two engines differ, and who contradicts itself.

    The masks of both are compared before each token of the text and after the
    last. Each token in question is offered to both engines: one that takes
    what its mask forbids, or the other way round, contradicts itself.

    Engines: own, xgrammar, llguidance.

    Exit code: 0 all masks agree; 1 some differ, or an engine stopped; 2 an error.

    [bold]Examples[/bold]
      tokfold maskdiff sql.gbnf --text query.sql -t tekken
      tokfold maskdiff sql.gbnf --text query.sql -t tekken --engines own,llguidance --all
    """
    names = [name.strip() for name in engines.split(",")]
    if len(names) != 2 or any(name not in ENGINES for name in names):
        raise InstrumentError(f"--engines: name two of {', '.join(ENGINES)}, with a comma between")
    data = read_replayed_text(grammar, text, chomp)
    with steps() as step:
        read, kind = read_grammar(grammar, chosen_kind(schema, regex, lark, tag), root)
        with step("Loading the vocabulary"):
            vocabulary = read_tokenizer_or_bytes(tokenizer)
        with step("Comparing masks"), located(grammar):
            found = mask_diff(
                read,
                vocabulary,
                data,
                (names[0], names[1]),
                places=None if every else 1,
                max_tried=max_tried,
            )
    if as_json:
        print_json(
            {
                "grammar": describe_grammar(grammar, kind, read),
                "vocabulary": describe_vocabulary(tokenizer or "", vocabulary),
                "text": {"file": text, "bytes": len(data), "tokens": found.tokens},
                "engines": list(found.engines),
                "same": found.same,
                "masks_compared": found.masks,
                "ended": found.ended,
                "differences": [_document(found, place) for place in found.differences],
            }
        )
    else:
        _show(stdout(), found, data, rows)
    if not found.same:
        raise typer.Exit(1)


def _document(found: MaskDiff, place: MaskDifference) -> dict[str, Any]:
    return {
        "token": place.index,
        "offset": place.offset,
        "tokens_that_differ": place.total,
        "tried": [
            {
                "id": verdict.token_id,
                "text": escaped(verdict.token),
                "bytes": list(verdict.token),
                "allowed": dict(zip(found.engines, verdict.allowed, strict=True)),
                "taken": dict(zip(found.engines, verdict.taken, strict=True)),
                "possible": verdict.possible,
                "contradicts_itself": [
                    name
                    for name, wrong in zip(found.engines, verdict.contradicts, strict=True)
                    if wrong
                ],
            }
            for verdict in place.verdicts
        ],
    }


def _show(console: Console, found: MaskDiff, data: bytes, rows: int) -> None:
    first, second = found.engines
    for place in found.differences:
        _show_place(console, found, place, data, rows)
    if found.same:
        verdict = Text.assemble(("no difference", "bold green"))
    elif not found.differences:
        verdict = Text.assemble(("no difference so far", "bold"))
    else:
        verdict = Text.assemble((f"{number(len(found.differences))} shown", "bold"))
    console.print(
        verdict,
        f"between {first} and {second}: {number(found.masks)} masks along "
        f"{number(found.tokens)} tokens",
        soft_wrap=True,
    )
    if found.ended:
        console.print(Text.assemble(("stopped ", "bold red"), found.ended), soft_wrap=True)


def _show_place(
    console: Console, found: MaskDiff, place: MaskDifference, data: bytes, rows: int
) -> None:
    before = data[: place.offset]
    line = before.count(b"\n") + 1
    head = Text.assemble(
        (f"token {number(place.index + 1)}", "bold"),
        f", byte {number(place.offset)}, line {number(line)}: "
        f"the masks differ on {number(place.total)} tokens; after "
        f"{quoted(escaped(before[-24:]))}",
    )
    console.print(head, soft_wrap=True)
    first, second = found.engines
    shown = table("token", ">id", first, second, "grammar", "*verdict")
    console.print("of each engine: its mask allows / it takes; grammar: can follow", style="dim")
    for verdict in place.verdicts[:rows]:
        shown.add_row(
            Text(quoted_list([escaped(verdict.token)], WIDTH)),
            number(verdict.token_id),
            _said(verdict, 0),
            _said(verdict, 1),
            {True: "yes", False: "no", None: ""}[verdict.possible],
            _verdict(verdict, found.engines),
        )
    console.print(shown)
    tried = len(place.verdicts)
    if tried > rows or tried < place.total:
        console.print(
            f"listed {number(min(rows, tried))} of {number(tried)} that were tried, of "
            f"{number(place.total)}: see --rows and --max-tried",
            style="dim",
            soft_wrap=True,
        )


def _said(verdict: TokenVerdict, engine: int) -> str:
    said = {True: "yes", False: "no"}
    return f"{said[verdict.allowed[engine]]}/{said[verdict.taken[engine]]}"


def _verdict(verdict: TokenVerdict, names: tuple[str, str]) -> str:
    return {
        Fault.FIRST: f"{names[0]} contradicts itself",
        Fault.SECOND: f"{names[1]} contradicts itself",
        Fault.BOTH: "both contradict themselves",
        Fault.NEITHER: "they read the grammar differently",
    }[verdict.fault]
