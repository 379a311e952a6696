"""``tokfold demo --real``: a real vocabulary and a real grammar, checked as it goes."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.demo_run import SPREAD, Replay, run
from tokfold.cli.render import escaped, number, quoted, seconds, size, table
from tokfold.cli.summary import biggest_table, summarize
from tokfold.vocabulary import Vocabulary

PLAIN_SECONDS = 25.0


def show(compared: int | None, *, as_json: bool) -> None:
    """Fold a real vocabulary, decode a program, compare masks with XGrammar's.

    Takes Mistral's Tekken vocabulary (131,072 tokens) and a grammar of a subset of C++, replays a
    sample program through tokfold's own engine and through XGrammar over classes, and compares the
    masks, bit for bit, with each other and with those of XGrammar over the whole vocabulary.
    """
    with steps() as step:
        replay = run(step, compared, PLAIN_SECONDS)
    found = replay.found
    if as_json:
        print_json(found)
    else:
        _show(stdout(), replay)
    own = found["own_engine"]
    own_differs = own["equal_to_classes"] < own["masks"]
    if found["compared"]["wrong"] or own_differs or not found["finished"]:
        raise typer.Exit(1)


def _show(console: Console, replay: Replay) -> None:
    lines, took = replay.text.decode().splitlines(), replay.found["seconds"]["fold"]
    console.print(Panel(Text("\n".join([*lines[:8], "..."])), title="the program", expand=False))
    console.print(
        Text.assemble(
            f"Under a grammar of C++, the {number(len(replay.vocabulary))} tokens of "
            f"{replay.vocabulary.name} fall into\n",
            (f"{number(len(replay.classes))} classes", "bold"),
            f", found in {seconds(took)}. What one mask says of a token, every mask "
            "says\nof its whole class.\n",
        )
    )
    examples = summarize(replay.classes, replay.vocabulary, 6)
    console.print(biggest_table(console, examples, "Tokens that C++ cannot tell apart"))
    console.print(_table(replay.found))
    console.print(_verdict(replay.found, replay.vocabulary))


def _table(found: dict[str, Any]) -> Table:
    columns = ("", ">XGrammar", ">over classes", ">", ">own engine", ">")
    result = table(*columns, title="What that is worth")
    times, masks = found["seconds"], found["mask_seconds"]
    tokens, classes = found["vocabulary"]["size"], found["classes"]
    fewer = _times(tokens, classes)
    result.add_row(
        "tokens looked at", number(tokens), number(classes), fewer, number(classes), fewer
    )
    all_plain = masks["mean"]["plain"] * found["compared"]["of"]
    rows = [
        ("compiling", *(times[f"compile_{name}"] for name in _ENGINES)),
        ("to the first mask", *(times[f"first_mask_{name}"] for name in _ENGINES)),
        *((f"a mask, {name}", *(masks[name][of] for of in _ENGINES)) for name in SPREAD),
        ("the program's masks", all_plain, times["all_masks_classes"], times["all_masks_own"]),
    ]
    for name, plain, folded, own in rows:
        bold = "bold green" if name == "a mask, mean" else ""
        about = "~" if name == "the program's masks" else ""  # the mean of those that were made
        result.add_row(
            Text(name, style="bold" if bold else ""),
            about + seconds(plain),
            seconds(folded),
            Text(_times(plain, folded), style=bold),
            seconds(own),
            Text(_times(plain, own), style=bold),
        )
    before, after = found["mask_bytes"]["plain"], found["mask_bytes"]["classes"]
    result.add_row("a mask takes", size(before), size(after), _times(before, after))
    return result


_ENGINES = ("plain", "classes", "own")


def _times(plain: float, ours: float) -> str:
    """How many times less ours is."""
    ratio = plain / ours
    return f"{ratio:,.0f} x" if ratio >= 10 else f"{ratio:.1f} x"


def _verdict(found: dict[str, Any], vocabulary: Vocabulary) -> Table:
    text, compared, own = found["text"], found["compared"], found["own_engine"]
    result = Table.grid(padding=(0, 2, 0, 0))
    result.add_column()
    result.add_column(overflow="fold")
    finished = ("accepted to the end", "bold green")
    refused = ("not accepted to the end", "bold red")
    result.add_row(
        Text("decoded", style="dim"),
        Text.assemble(
            f"{number(text['bytes'])} bytes in {number(text['tokens'])} tokens, ",
            finished if found["finished"] else refused,
        ),
    )
    all_equal = ("every bit is the same", "bold green")
    some_equal = f"{number(compared['equal'])} of them the same, bit for bit"
    result.add_row(
        Text("compared", style="dim"),
        Text.assemble(
            f"{number(compared['masks'])} of {number(compared['of'])} masks, "
            f"{number(compared['bits'])} bits: ",
            all_equal if compared["equal"] == compared["masks"] else some_equal,
        ),
    )
    total, equal = own["masks"], own["equal_to_classes"]
    result.add_row(
        Text("own engine", style="dim"),
        Text.assemble(
            f"{number(equal)} of {number(total)} masks the same as XGrammar's over classes",
            "" if equal == total else (": please report it", "bold red"),
        ),
    )
    for what, places, style, why in (
        ("explained", compared["explained"], "dim", _EXPLAINED),
        ("WRONG", compared["wrong"], "bold red", "nothing explains this: please report it"),
    ):
        if places:
            bits = "1 bit" if len(places) == 1 else f"{number(len(places))} bits"
            tokens = dict.fromkeys(vocabulary[place["token"]] for place in places)
            examples = ", ".join(quoted(escaped(token)) for token in list(tokens)[:4])
            result.add_row(Text(what, style=style), Text(f"{bits}, of tokens as {examples}: {why}"))
    return result


_EXPLAINED = (
    "there XGrammar's mask contradicts its own accept_token, and ours agrees with accept_token"
)
