"""``tokfold cost``: what a way of writing a grammar costs, at rest and along a text."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from tokfold import Grammar
from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.inputs import (
    STDIN,
    chosen_kind,
    describe_grammar,
    located,
    read_grammar,
    read_replayed_text,
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
)
from tokfold.cli.render import escaped, number, quoted, table
from tokfold.errors import TokfoldError
from tokfold.laboratory.forest import Meter, Productions, Sizes, sizes
from tokfold.laboratory.forest.growth import GROWING, Growth, GrowthReport, growth
from tokfold.laboratory.forest.slots import Slots
from tokfold.laboratory.form import Form

__all__ = ["cost"]

_PASSES = 3
_COLUMNS = (
    ("items", "new_items"),
    ("live", "live_items"),
    ("work", "completer_work"),
    ("packed", "new_packed_nodes"),
    ("splits", "new_splits"),
    ("surplus", "surplus"),
)


def cost(
    grammar: GrammarFile,
    text: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A text, or - for standard input: what each byte of it costs."
        ),
    ] = None,
    leo: Annotated[
        bool, typer.Option("--leo/--no-leo", help="Take Leo's chains along the text.")
    ] = True,
    rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Show the N costliest bytes of the text.")
    ] = 20,
    search: Annotated[
        int, typer.Option(metavar="N", min=1, help="Earley items made in search of bad texts.")
    ] = 6_000_000,
    as_json: AsJson = False,
    root: Root = None,
    chomp: Chomp = False,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
) -> None:
    r"""What a way of writing costs: size, growth with a witness, counters by step.

    Exit code: 0 done; 2 an error: a file cannot be read or used, the text leaves the language.

    [bold]Examples[/bold]
      tokfold cost json.gbnf
      tokfold cost expr.gbnf --text input.txt --rows 50
      tokfold cost expr.gbnf --text input.txt --json
    """
    data = None if text is None else read_replayed_text(grammar, text, chomp)
    read, kind = read_grammar(grammar, chosen_kind(schema, regex, lark, tag), root)
    with steps() as step, located(grammar):
        with step("Reading the grammar"):
            productions = Productions.of(Form.of(read))
            slots = Slots(productions)
        with step("Looking for texts that pump"):
            report = growth(slots, max_work=search)
    document: dict[str, Any] = {
        "grammar": describe_grammar(grammar, kind, read),
        "sizes": sizes(productions).document(),
        "growth": _growth_document(report),
    }
    if text is not None and data is not None:
        with steps() as step, step(f"Reading {text}"):
            document["text"] = _text_document(slots, text, data, leo)
    if as_json:
        print_json(document)
        return
    console = stdout()
    _show_sizes(console, read, sizes(productions))
    _show_growth(console, report)
    if data is not None:
        _show_text(console, document["text"], data, rows)


def _growth_document(report: GrowthReport) -> dict[str, Any]:
    return {
        "finite_language": report.finite,
        "families_tried": report.tried,
        "families_untried": report.untried,
        "classes": [_class_document(found) for found in report.classes.values()],
    }


def _class_document(found: Growth) -> dict[str, Any]:
    pump, fitted = found.witness, found.fit
    return {
        "counter": found.counter,
        "leo": found.leo,
        "class": found.name,
        "degree": found.degree,
        "period": None if fitted is None else fitted.period,
        "leading": None if fitted is None else str(fitted.leading),
        "values": list(found.values),
        "witness": None
        if pump is None
        else {
            "rule": pump.rule,
            "head": pump.head,
            "opening": pump.opening,
            "middle": pump.middle,
            "closing": pump.closing,
            "tail": pump.tail,
            "worst_while": found.side,
            "text": found.text(_PASSES),
        },
    }


def _text_document(slots: Slots, name: str, data: bytes, leo: bool) -> dict[str, Any]:
    meter = Meter(slots, leo=leo)
    try:
        counters = list(meter.run(data))
    except TokfoldError as error:
        label = "standard input" if name == STDIN else name
        raise TokfoldError(f"{label}: {error}") from error
    totals = {key: sum(c[key] for c in counters) for key in meter.initial if key != "live_items"}
    forest = meter.forest()
    trees = forest.trees()
    return {
        "file": name,
        "bytes": len(data),
        "leo": leo,
        "accepted": meter.accepting,
        # Digits, since few readers of JSON take whole numbers of any size.
        "trees": "infinite" if trees is None else str(trees),
        "forest": {
            "symbol_nodes": forest.symbol_nodes,
            "intermediate_nodes": forest.intermediate_nodes,
            "packed_nodes": forest.packed_nodes,
            "splits": forest.splits,
            "ambiguous_nodes": forest.ambiguous_nodes,
        },
        "initial": meter.initial,
        "totals": totals,
        "steps": counters,
    }


def _show_sizes(console: Console, grammar: Grammar, found: Sizes) -> None:
    console.print(Text.assemble(("κ = ", "dim"), (number(found.kappa), "bold")))
    console.print(
        f"{number(found.nonterminals)} nonterminals ({number(found.rules)} rules, "
        f"{number(found.helpers)} for repetitions and groups), "
        f"{number(found.productions)} productions of {number(found.symbols)} symbols, "
        f"{number(found.terminals)} terminals"
    )


def _show_growth(console: Console, report: GrowthReport) -> None:
    console.print()
    rows = table("one step", "plain", "with Leo", "*worst texts found, three passes")
    for counter in GROWING:
        plain, leo = report.classes[counter, False], report.classes[counter, True]
        shown = plain if (plain.degree or 0) > (leo.degree or 0) else leo
        witness = quoted(escaped(_encoded(shown.text(_PASSES)))) if shown.witness else ""
        rows.add_row(counter.replace("_", " "), plain.name, leo.name, Text(witness))
    console.print(rows)
    if report.finite:
        console.print("The language is finite: no text grows.")
        return
    left = f", {number(report.untried)} not tried (--search)" if report.untried else ""
    console.print(f"{number(report.tried)} families of texts tried{left}; others may be worse.")


def _show_text(console: Console, found: dict[str, Any], data: bytes, rows: int) -> None:
    verdict = "in the language" if found["accepted"] else "the beginning of a string"
    console.print()
    trees = found["trees"]
    parse = "infinitely many parse trees" if trees == "infinite" else f"parse trees: {_big(trees)}"
    chains = "with" if found["leo"] else "without"
    size = number(found["bytes"])
    summary = f"{found['file']}: {size} bytes, {verdict}, {parse}, {chains} Leo's chains"
    console.print(summary, soft_wrap=True)
    forest = found["forest"]
    if found["accepted"]:
        console.print(
            f"forest: {number(forest['symbol_nodes'])} symbol nodes, "
            f"{number(forest['intermediate_nodes'])} intermediate nodes, "
            f"{number(forest['packed_nodes'])} packed nodes, {number(forest['splits'])} splits, "
            f"{number(forest['ambiguous_nodes'])} ambiguous nodes"
        )
    counters = found["steps"]
    order = sorted(range(len(counters)), key=lambda i: (-_weight(counters[i]), i))[:rows]
    title = "Costliest bytes" if len(counters) > rows else "Bytes"
    shown = table(">offset", "byte", *(f">{name}" for name, _ in _COLUMNS), title=title)
    for offset in sorted(order):
        at = data[offset : offset + 1]
        values = (number(counters[offset][key]) for _, key in _COLUMNS)
        shown.add_row(number(offset), Text(quoted(escaped(at))), *values)
    totals = ("" if key == "live_items" else number(found["totals"][key]) for _, key in _COLUMNS)
    shown.add_row("", "total", *totals)
    console.print(shown)


def _weight(counters: dict[str, int]) -> int:
    return counters["new_items"] + counters["completer_work"] + counters["new_packed_nodes"]


def _big(digits: str) -> str:
    """A number of any size in a few digits."""
    return (
        number(int(digits)) if len(digits) <= 15 else f"{digits[0]}.{digits[1:4]}e{len(digits) - 1}"
    )


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
