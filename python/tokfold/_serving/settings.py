"""What an operator may choose."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tokfold._cache import check_folder, most_bytes
from tokfold._checks import wrong_type
from tokfold._quoting import MOST, encodable, quoted
from tokfold.engine import ClassesMode
from tokfold.errors import ArtifactError
from tokfold.interrupt import MOST_MILLISECONDS
from tokfold.limits import Limits

Whitespace: TypeAlias = Literal["any", "compact", "spaced"]

SWITCHES = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
"""What a variable that says yes or no may be, in small letters."""

_DEADLINES = ("compile_milliseconds", "mask_milliseconds", "accept_milliseconds")


@dataclass(frozen=True)
class Settings:
    """What an operator may choose, by arguments or in the environment.

    A server runs in several processes. The environment reaches all of them, so arguments are
    written there.

    Attributes:
        cache_dir: ``TOKFOLD_CACHE_DIR``, as for :class:`tokfold.GrammarCompiler`.
        classes: ``TOKFOLD_CLASSES``, as there.
        limits: ``TOKFOLD_LIMITS``, a JSON object of fields of :class:`tokfold.Limits`.
        compile_milliseconds: ``TOKFOLD_COMPILE_MILLISECONDS``, until a grammar is ready; 0 for no
            deadline, like the next two.
        mask_milliseconds: ``TOKFOLD_MASK_MILLISECONDS``, of one mask.
        accept_milliseconds: ``TOKFOLD_ACCEPT_MILLISECONDS``, of one token that is read.
        end_in_time: ``TOKFOLD_END_IN_TIME``, 1 for yes, as for ``TOKFOLD_VLLM``: the text of a
            request ends within its ``max_tokens``.
        prefer_end: ``TOKFOLD_PREFER_END``, with that: how many of the last of these tokens begin
            nothing new, as for :class:`tokfold.Matcher`.
        whitespace: ``TOKFOLD_WHITESPACE``, as for :meth:`tokfold.Grammar.from_json_schema`: where a
            JSON schema's text may have white space. None: what the server says, or anywhere.
    """

    cache_dir: Path | None = None
    classes: ClassesMode = "auto"
    limits: Limits = field(default_factory=Limits)
    compile_milliseconds: int = 2_000
    mask_milliseconds: int = 50
    accept_milliseconds: int = 20
    end_in_time: bool = False
    prefer_end: int = 0
    whitespace: Whitespace | None = None

    @property
    def request_limits(self) -> Limits:
        """``limits``, with the deadlines where it has none of its own."""
        changes: dict[str, Any] = {}
        for name in _DEADLINES:
            milliseconds = getattr(self, name)
            # A field that these limits do not have is not open.
            if milliseconds and getattr(self.limits, f"max_{name}", 0) is None:
                changes[f"max_{name}"] = milliseconds
        return replace(self.limits, **changes)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read them.

        Raises:
            ValueError: a variable cannot be read; names it.

        Warns:
            UserWarning: a variable has a name that is nearly one of these, so nothing reads it.
        """
        _warn_of_names(environ)
        folder = environ.get("TOKFOLD_CACHE_DIR")
        most_bytes(environ)  # of the folder, which reads it itself
        classes: Any = environ.get("TOKFOLD_CLASSES") or "auto"
        if classes not in get_args(ClassesMode):
            raise ValueError(f"TOKFOLD_CLASSES must be auto, now or never, not {quoted(classes)}")
        text = environ.get("TOKFOLD_LIMITS") or "{}"
        try:
            limits = Limits(**json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                "TOKFOLD_LIMITS must be a JSON object of fields of tokfold.Limits, not "
                f"{quoted(text)}: {encodable(str(error)[:MOST])}"
            ) from error
        of = "milliseconds, or 0 for none"
        deadlines = {name: _number(environ, name, of) for name in _DEADLINES}
        end_in_time = _switch(environ, "TOKFOLD_END_IN_TIME")
        prefer_end = _number(environ, "prefer_end", "tokens, or 0 for none")
        if prefer_end and not end_in_time:
            raise ValueError("TOKFOLD_PREFER_END needs TOKFOLD_END_IN_TIME=1, which counts tokens")
        try:
            place = Path(folder).expanduser() if folder else None
            check_folder(place)
        except (RuntimeError, ArtifactError, ValueError) as error:
            raise ValueError(
                f"TOKFOLD_CACHE_DIR must name a folder, not {quoted(folder)}: {error}"
            ) from error
        whitespace: Any = environ.get("TOKFOLD_WHITESPACE") or None
        if whitespace not in (None, *get_args(Whitespace)):
            choices = ", ".join(get_args(Whitespace))
            raise ValueError(
                f"TOKFOLD_WHITESPACE must be one of {choices}, not {quoted(whitespace)}"
            )
        return cls(
            place,
            classes,
            limits,
            **deadlines,
            end_in_time=end_in_time,
            prefer_end=prefer_end,
            whitespace=whitespace,
        )

    @staticmethod
    def variables(
        cache_dir: str | os.PathLike[str] | None,
        classes: ClassesMode | None,
        limits: Limits | None,
    ) -> dict[str, str]:
        """The variables that hold the given settings; the environment is read with them first."""
        if not isinstance(limits, Limits | None):
            raise wrong_type("limits", "tokfold.Limits or None", limits)
        out: dict[str, str] = {}
        if cache_dir is not None:
            if not isinstance(cache_dir, str | os.PathLike):
                raise wrong_type("cache_dir", "a path or None", cache_dir)
            if not os.fspath(cache_dir):
                raise ValueError("cache_dir must name a folder; leave it out for none")
            folder = Path(os.fsdecode(cache_dir)).expanduser().absolute()
            check_folder(folder)
            out["TOKFOLD_CACHE_DIR"] = str(folder)
        if classes is not None:
            out["TOKFOLD_CLASSES"] = classes
        if limits is not None:
            out["TOKFOLD_LIMITS"] = json.dumps(asdict(limits))
        Settings.from_environment({**os.environ, **out})
        return out


def _number(environ: Mapping[str, str], name: str, of: str) -> int:
    """A number of the environment, or what stands for it there."""
    variable = f"TOKFOLD_{name.upper()}"
    text = environ.get(variable) or str(getattr(Settings, name))
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= MOST_MILLISECONDS:
        raise ValueError(f"{variable} must be whole {of}, not {quoted(text)}")
    return number


def _switch(environ: Mapping[str, str], variable: str) -> bool:
    """A variable of the environment that says yes or no; no where it is not there."""
    text = environ.get(variable) or "0"
    found = SWITCHES.get(text.strip().lower())
    if found is None:
        raise ValueError(
            f"{variable} must be 1 or 0 (or true, yes, on; false, no, off), not {quoted(text)}"
        )
    return found


def _warn_of_names(environ: Mapping[str, str]) -> None:
    """Warn of variables whose names are nearly those of settings."""
    known = ["MAX_CACHE_BYTES", *(each.name.upper() for each in fields(Settings))]
    for variable in environ:
        start, _, name = variable.partition("_")
        if start != "TOKFOLD" or name in known:
            continue
        for alike in get_close_matches(name, known, 1, 0.7):
            warnings.warn(
                f"nothing reads the variable {variable}; did you mean TOKFOLD_{alike}?",
                stacklevel=3,
            )
