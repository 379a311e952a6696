"""What ``classes`` and ``inspect`` say of token classes: gathered once, shown as tables or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tokfold import TokenClasses, Vocabulary
from tokfold.cli.console import fits_encoding
from tokfold.cli.render import bar, escaped, number, quoted_list, size, table

BIGGEST = 10
SAMPLES = 16
BAR_WIDTH = 28


def summarize(classes: TokenClasses, vocabulary: Vocabulary | None, biggest: int) -> dict[str, Any]:
    """The content of the report, as JSON values.

    Sample tokens are of the vocabulary; without it there are representatives only.
    """
    sizes = _sizes(classes)
    return {
        "classes": _counts(classes, sizes),
        "biggest": list(_biggest(classes, vocabulary, sizes, biggest)),
        "never_valid_samples": _never_valid(classes, vocabulary),
        "histogram": _histogram(sizes),
    }


def _sizes(classes: TokenClasses) -> npt.NDArray[np.int64]:
    """Members of each class."""
    valid = classes.class_of[classes.class_of >= 0]
    return np.bincount(valid, minlength=len(classes)).astype(np.int64)


def _counts(classes: TokenClasses, sizes: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Numbers of tokens and classes."""
    tokens = len(classes.class_of)
    stats = classes.stats
    return {
        "tokens": tokens,
        "total": len(classes),
        "stop": classes.num_stop_classes,
        "single_token": int((sizes == 1).sum()),
        "byte_classes": stats.get("byte_classes"),
        "never_valid_tokens": int((classes.class_of < 0).sum()),
        "dead_tokens": stats.get("dead_tokens"),
        "over_budget_tokens": stats.get("over_budget_tokens"),
        "token_mask_bytes": _mask_bytes(tokens),
        "class_mask_bytes": _mask_bytes(len(classes)),
    }


def _mask_bytes(ids: int) -> int:
    return (ids + 31) // 32 * 4


def _biggest(
    classes: TokenClasses,
    vocabulary: Vocabulary | None,
    sizes: npt.NDArray[np.int64],
    count: int,
) -> Iterator[dict[str, Any]]:
    representatives = classes.representatives
    for index in np.argsort(-sizes, kind="stable")[:count].tolist():
        samples = [representatives[index]]
        if vocabulary is not None:
            samples += [token for token in _spread(classes, vocabulary, index) if token]
        yield {
            "class": index,
            "tokens": int(sizes[index]),
            "samples": [escaped(token) for token in dict.fromkeys(samples)],
        }


def _spread(classes: TokenClasses, vocabulary: Vocabulary, index: int) -> list[bytes]:
    """Members evenly spread over the class, so that common and rare tokens both show."""
    stop = np.array(vocabulary.stop_token_ids, dtype=np.int64)
    return _spread_tokens(np.setdiff1d(classes.members(index), stop), vocabulary)


def _spread_tokens(ids: npt.NDArray[np.int64], vocabulary: Vocabulary) -> list[bytes]:
    step = max(1, len(ids) // SAMPLES)
    return [vocabulary[index] for index in ids[::step][:SAMPLES].tolist()]


def _never_valid(classes: TokenClasses, vocabulary: Vocabulary | None) -> list[str]:
    if vocabulary is None:
        return []
    excluded = {*vocabulary.special_token_ids, *vocabulary.stop_token_ids}
    dead = np.flatnonzero(classes.class_of < 0)
    tokens = _spread_tokens(
        np.array([index for index in dead.tolist() if index not in excluded], dtype=np.int64),
        vocabulary,
    )
    return [escaped(token) for token in tokens if token]


def _histogram(sizes: npt.NDArray[np.int64]) -> list[dict[str, int]]:
    """Classes by size, in bins of powers of two."""
    bins = []
    low = 1
    while len(sizes) and low <= int(sizes.max()):
        inside = (sizes >= low) & (sizes < 2 * low)
        bins.append(
            {
                "from": low,
                "to": 2 * low - 1,
                "classes": int(inside.sum()),
                "tokens": int(sizes[inside].sum()),
            }
        )
        low *= 2
    return bins


def show_summary(console: Console, summary: dict[str, Any]) -> None:
    """Print the report as tables."""
    console.print(_counts_table(summary))
    if summary["biggest"]:
        console.print(biggest_table(console, summary, "The biggest classes"))
    if summary["never_valid_samples"]:
        samples = quoted_list(summary["never_valid_samples"], console.width - 14)
        console.print(Text.assemble(("Never valid: ", "bold"), samples, "\n"))
    if summary["histogram"]:
        console.print(_histogram_table(console, summary))


def _counts_table(summary: dict[str, Any]) -> Table:
    """Numbers of tokens and classes, with what they mean."""
    found = summary["classes"]
    tokens, total = found["tokens"], found["total"]
    rows = [
        ("tokens in the vocabulary", number(tokens), ""),
        (
            "classes",
            number(total),
            f"{tokens / total:,.0f} tokens a class on average" if total else "",
        ),
        ("  of one token only", number(found["single_token"]), ""),
        ("  of stop tokens", number(found["stop"]), ""),
        (
            "tokens never valid",
            number(found["never_valid_tokens"]),
            "special, padding, or dead",
        ),
    ]
    if found["dead_tokens"] is not None:
        rows.append(("  dead", number(found["dead_tokens"]), "no text of the grammar takes them"))
    if found["over_budget_tokens"] is not None:
        note = "each a class of its own: see Limits" if found["over_budget_tokens"] else ""
        rows.append(("tokens over budget", number(found["over_budget_tokens"]), note))
    if found["byte_classes"] is not None:
        rows.append(("classes of bytes", number(found["byte_classes"]), "of 256 byte values"))
    before, after = size(found["token_mask_bytes"]), size(found["class_mask_bytes"])
    rows.append(("a mask takes", after, f"instead of {before}"))
    result = table("", ">", "*", title="Classes")
    for name, value, note in rows:
        bold = "bold" if name == "classes" else ""
        result.add_row(Text(name), Text(value, style=bold), Text(note, style="dim"))
    return result


def biggest_table(console: Console, summary: dict[str, Any], title: str) -> Table:
    """The biggest classes with sample tokens."""
    result = table(">class", ">tokens", ">share", "*for example", title=title)
    total = summary["classes"]["tokens"]
    width = console.width - 28
    for row in summary["biggest"]:
        result.add_row(
            number(row["class"]),
            number(row["tokens"]),
            f"{100 * row['tokens'] / total:.1f}%",
            Text(quoted_list(row["samples"], width)),
        )
    return result


def _histogram_table(console: Console, summary: dict[str, Any]) -> Table:
    """Classes by size, with bars."""
    fill = "█" if fits_encoding(console, "█") else "#"
    result = table(">tokens in the class", ">classes", "", ">tokens", title="Sizes of the classes")
    largest = max((row["classes"] for row in summary["histogram"]), default=0)
    for row in summary["histogram"]:
        low, high = row["from"], row["to"]
        result.add_row(
            number(low) if low == high else f"{number(low)} to {number(high)}",
            number(row["classes"]),
            Text(bar(row["classes"], largest, BAR_WIDTH, fill), style="cyan"),
            number(row["tokens"]),
        )
    return result
