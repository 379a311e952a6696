"""``tokfold walk``: what every token of a text costs our own engine, and what it allowed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from tokfold import (
    CompiledGrammar,
    CompileOptions,
    Matcher,
    Vocabulary,
    allocate_bitmask,
    compile,
)
from tokfold.cli.console import fits_encoding, print_json, stdout, steps
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
    Tokenizer,
)
from tokfold.cli.render import bar, escaped, number, quoted_list, seconds, size, table

ROWS = 20
SLOWEST = 5
BAR_WIDTH = 28

Step = dict[str, Any]


def walk(
    grammar: GrammarFile,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The text, or - for standard input.", show_default=False
        ),
    ],
    tokenizer: Tokenizer,
    as_json: AsJson = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help=f"Tokens to list, half from the beginning, half from the end. Without it: {ROWS}, "
            "and all with --json.",
        ),
    ] = None,
    classes: Annotated[
        bool,
        typer.Option(
            "--classes/--no-classes",
            help="Make masks over classes of tokens, or over the whole vocabulary.",
        ),
    ] = True,
    root: Root = None,
    chomp: Chomp = False,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
) -> None:
    """Replay a text through tokfold's own engine: masks and times, token by token.

    The text is split into the longest tokens that fit. For each token: how
    many tokens were allowed in its place, how long the mask and reading the
    token took, what the grammar forced there. Then what it took in all.

    Times are of the first visit: a second text under the same compiled grammar
    is faster, because masks are remembered.

    Exit code: 0 the text is accepted; 1 it is refused or must go on; 2 an error.

    [bold]Examples[/bold]
      tokfold walk json.gbnf answer.json -t tekken
      tokfold walk cpp.gbnf main.cpp -t path/to/model --limit 100
      tokfold walk cpp.gbnf main.cpp -t path/to/model --no-classes
      tokfold walk json.gbnf answer.json -t tekken --json | jq .mask_seconds
    """
    data = read_replayed_text(grammar, file, chomp)
    with steps() as step:
        read, kind = read_grammar(grammar, chosen_kind(schema, regex, lark, tag), root)
        with step("Loading the vocabulary"):
            vocabulary = read_tokenizer(tokenizer)
            _ = vocabulary._compiled  # sorted once for all grammars: no part of compiling one
        with step("Compiling") as report, located(grammar):
            began = time.perf_counter()
            compiled = compile(
                read,
                vocabulary,
                classes="now" if classes else "never",
                options=CompileOptions(progress=report, check_tokens=False),
            )
            compile_seconds = time.perf_counter() - began
        with step("Walking"):
            tokens = vocabulary.encode_greedy(data)
            followed, matcher = follow(compiled, tokens)
    taken = len(followed) - 1
    document = {
        "grammar": describe_grammar(grammar, kind, read),
        "vocabulary": describe_vocabulary(tokenizer, vocabulary),
        "text": {"file": file, "bytes": len(data), "tokens": len(tokens)},
        "over_classes": compiled.has_classes,
        "tokens_read": taken,
        "accepted": taken == len(tokens) and matcher.is_accepting,
        "may_end": matcher.is_accepting,
        "compile_seconds": compile_seconds,
        "mask_seconds": spread_of([row["mask_seconds"] for row in followed]),
        "accept_seconds": spread_of([row["accept_seconds"] for row in followed[:taken]]),
        "mask_histogram": _histogram([row["mask_seconds"] for row in followed]),
        "slowest": sorted(followed, key=lambda row: -row["mask_seconds"])[:SLOWEST],
        "bytes_held": compiled.counters()["bytes_held"] + matcher.counters()["bytes_held"],
        "mask_counters": compiled.counters(),
        "matcher_counters": matcher.counters(),
        "steps": _ends(followed, limit if as_json else ROWS if limit is None else limit),
    }
    if as_json:
        print_json(document)
    else:
        _show(stdout(), document)
    if not document["accepted"]:
        raise typer.Exit(1)


def follow(compiled: CompiledGrammar, tokens: Sequence[int]) -> tuple[list[Step], Matcher]:
    """Masks and times at each token, and after the last; to the first token that is refused.

    In the last entry, ``accept_seconds`` is None: nothing was read there. Its token is the one
    that was refused, None at the end of the text.
    """
    vocabulary = compiled.vocabulary
    matcher = Matcher(compiled)
    bitmask = allocate_bitmask(1, len(vocabulary))
    followed: list[Step] = []
    for index, token in enumerate([*tokens, None]):
        began = time.perf_counter()
        matcher.fill_bitmask(bitmask)
        filled = time.perf_counter() - began
        allowed = int(np.unpackbits(bitmask.view(np.uint8)).sum())
        taken = False
        began = time.perf_counter()
        if token is not None:
            taken = matcher.accept_token(token)
        accepted = time.perf_counter() - began
        followed.append(
            {
                "index": index,
                **_token(vocabulary, token),
                "allowed_tokens": allowed,
                "mask_seconds": filled,
                "accept_seconds": accepted if taken else None,
            }
        )
        if not taken:
            break
    # Forced bytes in a pass of their own: they would warm what the times above are about.
    again = Matcher(compiled)
    for row in followed:
        row["forced"] = escaped(again.forced_bytes())
        if row["accept_seconds"] is not None:
            again.accept_token(row["token_id"])
    return followed, matcher


def _token(vocabulary: Vocabulary, token: int | None) -> Step:
    return {"token_id": token, "token": None if token is None else escaped(vocabulary[token])}


def spread_of(times: Sequence[float]) -> dict[str, float] | None:
    """Mean, median, 99th percentile, most and sum; None where there is nothing."""
    if not times:
        return None
    array = np.array(times)
    p50, p99 = np.percentile(array, [50, 99])
    return {
        "mean": float(array.mean()),
        "p50": float(p50),
        "p99": float(p99),
        "max": float(array.max()),
        "total": float(array.sum()),
    }


def _histogram(times: Sequence[float]) -> list[dict[str, float]]:
    """How many times are below each power of two microseconds, from the least on."""
    exponents = np.ceil(np.log2(np.maximum(np.array(times) * 1e6, 1.0))).astype(int)
    return [
        {"below_seconds": 2.0**exponent / 1e6, "masks": int((exponents == exponent).sum())}
        for exponent in range(int(exponents.min()), int(exponents.max()) + 1)
    ]


def _ends(followed: list[Step], limit: int | None) -> list[Step]:
    if limit is None or len(followed) <= limit:
        return followed
    last = limit // 2
    return followed[: limit - last] + followed[len(followed) - last :]


def _show(console: Console, document: dict[str, Any]) -> None:
    grammar, vocabulary, text = document["grammar"], document["vocabulary"], document["text"]
    name = "standard input" if text["file"] == STDIN else text["file"]
    over = "over classes" if document["over_classes"] else "over the whole vocabulary"
    title = Text.assemble((name, "bold"), f" under {grammar['file']}, {vocabulary['name']}, {over}")
    console.print(title, soft_wrap=True)
    console.print()
    if document["steps"]:
        console.print(_steps_table(document["steps"], console.width))
    if len(document["steps"]) < document["tokens_read"] + 1:
        console.print(_steps_table(document["slowest"], console.width, "The slowest masks"))
        console.print(_histogram_table(console, document["mask_histogram"]))
    console.print(_summary(document))
    verdict: tuple[str, str]
    if document["accepted"]:
        verdict = ("accepted", "bold green")
    elif document["tokens_read"] == text["tokens"]:
        verdict = ("all of it can be read, but it must go on", "bold red")
    else:
        at = number(document["tokens_read"] + 1)
        verdict = (f"refused at token {at}; tokfold explain says why", "bold red")
    console.print(Text.assemble((name, "bold"), ": ", verdict), soft_wrap=True)


def _steps_table(rows: list[Step], width: int, title: str = "Token by token") -> Table:
    columns = [">", "token", ">allowed", ">mask", ">read"]
    is_forced = any(row["forced"] for row in rows)
    result = table(*columns, *(["*forced"] if is_forced else []), title=title)
    previous = None
    for row in rows:
        if previous is not None and row["index"] > previous + 1 and title == "Token by token":
            result.add_row("...", f"{number(row['index'] - previous - 1)} more")
        previous = row["index"]
        accepted = row["accept_seconds"]
        refused = "" if row["token"] is None else "refused"
        result.add_row(
            number(row["index"] + 1),
            Text("end of text" if row["token"] is None else quoted_list([row["token"]], 30)),
            number(row["allowed_tokens"]),
            seconds(row["mask_seconds"]),
            Text(refused, style="bold red") if accepted is None else seconds(accepted),
            *([Text(quoted_list([row["forced"]], width) if row["forced"] else "")] * is_forced),
        )
    return result


def _histogram_table(console: Console, bins: list[dict[str, float]]) -> Table:
    fill = "█" if fits_encoding(console, "█") else "#"
    result = table(">a mask takes", ">masks", "", title="How long masks take")
    most = max(entry["masks"] for entry in bins)
    for entry in bins:
        result.add_row(
            f"up to {seconds(entry['below_seconds'])}",
            number(entry["masks"]),
            Text(bar(entry["masks"], most, BAR_WIDTH, fill), style="cyan"),
        )
    return result


def _summary(document: dict[str, Any]) -> Group:
    result = table("", ">mean", ">p50", ">p99", ">slowest", ">in all", title="In all")
    for name, key in (("a mask", "mask_seconds"), ("reading a token", "accept_seconds")):
        found = document[key]
        if found is not None:
            columns = ("mean", "p50", "p99", "max", "total")
            result.add_row(name, *(seconds(found[column]) for column in columns))
    made, own = document["mask_counters"], document["matcher_counters"]
    notes = table("", ">", "*")
    lookups = made["memo_hits"] + made["memo_misses"]
    remembered = f"{100 * made['memo_hits'] / lookups:.0f}% of them remembered" if lookups else ""
    for name, value, note in (
        ("compiling", seconds(document["compile_seconds"]), "classes included"),
        (
            "tokens read",
            number(document["tokens_read"]),
            f"of {number(document['text']['tokens'])}",
        ),
        ("masks", number(made["masks"]), ""),
        ("answers looked up", number(lookups), remembered),
        ("entries of the trie", number(made["trie_nodes"]), "to make the other ones"),
        ("Earley sets", number(own["earley_sets"]), ""),
        ("completions", number(own["completions"]), "of rules"),
        ("memory", size(document["bytes_held"]), "masks and matcher"),
    ):
        if name == "compiling" and not document["over_classes"]:
            note = "without classes"
        notes.add_row(name, value, Text(note, style="dim"))
    return Group(result, notes)
