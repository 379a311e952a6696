"""Long and deep texts: no stack overflows, and each step costs what the first did.

Counters decide, not clocks. What goes wrong deep down is a crash, so the deepest are also tried in
a process of their own, dropping everything included.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import tokfold
from strategies.engine import mask_of
from support import processes

DEEP = 100_000
GRAMMARS = Path(__file__).parents[2] / "grammars"
JSON_TOKENS = [bytes([i]) for i in range(256)] + [b'{"', b'":', b'",', b"},", b"]]", b"</s>"]


def compiled_of(text: str, tokens: list[bytes], **options) -> tokfold.CompiledGrammar:
    options.setdefault("classes", "never")
    return tokfold.compile(
        tokfold.Grammar.from_ebnf(text),
        tokfold.Vocabulary(tokens, stop_token_ids=[len(tokens) - 1]),
        **options,
    )


BRACKETS = 'root ::= "(" root ")" | ""'
BRACKET_TOKENS = [b"(", b")", b"((", b"))", b"()", b")" * 16, b"x", b"</s>"]


class TestDeep:
    @pytest.mark.parametrize("classes", ["never", "now"])
    @pytest.mark.parametrize("by", ["bytes", "tokens"])
    def test_nested_brackets(self, by, classes):
        compiled = compiled_of(BRACKETS, BRACKET_TOKENS, classes=classes)
        matcher = tokfold.Matcher(compiled)
        if by == "bytes":
            assert matcher.accept_bytes(b"(" * DEEP)
        else:
            assert all(matcher.accept_token(0) for _ in range(DEEP))
        assert matcher.num_steps == (1 if by == "bytes" else DEEP)
        bottom = [True] * 6 + [False, False]
        assert mask_of(matcher, 8) == (bottom, True)
        assert matcher.forced_bytes() == b""
        assert matcher.explain(6).allowed is False

        # There and back, by forks and by rollback.
        fork = matcher.fork()
        assert all(fork.accept_token(5) for _ in range(DEEP // 16))
        assert fork.is_accepting
        assert fork.accept_token(7)
        assert fork.is_terminated
        fork.rollback(DEEP // 16 + 1)
        assert fork.state == matcher.state
        assert fork.num_steps == matcher.num_steps
        if by == "tokens":
            fork.rollback(DEEP - 1)
            assert fork.text == b"("
            assert mask_of(fork, 8)[0] == [True, True, True, False, True, False, False, False]
        del fork

        # The state as a value.
        state = matcher.state
        data = state.to_bytes()
        assert len(data) < 40 * DEEP
        again = tokfold.MatcherState.from_bytes(data)
        assert again == state
        assert hash(again) == hash(state)
        restored = tokfold.Matcher.from_state(compiled, again)
        assert mask_of(restored, 8) == (bottom, True)
        assert restored.accept_bytes(b")" * DEEP)
        assert restored.is_accepting
        assert restored.forced_bytes() == b""
        matcher.reset()
        assert matcher.is_accepting

    @pytest.mark.parametrize(
        ("grammar", "text"),
        [
            (BRACKETS, "b'(' * n + b')' * n"),
            ('root ::= root root | "(" root ")" | "x"', "b'(' * n + b'x' + b')' * n"),
            ('root ::= "x" root | "x"', "b'x' * n"),
            ('root ::= root "x" | "x"', "b'x' * n"),
            ('root ::= "x" root "y"?  | "x"', "b'x' * n + b'y' * (n // 2)"),
            ('root ::= "a" root "a" | "a"', "b'a' * n"),
            ('root ::= a "." | b "!"\na ::= "(" a ")" | ""\nb ::= "(" b ")" | ""',
             "b'(' * n + b')' * n"),
        ],
    )  # fmt: skip
    def test_nothing_overflows(self, grammar, text):
        """In a process of its own: read, looked at, forked, saved, restored and dropped."""
        program = f"""
import gc, threading
import tokfold

