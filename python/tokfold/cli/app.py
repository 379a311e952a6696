"""The Typer application: the commands, and what every one of them does about errors."""

from __future__ import annotations

import importlib
import sys
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import tokfold
from tokfold._extras import require
from tokfold._quoting import quoted
from tokfold.cli.advice import name_options
from tokfold.cli.commands import COMMANDS, LABORATORY, help_text
from tokfold.cli.console import leave_quietly, report_error
from tokfold.errors import TokfoldError

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130


class _Group(TyperGroup):
    """Turns errors that the user can act on into one line, whatever command raises them."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer moved this class between packages
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError as error:
            leave_quietly()
            raise typer.Exit(EXIT_ERROR) from error  # and not 1, the answer "no"
        except (TokfoldError, OSError, MemoryError) as error:
            report_error(error)
            raise typer.Exit(EXIT_ERROR) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(EXIT_INTERRUPTED) from error


class _Commands(_Group):
    """Imports a command when it is asked for: each of them takes a moment, and most go unused."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401
        return [*COMMANDS, *LABORATORY]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        if cmd_name not in self.list_commands(ctx):
            for near in get_close_matches(cmd_name, self.list_commands(ctx), 1):
                ctx.fail(f"No such command {quoted(cmd_name)}. Did you mean {quoted(near)}?")
            return None
        folder = "tokfold.cli"
        if cmd_name in LABORATORY:
            folder = "tokfold.laboratory.commands"
            require("tokfold.laboratory", "lab", f"tokfold {cmd_name}")
        function = getattr(importlib.import_module(f"{folder}.{cmd_name}"), cmd_name)
        alone = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
        )
        alone.command(cmd_name, no_args_is_help=cmd_name not in {"demo", "report"})(function)
        command = typer.main.get_command(alone)
        name_options(command.params)
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        formatter.write(help_text())


app = typer.Typer(
    cls=_Commands,
    name="tokfold",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        try:
            typer.echo(f"tokfold {tokfold.__version__}")
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                leave_quietly()
            else:
                report_error(error)
            raise typer.Exit(EXIT_ERROR) from error
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
    """Constrained decoding: which tokens does a grammar allow next?"""


def run() -> None:
    """Run the application on ``sys.argv`` and exit."""
    for stream in (sys.stdout, sys.stderr):
        # Grammars and tokens hold any character; a terminal that lacks one gets its escape.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    app(prog_name="tokfold")
