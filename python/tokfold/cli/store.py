"""``tokfold store``: build the mask store of a Lark grammar, and ask why a row is legal or not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from tokfold import Vocabulary
from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.inputs import describe_vocabulary, read_tokenizer
from tokfold.cli.options import AsJson
from tokfold.cli.render import number, seconds, table
from tokfold.errors import TokfoldError
from tokfold.mask_store.grammar import LarkGrammar, LexerKind
from tokfold.mask_store.lark_reader import open_lark, python_grammar
from tokfold.mask_store.predicates import Predicates
from tokfold.mask_store.saved import write
from tokfold.mask_store.streamline import streamline
from tokfold.mask_store.transitions import build_transitions

PYTHON = "python"

_STEPS = {
    "raw": "raw store",
    "never": "never legal: dropped",
    "always": "always legal: joined",
    "interchangeable": "interchangeable terminals: joined",
    "jointly": "jointly legal: joined",
}


def store(
    grammar: Annotated[
        str,
        typer.Argument(
            metavar="GRAMMAR",
            help="A .lark file, or the word python for Lark's own grammar of Python.",
            show_default=False,
        ),
    ],
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="PATH",
            help="Tokenizer, as for the other commands; without one only questions are answered.",
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="NAME", help="Start rule, if not start.")
    ] = None,
    lexer: Annotated[
        str, typer.Option(metavar="KIND", help="contextual or basic, as in Lark.")
    ] = "contextual",
    before: Annotated[
        str | None,
        typer.Option(metavar="TERMINAL", help="Ask: what may follow this terminal?"),
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(metavar="TERMINALS", help="The row that is asked about, blanks between."),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(metavar="TERMINALS", help="A row to compare it with: jointly legal?"),
    ] = None,
    terminals: Annotated[
        bool, typer.Option("--terminals", help="List the terminals with their patterns.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the store for MaskStore.load; with --tokenizer."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    r"""Build the mask store of a Lark grammar and show what streamlining makes of it.

    With --before and --row it answers whether the row is never, always or sometimes legal after
    the terminal, with a text for each side; with --other whether two rows are jointly legal.

    [bold]Examples[/bold]
      tokfold store python -t path/to/model
      tokfold store python --before NAME --row MINUS
      tokfold store sql.lark --start select --before SELECT --row "NAME COMMA" --other STAR
      tokfold store lua.lark --terminals
      tokfold store python -t path/to/model --save python.store
    """
    if (before is None) != (row is None):
        raise TokfoldError("--before and --row belong together: give both, or none of them")
    if save is not None and tokenizer is None:
        raise TokfoldError("--save needs --tokenizer: a store is made for a vocabulary")
    if other is not None and row is None:
        raise TokfoldError("--other is compared with --row: give that one too")
    with steps() as step:
        with step("Reading the grammar"):
            read = _read(grammar, start, lexer)
        with step("Working out the stacks"):
            predicates = Predicates(read)
        document: dict[str, Any] = _describe(read, predicates)
        if terminals:
            document["terminals"] = [{"name": t.name, "pattern": t.pattern} for t in read.terminals]
        if before is not None and row is not None:
            document["question"] = _answer(predicates, before, row.split(), other)
        if tokenizer is not None:
            with step("Loading the vocabulary"):
                vocabulary = read_tokenizer(tokenizer)
            document["vocabulary"] = describe_vocabulary(tokenizer, vocabulary)
            began = time.perf_counter()
            with step("Walking the vocabulary") as report:
                made = build_transitions(read, vocabulary, progress=report)
            elapsed = time.perf_counter() - began
            with step("Streamlining"):
                document["store"] = _reduced(made, predicates, vocabulary, elapsed)
            if save is not None:
                with step("Saving"):
                    write(made, save)
                document["saved"] = {"path": str(save), "bytes": save.stat().st_size}
    if as_json:
        print_json(document)
    else:
        _show(document)


def _read(grammar: str, start: str | None, lexer: str) -> LarkGrammar:
    kind = cast("LexerKind", lexer)
    if grammar == PYTHON:
        return python_grammar(start or "file_input", kind)
    return open_lark(grammar, start or "start", lexer=kind)


def _describe(read: LarkGrammar, predicates: Predicates) -> dict[str, Any]:
    return {
        "grammar": {
            "source": read.source,
            "terminals": len(read.terminals),
            "productions": len(read.productions),
            "states": len(read.table.shifts),
            "lexer": read.lexer,
            "scanners": len(read.scanners),
        },
        "conflicts": [str(conflict) for conflict in predicates.conflicts],
    }


def _answer(
    predicates: Predicates, before: str, row: list[str], other: str | None
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "before": before,
        "row": row,
        "legality": predicates.legality(before, row),
        "legal_after": predicates.witness(before, row, legal=True),
        "illegal_after": predicates.witness(before, row, legal=False),
    }
    if other is not None:
        compared = other.split()
        apart = predicates.apart(before, row, compared)
        answer["other"] = {
            "row": compared,
            "jointly_legal": predicates.are_jointly_legal(before, row, compared),
            "apart_after": None if apart is None else apart.text,
            "legal": None if apart is None else apart.legal,
        }
    return answer


def _reduced(
    made: Any,  # noqa: ANN401 - the transitions; their type needs the extension
    predicates: Predicates,
    vocabulary: Vocabulary,
    elapsed: float,
) -> dict[str, Any]:
    raw = made.joined()
    began = time.perf_counter()
    reductions = streamline(raw, predicates)
    masks = {mask.tobytes() for mask in reductions.masks(raw, len(vocabulary))}
    return {
        "seconds": {"walk": elapsed, "streamlining": time.perf_counter() - began},
        "transitions": int(raw.transitions.sum()),
        "legality": dict(reductions.legality),
        "rows": dict(reductions.counts),
        "distinct_masks": len(masks),
        "lexer": made.sizes(),
    }


def _show(document: dict[str, Any]) -> None:
    console = stdout()
    grammar = document["grammar"]
    console.print(
        Text.assemble(
            (grammar["source"], "bold"),
            f" ({number(grammar['terminals'])} terminals, {number(grammar['productions'])} "
            f"productions, {number(grammar['states'])} states, {grammar['lexer']} lexer)",
        ),
        soft_wrap=True,
    )
    for conflict in document["conflicts"]:
        console.print(Text(f"  {conflict}", "yellow"), soft_wrap=True)
    for terminal in document.get("terminals", ()):
        console.print(Text(f"  {terminal['name']:24} {terminal['pattern']}"), soft_wrap=True)
    if "question" in document:
        _show_answer(document["question"])
    if "saved" in document:
        saved = document["saved"]
        console.print(Text(f"saved to {saved['path']}, {number(saved['bytes'])} bytes"))
    if "store" in document:
        made = document["store"]
        columns = table("", "rows", "")
        raw = made["rows"]["raw"]
        for step, count in made["rows"].items():
            times = f"{raw / count:.1f} times fewer" if step != "raw" and count else ""
            columns.add_row(_STEPS[step], number(count), times)
        console.print(columns)
        times = made["seconds"]
        console.print(
            Text(
                f"{number(made['transitions'])} transitions, "
                f"{number(made['distinct_masks'])} distinct masks; walked in "
                f"{seconds(times['walk'])}, streamlined in {seconds(times['streamlining'])}"
            ),
            soft_wrap=True,
        )


def _show_answer(question: dict[str, Any]) -> None:
    console = stdout()
    row = " ".join(question["row"])
    console.print(
        Text.assemble(
            (row, "bold"), " after ", (question["before"], "bold"), ": ", question["legality"]
        ),
        soft_wrap=True,
    )
    for key, word in (("legal_after", "legal after    "), ("illegal_after", "not legal after")):
        if question[key] is not None:
            console.print(Text(f"  {word} {' '.join(question[key])}"), soft_wrap=True)
    other = question.get("other")
    if other is None:
        return
    if other["jointly_legal"]:
        console.print(Text(f"jointly legal with {' '.join(other['row'])}"), soft_wrap=True)
    else:
        console.print(Text(f"not jointly legal with {' '.join(other['row'])}"), soft_wrap=True)
        if other["apart_after"] is not None:
            legal, text = " ".join(other["legal"]), " ".join(other["apart_after"])
            console.print(Text(f"  only {legal} is after {text}"), soft_wrap=True)
