"""Arrays whose items are all different: what masks and accepts cost beside plain arrays.

    python benches/python/bench_unique_items.py --tokenizer path/to/model

Random strings of 20 characters, in one array; *shared* ones begin alike. *Objects* have a number
and a name; *alike* ones begin with a member that is the same in all, and hold an array with unique
items. Each text is read twice by a grammar with `uniqueItems` and by one without, and the second
time is measured: each mask and each accept by itself, in wall time.
"""

from __future__ import annotations

import gc
import json
import random
import string
import time
from typing import Any

import bench_common as common
import numpy as np
import tokfold
from tokfold import Vocabulary
from tokfold.cli.inputs import read_tokenizer
from tokfold.cli.render import seconds

LENGTH = 20
STRING = {"type": "string"}
KINDS: dict[str, dict[str, Any]] = {
    "random": STRING,
    "shared": STRING,
    "objects": {"properties": {"id": {"type": "integer"}, "name": STRING}, "required": ["id"]},
    "alike": {
        "properties": {
            "type": {"const": "page"},
            "name": STRING,
            "tags": {"type": "array", "items": STRING, "uniqueItems": True},
        },
        "required": ["type", "name", "tags"],
    },
}


def main() -> None:
    """Measure and print."""
    assert __doc__ is not None
    parser = common.described(__doc__)
    parser.add_argument("--tokenizer", default="tekken", metavar="PATH", help="file or folder")
    parser.add_argument("--items", type=int, default=1_000, metavar="N")
    options = parser.parse_args()
    vocabulary = read_tokenizer(options.tokenizer)
    gc.disable()
    rows = []
    for name in KINDS:
        text = _text(options.items, name)
        for is_unique in (False, True):
            kind = "uniqueItems" if is_unique else "plain"
            rows.append([f"{name}, {kind}", *_figures(text, name, is_unique, vocabulary)])
    titles = ["mask p50", "mask p99", "accept p50", "accept p99", "memory"]
    out = common.console(width=100)
    out.print(f"{common.machine()['processor']}; {options.items} items, {vocabulary.name}")
    common.show(out, "Arrays", ["items", *titles], rows)


def _text(items: int, name: str) -> str:
    rng = random.Random(7)
    letters = string.ascii_lowercase + "     "
    beginning = "https://x/" if name == "shared" else ""
    strings: dict[str, None] = {}
    while len(strings) < items:
        rest = "".join(rng.choices(letters, k=LENGTH - len(beginning)))
        strings[beginning + rest] = None
    match name:
        case "objects":
            return json.dumps([{"id": id, "name": name} for id, name in enumerate(strings)])
        case "alike":
            tags = ["red", "green", "blue"]
            return json.dumps([{"type": "page", "name": text, "tags": tags} for text in strings])
    return json.dumps(list(strings))


def _figures(text: str, name: str, is_unique: bool, vocabulary: Vocabulary) -> list[str]:
    items = {"type": "object", "additionalProperties": False, **KINDS[name]}
    schema = {"type": "array", "items": items if "properties" in items else STRING}
    grammar = tokfold.Grammar.from_json_schema({**schema, "uniqueItems": is_unique})
    compiled = tokfold.compile(
        grammar, vocabulary, classes="never", options=tokfold.CompileOptions(pool=None)
    )
    tokens = vocabulary.encode_greedy(text.encode())
    row = np.zeros((len(vocabulary) + 31) // 32, dtype=np.int32)
    masks: list[float] = []
    accepts: list[float] = []
    for _ in range(2):
        matcher = tokfold.Matcher(compiled)
        masks.clear()
        accepts.clear()
        for token in tokens:
            began = time.perf_counter()
            matcher.fill_bitmask(row)
            between = time.perf_counter()
            assert matcher.accept_token(token)
            accepts.append(time.perf_counter() - between)
            masks.append(between - began)
        assert matcher.is_accepting
    times = [_quantile(times, part) for times in (masks, accepts) for part in (0.5, 0.99)]
    return [*map(seconds, times), f"{matcher.counters()['bytes_held'] / 1e3:.0f} kB"]


def _quantile(times: list[float], part: float) -> float:
    return sorted(times)[int(len(times) * part)]


if __name__ == "__main__":
    main()
