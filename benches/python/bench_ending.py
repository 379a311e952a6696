"""Texts that end in time: the table of a grammar, and masks near the end and far from it.

    python benches/python/bench_ending.py --tokenizer path/to/model

The *table* says how many tokens each state needs to the end. It is made once for a grammar, here of
grammars just compiled, in CPU time, least of some tries: with token classes (*classes*) and without
(*none*), where it makes classes of its own first. A text is read twice with a mask before each
token, and the second time is measured: *far* from the end of a budget, beside a matcher that has
none, and *near* it, where each mask has just the tokens left that the shortest end needs, or up to
three more. *first* is near the end too, of a grammar that had no such mask before.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any

import bench_common as common
import numpy as np
import numpy.typing as npt
import tokfold
from tokfold import Grammar, Vocabulary
from tokfold.cli.render import seconds

TRIES = 5
PLACES = 400
SPARE = 4
_STRING = {"type": "string"}
_ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "when": {"type": "string", "format": "date-time"},
        "to": {"type": "object", "properties": {"name": _STRING, "mail": {"format": "email"}}},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"pattern": "^[A-Z]{3}-[0-9]{4}$"}, "count": {"minimum": 1}},
                "required": ["sku", "count"],
            },
        },
        "note": {"type": "string", "maxLength": 200},
    },
    "required": ["id", "lines"],
}
SCHEMAS: dict[str, tuple[dict[str, Any], Any]] = {
    "order (schema)": (
        _ORDER,
        {
            "id": "123e4567-e89b-12d3-a456-426614174000",
            "when": "2026-01-31T12:30:00Z",
            "to": {"name": "Ada Lovelace", "mail": "ada@example.org"},
            "lines": [{"sku": "ABC-1234", "count": 12}, {"sku": "XYZ-0001", "count": 1}],
            "note": "leave it at the door of the house, please",
        },
    ),
    "maxLength 4,096": (
        {"type": "object", "properties": {"s": {"type": "string", "maxLength": 4096}}},
        {"s": "a text of some words, and then of some more " * 4},
    ),
}


def main() -> None:
    """Measure and print."""
    assert __doc__ is not None
    parser = common.parser(__doc__)
    options = parser.parse_args()
    gc.disable()
    results = []
    cases = {
        kind: (
            Grammar.from_ebnf(common.grammar_text(options.grammar_dir, kind)),
            common.sample_text(options.grammar_dir, kind),
        )
        for kind in options.grammars
    }
    for kind, (schema, value) in SCHEMAS.items():
        text = json.dumps(value, separators=(",", ":")).encode()
        cases[kind] = (Grammar.from_json_schema(schema), text)
    for name, vocabulary in common.tokenizers(options).items():
        for kind, (grammar, text) in cases.items():
            figures = _figures(grammar, text, vocabulary)
            results.append({"tokenizer": name, "grammar": kind, **figures})
    if options.json:
        print(json.dumps(results))
        return
    titles = [
        "grammar",
        "table: classes",
        "none",
        "mask: none",
        "far",
        "ratio",
        "first",
        "near",
        "p99",
    ]
    rows = [
        [
            result["grammar"],
            *(seconds(result[key]) for key in ("table", "table_alone", "plain", "far")),
            f"{result['far'] / result['plain']:.2f}",
            *(seconds(result[key]) for key in ("first", "near", "near_p99")),
        ]
        for result in results
    ]
    out = common.console(width=110)
    out.print(f"{common.machine()['processor']}; {', '.join(common.tokenizers(options))}")
    common.show(out, "Ending in time", titles, rows)


def _figures(grammar: Grammar, text: bytes, vocabulary: Vocabulary) -> dict[str, float]:
    compiled = tokfold.compile(grammar, vocabulary, classes="now")
    tokens = vocabulary.encode_greedy(text)[:PLACES]
    row = np.zeros((len(vocabulary) + 31) // 32, dtype=np.int32)
    plain, far = _both_ways(compiled, tokens, row)
    first, near = _near(compiled, tokens, row)
    return {
        "table": _table(grammar, vocabulary, "now"),
        "table_alone": _table(grammar, vocabulary, "never"),
        "plain": plain,
        "far": far,
        "first": sum(first) / len(first),
        "near": sum(near) / len(near),
        "near_p99": sorted(near)[int(len(near) * 0.99)],
    }


def _table(grammar: Grammar, vocabulary: Vocabulary, classes: Any) -> float:
    times = []
    for _ in range(TRIES):
        compiled = tokfold.compile(grammar, vocabulary, classes=classes)
        began = time.thread_time()
        compiled.shortest()
        times.append(time.thread_time() - began)
    return min(times)


def _both_ways(
    compiled: tokfold.CompiledGrammar, tokens: list[int], row: npt.NDArray[np.int32]
) -> tuple[float, float]:
    """The mean mask without a budget and far from its end, turn about."""
    budgets = [None, 1_000_000]
    best = [float("inf")] * 2
    for _ in range(TRIES):
        for which, budget in enumerate(budgets):
            matcher = tokfold.Matcher(compiled, max_tokens=budget)
            times = _walk(matcher, tokens, lambda matcher=matcher: matcher.fill_bitmask(row))
            best[which] = min(best[which], sum(times) / len(times))
    return best[0], best[1]


def _near(
    compiled: tokfold.CompiledGrammar, tokens: list[int], row: npt.NDArray[np.int32]
) -> tuple[list[float], list[float]]:
    first: list[float] = []
    again: list[float] = []
    for spare in range(SPARE):
        for times in (first if spare == 0 else [], again):
            matcher = tokfold.Matcher(compiled)
            for token in tokens:
                left = matcher.shortest().tokens + 1 + spare
                began = time.perf_counter()
                matcher.fill_bitmask(row, tokens_left=left)
                times.append(time.perf_counter() - began)
                assert matcher.accept_token(token)
    return first, again


def _walk(matcher: tokfold.Matcher, tokens: list[int], fill: Callable[[], object]) -> list[float]:
    times = []
    for token in tokens:
        began = time.perf_counter()
        fill()
        times.append(time.perf_counter() - began)
        assert matcher.accept_token(token)
    return times


if __name__ == "__main__":
    main()
