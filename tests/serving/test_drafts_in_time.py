"""Drafts, reasoning and max_tokens at once, as vLLM's manager has them, beside fresh matchers.

The manager writes a row before each drafted token, lets the grammar read it, and takes all of them
back. Then what the model chose becomes output, and what of it is text is read for good.
"""

from __future__ import annotations

import contextlib
import random
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tokfold  # noqa: E402
from strategies.profiles import CASES, some  # noqa: E402
from tokfold._serving import Conversation  # noqa: E402
from tokfold.vllm.backend import TokfoldGrammar  # noqa: E402

LETTERS = [bytes([byte]) for byte in b'ab[](),"{}:01']
MERGED = [b"true", b'","', b"[[", b"]]", b'"a"', b'":"', b"ab", b'{"']
TOKENS = [*LETTERS, *MERGED, b"<t>", b"</t>", b"<|end|>", b"</s>"]
SIZE = len(TOKENS)
THOUGHT, END_OF_THINK, STOPS = SIZE - 4, SIZE - 3, (SIZE - 2, SIZE - 1)
VOCABULARY = tokfold.Vocabulary(
    TOKENS, stop_token_ids=STOPS, special_token_ids=[THOUGHT, END_OF_THINK]
)
GRAMMARS = {
    "lists": 'root ::= "[" (root ("," root)*)? "]" | "true"',
    "words": 'root ::= [ab]+ | "(" root ")"',
    "texts": 'root ::= "[" text ("," text)* "]"\ntext ::= "\\"" [ab]* "\\""',
    "a long text or a short one": 'root ::= "(" "ab,"{6} ")" | "(" [ab] ")" | "true"',
    "objects": 'root ::= "{" pair ("," pair)* "}"\npair ::= "\\"" [ab] "\\":" ("0" | root)',
}
COMPILED = {
    name: tokfold.compile(tokfold.Grammar.from_ebnf(text), VOCABULARY, classes="never")
    for name, text in GRAMMARS.items()
}


def masked(matcher: tokfold.Matcher) -> list[int]:
    bitmask = tokfold.allocate_bitmask(1, SIZE)
    matcher.fill_bitmask(bitmask)
    return np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")).tolist()


class Request(SimpleNamespace):
    """One that can be referred to weakly."""


