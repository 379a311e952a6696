"""On every real grammar, with a real vocabulary: no class is split by a plain XGrammar mask.

At a few positions of a real text, the mask that plain XGrammar gives over the whole vocabulary
must be the same for all members of a class. The one exception is a token for which the mask
contradicts XGrammar's own ``accept_token`` (docs/design/xgrammar.md, "Exactness contract"): there
the class must be uniform in what ``accept_token`` takes.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from strategies.profiles import LONG

xgr = pytest.importorskip("xgrammar")
pytest.importorskip("mistral_common")

import tokfold  # noqa: E402
from tokfold.cli.inputs import read_packaged_tekken  # noqa: E402

GRAMMARS = sorted((Path(__file__).parents[2] / "grammars").glob("*/*.gbnf"))
POSITIONS = 24 if LONG else 4
"""Masks for each grammar; one takes up to a second."""


@pytest.fixture(scope="module")
def vocabulary():
    vocabulary = read_packaged_tekken()
    assert len(vocabulary) >= 128_000
    # to XGrammar special tokens are text
    return vocabulary.replace(special_token_ids=())


@pytest.fixture(scope="module")
def info(vocabulary):
    return xgr.TokenizerInfo(
        list(vocabulary.token_bytes), stop_token_ids=list(vocabulary.stop_token_ids)
    )


def mask_of(matcher, size: int) -> np.ndarray:
    bitmask = xgr.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(bitmask)
    return np.unpackbits(bitmask.numpy().view(np.uint8), bitorder="little")[:size].astype(bool)


def accepts(compiled, path: list[int], token: int) -> bool:
    matcher = xgr.GrammarMatcher(compiled)
    for before in path:
        assert matcher.accept_token(before)
    return matcher.accept_token(token)


def odd_ones(class_of: np.ndarray, allowed: np.ndarray) -> list[np.ndarray]:
    """The members of each class that the mask splits."""
    valid = class_of >= 0
    count = np.bincount(class_of[valid])
    inside = np.bincount(class_of[valid], weights=allowed[valid])
    split = np.flatnonzero((inside > 0) & (inside < count))
    return [np.flatnonzero(class_of == index) for index in split]


@pytest.mark.parametrize("path", GRAMMARS, ids=[path.stem for path in GRAMMARS])
def test_classes_are_uniform_in_plain_masks(path: Path, vocabulary, info):
    text = path.read_text(encoding="utf-8")
    classes = tokfold.compile_classes(tokfold.Grammar.from_ebnf(text), vocabulary, prune=False)
    compiled = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False).compile_grammar(text)
    random.seed(path.stem)
    sample = random.choice(sorted((path.parent / "valid").iterdir())).read_bytes()
    tokens = vocabulary.encode_greedy(sample[:1_000])
    wanted = {0, *random.sample(range(len(tokens)), min(POSITIONS, len(tokens)) - 1)}
    matcher = xgr.GrammarMatcher(compiled)
    for position, token in enumerate(tokens[: max(wanted) + 1]):
        if position in wanted:
            allowed = mask_of(matcher, len(vocabulary))
            assert not allowed[classes.class_of < 0].any(), "a dead token is allowed"
            for members in odd_ones(classes.class_of, allowed):
                for member in members[:50].tolist():
                    truth = accepts(compiled, tokens[:position], member)
                    assert truth == accepts(compiled, tokens[:position], int(members[0]))
        assert matcher.accept_token(token)