def run():
    n = {DEEP}
    tokens = tokfold.Vocabulary([bytes([i]) for i in range(128)], stop_token_ids=[0])
    compiled = tokfold.compile(tokfold.Grammar.from_ebnf({grammar!r}), tokens, classes="never")
    matcher = tokfold.Matcher(compiled)
    text = {text}
    for at in range(0, len(text), 1000):
        assert matcher.accept_bytes(text[at : at + 1000]), at
        if at // 1000 == len(text) // 2000:
            row = tokfold.allocate_bitmask(1, 128)
            matcher.fill_bitmask(row)
            fork = matcher.fork()
            other = tokfold.Matcher.from_state(compiled, fork.state)
            assert other.state == matcher.state
            other.fill_bitmask(row)
            other.forced_bytes(100)
            del other, fork
    matcher.fill_bitmask(row)
    matcher.rollback(matcher.num_steps // 2)
    matcher.reset()
    del matcher, compiled
    gc.collect()

threading.stack_size(256 * 1024)
thread = threading.Thread(target=run)
thread.start()
thread.join()
print("done")
"""
        result = processes.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parents[1])},
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")

    @pytest.mark.parametrize("classes", ["never", "now"])
    def test_long_tokens(self, classes):
        """A token may be as long as a text, and pop as many rules."""
        tokens = [b"(" * DEEP, b")" * DEEP, b"x", b"(" * DEEP + b"x", b")" * (DEEP + 1), b"</s>"]
        compiled = compiled_of('root ::= "(" root ")" | "x"', tokens, classes=classes)
        matcher = tokfold.Matcher(compiled)
        assert mask_of(matcher, 6)[0] == [True, False, True, True, False, False]
        assert matcher.accept_token(3)
        assert mask_of(matcher, 6)[0] == [False, True, False, False, False, False]
        assert matcher.accept_token(4) is False
        assert matcher.accept_token(1)
        assert matcher.is_accepting

    def test_rules_that_begin_with_each_other(self):
        """A chain of calls as long as the grammar, before any byte is read."""
        count = 3_000
        text = "root ::= r0\n" + "".join(
            f'r{i} ::= r{i + 1} "x" | r{i + 1} "y"\n' for i in range(count)
        )
        compiled = compiled_of(text + f'r{count} ::= "a"\n', [b"a", b"x", b"y", b"xy", b"</s>"])
        matcher = tokfold.Matcher(compiled)
        assert mask_of(matcher, 5)[0] == [True, False, False, False, False]
        assert matcher.accept_bytes(b"a")
        assert mask_of(matcher, 5)[0] == [False, True, True, True, False]
        assert matcher.accept_bytes(b"xy" * (count // 2))
        assert matcher.is_accepting


class Meter:
    """What each step costs, by counters."""

    def __init__(self, compiled: tokfold.CompiledGrammar) -> None:
        self.compiled, self.matcher = compiled, tokfold.Matcher(compiled)
        self.size = len(compiled.vocabulary)
        self.costs: list[dict[str, int]] = []

    def step(self, text: bytes) -> None:
        before = {**self.matcher.counters(), **self.compiled.counters()}
        assert self.matcher.accept_bytes(text)
        mask_of(self.matcher, self.size)
        after = {**self.matcher.counters(), **self.compiled.counters()}
        cost = {name: after[name] - before[name] for name in before}
        self.costs.append({**cost, "items": after["items"], "held": after["bytes_held"]})

    def flat(self, names: list[str], slack: float = 1.1) -> None:
        """The last third costs no more than the middle one, in sum and at most."""
        third = len(self.costs) // 3
        middle, last = self.costs[third : 2 * third], self.costs[2 * third : 3 * third]
        for name in names:
            sums = [sum(cost[name] for cost in part) for part in (middle, last)]
            assert sums[1] <= slack * sums[0] + 3, (name, sums)
            most = [max(cost[name] for cost in part) for part in (middle, last)]
            assert most[1] <= slack * most[0] + 3, (name, most)


COSTS = ["work", "completions", "earley_sets", "sets_visited", "trie_nodes", "items"]


class TestFlat:
    @pytest.mark.parametrize(
        ("grammar", "text"),
        [
            ('root ::= "x" root | "x"', b"x"),
            ('root ::= "x" root "y"? | "x"', b"x"),
            ('root ::= "x" root "y" | "x"', b"x"),
            ('root ::= root "x" | "x"', b"x"),
            ('root ::= "x" rest\nrest ::= "x" rest | ""', b"x"),
            ('root ::= "x"+', b"x"),
            ('root ::= ("x" "y"?)* "z"', b"xyx"),
            ('root ::= root root | "x"', b"x"),
            ('root ::= root root root | root root | "x"', b"x"),
            ('root ::= "(" root ")" | "x"', b"("),
            ('root ::= "(" root ")" | "(" root "]" | "x"', b"("),
        ],
    )
    def test_each_step_costs_the_same(self, grammar, text):
        meter = Meter(
            compiled_of(grammar, [b"x", b"y", b"xx", b"xy", b"yyy", b"(", b"))", b"</s>"])
        )
        for _ in range(1_500):
            meter.step(text)
        meter.flat(COSTS)
        assert max(cost["work"] for cost in meter.costs[10:]) <= 40 * len(text)
        assert max(cost["items"] for cost in meter.costs) <= 16

    def test_all_ways_to_split_a_run(self):
        """A text of n letters has exponentially many parses here, and n sets at most."""
        matcher = tokfold.Matcher(compiled_of('root ::= root root | "a"', [b"a", b"aa", b"</s>"]))
        assert matcher.accept_bytes(b"a" * 1_000)
        assert matcher.is_accepting
        assert matcher.counters()["work"] < 100_000
        assert mask_of(matcher, 3)[0] == [True, True, True]

    def test_a_megabyte_of_json(self):
        """Records of all kinds: nothing grows, neither the work of a step nor, much, memory."""
        text = (GRAMMARS / "json" / "json.gbnf").read_text(encoding="utf-8")
        meter = Meter(compiled_of(text, JSON_TOKENS))
        record = (
            b'{"name": "r\\u00e9sum\\n", "tags": ["a", "b", [], {}], "n": -12.5e+3,\n'
            b' "deep": [[[[{"x": {"y": [true, false, null]}}]]]], "t": "\xe6\x97\xa5"},\n'
        )
        meter.step(b"[")
        for _ in range(10_000_000 // len(record) // 10):
            meter.step(record)
        assert len(meter.matcher.text) > 990_000
        meter.flat(COSTS)
        held = [cost["held"] for cost in meter.costs]
        assert max(held) < 2 * len(meter.matcher.text) + (1 << 20)
        assert meter.matcher.accept_bytes(b"1]")
        assert meter.matcher.is_accepting

    def test_a_megabyte_of_nested_json(self):
        """Ever deeper: the work of a step stays, and memory is linear in the depth."""
        text = (GRAMMARS / "json" / "json.gbnf").read_text(encoding="utf-8")
        meter = Meter(compiled_of(text, JSON_TOKENS))
        for _ in range(1_500):
            meter.step(b'[1, {"key": ' * 20)
        meter.flat([name for name in COSTS if name != "trie_nodes"])
        held = [cost["held"] for cost in meter.costs]
        assert held[-1] <= 2.5 * held[len(held) // 2]
        assert meter.matcher.accept_bytes(b"0" + b"}]" * 30_000)
        assert meter.matcher.is_accepting

    def test_the_meter_has_teeth(self):
        """Steps that grow are found out."""
        meter = Meter(compiled_of('root ::= "x" root "x" | "x"', [b"x", b"</s>"]))
        for step in range(600):
            meter.step(b"x" * (1 + step // 20))
        with pytest.raises(AssertionError):
            meter.flat(COSTS)


class TestHistory:
    def test_rollback_and_forks_cost_nothing(self):
        """Ten thousand forks at the bottom of a deep text; nothing is copied."""
        matcher = tokfold.Matcher(compiled_of(BRACKETS, BRACKET_TOKENS))
        assert all(matcher.accept_token(0) for _ in range(10_000))
        held = matcher.counters()["bytes_held"]
        forks = [matcher.fork() for _ in range(10_000)]
        assert matcher.counters()["bytes_held"] == held
        for number, fork in enumerate(forks):
            fork.rollback(number % 200)
        assert [fork.num_steps for fork in forks[:200:50]] == [10_000, 9_950, 9_900, 9_850]
        work = matcher.counters()["work"]
        for fork in forks[1:200]:
            assert fork.accept_token(0)
        counters = matcher.counters()
        assert counters["work"] == work, "what was read before is read again"
        assert counters["bytes_held"] <= 2 * held

    def test_a_fork_that_goes_far_back_has_tables_of_its_own(self):
        matcher = tokfold.Matcher(compiled_of(BRACKETS, BRACKET_TOKENS))
        assert all(matcher.accept_token(0) for _ in range(10_000))
        held, work = matcher.counters()["bytes_held"], matcher.counters()["work"]
        forks = [matcher.fork() for _ in range(10)]
        for number, fork in enumerate(forks, 1):
            fork.rollback(1_000 * number - 1)
            assert fork.num_steps == 10_001 - 1_000 * number
            assert fork.accept_token(0)
            assert fork.counters()["bytes_held"] <= 2 * held
        assert matcher.num_steps == 10_000
        assert (matcher.counters()["bytes_held"], matcher.counters()["work"]) == (held, work)

    def test_many_texts_in_one_matcher(self):
        """Rolled back again and again: memory stays."""
        matcher = tokfold.Matcher(compiled_of(BRACKETS, BRACKET_TOKENS))
        held = []
        for _ in range(50):
            for _ in range(500):
                assert matcher.accept_token(2)
            held.append(matcher.counters()["bytes_held"])
            matcher.reset()
        assert held[-1] <= 2 * held[2]
