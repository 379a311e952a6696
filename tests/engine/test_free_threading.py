"""Many threads at once, and an interpreter without the GIL: nothing is wrong, nothing crashes.

With the GIL these are ordinary tests of threads. Where it is off when the tests begin
(``python3.14t``), it is off when they end: the module asks for no GIL, and nothing that it does
turns it on.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import tokfold
from strategies.engine import compiled_with
from strategies.profiles import CASES, LONG
from support import processes
from support.processes import DEADLINE_S
from tokfold import Grammar, GrammarCompiler, Matcher, MatcherStateError, Vocabulary, _core, _parts
from tokfold._tags.leaves import default_cache
from tokfold.pool import shared_pool

THREADS = 8


def has_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()


HAD_GIL = has_gil()


@pytest.fixture(autouse=True)
def _the_gil_stays_off() -> Iterator[None]:
    yield
    assert has_gil() == HAD_GIL


def at_once(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """What each of some threads makes of its number; they begin in the same moment."""
    barrier = threading.Barrier(threads)

    def begin(number: int) -> Any:
        barrier.wait(DEADLINE_S)
        return work(number)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(begin, number) for number in range(threads)]
            return [future.result(DEADLINE_S) for future in futures]
    finally:
        sys.setswitchinterval(interval)


# ------------------------------------------------------------------------------------- import


def test_import_leaves_the_gil_as_it_is():
    """Where a module asks for the GIL, the interpreter turns it on and warns."""
    program = (
        "import sys\n"
        "import numpy\n"
        "has_gil = getattr(sys, '_is_gil_enabled', lambda: True)\n"
        "before = has_gil()\n"
        "import tokfold\n"
        "tokfold.Vocabulary([b'a'])._compiled\n"
        "assert has_gil() == before\n"
    )
    result = processes.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parents[1])},
    )
    assert (result.returncode, result.stderr) == (0, "")


# -------------------------------------------------------------------------- what is made lazily


def test_a_vocabulary_is_made_ready_once(monkeypatch):
    """Two threads that make it ready in the same moment get the same, and so do their pools."""
    both, real = threading.Barrier(2), _core.Vocabulary

    def made(*arguments: Any) -> _core.Vocabulary:
        both.wait(DEADLINE_S)  # the one waits until the other is as far
        return real(*arguments)

    monkeypatch.setattr(_core, "Vocabulary", made)
    vocabulary = Vocabulary([b"a", b"b"])
    grammar = Grammar.from_ebnf('root ::= "a"')
    found = at_once(
        lambda _: (
            tokfold.compile(
                grammar,
                vocabulary,
                classes="never",
                options=tokfold.CompileOptions(check_tokens=False),
            ),
            vocabulary._compiled,
            shared_pool(vocabulary),
        ),
        threads=2,
    )
    assert found[0][1] is found[1][1] is vocabulary._compiled
    assert found[0][2] is found[1][2] is shared_pool(vocabulary)


# ------------------------------------------------------------------------------------ a matcher


def test_one_matcher_in_many_threads():
    """Each call is done whole, or refused with an error that says why; the text is what was
    done."""
    compiled = tokfold.compile(
        Grammar.from_ebnf('root ::= "a" root | "b"'), Vocabulary([b"a", b"b"]), classes="never"
    )
    matcher = Matcher(compiled)

    def work(number: int) -> tuple[int, int]:
        steps = refused = 0
        random = Random(number)
        row = tokfold.allocate_bitmask(1, 2)
        uses: list[Callable[[], object]] = [
            lambda: matcher.fill_bitmask(row),
            lambda: matcher.state,
            lambda: matcher.fork().text,
            lambda: matcher.forced_bytes(),
            lambda: tokfold.fill_bitmask_batch([matcher], row),
            lambda: repr(matcher),
        ]
        for _ in range(2_000 if LONG else 300):
            kind = random.randrange(4)
            try:
                if kind == 0:
                    steps += matcher.accept_token(0)
                elif kind == 1:
                    steps += matcher.accept_bytes(b"a")
                elif kind == 2:
                    steps += int(tokfold.accept_token_batch([matcher], [0])[0])
                else:
                    random.choice(uses)()
            except MatcherStateError as error:
                assert "in use, by another thread" in str(error)  # noqa: PT017
                refused += 1
        return steps, refused

    found = at_once(work)
    assert matcher.num_steps == sum(steps for steps, _ in found)
    assert matcher.text == b"a" * matcher.num_steps
    assert matcher.accept_bytes(b"b")
    CASES["threads: calls refused"] += sum(refused for _, refused in found)


def test_rows_of_one_bitmask():
    """A thread that is given rows of its own is never refused."""
    tokens = [bytes([byte]) for byte in range(256)]
    compiled = tokfold.compile(
        Grammar.from_ebnf('root ::= "(" root ")" | [a-z]+'), Vocabulary(tokens), classes="never"
    )
    bitmask = tokfold.allocate_bitmask(THREADS, len(tokens))

    def work(number: int) -> None:
        own = bitmask[number : number + 1]
        for depth in range(200):
            matcher = Matcher(compiled)
            assert matcher.accept_bytes(b"(" * (depth % 5) + b"x" * (number % 2))
            expected = tokfold.allocate_bitmask(1, len(tokens))
            matcher.fill_bitmask(expected)
            matcher.fill_bitmask(own)
            assert (own == expected).all()

    at_once(work)


def test_one_bitmask_in_two_calls():
    """The second is refused with an error that says what to do."""
    letters = b"abcdefghijklmnopqrstuvwxyz"
    tokens = [bytes([a, b, c]) for a in letters for b in letters for c in letters]
    grammar, vocabulary = Grammar.from_ebnf("root ::= [a-y]*"), Vocabulary(tokens)
    compiled, other = (
        compiled_with(grammar, vocabulary, classes="never", pool=None) for _ in range(2)
    )
    bitmask = tokfold.allocate_bitmask(2, len(tokens))
    first, second, over = Matcher(compiled), Matcher(other), threading.Event()

    def fill() -> None:
        while not over.is_set():
            compiled._core.forget()  # so that it takes a while
            with contextlib.suppress(ValueError):
                first.fill_bitmask(bitmask, 0)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(fill)
        try:
            with pytest.raises(ValueError, match=r"give each rows of its own, bitmask\[row : row"):
                processes.until(lambda: second.fill_bitmask(bitmask, 1) and running.done())
        finally:
            over.set()
        running.result(DEADLINE_S)


# --------------------------------------------------------------------------------------- stress

TEXTS = [bytes([byte]) for byte in range(32, 127)]
TEXTS += [b"<f=", b"</f>", b'{"a"', b"11", b"ab", b'":', b"</t", b"aaa", b", "]
STOP = len(TEXTS)
JSON = r"""
v ::= s | "[" v ("," v)* "]" | [01]{1,30}
s ::= "\"" inside
inside ::= "\"" | [^"\\\x00-\x1f] inside | "\\" ["\\] inside
"""
GRAMMARS = (
    'root ::= "{" s ":" v "}"' + JSON,
    'root ::= "[" s "," v "]"' + JSON,
    'root ::= "(" root ")" | "a" | root "," root',
    'root ::= ("ab" | "c" "a"?){17,30} "x"',
    'root ::= TagDispatch(("<f=", x), excludes=("!",))\nx ::= [0-9]+ ">"',
)


def tool(number: int) -> dict[str, Any]:
    content = {"type": "grammar", "grammar": f'root ::= "{number % 3}" v' + JSON}
    return {"type": "tag", "begin": f"<f={number}>", "content": content, "end": "</f>"}


def tools(count: int) -> Grammar:
    """So many tools; more than 32 of them are handed to the core as they are."""
    tags = [tool(number) for number in range(count)]
    format = {"type": "triggered_tags", "triggers": ["<f="], "tags": tags}
    return Grammar.from_structural_tag({"format": format})


class Shared:
    """What all threads of a round have in common, nothing of it made ready."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary([*TEXTS, b"</s>"], stop_token_ids=[STOP])
        self.compiler = GrammarCompiler(
            self.vocabulary, max_grammars=3, max_pool_bytes=20_000, seed=False
        )
        self.grammars = [Grammar.from_ebnf(text) for text in GRAMMARS]
        self.many, self.few = tools(40), tools(3)
        self.forked: list[Matcher] = []