class Served:
    """A request, its grammar, and what the scheduler and the manager do with the two.

    Args:
        compiled: the grammar.
        seed: of what is drafted and chosen.
        max_tokens: of the request.
        prefer_end: as for a matcher.
        most: the most drafts of a step.
        thinks: whether the model reasons first.
        looks: whether the manager sees reasoning end within the drafts of a step, masks those
            behind the mark and reads the text of the same step, as newer versions do.
        validates: whether drafts are validated. Where not, those are read that the grammar allows,
            whatever the budget.
    """

    def __init__(
        self,
        compiled,
        seed,
        max_tokens,
        prefer_end=0,
        *,
        most=0,
        thinks=False,
        looks=False,
        validates=True,
    ):
        self.compiled, self.draw, self.max_tokens = compiled, random.Random(seed), max_tokens
        self.prefer_end, self.most, self.looks = prefer_end, most, looks
        self.validates = validates
        self.output: list[int] = []
        self.before = None if thinks else 0
        """How many tokens of the output stand before the text, once that is known."""
        conversation = Conversation(compiled)
        conversation.prefer_end = prefer_end
        self.grammar = TokfoldGrammar(conversation, most)
        self.request = Request(
            sampling_params=SimpleNamespace(max_tokens=max_tokens),
            structured_output_request=SimpleNamespace(reasoning_ended=not thinks),
            num_output_tokens=0,
        )
        self.grammar.end_within(self.request)

    @property
    def text(self) -> list[int]:
        return [] if self.before is None else self.output[self.before :]

    @property
    def is_over(self) -> bool:
        return self.grammar.is_terminated() or len(self.output) == self.max_tokens

    def matcher(self, before: int) -> tokfold.Matcher:
        """A fresh one of the same budget, or of none where no text fits."""
        left = max(0, self.max_tokens - before)
        try:
            return tokfold.Matcher(self.compiled, max_tokens=left, prefer_end=self.prefer_end)
        except tokfold.TokenBudgetError:
            return tokfold.Matcher(self.compiled)

    def truth(self, read: list[int], before: int) -> list[int]:
        """What a fresh matcher allows behind tokens.

        Behind drafts that it forbids, what is allowed there with the tokens that are left then, or
        in the grammar alone where the text does not fit.
        """
        matcher = self.matcher(before)
        if matcher.accept_tokens(read) < len(read):
            matcher, left = tokfold.Matcher(self.compiled), self.max_tokens - before - len(read)
            assert matcher.accept_tokens(read) == len(read)
            with contextlib.suppress(tokfold.TokenBudgetError):
                budget = {"max_tokens": max(0, left), "prefer_end": self.prefer_end}
                matcher = tokfold.Matcher.from_state(self.compiled, matcher.state, **budget)
        return masked(matcher)

    def drafts(self) -> list[int]:
        """Of a drafter that knows the grammar, and sometimes does not care for it."""
        trial, found = self.grammar.conversation.matcher.fork(), []
        for _ in range(self.draw.randint(0, self.most)):
            if trial.is_terminated or self.draw.random() < 0.1:
                found.append(self.draw.randrange(SIZE))
                break
            found.append(self.liked(masked(trial)))
            trial.accept_token(found[-1])
        return found

    def liked(self, allowed: list[int]) -> int:
        """What opens and what goes on is likelier than what closes."""
        opening = [token for token in allowed if TOKENS[token][-1:] in b'[(,{ab"']
        return self.draw.choice(opening if opening and self.draw.random() < 0.85 else allowed)

    def scheduled(self) -> list[int]:
        """The drafts of a step."""
        drafts = self.drafts()
        if self.before is None:
            thoughts = [THOUGHT] * self.draw.randint(0, 2)
            if not self.looks:
                return thoughts[: self.most]
            return [*thoughts, END_OF_THINK, *drafts][: self.most]
        valid = self.grammar.validate_tokens(drafts)
        assert valid == drafts[: len(valid)]
        judges = [self.matcher(self.before), tokfold.Matcher(self.compiled)]
        for judge in judges:
            judge.accept_tokens(self.text)
        if judges[0].num_steps == len(self.text):
            assert len(valid) == judges[0].accept_tokens(drafts)
        return valid if self.validates else drafts[: judges[1].accept_tokens(drafts)]

    def row(self, ahead: list[int], before: int, *, is_sure: bool) -> list[int]:
        """A row of the grammar, held against the truth."""
        bitmask = torch.zeros((1, -(-SIZE // 32)), dtype=torch.int32)
        self.grammar.fill_bitmask(bitmask, 0)
        bits = np.unpackbits(bitmask.numpy().view(np.uint8), bitorder="little")
        found, expected = np.flatnonzero(bits).tolist(), self.truth([*self.text, *ahead], before)
        assert found
        assert found == expected if is_sure else set(found) <= set(expected)
        CASES["rows behind drafts"] += bool(ahead)
        return found

    def step(self) -> None:
        """Drafts, their rows, what the model chooses, and what is read of it."""
        drafts, ahead, rows = self.scheduled(), [], []
        before, is_read = self.before, True
        for place, token in enumerate([*drafts, None]):
            masks = before is not None and is_read and not self.grammar.is_terminated()
            rows.append(
                self.row(ahead, before, is_sure=self.before is not None)
                if masks
                else [THOUGHT, THOUGHT, END_OF_THINK]
            )
            if masks and token is not None:
                is_read = self.grammar.accept_tokens("r", [token])
                assert is_read or self.before is None
                ahead += [token] * is_read
            elif before is None and token == END_OF_THINK:
                before = len(self.output) + place + 1
        if ahead:
            self.grammar.rollback(len(ahead))
        new = self.chosen(drafts, rows)
        self.output += new
        self.request.num_output_tokens = len(self.output)
        if self.before is None and END_OF_THINK in new:
            start = len(self.output) - len(new)
            self.before = start + new.index(END_OF_THINK) + 1
            self.request.structured_output_request.reasoning_ended = True
            new = self.text
            if not self.looks:
                assert new == []
                return
        if self.before is not None:
            assert self.grammar.accept_tokens("r", new)

    def chosen(self, drafts: list[int], rows: list[list[int]]) -> list[int]:
        """The tokens of a step: drafts as far as the model agrees, and one more."""
        new: list[int] = []
        for row, draft in zip(rows, [*drafts, None], strict=True):
            agrees = draft in row and self.draw.random() < 0.7
            new.append(draft if agrees else self.liked(row))
            if new[-1] != draft or new[-1] in STOPS:
                break
        return new[: self.max_tokens - len(self.output)]

    def run(self) -> None:
        while not self.is_over:
            self.step()


SHORTEST = {name: compiled.shortest().tokens + 1 for name, compiled in COMPILED.items()}


@pytest.mark.parametrize("looks", [False, True], ids=["", "looks into windows"])
@pytest.mark.parametrize("validates", [True, False], ids=["", "drafts past the budget"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_texts_end_in_time(name, validates, looks) -> None:
    """Rows are those of a fresh matcher, and what fits behind the reasoning ends complete."""
    for seed in range(some(240)):
        draw = random.Random(seed)
        served = Served(
            COMPILED[name],
            seed,
            max_tokens=draw.randint(1, 16),
            prefer_end=draw.choice([0, 0, 3, 8]),
            most=draw.randint(0, 4),
            thinks=draw.random() < 0.5,
            looks=looks,
            validates=validates,
        )
        served.run()
        text = tokfold.Matcher(COMPILED[name])
        assert text.accept_tokens(served.text) == len(served.text)
        if served.before is not None and served.max_tokens - served.before >= SHORTEST[name]:
            assert text.is_terminated, VOCABULARY.decode(served.text)
