"""``tokfold equiv``: do two grammars have the same language?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from tokfold import Limits
from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.inputs import STDIN, describe_grammar, read_grammar
from tokfold.cli.options import AsJson, GrammarFile
from tokfold.cli.render import number
from tokfold.errors import TokfoldError
from tokfold.laboratory.equivalence import MAX_PAIRS, Verdict, compare

__all__ = ["EXIT_BOUNDED", "EXIT_DIFFERENT", "equiv"]

EXIT_DIFFERENT = 1
EXIT_BOUNDED = 3

_SHOWN = 400
"""Bytes of a difference that are printed; ``--json`` has all."""


def equiv(
    left: GrammarFile,
    right: Annotated[
        str,
        typer.Argument(metavar="OTHER", help="The grammar to compare it with.", show_default=False),
    ],
    max_pairs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Pairs of states to look at.")
    ] = MAX_PAIRS,
    as_json: AsJson = False,
    root: Annotated[
        str | None, typer.Option(metavar="NAME", help="Start rule of GRAMMAR, if not root.")
    ] = None,
    other_root: Annotated[
        str | None, typer.Option(metavar="NAME", help="Start rule of OTHER, if not root.")
    ] = None,
) -> None:
    r"""Compare two grammars: a text that tells them apart, a proof, or a bound.

    Whether two grammars have the same language cannot be decided in general. The answer is one of
    three: [bold]different[/bold], with a text that one of them takes and the other does not;
    [bold]proved equal[/bold]; or [bold]bounded[/bold]: no text of fewer bytes than told differs.

    Exit code: 0 proved equal; 1 different; 3 bounded; 2 an error.

    [bold]Examples[/bold]
      tokfold equiv old.gbnf new.gbnf
      tokfold equiv schema.json by-hand.gbnf --json
      tokfold equiv a.gbnf b.gbnf --other-root value --max-pairs 1000000
    """
    if left == right == STDIN:
        raise TokfoldError("two grammars cannot both come from standard input; name one file")
    first, first_kind = read_grammar(left, None, root)
    second, second_kind = read_grammar(right, None, other_root)
    # The search is bounded by its pairs; their number is what the user chooses.
    limits = Limits(max_total_work=max(Limits().max_total_work, 1_000 * max_pairs))
    with steps() as step, step("Comparing") as advance:
        verdict = compare(first, second, max_pairs=max_pairs, limits=limits, progress=advance)
    if as_json:
        print_json(
            {
                "grammar": describe_grammar(left, first_kind, first),
                "other": describe_grammar(right, second_kind, second),
                **_document(verdict),
            }
        )
    else:
        _show(verdict, left, right)
    if verdict.kind == "different":
        raise typer.Exit(EXIT_DIFFERENT)
    if verdict.kind == "bounded":
        raise typer.Exit(EXIT_BOUNDED)


def _document(verdict: Verdict) -> dict[str, Any]:
    difference = verdict.difference
    return {
        "verdict": verdict.kind,
        "difference": None if difference is None else difference.decode("utf-8", "replace"),
        "difference_hex": None if difference is None else difference.hex(),
        "accepted_by": verdict.accepted_by,
        "is_shortest": verdict.is_shortest,
        "depth": verdict.depth,
        "pairs": verdict.pairs,
    }


def _show(verdict: Verdict, left: str, right: str) -> None:
    console = stdout()
    pairs = f"{number(verdict.pairs)} {'pair' if verdict.pairs == 1 else 'pairs'} of states"
    if verdict.difference is None:
        if verdict.kind == "proved":
            console.print(Text("proved equal", "bold green"), f"({pairs} close)")
        else:
            console.print(
                Text("bounded", "bold yellow"),
                f"no text of fewer than {number(verdict.depth or 0)} bytes tells them apart "
                f"({pairs}; --max-pairs looks at more)",
                soft_wrap=True,
            )
        return
    takes, refuses = (left, right) if verdict.accepted_by == "left" else (right, left)
    size = len(verdict.difference)
    shown = repr(verdict.difference[:_SHOWN].decode("utf-8", "backslashreplace"))
    cut = f" and {number(size - _SHOWN)} bytes more" if size > _SHOWN else ""
    which = "a shortest" if verdict.is_shortest else "not shown to be a shortest"
    console.print(Text("different", "bold red"), f"({number(size)} bytes, {which}; {pairs})")
    console.print(Text.assemble("  text        ", (shown, "bold"), cut), soft_wrap=True)
    console.print(Text(f"  accepted by {takes}"), soft_wrap=True)
    console.print(Text(f"  refused by  {refuses}"), soft_wrap=True)
