"""Scripts in forks of a process that has imported what they import, which takes them seconds.

Started with names of modules. A line of JSON, a script and its arguments, is answered by another:
its exit status, and what it printed on standard output and standard error.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback
from typing import IO

from support.forks import exit_code


def run(script: str, arguments: list[str], out: IO[bytes], err: IO[bytes]) -> bool:
    """Run a script as a program, and return whether it ends well."""
    for number, file in enumerate((open(os.devnull, "rb"), out, err)):  # noqa: SIM115
        os.dup2(file.fileno(), number)
    sys.argv, sys.path[0] = [script, *arguments], os.path.dirname(script)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return not end.code
    except BaseException:
        traceback.print_exc()
        return False
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return True


def main() -> None:
    """Serve until standard input ends."""
    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        script, arguments = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = exit_code(lambda: run(script, arguments, out, err))  # noqa: B023
            printed = []
            for file in (out, err):
                file.seek(0)
                printed.append(file.read().decode())
        print(json.dumps([code, *printed]), flush=True)


if __name__ == "__main__":
    main()
