"""Our languages beside those of XGrammar, on MaskBench: where they differ, ours is right.

``docs/differences.md`` says in which ways XGrammar's converter differs from the standard. Here each
instance of a sample is judged by both. Where the verdicts differ, ours must be that of the label,
or the instance has its keys in another order than the schema, which both engines refuse elsewhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from json_schema import data
from json_schema.languages import RefusedError, language
from json_schema.test_maskbench import QUICK, is_only_order, text_of
from strategies.profiles import CASES, LONG

xgrammar: Any = pytest.importorskip("xgrammar")

EACH = 1 if LONG else 8
"""One schema of so many."""
EXPLAINED: dict[str, str] = {}
"""Instances, as ``schema / number``, that ours judges otherwise than the label, and why."""


@contextmanager
def _silent() -> Iterator[None]:
    """The converter writes to file descriptor 2 what it leaves out."""
    kept, sink = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(sink)


class Peer:
    """XGrammar over bytes."""

    def __init__(self) -> None:
        tokens = [bytes([i]) for i in range(256)]
        info = xgrammar.TokenizerInfo(
            [*tokens, b"</s>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256]
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compiled(self, schema: Any) -> Any:
        """The schema as it reads it; None where it refuses."""
        try:
            with _silent():
                return self.compiler.compile_json_schema(json.dumps(schema), strict_mode=False)
        except RuntimeError:
            return None

    def accepts(self, compiled: Any, text: str) -> bool:
        """Whether the whole text is one of the language."""
        matcher = xgrammar.GrammarMatcher(compiled)
        taken = not text or matcher.accept_string(text)
        return bool(taken and matcher.accept_token(256))


def test_differences_are_ours_right(maskbench: Path) -> None:
    peer = Peer()
    names = [n for n in data.maskbench_names(maskbench) if data.third(n) == QUICK]
    wrong = []
    for name in names[::EACH]:
        group = data.maskbench_group(maskbench, name)
        theirs = peer.compiled(group.schema)
        if theirs is None:
            CASES["MaskBench beside XGrammar: schemas that it refuses"] += 1
            continue
        try:
            ours = language(group.schema)
        except RefusedError:
            CASES["MaskBench beside XGrammar: schemas that we refuse"] += 1
            continue
        for index, instance in enumerate(group.instances):
            text = text_of(instance.value)
            ourselves = ours.accepts(text)
            CASES["MaskBench beside XGrammar: instances"] += 1
            if ourselves == peer.accepts(theirs, text):
                continue
            CASES["MaskBench beside XGrammar: differences"] += 1
            is_right = ourselves == instance.valid or (
                instance.valid and is_only_order(ours, group.schema, instance.value)
            )
            if not is_right and f"{name} / {index}" not in EXPLAINED:
                wrong.append(f"{name} / {index}: {instance.description}")
    assert wrong == []
    assert CASES["MaskBench beside XGrammar: differences"]
