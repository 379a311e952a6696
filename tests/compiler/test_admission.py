"""The queue of a compiler: never more than so many at once, and nobody waits for ever."""

from __future__ import annotations

import threading
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("tokfold._core")

from strategies.profiles import LONG
from support.processes import DEADLINE_S
from tokfold._admission import AGEING, SMALL, CompileQueue, Ticket, default_slots

HUGE = 7 << 20


class Office:
    """A queue and its guests, by number; notes who is admitted, in order."""

    def __init__(self, slots: int) -> None:
        self.queue = CompileQueue(slots)
        self.tickets: list[Ticket] = []
        self.admitted: list[int] = []

    def come(self, size: int) -> int:
        number = len(self.tickets)
        ticket = Ticket(size, lambda: self.admitted.append(number))
        self.tickets.append(ticket)
        self.queue.enter(ticket)
        return number

    def go(self, number: int) -> None:
        self.queue.leave(self.tickets[number])


class TestOrder:
    def test_a_free_slot_is_taken_at_once(self):
        office = Office(2)
        assert office.come(1) == 0
        assert office.admitted == [0]
        assert (office.queue.running, office.queue.queued) == (1, 0)

    def test_the_smallest_goes_first(self):
        office = Office(1)
        for size in (HUGE, HUGE, 1 << 20, 100):
            office.come(size)
        for number in (0, 3, 2, 1):
            assert office.admitted[-1] == number
            office.go(number)
        assert office.queue.running == office.queue.queued == 0

    def test_equal_ones_go_in_the_order_they_came(self):
        office = Office(1)
        for _ in range(5):
            office.come(100)
        for number in range(5):
            office.go(number)
        assert office.admitted == [0, 1, 2, 3, 4]

    def test_two_large_ones_leave_a_slot_to_a_small_one(self):
        office = Office(2)
        office.come(HUGE)
        office.come(HUGE)
        assert office.admitted == [0]
        office.come(SMALL)
        assert office.admitted == [0, 2]
        office.come(1)
        assert office.admitted == [0, 2], "two compile"
        office.go(2)
        assert office.admitted == [0, 2, 3], "the slot of small ones"
        office.go(0)
        assert office.admitted == [0, 2, 3, 1]

    @pytest.mark.parametrize("slots", [1, 2, 4])
    def test_small_ones_take_all_slots_and_a_large_one_gets_its_turn(self, slots):
        """Each time one goes, another small one comes: the large one is passed a bounded number."""
        office = Office(slots)
        for _ in range(slots):
            office.come(1)
        large = office.come(HUGE)
        passed = 0
        while large not in office.admitted:
            office.come(1)
            office.go(office.admitted[passed])
            passed += 1
            assert passed <= HUGE // AGEING + slots, "it starves"
        assert passed > HUGE // AGEING - 2

    def test_one_slot_takes_large_ones_too(self):
        office = Office(1)
        office.come(HUGE)
        assert office.admitted == [0]

    def test_slots_by_default(self, monkeypatch):
        found = []
        for cpus in (None, 1, 2, 3, 64):
            monkeypatch.setattr("tokfold._admission.os.cpu_count", lambda cpus=cpus: cpus)
            found.append(default_slots())
        assert found == [2, 2, 2, 3, 4]


class TestLeaving:
    def test_one_that_waits(self):
        office = Office(1)
        for _ in range(3):
            office.come(10)
        office.go(1)
        assert office.queue.queued == 1
        office.go(0)
        assert office.admitted == [0, 2]

    def test_again_and_never_entered(self):
        office = Office(1)
        office.come(10)
        office.come(10)
        office.come(10)
        office.queue.leave(Ticket(10))
        office.go(0)
        office.go(0)
        assert office.admitted == [0, 1]
        assert (office.queue.running, office.queue.queued) == (1, 1)

    def test_what_it_would_have_called_is_let_go(self):
        import gc
        import weakref

        class Source:
            def compile(self) -> None: ...

        queue, source = CompileQueue(1), Source()
        queue.enter(Ticket(1))
        ticket = Ticket(1, source.compile)
        queue.enter(ticket)
        held = weakref.ref(source)
        queue.leave(ticket)
        del source
        gc.collect()
        assert held() is None

    def test_a_child_process_begins_anew(self):
        office = Office(1)
        for _ in range(3):
            office.come(10)
        office.queue.after_fork()
        assert (office.queue.running, office.queue.queued) == (0, 0)
        office.go(0)  # the thread that forked, when it comes back
        office.go(1)
        assert office.admitted == [0]
        assert office.come(10) == 3
        assert office.admitted == [0, 3]


SIZES = st.one_of(st.integers(0, 100), st.integers(0, 2 * SMALL), st.integers(0, HUGE))
EVENTS = st.lists(st.one_of(SIZES, st.tuples(st.booleans(), st.integers(0, 1 << 20))), max_size=80)


@given(slots=st.integers(1, 5), events=EVENTS)
@settings(deadline=None)
def test_any_order_of_coming_and_going(slots, events):
    """After each event: as many run as may, and a later one is admitted only where it may pass."""
    office = Office(slots)
    waiting: list[int] = []
    running: list[int] = []
    gone: set[int] = set()

    def small(number: int) -> bool:
        return office.tickets[number].size <= SMALL

    def check() -> None:
        for number in [n for n in office.admitted if n in waiting]:
            first = min(n for n in waiting)
            later = number - first
            assert later * AGEING <= office.tickets[first].size or small(number)
            waiting.remove(number)
            running.append(number)
        assert len(running) <= slots
        assert sum(not small(n) for n in running) <= max(1, slots - 1)
        assert (office.queue.running, office.queue.queued) == (len(running), len(waiting))
        if len(running) < slots:
            assert not any(small(n) for n in waiting), "there is room"
            assert not waiting or sum(not small(n) for n in running) == slots - 1 > 0

    for event in events:
        if isinstance(event, int):
            waiting.append(len(office.tickets))
            office.come(event)
        else:
            of_those = running if event[0] else waiting
            if not of_those:
                continue
            number = of_those.pop(event[1] % len(of_those))
            gone.add(number)
            office.go(number)
        check()
    while running:
        number = running.pop(0)
        gone.add(number)
        office.go(number)
        check()
    assert gone == set(range(len(office.tickets)))


def test_threads_that_wait_come_and_give_up():
    """Each thread is admitted or leaves; there are never more at once than there are slots."""
    slots, threads = 3, 8
    queue = CompileQueue(slots)
    lock = threading.Lock()
    inside = most = admitted = 0
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        nonlocal inside, most, admitted
        random = Random(seed)
        try:
            for _ in range(100 if not LONG else 2_000):
                size = random.choice((10, SMALL, SMALL + 1, HUGE))
                if random.random() < 0.3:
                    ticket = Ticket(size, lambda: None)
                    queue.enter(ticket)
                    queue.leave(ticket)
                    continue
                ticket = Ticket(size)
                queue.enter(ticket)
                assert ticket._event.wait(DEADLINE_S), "it hangs"
                with lock:
                    inside += 1
                    admitted += 1
                    most = max(most, inside)
                with lock:
                    inside -= 1
                queue.leave(ticket)
        except BaseException as error:
            failures.append(error)
            raise

    running = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(DEADLINE_S)
    assert not failures
    assert admitted > 200
    assert most <= slots
    assert (queue.running, queue.queued) == (0, 0)
