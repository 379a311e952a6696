"""Texts that end in time under XGrammar over classes, beside a search with plain XGrammar."""

from __future__ import annotations

from random import Random

import pytest

xgr = pytest.importorskip("xgrammar")
torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
from strategies.profiles import CASES, LONG, LONG_FACTOR  # noqa: E402
from tokfold import xgrammar as txgr  # noqa: E402
from tokfold.errors import TokenBudgetError, UnsupportedGrammarError  # noqa: E402
from xgrammar_wrapper.xgrammar_pairs import TOKENS as FEW  # noqa: E402
from xgrammar_wrapper.xgrammar_pairs import allowed, compiled_pair, make_info  # noqa: E402

TOKENS = [*FEW, b"\xa9", b"\xa9b"]
INFO = make_info(TOKENS)
SIZE = 40
STOPS = (5, 8)
FAR = 99
ROUNDS = 12 * LONG_FACTOR if LONG else 12

GRAMMARS: dict[str, str] = {
    "nested": 'root ::= "a" root "b" | "x"',
    "list": 'root ::= "x" ("a" "x"){0,4} | "ab" root "1"',
    "expressions": 'root ::= e\ne ::= e "a" e | "b" e "x" | "1"',
    "left recursive": 'root ::= root "ab" | "1"',
    "nullable": 'root ::= ("a" "b"?)* ("x" | "")',
    "counted": 'root ::= "a"{3,6} ("b" "1"?){2,3}',
    "unproductive": 'root ::= "a" root "b" | "b" dead | "1"\ndead ::= "x" dead',
    "beyond ASCII": 'root ::= "é"{1,2} "a"? "b"',
    "a pattern": 'root ::= "a" w "x"\nw ::= Regex("(ab|b1?){2,4}")',
}


class Search:
    """What plain XGrammar takes, token by token, and the fewest tokens to the end of a text."""

    def __init__(self, plain: xgr.CompiledGrammar) -> None:
        self._plain = plain
        self._known: dict[bytes, bool | None] = {}

    def is_complete(self, text: bytes) -> bool | None:
        """Whether a text is one of the grammar; None where it begins none."""
        if text not in self._known:
            matcher = xgr.GrammarMatcher(self._plain)
            taken = not text or matcher.accept_string(text)
            self._known[text] = matcher.is_completed() if taken else None
        return self._known[text]

    def fewest(self, text: bytes, most: int) -> int:
        """The fewest tokens, the stop token counted, that end a text; ``FAR`` for more."""
        level = {text}
        for tokens in range(most):
            if any(map(self.is_complete, level)):
                return tokens + 1
            texts = [word for i, word in enumerate(TOKENS) if word and i not in STOPS]
            level = {before + word for before in level for word in texts}
            level = {after for after in level if self.is_complete(after) is not None}
        return FAR

    def allows(self, text: bytes, left: int) -> list[int]:
        """The tokens that leave enough of so many tokens, by definition."""
        out = []
        for token, word in enumerate(TOKENS):
            if token in STOPS:
                fits = self.is_complete(text) and left > 0
            else:
                is_text = word and self.is_complete(text + word) is not None
                fits = is_text and self.fewest(text + word, left - 1) < FAR
            if fits:
                out.append(token)
        return out


@pytest.mark.parametrize("kind", GRAMMARS)
def test_walks_beside_a_search(kind: str) -> None:
    plain, compiled = compiled_pair(GRAMMARS[kind], INFO)
    assert compiled.is_compressed, compiled.fallback_reason
    search = Search(plain)
    least = search.fewest(b"", 12)
    with pytest.raises(TokenBudgetError) as raised:
        txgr.GrammarMatcher(compiled, max_tokens=least - 1)
    assert raised.value.needed == least
    for seed in range(ROUNDS):
        random = Random(seed)
        most = random.randint(least, least + 3)
        matcher = txgr.GrammarMatcher(compiled, max_tokens=most)
        text, left, steps = b"", most, [(b"", most)]
        while not matcher.is_terminated():
            row = allowed(matcher, SIZE)
            assert row == search.allows(text, left), (kind, seed, text, left)
            assert matcher.tokens_left == left
            refused = [token for token in range(len(TOKENS)) if token not in row]
            assert not any(matcher.accept_token(token) for token in refused), (text, left)
            CASES["XGrammar in time: masks beside a search"] += 1
            match random.random():
                case rolled if rolled < 0.15 and len(steps) > 1:
                    count = random.randint(1, len(steps) - 1)
                    matcher.rollback(count)
                    del steps[-count:]
                case reset if reset < 0.2:
                    matcher.reset()
                    del steps[1:]
                case forked if forked < 0.3:
                    other = matcher.fork()
                    assert other.accept_token(random.choice(row))
                case by_text if by_text < 0.4:
                    word = random.choice([word for word in TOKENS if word])
                    fits = search.is_complete(text + word) is not None
                    fits = fits and search.fewest(text + word, left) < FAR
                    assert matcher.accept_string(word) == fits, (text, word, left)
                    if fits:
                        steps.append((text + word, left))
                case _:
                    token = random.choice(row)
                    assert matcher.accept_token(token)
                    steps.append((text + TOKENS[token] * (token not in STOPS), left - 1))
            text, left = steps[-1]
        assert search.is_complete(text)


