"""Classes and warm masks, made beside the requests.

One thread works for the whole process: a server that compiles a grammar for each request has
thousands of them, and its processors are for the requests. The work cannot be suspended, so each
grammar has a bound on its time in the thread, past which it goes without classes.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
import weakref
from os import PathLike
from typing import Protocol

from tokfold import _core
from tokfold._cache import usable_folder
from tokfold.classes import TokenClasses, compile_classes
from tokfold.errors import LimitExceededError, TokfoldError
from tokfold.grammar import Grammar
from tokfold.interrupt import Interrupt
from tokfold.limits import Limits
from tokfold.vocabulary import Vocabulary

WARM_STATES = 1_000
"""States whose masks are made ahead of time, the costliest first."""

_WARM_STEPS = (100, 300, WARM_STATES)
"""How many states are made after each look at the clock."""

DEFAULT_MILLISECONDS = 2_000
"""What one grammar may take of the thread."""


class _Stopped(Exception):  # noqa: N818 - no error
    """The work is no longer wanted."""


class Compiled(Protocol):
    """What is made ready: a :class:`tokfold.CompiledGrammar`."""

    grammar: Grammar
    vocabulary: Vocabulary
    limits: Limits
    _core: _core.Engine

    def take_classes(self, classes: TokenClasses) -> None:
        """Look at one representative for each class from now on."""


class Background:
    """What is made for one compiled grammar.

    Holds it weakly: when nobody wants it any more, the work ends, or does not begin.

    Args:
        compiled: the grammar.
        cache_dir: a folder of compiled classes.
        milliseconds: time of the processor that the work may take, in the thread; what waits while
            others compute does not count. None for no bound.
    """

    def __init__(
        self,
        compiled: Compiled,
        cache_dir: str | PathLike[str] | None,
        milliseconds: int | None = DEFAULT_MILLISECONDS,
    ) -> None:
        self._interrupt = Interrupt()
        self._is_stopped = False  # no event, whose lock a finalizer may find held
        self._is_done = threading.Event()
        self._compiled = weakref.ref(compiled)
        self._arguments = (compiled.grammar, compiled.vocabulary, compiled.limits)
        self._cache_dir = cache_dir
        self._milliseconds = milliseconds
        self._began = 0.0
        self.failure: TokfoldError | None = None
        weakref.finalize(compiled, self.stop).atexit = False
        try:
            _WORKER.add(self)
        except RuntimeError as error:  # the interpreter ends, or the system has no more threads
            self._fail(TokfoldError(f"no thread to make them in: {error}"))
            self._is_done.set()

    def stop(self) -> None:
        """End the work, or leave it undone."""
        self._is_stopped = True
        self._interrupt.cancel()

    def wait(self, timeout: float | None) -> bool:
        """Whether the work has ended, in one way or another, within so many seconds."""
        return self._is_done.wait(timeout)

    def _report(self, done: int, total: int) -> None:
        if self._is_stopped:
            raise _Stopped
        if self._is_late():
            assert self._milliseconds is not None
            raise LimitExceededError(
                f"they take more than {self._milliseconds} ms in the background, where other "
                "grammars wait; raise classes_milliseconds, or make them ahead of time with "
                "compile_classes",
                "classes_milliseconds",
                self._milliseconds,
            )

    def _is_late(self) -> bool:
        if self._milliseconds is None:
            return False
        return 1_000 * (time.thread_time() - self._began) > self._milliseconds

    def run(self) -> None:
        """Do the work. Called by the worker."""
        try:
            self._began = time.thread_time()
            if not self._is_stopped:
                self._make()
        except _Stopped:
            pass
        except TokfoldError as error:
            self._fail(error)
        except BaseException as error:  # whatever it is, it is said where somebody waits
            self._fail(TokfoldError(f"{type(error).__name__}: {error}"))
        finally:
            self._is_done.set()

    def _fail(self, error: TokfoldError) -> None:
        if not self._is_stopped:
            self.failure = error

    def leave(self) -> None:
        """Nobody will do the work. For a child process: its events are nobody's any more."""
        self._is_done = threading.Event()
        self._is_done.set()

    def _make(self) -> None:
        grammar, vocabulary, limits = self._arguments
        classes = compile_classes(
            grammar,
            vocabulary,
            limits,
            progress=self._report,
            cache_dir=usable_folder(self._cache_dir),
            interrupt=self._interrupt,
        )
        compiled = self._compiled()
        if compiled is not None and not self._is_stopped:
            compiled.take_classes(classes)
            core = compiled._core
            del compiled  # its end is to be noticed
            for states in _WARM_STEPS:
                if self._is_late():
                    break
                core.warm(states, self._interrupt._core)


class _Worker:
    """The thread and what it has before it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._queue: queue.SimpleQueue[Background] = queue.SimpleQueue()
        self._undone: set[Background] = set()
        self._current: Background | None = None
        self._thread: threading.Thread | None = None
        self._is_ending = False

    def after_fork(self) -> None:
        """In a child process there is no thread: who waits there is not to wait for ever."""
        for work in self._undone:
            work.leave()
        self._lock = threading.Lock()
        self._forget()

    def add(self, work: Background) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():  # it may not have begun
                self._thread = threading.Thread(
                    target=self._run, name="tokfold-classes", daemon=True
                )
                self._thread.start()
        self._undone.add(work)
        self._queue.put(work)

    def _run(self) -> None:
        while not self._is_ending:
            self._current = self._queue.get()
            if not self._is_ending:
                self._current.run()
            self._undone.discard(self._current)
            self._current = None

    def end(self) -> None:
        """End while there is an interpreter for the work to report to."""
        self._is_ending = True
        current, thread = self._current, self._thread
        if current is not None and thread is not None:
            current.stop()
            thread.join(timeout=5)


_WORKER = _Worker()
atexit.register(_WORKER.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKER.after_fork)
