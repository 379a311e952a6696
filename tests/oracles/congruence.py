"""Tokens that are really told apart, found by trying contexts.

Two tokens are congruent when every prefix and every continuation treat them alike (CFGzip,
Definition 1). That is undecidable in general, but a context that treats them differently is a
proof that they are not. So the partition by verdicts in sampled contexts is a lower bound: no
lossless partition can have fewer classes, or merge what it separates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from oracles.earley import Oracle
from oracles.sentences import SentenceSampler, random_prefix


@dataclass(frozen=True)
class Context:
    """What stands before a token and what follows it."""

    prefix: bytes
    continuation: bytes


def sample_contexts(
    oracle: Oracle,
    vocabulary: Sequence[bytes],
    random: Random,
    *,
    count: int = 60,
    prune: bool = True,
) -> list[Context]:
    """Contexts in which some token is likely to fit.

    Taken from random sentences, cut where a token stands or anywhere; and, since an unpruned
    grammar goes where no sentence does, from random walks.
    """
    sampler = SentenceSampler(oracle.cfg)
    tokens = [t for t in dict.fromkeys(vocabulary) if t]
    contexts: dict[Context, None] = {Context(b"", b""): None}
    attempts = 0
    while len(contexts) < count and attempts < count:
        attempts += 1
        text = sampler.sample(random, budget=random.choice([3, 8, 20]))
        if text is None or (not prune and random.random() < 0.3):
            text = random_prefix(oracle.initial(prune), random, random.randrange(1, 12))
        cuts = [
            (at, at + len(token))
            for token in tokens
            for at in range(len(text))
            if text.startswith(token, at)
        ]
        chosen = random.sample(cuts, min(len(cuts), 3))
        at = random.randrange(len(text) + 1)
        chosen.append((at, min(len(text), at + random.randrange(3))))
        for begin, end in chosen:
            contexts[Context(text[:begin], text[end:])] = None
            if random.random() < 0.3:
                contexts[Context(text[:begin], random.choice(tokens or [b""]))] = None
    return list(contexts)


def verdicts(
    oracle: Oracle, token: bytes, contexts: Sequence[Context], *, prune: bool = True
) -> tuple[tuple[bool, bool], ...]:
    """For each context: may the whole stand, and is it a sentence."""
    out = []
    for context in contexts:
        before = oracle.initial(prune).feed(context.prefix)
        after = before.feed(token).feed(context.continuation) if before.viable and token else None
        out.append((after.viable, after.accepting) if after else (False, False))
    return tuple(out)


def lower_bound(
    oracle: Oracle, vocabulary: Sequence[bytes], contexts: Sequence[Context], *, prune: bool = True
) -> list[int]:
    """A class for each token such that tokens of different classes are certainly not congruent.

    -1: no sampled context has a place for the token (which proves nothing).
    """
    classes: dict[tuple[tuple[bool, bool], ...], int] = {}
    out = []
    for token in vocabulary:
        seen = verdicts(oracle, token, contexts, prune=prune)
        out.append(classes.setdefault(seen, len(classes)) if any(v for v, _ in seen) else -1)
    return out


@dataclass(frozen=True)
class Violation:
    """A context that proves a partition wrong."""

    token: bytes
    same_class_as: bytes | None  # None: the class of tokens that are never valid
    context: Context


def violations(
    oracle: Oracle,
    vocabulary: Sequence[bytes],
    class_of: Sequence[int],
    contexts: Sequence[Context],
    *,
    prune: bool = True,
) -> list[Violation]:
    """Tokens of one class that a context treats differently; tokens of class -1 that it takes."""
    out = []
    first: dict[int, tuple[bytes | None, tuple[tuple[bool, bool], ...]]] = {
        -1: (None, ((False, False),) * len(contexts))
    }
    for token, class_ in zip(vocabulary, class_of, strict=True):
        seen = verdicts(oracle, token, contexts, prune=prune)
        other, expected = first.setdefault(int(class_), (token, seen))
        for context, ours, theirs in zip(contexts, seen, expected, strict=True):
            if ours != theirs:
                out.append(Violation(token, other, context))
                break
    return out
