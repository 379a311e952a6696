"""``tokfold demo --real``: a real vocabulary and a real grammar, checked as it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.demo_run import Replay, run
from tokfold.cli.render import escaped, number, quoted, seconds, size, table
from tokfold.cli.summary import biggest_table, summarize

__all__ = ["show"]

PLAIN_SECONDS = 25.0

_SPREAD: dict[str, Callable[[npt.NDArray[np.float64]], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "p99": lambda times: np.percentile(times, 99),
    "slowest": np.max,
}


def show(compared: int | None, *, as_json: bool) -> None:
    """Fold a real vocabulary, decode a program, compare masks with XGrammar's.

    Takes Mistral's Tekken vocabulary (131,072 tokens) and a grammar of a subset of C++, replays a
    sample program through tokfold's own engine and through XGrammar over classes, and compares the
    masks, bit for bit, with each other and with those of XGrammar over the whole vocabulary.

    Args:
        compared: masks to compare with plain XGrammar; as many as 25 seconds allow by default.
        as_json: print one JSON object.

    Raises:
        typer.Exit: with 1, a difference that must not be.
    """
    with steps() as step:
        replay = run(step, compared, PLAIN_SECONDS)
    document = _document(replay)
    if as_json:
        print_json(document)
    else:
        _show(stdout(), replay, document)
    own_differs = replay.own_equal < len(replay.own_fill_seconds)
    if replay.comparison.wrong or own_differs or not replay.finished:
        raise typer.Exit(1)


def _document(replay: Replay) -> dict[str, Any]:
    compared = replay.comparison
    at = sorted(compared.plain_seconds)
    plain = np.array([compared.plain_seconds[index] for index in at])
    folded, own = np.array(replay.fill_seconds), np.array(replay.own_fill_seconds)
    compile_seconds = replay.compile_seconds
    return {
        "vocabulary": {"name": replay.vocabulary.name, "size": len(replay.vocabulary)},
        "text": {"bytes": len(replay.text), "tokens": len(replay.tokens)},
        "classes": len(replay.classes),
        "seconds": {
            "load": replay.load_seconds,
            "fold": replay.fold_seconds,
            "compile_plain": compile_seconds["plain"],
            "compile_classes": compile_seconds["classes"],
            "compile_own": compile_seconds["own"],
            "first_mask_plain": compile_seconds["plain"] + float(plain[0]),
            "first_mask_classes": compile_seconds["classes"] + float(folded[0]),
            "first_mask_own": compile_seconds["own"] + replay.own_first_seconds,
            "all_masks_classes": float(folded.sum()),
            "all_masks_own": float(own.sum()),
        },
        "mask_seconds": {
            name: {
                "plain": float(of(plain)),
                "classes": float(of(folded[at])),
                "own": float(of(own[at])),
            }
            for name, of in _SPREAD.items()
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
        "own_engine": {"masks": len(own), "equal_to_classes": replay.own_equal},
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
        *((f"a mask, {name}", *(masks[name][of] for of in _ENGINES)) for name in _SPREAD),
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
    total, equal = len(replay.own_fill_seconds), replay.own_equal
    result.add_row(
        Text("own engine", style="dim"),
        Text.assemble(
            f"{number(equal)} of {number(total)} masks the same as XGrammar's over classes",
            "" if equal == total else (": please report it", "bold red"),
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
