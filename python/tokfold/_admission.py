"""Who compiles next: a bound on how many do at once, and an order among those who wait."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

SMALL = 64 << 10
"""Characters of source up to which a request is small."""

AGEING = 64 << 10
"""Characters by which each later request makes those before it smaller."""


def default_slots() -> int:
    """How many compile at once: the CPUs, at most four, and two at least, one for small ones."""
    return max(2, min(4, os.cpu_count() or 1))


Granted: TypeAlias = Callable[[], "Callable[[], object] | None"]


class Ticket:
    """The place of one request in a :class:`CompileQueue`.

    Args:
        size: characters of the source.
        granted: called when the request may compile, in a thread that made room, with no lock
            held; None where a thread waits instead. Where the request cannot go on, it returns what
            is to be called when the request has left.
    """

    def __init__(self, size: int, granted: Granted | None = None) -> None:
        self.size = size
        self.is_small = size <= SMALL
        self._granted = granted
        self._event = threading.Event()
        self._place: tuple[int, int] | None = None

    def wait(self) -> None:
        """Wait until the request may compile."""
        self._event.wait()


_Lane = list[tuple[tuple[int, int], Ticket]]


class CompileQueue:
    """Admits so many requests at once; the others wait.

    The smallest source goes first, and each request that comes later makes those before it smaller
    by ``AGEING`` characters. A request is therefore passed by no more later ones than its size
    holds that number, 112 for 7 MB, whatever the clock says. Of two slots or more, one is kept for
    requests up to ``SMALL``: large ones that compile do not hold up a small one either, since a
    compilation that has begun goes to its end.

    No lock is held while a request waits or compiles. Safe between threads.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._small: _Lane = []
        self._large: _Lane = []
        self._running: set[Ticket] = set()
        self._untold: deque[Ticket] = deque()

    @property
    def queued(self) -> int:
        """Requests that wait."""
        return len(self._small) + len(self._large)

    @property
    def running(self) -> int:
        """Requests that may compile, and have not left."""
        return len(self._running)

    def enter(self, ticket: Ticket) -> None:
        """Take a place. The ticket is new."""
        with self._lock:
            self._number += 1
            ticket._place = ticket.size + AGEING * self._number, self._number
            insort(self._lane(ticket), (ticket._place, ticket))
            self._grant()
        self._tell()

    def leave(self, ticket: Ticket) -> None:
        """Give up the place or the slot; does nothing where the ticket has neither."""
        self._remove(ticket)
        self._tell()

    def _remove(self, ticket: Ticket) -> None:
        with self._lock:
            if ticket in self._running:
                self._running.discard(ticket)
            elif ticket._place is not None:
                lane = self._lane(ticket)
                at = bisect_left(lane, (ticket._place,))
                if at < len(lane) and lane[at][1] is ticket:
                    del lane[at]
            ticket._place = ticket._granted = None
            self._grant()

    def after_fork(self) -> None:
        """In a child process nobody waits, and nobody compiles."""
        self._forget()

    def _lane(self, ticket: Ticket) -> _Lane:
        return self._small if ticket.is_small else self._large

    def _grant(self) -> None:
        """Admit while there is room; threads that wait are awake, and the others are to be told."""
        while (ticket := self._next()) is not None:
            self._running.add(ticket)
            self._untold.append(ticket)
            ticket._event.set()

    def _tell(self) -> None:
        """Tell those who were admitted, by this thread or by one that was interrupted."""
        refused: list[Callable[[], object]] = []
        # No recursion: where one cannot go on, thousands may not be able to.
        while self._untold:
            try:
                ticket = self._untold.popleft()
            except IndexError:  # another thread was faster
                break
            granted = ticket._granted
            refusal = None if granted is None else granted()
            if refusal is not None:
                refused.append(refusal)
                self._remove(ticket)
        for refusal in refused:
            refusal()

    def _next(self) -> Ticket | None:
        running = len(self._running)
        if running >= self.slots:
            return None
        large = sum(not ticket.is_small for ticket in self._running)
        room = self._large and large < max(1, self.slots - 1)
        if room and (not self._small or self._large[0][0] < self._small[0][0]):
            return self._large.pop(0)[1]
        return self._small.pop(0)[1] if self._small else None
