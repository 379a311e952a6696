"""What an operator may choose."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from tokfold.engine import ClassesMode
from tokfold.limits import Limits

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """What an operator may choose, by arguments or in the environment.

    A server runs in several processes. The environment reaches all of them, so arguments are
    written there.

    Attributes:
        cache_dir: ``TOKFOLD_CACHE_DIR``, as for :class:`tokfold.GrammarCompiler`.
        classes: ``TOKFOLD_CLASSES``, as there.
        limits: ``TOKFOLD_LIMITS``, a JSON object of fields of :class:`tokfold.Limits`.
    """

    cache_dir: Path | None = None
    classes: ClassesMode = "auto"
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def from_environment(cls) -> Settings:
        """Read them.

        Raises:
            ValueError: a variable cannot be read; names it.
        """
        folder = os.environ.get("TOKFOLD_CACHE_DIR")
        classes: Any = os.environ.get("TOKFOLD_CLASSES") or "auto"
        if classes not in get_args(ClassesMode):
            raise ValueError(f"TOKFOLD_CLASSES must be auto, now or never, not {classes!r}")
        text = os.environ.get("TOKFOLD_LIMITS") or "{}"
        try:
            limits = Limits(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"TOKFOLD_LIMITS must be a JSON object of fields of tokfold.Limits: {error}"
            ) from error
        return cls(Path(folder) if folder else None, classes, limits)

    @staticmethod
    def publish(
        cache_dir: str | os.PathLike[str] | None,
        classes: ClassesMode | None,
        limits: Limits | None,
    ) -> None:
        """Write those that are given into the environment."""
        if cache_dir is not None:
            os.environ["TOKFOLD_CACHE_DIR"] = str(Path(cache_dir).absolute())
        if classes is not None:
            os.environ["TOKFOLD_CLASSES"] = classes
        if limits is not None:
            os.environ["TOKFOLD_LIMITS"] = json.dumps(asdict(limits))
        Settings.from_environment()
