"""Fixtures of several files: one grammar, one vocabulary, and the classes of the two.

The package is imported when they are asked for: some files are skipped where it is not built.
"""

from __future__ import annotations

import pytest
from classes.class_samples import NESTED, TOKENS


@pytest.fixture(scope="module")
def vocabulary():
    from tokfold import Vocabulary

    return Vocabulary(TOKENS, stop_token_ids=[10, 2], special_token_ids=[6], size=14)


@pytest.fixture(scope="module")
def nested():
    from tokfold import Grammar

    return Grammar.from_ebnf(NESTED)


@pytest.fixture(scope="module")
def classes(nested, vocabulary):
    from tokfold import compile_classes

    return compile_classes(nested, vocabulary)
