"""The command line: ``tokfold classes``, ``check``, ``explain``, ``walk`` and others.

Needs the extra ``cli``, but for ``--help``. This module and :mod:`commands` import nothing of it,
so that :func:`main` can say what is missing; everything else here may.

A command is the module of its name; those of the laboratory are in
:mod:`tokfold.laboratory.commands`, where that is installed. Of several modules are ``demo``
(``demo_run``, ``real_demo``), ``explain`` and ``check`` (``diagnosis``), ``replay``
(``replay_cases``), ``classes`` and ``inspect`` (``summary``). All share ``app`` (errors),
``commands`` (names and first lines of help), ``advice`` (arguments as options), ``options`` and
``schema_options``, ``inputs`` (grammars, tokenizers, texts), ``console`` and ``render``.
"""

from __future__ import annotations

import os
import sys

from tokfold._extras import require
from tokfold.cli.commands import help_text
from tokfold.errors import MissingExtraError


def main() -> None:
    """Run the command line and exit: 0 done, 1 the answer is no, 2 an error, 130 interrupted."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller has closed it
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    if sys.argv[1:] in ([], ["-h"], ["--help"]):
        try:
            sys.stdout.write(help_text())
            sys.stdout.flush()
        except OSError as error:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            if not isinstance(error, BrokenPipeError):  # else the reader has seen enough
                print(f"error: {error}", file=sys.stderr)
                sys.exit(2)
        sys.exit(0)
    try:
        for module in ("typer", "rich"):
            require(module, "cli", "the command line")
        from tokfold.cli.app import run

        run()
    except MissingExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # while modules were being imported
        sys.exit(130)
