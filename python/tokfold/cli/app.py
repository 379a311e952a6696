"""The Typer application: the commands, and what every one of them does about errors."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import tokfold
from tokfold.cli.check import check
from tokfold.cli.classes import classes
from tokfold.cli.console import report_error
from tokfold.cli.cost import cost
from tokfold.cli.demo import demo
from tokfold.cli.equiv import equiv
from tokfold.cli.explain import explain
from tokfold.cli.fidelity import fidelity
from tokfold.cli.inspect import inspect
from tokfold.cli.lint import lint
from tokfold.cli.maskdiff import maskdiff
from tokfold.cli.optimize import optimize
from tokfold.cli.profile import profile
from tokfold.cli.replay import replay
from tokfold.cli.report import report
from tokfold.cli.store import store
from tokfold.cli.walk import walk
from tokfold.errors import TokfoldError

__all__ = ["app", "run"]

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130


class _Group(TyperGroup):
    """Turns errors that the user can act on into one line, whatever command raises them."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer moved this class between packages
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # Typer leaves quietly when nobody reads any more
        except (TokfoldError, OSError, MemoryError) as error:
            report_error(error)
            raise typer.Exit(EXIT_ERROR) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(EXIT_INTERRUPTED) from error


app = typer.Typer(
    cls=_Group,
    name="tokfold",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(no_args_is_help=True)(classes)
app.command(no_args_is_help=True)(check)
app.command(no_args_is_help=True)(explain)
app.command(no_args_is_help=True)(walk)
app.command(no_args_is_help=True)(replay)
app.command(no_args_is_help=True)(inspect)
app.command(no_args_is_help=True)(store)
app.command()(report)
app.command()(demo)

_LABORATORY = "The grammar laboratory"
for _command in (lint, optimize, equiv, maskdiff, cost, profile, fidelity):
    app.command(no_args_is_help=True, rich_help_panel=_LABORATORY)(_command)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"tokfold {tokfold.__version__}")
        raise typer.Exit


@app.callback()
def _tokfold(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Constrained decoding: which tokens does a grammar allow next?

    Most tokens of a vocabulary are interchangeable under one grammar.
    tokfold finds the classes of tokens that the grammar cannot tell apart,
    exactly, in milliseconds; an engine for constrained decoding, tokfold's
    own or XGrammar, then looks at one token of each class.

    Start with [bold]tokfold demo[/bold], which needs no files.
    """


def run() -> None:
    """Run the application on ``sys.argv`` and exit."""
    for stream in (sys.stdout, sys.stderr):
        # Grammars and tokens hold any character; a terminal that lacks one gets its escape.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    app(prog_name="tokfold")
