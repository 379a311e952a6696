"""Three fuzzers of our own engine, for as long as one likes.

    python benches/python/fuzz_engine.py --seconds 60 [--seed N] [ops|text|oracle ...]

text: mutated grammar texts; reading and compiling one works or raises an error of tokfold's.
ops: random calls of random matchers in random order, misuse included; answers must agree.
oracle: random grammars and walks against a naive recognizer, bit by bit.

Each case has a number; ``--case N`` runs one again. Exits with 1 where something was found.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
if not os.environ.get("PYTHONPATH"):
    # Without an installed tokfold the checkout's own package serves.
    sys.path.append(str(ROOT / "python"))

import numpy as np  # noqa: E402
import tokfold  # noqa: E402
from strategies.engine import (  # noqa: E402
    Setting,
    allowed_tokens,
    build_counted_setting,
    build_setting,
    check,
    compiled_ways,
    mask_of,
    plain_matcher,
)
from strategies.vocabularies import FOREIGN  # noqa: E402

TEXTS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "grammars").glob("*/*.gbnf"))]
FRAGMENTS = [
    *("root", "::=", '""', '"a"', "[a-z]", "[^]", "[]", "(", ")", "|", "*", "+", "?", "{2,5}"),
    *("{0}", "{3,}", "{200}", "{0,1000}", "{,}", "#", "\n", " ", "\\", '"\\u00e9"', '"\\x80"'),
    *("[\\ud800-\\udfff]", "[\\u0000-\\U0010ffff]", "x ::= x", "root ::= root root", "é", "\0"),
    *("(= x)", "Token(1)", "TagDispatch()", "-", "^", "99999999999", "{9,2}", "'", "::", "\ufeff"),
]
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"|\[(?:[^\]\\\n]|\\.)*\]|#[^\n]*')
WORDS_OF_TEXT = tokfold.Vocabulary(
    [*(bytes([i]) for i in range(256)), b"  ", b"ab", b"::=", b"\xc3\xa9", b"if (", b"</s>"],
    stop_token_ids=[261],
)
SMALL = tokfold.Limits(
    max_network_states=200_000,
    max_network_edges=1_000_000,
    max_mask_work=300_000,
    max_accept_work=100_000,
)


def mutated(random: Random) -> str:
    """A grammar text, or some rules of one, with a few things wrong."""
    lines = random.choice(TEXTS).splitlines()
    if random.random() < 0.6:
        start = random.randrange(len(lines))
        lines = lines[start : start + random.randint(1, 12)]
        if random.random() < 0.5:
            named = [line.split("::=")[0].strip() for line in lines if "::=" in line]
            lines.insert(0, "root ::= " + " ".join(named[:3]))
    text = "\n".join(lines)
    for _ in range(random.choice([0, 0, 1, 1, 2, 6])):
        at = random.randint(0, len(text))
        end = at + random.choice([0, 0, 1, 3, 12])
        match random.randrange(4):
            case 0 | 1:
                text = text[:at] + random.choice(FRAGMENTS) + text[end:]
            case 2:
                text = text[:at] + text[end:]
            case 3:
                other = random.choice(TEXTS)
                begin = random.randrange(len(other))
                text = text[:at] + other[begin : begin + random.randint(1, 40)] + text[end:]
    return with_missing_rules(text, random) if random.random() < 0.9 else text


def with_missing_rules(text: str, random: Random) -> str:
    """Rules for the names that have none, or few texts would be read at all."""
    bare = LITERALS.sub(" ", text)
    defined = set(re.findall(r"([\w-]+)\s*::=", bare))
    missing = sorted({"root", *re.findall(r"[A-Za-z_][\w-]*", bare)} - defined)
    known = [*defined, *missing]
    bodies = ['"a"', '""', "[a-z]+", *(f'{name} "b" | "c"' for name in known[:4])]
    lines = [f"{name} ::= {random.choice(bodies)}" for name in missing]
    return "\n".join([text, *lines, ""])


def fuzz_text(random: Random) -> str:
    """Reads and compiles a text; looks at a few masks; what was tried."""
    text = mutated(random)
    try:
        grammar = tokfold.Grammar.from_ebnf(text)
        assert tokfold.Grammar.from_ebnf(str(grammar)) == grammar, "it does not print as itself"
        compiled = tokfold.compile(
            grammar,
            WORDS_OF_TEXT,
            SMALL,
            classes="never",
            options=tokfold.CompileOptions(check_tokens=False),
        )
        other = tokfold.compile(
            grammar,
            WORDS_OF_TEXT,
            SMALL,
            classes="never",
            options=tokfold.CompileOptions(check_tokens=False),
        )
        if random.random() < 0.3:
            other.take_classes(tokfold.compile_classes(grammar, WORDS_OF_TEXT, SMALL))
        matcher = tokfold.Matcher(compiled)
        for _ in range(6):
            mask = mask_of(matcher, len(WORDS_OF_TEXT))
            twin = tokfold.Matcher.from_state(other, matcher.state)
            assert mask_of(twin, len(WORDS_OF_TEXT)) == mask, "masks differ"
            allowed = allowed_tokens(mask[0])
            assert allowed, "nothing can follow"
            for token in random.sample(range(len(WORDS_OF_TEXT)), 5):
                assert matcher.fork().accept_token(token) is mask[0][token], token
            assert matcher.accept_token(random.choice(allowed))
            if matcher.is_terminated:
                break
    except tokfold.TokfoldError:
        pass
    except Exception as error:
        raise Found(text) from error
    return text


class Found(Exception):  # noqa: N818 - a finding, with what shows it
    """Something is wrong; the message is what was tried."""


def some_setting(random: Random) -> Setting:
    if random.random() < 0.2:
        return build_counted_setting(random)
    return build_setting(random, rules=random.randint(1, 6), size=random.randint(4, 30))


def fuzz_oracle(random: Random) -> str:
    """A walk of which every step is looked at in full."""
    setting = some_setting(random)
    try:
        ways = compiled_ways(setting)
        if ways is None:
            return str(setting)
        compiled = random.choice(ways)
        matcher, plain = tokfold.Matcher(compiled, **setting.options), plain_matcher(setting)
        for _ in range(random.randint(1, 8)):
            check(matcher, plain)
            if plain.ended or random.random() < 0.15:
                count = random.randint(0, len(plain.steps))
                matcher.rollback(count)
                plain.rollback(count)
                continue
            choices = allowed_tokens(plain.mask()) or range(len(setting.tokens))
            token = random.choice(list(choices))
            assert matcher.accept_token(token) is plain.accept_token(token)
    except Exception as error:
        raise Found(str(setting)) from error
    return str(setting)


def state_data(random: Random, state: tokfold.MatcherState) -> bytes:
    """A saved state, as it is or with something changed, the checksum right or not."""
    data = bytearray(state.to_bytes())
    if random.random() < 0.5:
        return bytes(data)
    magic, body = data[:16], data[32:]
    for _ in range(random.randint(1, 3)):
        place = random.randrange(8, len(body)) // 4 * 4
        number = random.choice([0, 1, 2, random.randrange(30), random.getrandbits(32), 2**32 - 1])
        match random.randrange(3):
            case 0:
                body[place : place + 4] = struct.pack("<I", number)
            case 1:
                body[place:place] = struct.pack("<I", number)
            case 2:
                del body[place : place + random.choice([1, 4, 4, 8])]
        if len(body) <= 8:
            break
    digest = hashlib.sha256(body).digest()[:16] if random.random() < 0.95 else bytes(16)
    return bytes(magic + digest + body)


CALLS = [
    *("token", "token", "token", "bytes", "mask", "rollback", "fork", "reset", "state"),
    *("forced", "explain", "batch", "agree", "cancel", "warm"),
]


class Ops:
    """Matchers of one grammar and what is known of them: their texts."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.setting = some_setting(random)
        self.log: list[str] = []
        ways = compiled_ways(self.setting)
        self.ways = ways or []
        if self.ways and random.random() < 0.3:
            name = random.choice(["max_mask_work", "max_accept_work", "max_memo_bytes"])
            limits = tokfold.Limits(**{name: random.randint(1, 5_000)})
            self.ways.append(
                tokfold.compile(
                    self.setting.our_grammar(),
                    self.setting.our_vocabulary(),
                    limits,
                    classes=random.choice(["never", "auto"]),
                    options=tokfold.CompileOptions(check_tokens=False),
                )
            )
        self.size = len(self.setting.tokens)
        self.pool: list[tokfold.Matcher] = []

    def _pick(self) -> tokfold.Matcher:
        if not self.pool or self.random.random() < 0.05:
            compiled = self.random.choice(self.ways)
            self.pool.append(tokfold.Matcher(compiled, **self.setting.options))
        if len(self.pool) > 8:
            del self.pool[self.random.randrange(len(self.pool))]
        return self.random.choice(self.pool)

    def one(self) -> None:
        """One call; it works or raises what it says it does, and then nothing has changed."""
        random, matcher = self.random, self._pick()
        try:
            before, steps, text = matcher.state, matcher.num_steps, matcher.text
            name = random.choice(CALLS)
            self.log.append(f"{self.pool.index(matcher)}.{name}")
            getattr(self, f"_{name}")(matcher)
        except tokfold.TokfoldError:
            matcher.resume()
            assert matcher.state == before, "an error changed the state"
            assert (matcher.num_steps, matcher.text) == (steps, text)

    def _token(self, matcher: tokfold.Matcher) -> None:
        steps = matcher.num_steps
        token = self.random.randrange(-1, self.size + 1)
        if not matcher.is_terminated and self.random.random() < 0.8:
            token = self.random.choice(allowed_tokens(mask_of(matcher, self.size)[0]) or [token])
        taken = matcher.accept_token(token)
        assert matcher.num_steps == steps + taken

    def _bytes(self, matcher: tokfold.Matcher) -> None:
        pieces = [*self.setting.tokens, *FOREIGN, b"", matcher.text[:5]]
        matcher.accept_bytes(b"".join(self.random.choices(pieces, k=self.random.randint(0, 3))))

    def _mask(self, matcher: tokfold.Matcher) -> None:
        assert mask_of(matcher, self.size) == mask_of(matcher.fork(), self.size)

    def _rollback(self, matcher: tokfold.Matcher) -> None:
        count = self.random.choice([0, 1, 1, 2, 5, 100, 1 << 40])
        steps = matcher.num_steps
        matcher.rollback(count)
        assert matcher.num_steps == steps - count

    def _fork(self, matcher: tokfold.Matcher) -> None:
        self.pool.append(matcher.fork())

    def _reset(self, matcher: tokfold.Matcher) -> None:
        matcher.reset()
        assert (matcher.num_steps, matcher.text) == (0, b"")

    def _state(self, matcher: tokfold.Matcher) -> None:
        state = tokfold.MatcherState.from_bytes(state_data(self.random, matcher.state))
        compiled = self.random.choice(self.ways)
        made = tokfold.Matcher.from_state(compiled, state, **self.setting.options)
        assert made.has_whole_text is (state.text is not None)
        if state == matcher.state:
            self.pool.append(made)
            return
        # No text leads to a forged state, so classes promise nothing there: it must do no harm.
        for call in (self._mask, self._token, self._bytes, self._rollback):
            call(made)

    def _forced(self, matcher: tokfold.Matcher) -> None:
        forced = matcher.forced_bytes(self.random.choice([0, 1, 5, 100]))
        assert matcher.fork().accept_bytes(forced)

    def _explain(self, matcher: tokfold.Matcher) -> None:
        token = self.random.randrange(self.size)
        assert matcher.explain(token).allowed is matcher.fork().accept_token(token)

    def _batch(self, matcher: tokfold.Matcher) -> None:
        live = [m for m in self.pool if not m.is_terminated]
        bitmask = np.zeros((len(self.pool), (self.size + 31) // 32), dtype=np.int32)
        rows = self.random.sample(range(len(self.pool)), len(live))
        needed = tokfold.fill_bitmask_batch(live, bitmask, rows, self.random.randint(0, 3))
        for single, row, needs in zip(live, rows, needed.tolist(), strict=True):
            alone = np.zeros_like(bitmask[0])
            assert single.fill_bitmask(alone) is needs
            assert (alone == bitmask[row]).all()

    def _agree(self, matcher: tokfold.Matcher) -> None:
        """Mask, `accept_token`, `accept_bytes`, other ways to compile: all the same."""
        bits, _ = mask_of(matcher, self.size)
        for token in range(self.size):
            assert matcher.fork().accept_token(token) is bits[token], token
            if text := self.setting.text_of(token):
                assert matcher.fork().accept_bytes(text) is bits[token], token
        for compiled in self.ways[:3]:
            twin = tokfold.Matcher.from_state(compiled, matcher.state, **self.setting.options)
            assert mask_of(twin, self.size)[0] == bits
            assert twin.state == matcher.state

    def _cancel(self, matcher: tokfold.Matcher) -> None:
        matcher.cancel()
        try:
            mask_of(matcher, self.size)
            matcher.accept_bytes(b"a")
            matcher.rollback(0)
        finally:
            matcher.resume()

    def _warm(self, matcher: tokfold.Matcher) -> None:
        matcher.compiled.warm(self.random.randint(0, 5))


def fuzz_ops(random: Random) -> str:
    """A sequence of calls; what was called."""
    ops = Ops(random)
    try:
        for _ in range(random.randint(5, 60) if ops.ways else 0):
            ops.one()
    except Exception as error:
        raise Found(f"{ops.setting}\n{' '.join(ops.log)}") from error
    return " ".join(ops.log)


FUZZERS: dict[str, Callable[[Random], str]] = {
    "text": fuzz_text,
    "ops": fuzz_ops,
    "oracle": fuzz_oracle,
}


def fuzz(name: str, seed: int, seconds: float, case: int | None) -> tuple[int, int]:
    """Runs one fuzzer; executions and findings."""
    done = found = 0
    end = time.monotonic() + seconds
    number = 0 if case is None else case
    while (time.monotonic() < end and found < 5) if case is None else done == 0:
        try:
            FUZZERS[name](Random(f"{name} {seed} {number}"))
        except Found as finding:
            found += 1
            print(f"FOUND by {name}: --seed {seed} --case {number} {name}\n{finding}", flush=True)
            traceback.print_exception(finding.__cause__, file=sys.stdout)
        done += 1
        number += 1
    return done, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("fuzzers", nargs="*", metavar="FUZZER", help=f"of {', '.join(FUZZERS)}")
    parser.add_argument("--seconds", type=float, default=60, help="for all together")
    parser.add_argument("--seed", type=int, help="by default from the clock")
    parser.add_argument("--case", type=int, help="only this one")
    arguments = parser.parse_args()
    names = arguments.fuzzers or list(FUZZERS)
    if unknown := set(names) - set(FUZZERS):
        parser.error(f"no fuzzer is named {', '.join(sorted(unknown))}")
    seed = time.time_ns() % (1 << 32) if arguments.seed is None else arguments.seed
    total = 0
    for name in names:
        done, found = fuzz(name, seed, arguments.seconds / len(names), arguments.case)
        print(f"{name}: {done:,} executions, {found} findings (seed {seed})", flush=True)
        total += found
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
