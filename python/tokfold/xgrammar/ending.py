"""Texts that end in time: a budget of tokens beside XGrammar's matcher.

XGrammar does not count tokens. A matcher of tokfold's own engine reads the same tokens under the
same grammar, and near the end of the budget says which of them leave enough to complete the text.
Far from the end a mask costs one comparison more, and a token is read twice. Under a grammar in
which something can never be completed, each mask is made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

import tokfold
from tokfold.xgrammar.spelling import in_bytes

__all__ = ["EndingMatcher"]

Ids = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]


class EndingMatcher:
    """Follows a text along its tokens, and says which of them leave enough to complete it.

    Args:
        matcher: of tokfold's engine, over the ids of the model, with a budget of tokens.
        as_bytes: whether it reads texts in the byte spelling.
        has_dead_ends: whether XGrammar may allow what can never be completed.
    """

    def __init__(self, matcher: tokfold.Matcher, *, as_bytes: bool, has_dead_ends: bool) -> None:
        self._matcher = matcher
        self._as_bytes = as_bytes
        self._has_dead_ends = has_dead_ends
        self._row: Words = np.empty(-(-len(matcher.compiled.vocabulary) // 32), dtype=np.int32)

    @property
    def tokens_left(self) -> int:
        """Tokens that the text may still take, the stop token counted."""
        return self._matcher.tokens_left or 0

    def accept_token(self, token: int) -> bool:
        """Read a token; False where the text cannot be completed in time after it."""
        return self._matcher.accept_token(token)

    def accept_string(self, text: str | bytes) -> bool:
        """Read a text as one step, which is no token; False likewise."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        return self._matcher.accept_bytes(in_bytes(data) if self._as_bytes else data)

    def rollback(self, steps: int) -> None:
        """Take back the last steps."""
        self._matcher.rollback(steps)

    def reset(self) -> None:
        """Take back all steps."""
        self._matcher.reset()

    def fork(self) -> EndingMatcher:
        """The same at the same place, with a life of its own."""
        return EndingMatcher(
            self._matcher.fork(), as_bytes=self._as_bytes, has_dead_ends=self._has_dead_ends
        )

    def follow(
        self,
        edges: tuple[Ids, Ids],
        tokens: Ids,
        reached: Iterable[int],
        visit: Callable[[int], None],
    ) -> None:
        """Visit the nodes of a tree of draft tokens, each with the text read up to it.

        Args:
            edges: for each node its first child, and its next sibling, or -1.
            tokens: the token of each node; the root is node 0, whose token was read.
            reached: the nodes to which the grammar lets tokens lead. Those to which they do not
                lead in time are left out, and what follows them.
            visit: is called with each node.
        """
        left = set(reached)
        children, siblings = edges
        todo, depth = [0], 0
        try:
            while todo:
                node = todo.pop()
                if node < 0:  # behind the children of a node
                    self.rollback(1)
                    depth -= 1
                    continue
                if node > 0 and siblings[node] > 0:
                    todo.append(int(siblings[node]))
                if node not in left or (node > 0 and not self.accept_token(int(tokens[node]))):
                    continue
                if node > 0:
                    depth += 1
                    todo.append(-1)
                visit(node)
                if children[node] > 0:
                    todo.append(int(children[node]))
        finally:
            self.rollback(depth)  # where a mask was refused

    def narrow(self, row: Words) -> bool:
        """Take out of a mask what does not end in time; False where that is nothing.

        Args:
            row: int32, shape ``(ceil(vocab_size / 32),)``, of any stride.
        """
        if self._matcher.is_terminated:
            return False
        if self._has_dead_ends:
            is_narrower = self._matcher.fill_bitmask(self._row)
        else:
            is_narrower = self._matcher._core.fill_near_end(self._row, 0)
        if is_narrower:
            row &= self._row
        return is_narrower
