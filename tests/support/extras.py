"""The requirements of extras of the package, one a line: ``python extras.py demo lark``.

They are installed while the wheel is built, before there is a package that asks for them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
OWN = re.compile(r"tokfold\[([\w,-]+)\]")


def requirements(names: list[str], project: Path = PROJECT) -> list[str]:
    """What the extras ask for, and what the extras that they name do; each once."""
    extras = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    found: dict[str, None] = {}
    todo = list(reversed(names))
    while todo:
        for asked in extras[todo.pop()]:
            own = OWN.fullmatch(asked)
            if own is None:
                found[asked] = None
            else:
                todo += reversed(own[1].split(","))
    return list(found)


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