REQUESTS: dict[str, Callable[[Shared], tokfold.CompiledGrammar]] = {
    **{
        f"text {number}": lambda shared, text=text: shared.compiler.compile_grammar(text)
        for number, text in enumerate(GRAMMARS)
    },
    **{
        f"grammar {number}": lambda shared, number=number: tokfold.compile(
            shared.grammars[number], shared.vocabulary
        )
        for number in range(len(GRAMMARS))
    },
    "many tools": lambda shared: shared.compiler.compile_grammar(shared.many),
    "more tools": lambda shared: shared.compiler.compile_grammar(
        shared.many.with_tags([tool(40), tool(41)], ["<f=3>"])
    ),
    "few tools": lambda shared: tokfold.compile(shared.few, shared.vocabulary, classes="never"),
    "no tools but one": lambda shared: shared.compiler.compile_grammar(
        shared.few.with_tags([tool(7)], ["<f=0>", "<f=1>", "<f=2>"])
    ),
    "tools anew": lambda shared: shared.compiler.compile_grammar(tools(36)),
}


def rows_of(matchers: list[Matcher], threads: int) -> list[bytes]:
    """The masks of some matchers: one by one, or all at once."""
    bitmask = tokfold.allocate_bitmask(len(matchers), STOP + 1)
    if threads:
        tokfold.fill_bitmask_batch(matchers, bitmask, threads=threads)
    else:
        for row, matcher in enumerate(matchers):
            matcher.fill_bitmask(bitmask, row)
    return [row.tobytes() for row in bitmask]


