"""Cached properties without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class lazy(Generic[T_co]):  # noqa: N801 - a decorator
    """A cached property: the object computes its value on first access and keeps it.

    It differs from :class:`functools.cached_property` in that it holds no lock. Before Python 3.12
    that class holds one lock for all objects: while a thread computes a large value, other threads
    wait, and a child process that is forked then deadlocks. Here two threads may both compute the
    value; both get the one that was stored first.

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
