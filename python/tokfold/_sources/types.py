"""What pydantic's objects are, told without importing pydantic."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol, TypeGuard

from tokfold.errors import ArgumentTypeError


class Adapter(Protocol):
    """What is used of a ``TypeAdapter``."""

    def json_schema(self) -> dict[str, Any]:
        """The schema of its type."""
        ...


def is_adapter(value: object) -> TypeGuard[Adapter]:
    """Whether it is a ``pydantic.TypeAdapter``."""
    made_by = (
        f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(value).__mro__
    )
    return "pydantic.TypeAdapter" in made_by


def is_value_of_model(value: object) -> bool:
    """Whether it is a value of a model or of a dataclass, and not the class."""
    if isinstance(value, type):
        return False
    return dataclasses.is_dataclass(value) or hasattr(type(value), "model_json_schema")


def old_model(value: object) -> str | None:
    """The name of a model of pydantic 1, of the class or of a value of it; None for all else."""
    own = value if isinstance(value, type) else type(value)
    is_old = any(
        base.__name__ == "BaseModel" and base.__module__.partition(".")[0] == "pydantic"
        for base in own.__mro__
    )
    return own.__name__ if is_old and not hasattr(own, "model_json_schema") else None


def made_by_pydantic(make: Callable[[], dict[str, Any]], what: str) -> dict[str, Any]:
    """The schema that pydantic makes."""
    try:
        return make()
    except Exception as error:
        if all(base.__name__ != "PydanticUserError" for base in type(error).__mro__):
            raise
        cause = str(error).partition("\n")[0]
        if getattr(error, "code", None) == "invalid-for-json-schema":
            cause += "; give what is meant another type, or pydantic's WithJsonSchema"
        raise ArgumentTypeError(f"{what}: {cause}") from error


def said_of_value(value: object) -> str:
    """The words of an error about such a value."""
    name = type(value).__name__
    return (
        f"this is a value of {name}, which says nothing about other values; pass the class {name}"
    )
