"""The package itself: every name that it promises is there."""

from __future__ import annotations

import json

import tokfold


def test_the_stub_of_the_package():
    """Everything that is promised is there."""
    for name in tokfold.__all__:
        assert getattr(tokfold, name) is not None
    assert json.dumps(tokfold.__version__)