def walk(name: str, matcher: Matcher, threads: int = 0) -> list[tuple[int, bytes]]:
    """The masks along a walk of a matcher and its forks, and the tokens taken."""
    random, out = Random(name), []
    if "tool" in name:
        assert matcher.accept_bytes(b"x<f=")
    for _ in range(6):
        matchers = [matcher, *(matcher.fork() for _ in range(20 if threads else 1))]
        row, *others = rows_of(matchers, threads)
        assert others == [row] * len(others)
        bits = np.unpackbits(np.frombuffer(row, np.uint8), bitorder="little")[:STOP]
        allowed = np.flatnonzero(bits).tolist()
        token = random.choice(allowed) if allowed else -1
        out.append((token, row))
        if not allowed:
            break
        if threads:
            taken = tokfold.accept_token_batch(matchers, [token] * len(matchers), threads)
            assert taken.all()
            tokfold.rollback_batch(matchers[1:], [1] * (len(matchers) - 1), threads)
            assert rows_of(matchers[1:], threads) == others
        else:
            assert matcher.accept_token(token)
    return out


@pytest.fixture(scope="module")
def alone() -> dict[str, list[tuple[int, bytes]]]:
    """What one thread sees that shares nothing with others."""
    return {name: walk(name, Matcher(make(Shared()))) for name, make in REQUESTS.items()}


def forget(shared: Shared, random: Random) -> None:
    """Forget something that others are using."""
    random.choice(
        [
            shared.compiler.clear_cache,
            shared.compiler.pool.clear,
            shared.compiler.statistics,
            shared.compiler.get_cache_size_bytes,
            default_cache.clear,
            _parts.shared.clear,
        ]
    )()


def one(shared: Shared, random: Random, alone: dict[str, list[tuple[int, bytes]]]) -> None:
    """One request, and sometimes something in its way."""
    name = random.choice([*REQUESTS])
    if random.random() < 0.3:
        forget(shared, random)
    compiled = REQUESTS[name](shared)
    if random.random() < 0.2:
        compiled.stop()
    matcher = Matcher(compiled)
    assert walk(name, matcher.fork(), random.choice([0, 0, 2, 3])) == alone[name], name
    CASES["threads: masks beside those of one thread"] += len(alone[name])


def test_stress(alone):
    """Threads that compile, change tools, fill masks alone and in batches, and forget all."""
    for round in range(100 if LONG else 4):
        shared = Shared()

        def work(number: int, round: int = round, shared: Shared = shared) -> None:
            random = Random(f"{round} {number}")
            for _ in range(12):
                one(shared, random, alone)

        at_once(work)


def test_forks_of_one_matcher(alone):
    """A thread for each fork, all made of one text, and nothing remembered before."""
    for name, make in REQUESTS.items():
        matcher = Matcher(make(Shared()))
        forks = [matcher.fork() for _ in range(THREADS)]
        found = at_once(lambda number, name=name, forks=forks: walk(name, forks[number]))
        assert found == [alone[name]] * THREADS
        CASES["threads: masks of forks"] += THREADS * len(alone[name])


def test_the_stress_has_teeth(alone):
    """A wrong mask is found out."""
    wrong = dict(alone)
    for name, seen in alone.items():
        wrong[name] = [*seen[:-1], (seen[-1][0], bytes(len(seen[-1][1])))]
    shared, random = Shared(), Random(0)
    with pytest.raises(AssertionError, match=r"text|grammar|tools"):
        one(shared, random, wrong)