@pytest.mark.parametrize("kind", GRAMMARS)
def test_a_tree_of_drafts(kind: str) -> None:
    """Each row is what the matcher says that has read the tokens up to it."""
    plain, compiled = compiled_pair(GRAMMARS[kind], INFO)
    least = Search(plain).fewest(b"", 12)
    for seed in range(ROUNDS):
        random = Random(seed)
        matcher = txgr.GrammarMatcher(compiled, max_tokens=random.randint(least, least + 2))
        count = random.randint(2, 12)
        parents = [-1, *(random.randrange(node) for node in range(1, count))]
        tokens = [random.choice(range(len(TOKENS))) for _ in range(count)]
        children, siblings = [-1] * count, [-1] * count
        for node in range(count - 1, 0, -1):
            siblings[node], children[parents[node]] = children[parents[node]], node
        rows = torch.full((count, 2), 7, dtype=torch.int32)
        edges = (torch.tensor(children), torch.tensor(siblings), torch.tensor(tokens))
        assert matcher.traverse_draft_tree(*edges, rows)
        for node in range(count):
            path = []
            at = node
            while at > 0:
                path.append(tokens[at])
                at = parents[at]
            other = matcher.fork()
            expected = np.full(2, 7, dtype=np.int32)
            if all(other.accept_token(token) for token in reversed(path)):
                if other.is_terminated():
                    continue
                other.fill_next_token_bitmask(expected)
            assert rows[node].tolist() == expected.tolist(), (seed, node, path)
            CASES["XGrammar in time: rows of drafts"] += 1


def test_batches_and_stop_tokens_of_their_own() -> None:
    _, compiled = compiled_pair(GRAMMARS["nested"], INFO)
    near = txgr.GrammarMatcher(compiled, max_tokens=4)
    free = txgr.GrammarMatcher(compiled)
    rows = torch.zeros((2, 2), dtype=torch.int32)
    txgr.BatchGrammarMatcher().batch_fill_next_token_bitmask([near, free], rows)
    assert near.accept_token(0)
    assert free.accept_token(0)
    txgr.BatchGrammarMatcher().batch_fill_next_token_bitmask([near, free], rows)
    row = np.zeros(2, dtype=np.int32)
    for index, matcher in enumerate((near, free)):
        matcher.fill_next_token_bitmask(row)
        assert rows[index].tolist() == row.tolist()
    assert not near.accept_token(0)
    assert free.accept_token(0)
    own = txgr.GrammarMatcher(compiled, max_tokens=2, override_stop_tokens=[1])
    assert allowed(own, SIZE) == [6]
    assert own.accept_token(6)
    assert allowed(own, SIZE) == [1]
    alone = txgr.GrammarMatcher(compiled, max_tokens=1, terminate_without_stop_token=True)
    assert allowed(alone, SIZE) == [6]
    assert alone.accept_token(6)
    assert alone.is_terminated()


def test_what_is_not_counted_is_named() -> None:
    by_id = txgr.GrammarCompiler(INFO).compile_grammar('root ::= "a" Token(6)')
    if by_id.is_compressed:
        with pytest.raises(UnsupportedGrammarError, match="by their ids"):
            txgr.GrammarMatcher(by_id, max_tokens=9)
    _, compiled = compiled_pair(GRAMMARS["nested"], INFO)
    with pytest.raises(ValueError, match="max_tokens"):
        txgr.GrammarMatcher(compiled, max_tokens=-1)
    matcher = txgr.GrammarMatcher(compiled, max_tokens=9)
    with pytest.raises(RuntimeError, match="tokens of one class apart"):
        matcher.fill_next_class_bitmask(np.zeros(8, dtype=np.int32))
    assert txgr.GrammarMatcher(compiled).tokens_left is None


def test_refused_calls_leave_both_matchers_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    _, compiled = compiled_pair(GRAMMARS["nested"], INFO)
    matcher = txgr.GrammarMatcher(compiled, max_tokens=7)
    assert matcher.accept_string("")
    matcher.rollback(1)
    with pytest.raises(RuntimeError, match="Unsupported type"):
        matcher.accept_string(5)
    before = allowed(matcher, SIZE)
    tree = [torch.tensor(numbers) for numbers in ([1, 2, -1], [-1, -1, -1], [0, 0, 0])]
    rows = torch.zeros((3, 2), dtype=torch.int32)
    with monkeypatch.context() as patch:
        patch.setattr(type(matcher), "unfold", _refuse)
        with pytest.raises(ZeroDivisionError):
            matcher.traverse_draft_tree(*tree, rows)
    assert allowed(matcher, SIZE) == before
    assert matcher.tokens_left == 7


def test_stop_tokens_of_requests_are_not_kept_for_ever() -> None:
    _, compiled = compiled_pair(GRAMMARS["nested"], INFO)
    for stop in (2, 4, 7, 9, 10, 11, 12, 13):
        txgr.GrammarMatcher(compiled, max_tokens=9, override_stop_tokens=[stop])
    assert compiled._compile_own.cache_info().currsize <= 4


def _refuse(_: object, __: object, row: np.ndarray) -> None:
    if row.sum() == 0 and _refuse.calls:
        raise ZeroDivisionError
    _refuse.calls += 1


_refuse.calls = 0
