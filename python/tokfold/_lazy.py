"""Properties that are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["lazy"]

T_co = TypeVar("T_co", covariant=True)


class lazy(Generic[T_co]):  # noqa: N801 - a decorator
    """A property that is made once, when it is first asked for, and kept in the object.

    As :class:`functools.cached_property`, but without its lock: before Python 3.12 that is one for
    all objects of a class, so that a thread that makes a large one holds up all others, and a child
    process that was forked meanwhile waits for ever. Two threads may both make it here; both get
    the one that was kept first.

    Example:
        >>> class Text:
        ...     @lazy
        ...     def words(self) -> list[str]:
        ...         return "two words".split()
        >>> text = Text()
        >>> text.words is text.words
        True
    """

    def __init__(self, make: Callable[[Any], T_co]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T_co: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T_co:
        if instance is None:
            return self
        made: T_co = vars(instance).setdefault(self._name, self._make(instance))
        return made
