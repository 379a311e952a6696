"""``tokfold demo``: the whole idea on a real vocabulary and a real grammar, checked as it goes."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.demo_run import Replay, run
from tokfold.cli.render import escaped, number, quoted, seconds, size, table
from tokfold.cli.summary import biggest_table, summarize

__all__ = ["demo"]

PLAIN_SECONDS = 25.0


def demo(
    compared: Annotated[
        int | None,
        typer.Option(
            "--steps",
            min=1,
            metavar="N",
            help="Masks to compare with plain XGrammar, spread over the text. Without it: as "
            f"many as {PLAIN_SECONDS:.0f} seconds allow.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Fold a real vocabulary, decode a program, compare every mask with XGrammar's.

    Takes Mistral's Tekken vocabulary (131,072 tokens) and a grammar of a
    subset of C++, replays a sample program through XGrammar over classes,
    and compares its masks, bit for bit, with those of XGrammar over the
    whole vocabulary. Needs no files and no network; under a minute.

    Exit code: 0 all equal; 1 a difference that must not be.

    [bold]Examples[/bold]
      tokfold demo
      tokfold demo --steps 20
    """
    with steps() as step:
        replay = run(step, compared, PLAIN_SECONDS)
    document = _document(replay)
    if as_json:
        print_json(document)
    else:
        _show(stdout(), replay, document)
    if replay.comparison.wrong or not replay.finished:
        raise typer.Exit(1)


def _document(replay: Replay) -> dict[str, Any]:
    compared = replay.comparison
    at = sorted(compared.plain_seconds)
    plain = np.array([compared.plain_seconds[index] for index in at])
    ours = np.array(replay.fill_seconds)
    same = ours[at]
    return {
        "vocabulary": {"name": replay.vocabulary.name, "size": len(replay.vocabulary)},
        "text": {"bytes": len(replay.text), "tokens": len(replay.tokens)},
        "classes": len(replay.classes),
        "seconds": {
            "load": replay.load_seconds,
            "fold": replay.fold_seconds,
            "compile_plain": replay.compile_seconds["plain"],
            "compile_classes": replay.compile_seconds["classes"],
            "all_masks_classes": float(ours.sum()),
        },
        "mask_seconds": {
            name: {"plain": float(of(plain)), "classes": float(of(same))}
            for name, of in (("mean", np.mean), ("median", np.median), ("slowest", np.max))
        },
        "mask_bytes": {
            "plain": (len(replay.vocabulary) + 31) // 32 * 4,
            "classes": (replay.class_bits + 31) // 32 * 4,
        },
        "compared": {
            "masks": compared.masks,
            "of": len(replay.fill_seconds),
            "bits": compared.bits,
            "equal": compared.equal,
            "explained": [{"step": s, "token": t} for s, t in compared.explained],
            "wrong": [{"step": s, "token": t} for s, t in compared.wrong],
        },
        "finished": replay.finished,
    }


def _show(console: Console, replay: Replay, found: dict[str, Any]) -> None:
    lines = replay.text.decode().splitlines()
    console.print(Panel(Text("\n".join([*lines[:8], "..."])), title="the program", expand=False))
    console.print(
        Text.assemble(
            f"Under a grammar of C++, the {number(len(replay.vocabulary))} tokens of "
            f"{replay.vocabulary.name} fall into\n",
            (f"{number(len(replay.classes))} classes", "bold"),
            f", found in {seconds(replay.fold_seconds)}. What one mask says of a token, every mask "
            "says\nof its whole class.\n",
        )
    )
    examples = summarize(replay.classes, replay.vocabulary, 6)
    console.print(biggest_table(console, examples, "Tokens that C++ cannot tell apart"))
    console.print(_table(found))
    console.print(_verdict(replay))


def _table(found: dict[str, Any]) -> Table:
    result = table("", ">XGrammar", ">over classes", ">", title="What that is worth")
    times, masks = found["seconds"], found["mask_seconds"]
    result.add_row(
        "it looks at",
        f"{number(found['vocabulary']['size'])} tokens",
        f"{number(found['classes'])} classes",
        _times(found["vocabulary"]["size"], found["classes"], "fewer"),
    )
    rows = [("compiling the grammar", times["compile_plain"], times["compile_classes"])]
    rows += [
        (f"a mask, {name}", masks[name]["plain"], masks[name]["classes"])
        for name in ("mean", "median", "slowest")
    ]
    all_plain = masks["mean"]["plain"] * found["compared"]["of"]
    rows.append(("masks for the program", all_plain, times["all_masks_classes"]))
    for name, plain, ours in rows:
        bold = "bold green" if name == "a mask, mean" else ""
        about = "~" if name == "masks for the program" else ""
        result.add_row(
            Text(name, style="bold" if bold else ""),
            about + seconds(plain),
            seconds(ours),
            Text(_times(plain, ours, "faster"), style=bold),
        )
    before, after = found["mask_bytes"]["plain"], found["mask_bytes"]["classes"]
    result.add_row("a mask takes", size(before), size(after), _times(before, after, "smaller"))
    return result


def _times(plain: float, ours: float, what: str) -> str:
    ratio = plain / ours
    return f"{ratio:,.0f} x {what}" if ratio >= 10 else f"{ratio:.1f} x {what}"


def _verdict(replay: Replay) -> Table:
    compared = replay.comparison
    result = Table.grid(padding=(0, 2, 0, 0))
    result.add_column()
    result.add_column(overflow="fold")
    finished = ("accepted to the end", "bold green")
    refused = ("not accepted to the end", "bold red")
    result.add_row(
        Text("decoded", style="dim"),
        Text.assemble(
            f"{number(len(replay.text))} bytes in {number(len(replay.tokens))} tokens, ",
            finished if replay.finished else refused,
        ),
    )
    all_equal = ("every bit is the same", "bold green")
    some_equal = f"{number(compared.equal)} of them the same, bit for bit"
    result.add_row(
        Text("compared", style="dim"),
        Text.assemble(
            f"{number(compared.masks)} of {number(len(replay.fill_seconds))} masks, "
            f"{number(compared.bits)} bits: ",
            all_equal if compared.equal == compared.masks else some_equal,
        ),
    )
    for what, found, style, why in (
        ("explained", compared.explained, "dim", _EXPLAINED),
        ("WRONG", compared.wrong, "bold red", "nothing explains this: please report it"),
    ):
        if found:
            bits = "1 bit" if len(found) == 1 else f"{number(len(found))} bits"
            tokens = dict.fromkeys(replay.vocabulary[token] for _, token in found)
            examples = ", ".join(quoted(escaped(token)) for token in list(tokens)[:4])
            result.add_row(Text(what, style=style), Text(f"{bits}, of tokens as {examples}: {why}"))
    return result


_EXPLAINED = (
    "there XGrammar's mask contradicts its own accept_token, and ours agrees with accept_token"
)
