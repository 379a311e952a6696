"""Optional dependencies, imported where they are used."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

from tokfold._quoting import quoted
from tokfold.errors import MissingExtraError


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import ``module``, or raise :class:`MissingExtraError` naming the extra that brings it.

    ``purpose`` completes "... needs".
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # installed, but broken inside: the true cause must stay visible
        raise MissingExtraError(
            f"{purpose} needs the package {quoted(error.name)}, which is not installed: "
            f"{how_to_install(extra)}",
            name=error.name,
        ) from error


def how_to_install(extra: str, options: str = "") -> str:
    """The command that brings an extra, by what the metadata say of how tokfold was installed.

    An installer records where a package comes from (``direct_url.json``), unless that is an index.
    """
    from importlib import metadata

    try:
        origin = metadata.distribution("tokfold").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        origin = "a checkout on the path"
    published, folder = f'"tokfold[{extra}]"', f'".[{extra}]"'
    if extra == "lab":
        published, folder = "tokfold-laboratory", "./laboratory"
    if origin is None:
        return f"pip install {options}{published}"
    return f"pip install {options}{folder} in a checkout of tokfold"


def installed_version(distribution: str) -> str:
    """The version of an optional dependency; empty if it is not installed."""
    from importlib import metadata  # reads e-mail, archives and the like: `import tokfold` does not

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


_CPP_PLACE = re.compile(r"^(\[\d\d:\d\d:\d\d\] )?(/\S+:\d+: )?(Check failed: .*? is false: )?")
"""Time and source line, with which XGrammar begins its messages."""


def xgrammar_reason(error: Exception) -> str:
    """What XGrammar says in an error, without when and where in its sources."""
    return _CPP_PLACE.sub("", str(error)).strip()
