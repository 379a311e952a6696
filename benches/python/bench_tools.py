"""Tool calling: structural tags of many tools, from tag to first mask, in free text, in calls.

    python benches/python/bench_tools.py --tokenizer path/to/model --engines tokfold xgrammar

The tools are made up by a seeded generator: four of five have one to four scalar parameters, the
others objects, lists, enumerations, formats and bounds. They come in two forms:

- *triggered tags*: one trigger, ``<function=``, and one tag for each tool;
- *dispatch*: no common trigger; each tool has a begin of its own.

For each form and engine, in a process of its own with the vocabulary loaded (bench_maskbench.py
says what else), one after the other:

- *start*: from the text of the structural tag to the compiled grammar, and to the first mask; then
  to the first mask again for one tool more, in the same process, so that what the engine keeps
  counts; then for one tool added to what is compiled (median of several tools);
- *free text*: masks along some thousand tokens of prose and code that almost calls now and then,
  right after compiling (cold) and once more (warm);
- *in calls*: masks along calls of some of the tools, cold and warm;
- *batch*: one call for the rows of many matchers that stand at as many places of those texts, and
  for as many that stand at one place, against one row alone; median of the repetitions, warm.

A peer that takes longer than ``--timeout`` for a form is killed; what was measured by then is
shown.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench_common as common
import numpy as np
from tokfold import Vocabulary
from tokfold.cli.inputs import read_tokenizer
from tokfold.cli.render import number, seconds

FORK: Any = multiprocessing.get_context("fork")
FORMS = ("triggered tags", "dispatch")
CALLS = 20
ADDED = 15
REPEATS = 15

ENGINES: dict[str, Callable[[str], common.Engine]] = {
    "tokfold": lambda classes: common.TokfoldEngine(classes),
    "xgrammar": lambda classes: common.XgrammarEngine(),
}

Figure = tuple[str, Any]
Clock = Callable[[], int]


@dataclass(frozen=True)
class Tool:
    """A tool, with one set of arguments that its schema allows."""

    name: str
    schema: common.Result
    arguments: common.Result


@dataclass(frozen=True)
class Load:
    """What one form of the structural tag is measured with."""

    tag: str
    one_more: str
    more: list[list[Any]]
    text: list[int]
    calls: list[list[int]]
    matchers: int
    cpu: bool


def main() -> None:
    """Measure and print."""
    options = _parser().parse_args()
    vocabulary = read_tokenizer(options.tokenizer)
    encode, _ = common.encoder(vocabulary, options.tokenizer)
    tools = make_tools(options.tools + 1 + ADDED, options.seed)
    tools, new = tools[: options.tools + 1], tools[options.tools + 1 :]
    report: common.Result = {
        "machine": common.machine(),
        "tokenizer": vocabulary.name,
        "tools": options.tools,
        "rows": [],
    }
    for form in FORMS:
        chosen = random.Random(options.seed).sample(tools[:-1], min(CALLS, options.tools))
        load = Load(
            structural_tag(form, tools[:-1]),
            structural_tag(form, tools),
            [tags_of(form, [tool]) for tool in new],
            encode(free_text(options.tokens, encode)),
            [encode(call(form, tool)) for tool in chosen],
            options.matchers,
            options.cpu,
        )
        for name in options.engines:
            kinds = options.classes if name == "tokfold" else [""]
            for classes in kinds:
                engine = ENGINES[name](classes)
                figures = _isolated(engine, vocabulary, load, options.timeout)
                label = f"{name} {classes}".strip()
                report["rows"].append({"form": form, "engine": label, **figures})
    _show(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    parser = common.described(__doc__)
    parser.add_argument("--tokenizer", default="tekken", metavar="PATH", help="file or folder")
    parser.add_argument("--tools", type=int, default=500, metavar="N")
    parser.add_argument("--engines", nargs="+", default=["tokfold"], choices=list(ENGINES))
    parser.add_argument("--classes", nargs="+", default=["never"], choices=("never", "auto", "now"))
    parser.add_argument("--tokens", type=int, default=5_000, metavar="N", help="of free text")
    parser.add_argument("--matchers", type=int, default=256, metavar="N", help="in a batch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--cpu", action="store_true", help="processor time of all threads, but for batches"
    )
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="for a form")
    parser.add_argument("--json", type=Path, metavar="OUT")
    return parser


# ------------------------------------------------------------------------------------ the tools

_VERBS = ("get", "list", "create", "update", "delete", "search", "send", "book", "convert", "run")
_NOUNS = ("account", "order", "ticket", "flight", "report", "file", "contact", "invoice", "event")
_FIELDS = ("id", "name", "query", "limit", "city", "language", "note", "price", "active", "source")


def make_tools(count: int, seed: int) -> list[Tool]:
    """Tools with names of their own, the same for the same seed."""
    random_ = random.Random(seed)
    return [_tool(index, random_) for index in range(count)]


def _tool(index: int, random_: random.Random) -> Tool:
    name = f"{random_.choice(_VERBS)}_{random_.choice(_NOUNS)}_{index}"
    is_large = random_.random() < 0.2
    fields = random_.sample(_FIELDS, random_.randint(5, 9) if is_large else random_.randint(1, 4))
    make = _large_field if is_large else _scalar
    made = {field: make(random_) for field in fields}
    properties = {field: schema for field, (schema, _) in made.items()}
    schema = _object(properties)
    schema["description"] = f"Parameters of {name}."
    return Tool(name, schema, {field: value for field, (_, value) in made.items()})


def _object(properties: common.Result) -> common.Result:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _scalar(random_: random.Random) -> tuple[common.Result, Any]:
    return random_.choice(
        [
            ({"type": "string"}, "some words, as they come"),
            ({"type": "integer"}, random_.randint(0, 9_999)),
            ({"type": "number"}, round(random_.random() * 100, 2)),
            ({"type": "boolean"}, random_.random() < 0.5),
        ]
    )


def _large_field(random_: random.Random) -> tuple[common.Result, Any]:
    kind = random_.randrange(7)
    if kind == 0:
        made = {field: _scalar(random_) for field in random_.sample(_FIELDS, 4)}
        schema = _object({field: schema for field, (schema, _) in made.items()})
        return schema, {field: value for field, (_, value) in made.items()}
    if kind == 1:
        schema, value = _scalar(random_)
        return {"type": "array", "items": schema, "minItems": 1, "maxItems": 20}, [value] * 3
    if kind == 2:
        values = random_.sample(_NOUNS, 5)
        return {"type": "string", "enum": values}, values[2]
    if kind == 3:
        return {"type": "string", "minLength": 1, "maxLength": 80}, "a text of bounded length"
    if kind == 4:
        return {"type": "string", "format": "date-time"}, "2024-05-17T08:30:00Z"
    if kind == 5:
        return {"type": "integer", "minimum": 1, "maximum": 500}, random_.randint(1, 500)
    (left, value), (right, _) = _scalar(random_), _scalar(random_)
    return {"anyOf": [left, right, {"type": "null"}]}, value


def structural_tag(form: str, tools: list[Tool]) -> str:
    """The text of a structural tag of the tools."""
    found: common.Result
    if form == "dispatch":
        found = {"type": "dispatch", "rules": tags_of(form, tools)}
    else:
        tags = tags_of(form, tools)
        found = {"type": "triggered_tags", "triggers": ["<function="], "tags": tags}
    return json.dumps({"type": "structural_tag", "format": found})


def tags_of(form: str, tools: list[Tool]) -> list[Any]:
    """The tags, or the pairs of a pattern and what follows it."""
    if form == "dispatch":
        return [[_begin(form, tool), _sequence(tool)] for tool in tools]
    return [
        {"type": "tag", "begin": _begin(form, tool), "content": _content(tool), "end": _END}
        for tool in tools
    ]


_END = "</function>"


def _begin(form: str, tool: Tool) -> str:
    return f"<{tool.name}>" if form == "dispatch" else f"<function={tool.name}>"


def _content(tool: Tool) -> common.Result:
    return {"type": "json_schema", "json_schema": tool.schema}


def _sequence(tool: Tool) -> common.Result:
    end = {"type": "const_string", "value": _END}
    return {"type": "sequence", "elements": [_content(tool), end]}


def call(form: str, tool: Tool) -> str:
    """The text of a call."""
    return f"I call it now.\n{_begin(form, tool)}{json.dumps(tool.arguments)}{_END}\n"


def free_text(tokens: int, encode: Callable[[str], list[int]]) -> str:
    """Prose and code of about so many tokens, with what almost begins a call."""
    almost = "\nif a < b: <fun x>, <function>, <get_, <<function, </function>, std::vector<int>\n"
    source = (common.ROOT / "README.md").read_text(encoding="utf-8")
    text, size = "", 0
    while size < tokens:
        part = almost.join(source.split("\n\n"))
        text, size = text + part, size + len(encode(part))
    # Each character is at most so many tokens on average, so the cut is near enough.
    return text[: len(text) * tokens // size]


# -------------------------------------------------------------------------------- measuring them


def _isolated(
    engine: common.Engine, vocabulary: Vocabulary, load: Load, timeout: float
) -> common.Result:
    """The figures of one form and engine, as far as they came."""
    receiving, sending = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_send, args=(sending, engine, vocabulary, load))
    process.start()
    sending.close()
    figures: common.Result = {}
    ends = time.monotonic() + timeout
    try:
        while receiving.poll(max(0.0, ends - time.monotonic())):
            name, value = receiving.recv()
            if name == "done":
                break
            figures[name] = value
        else:
            figures["failure"] = f"stopped after {seconds(timeout)}"
    except EOFError:
        figures["failure"] = "crashed"
    process.kill()
    process.join()
    return figures


def _send(sending: Any, engine: common.Engine, vocabulary: Vocabulary, load: Load) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # converters warn there
    try:
        engine.prepare(vocabulary)
        engine.touch()
        gc.collect()
        gc.disable()
        for figure in _figures(engine, load):
            sending.send(figure)
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        sending.send(("failure", lines[0][:60]))
    sending.send(("done", None))


def _figures(engine: common.Engine, load: Load) -> Iterator[Figure]:
    clock = time.process_time_ns if load.cpu else time.perf_counter_ns
    compiled, start, made = _start(engine, load.tag, clock)
    yield "compile", made
    yield "start", start
    for name in ("free text cold", "free text warm"):
        yield name, _along(engine, compiled, [load.text], clock)
    for name in ("calls cold", "calls warm"):
        yield name, _along(engine, compiled, load.calls, clock)
    del compiled
    compiled, start, _ = _start(engine, load.one_more, clock)
    yield "one more", start
    if isinstance(engine, common.TokfoldEngine):
        yield "added", _added(engine, compiled, load.more, clock)
    yield from _batches(engine, compiled, load)


def _start(engine: common.Engine, tag: str, clock: Clock) -> tuple[Any, float, float]:
    """A compiled tag; seconds from its text to the first mask, and until it was compiled."""
    began = clock()
    compiled = engine.compile_tag(tag)
    made = clock()
    engine.walk(compiled).fill()
    return compiled, (clock() - began) / 1e9, (made - began) / 1e9


def _added(
    engine: common.TokfoldEngine, compiled: Any, more: list[list[Any]], clock: Clock
) -> float:
    """Seconds from one new tool to the first mask, the median; each is added to the same tag."""
    times = []
    for tags in more:
        began = clock()
        engine.walk(engine.add_tags(compiled, tags)).fill()
        times.append((clock() - began) / 1e9)
    return sorted(times)[len(times) // 2]


def _along(
    engine: common.Engine, compiled: Any, texts: list[list[int]], clock: Clock
) -> common.Result:
    """Masks and accepts along texts, each begun anew."""
    masks, accepts = [], []
    for tokens in texts:
        walk = engine.walk(compiled)
        for index, token in enumerate(tokens):
            began = clock()
            walk.fill()
            middle = clock()
            is_taken = walk.accept(token)
            accepts.append(clock() - middle)
            masks.append(middle - began)
            if not is_taken:
                raise RuntimeError(f"a text is refused at token {index} of {len(tokens)}")
    return {"mask": common.summary(masks), "accept": common.summary(accepts)}


def _batches(engine: common.Engine, compiled: Any, load: Load) -> Iterator[Figure]:
    """Seconds for one call, one row alone first."""
    texts = [load.text, *load.calls]
    rows = np.zeros((load.matchers, engine.row.shape[1]), dtype=np.int32)
    different = [_placed(engine, compiled, texts, index) for index in range(load.matchers)]
    equal = [_placed(engine, compiled, texts, 0) for _ in range(load.matchers)]
    alone = engine.walk(compiled)
    for token in texts[0][: _place(texts[0], 0)]:
        alone.accept(token)
    yield "one row", _median(alone.fill)
    for name, matchers in (("different", different), ("equal", equal)):
        for threads in (1, 2):
            yield f"{name}, {threads} threads", _median(engine.batch(matchers, rows, threads))


def _placed(engine: common.Engine, compiled: Any, texts: list[list[int]], index: int) -> Any:
    """A matcher at some place of some text: free text and calls in turn."""
    text = texts[0] if index % 2 == 0 else texts[1 + index // 2 % (len(texts) - 1)]
    walk = engine.walk(compiled)
    for token in text[: _place(text, index)]:
        if not walk.accept(token):
            raise RuntimeError("a text is refused")
    return walk.matcher


def _place(text: list[int], index: int) -> int:
    """A place in a text, the same for the same index; near its beginning if it is long."""
    return 1 + index * 37 % min(len(text) - 1, 500)


def _median(fill: common.Fill) -> float:
    fill()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        fill()
        times.append(time.perf_counter() - began)
    return sorted(times)[REPEATS // 2]


# ---------------------------------------------------------------------------------- showing them


def _show(report: common.Result) -> None:
    out = common.console(width=120)
    found = report["machine"]
    out.print(f"{found['processor']}, {found['cores']} cores, Python {found['python']}")
    out.print(f"{number(report['tools'])} tools, {report['tokenizer']}")
    out.print()
    rows = report["rows"]
    cells = [
        [
            *_label(row),
            *(_cell(row.get(name)) for name in ("compile", "start", "one more", "added")),
            row.get("failure", ""),
        ]
        for row in rows
    ]
    columns = ["form", "engine", ">compiled", ">start", ">one tool more", ">one added", ""]
    common.show(out, "From structural tag to first mask", columns, cells)
    for place in ("free text", "calls"):
        cells = [
            [*_label(row), what, *_masks(row[f"{place} {what}"])]
            for row in rows
            for what in ("cold", "warm")
            if f"{place} {what}" in row
        ]
        columns = ["form", "engine", "", ">mask mean", ">p50", ">p99", ">max", ">accept p50"]
        common.show(out, f"Masks in {place}", columns, cells)
    names = [
        f"{which}, {threads} threads" for which in ("different", "equal") for threads in (1, 2)
    ]
    cells = [
        [*_label(row), _cell(row["one row"]), *(_cell(row.get(name)) for name in names)]
        for row in rows
        if "one row" in row
    ]
    columns = ["form", "engine", ">one row"]
    columns += [f">{name.replace(' threads', ' thr.')}" for name in names]
    common.show(out, "A batch, all rows", columns, cells)


def _label(row: common.Result) -> list[str]:
    return [row["form"], row["engine"]]


def _masks(figures: common.Result) -> list[str]:
    mask = [seconds(figures["mask"][key]) for key in ("mean", "p50", "p99", "max")]
    return [*mask, seconds(figures["accept"]["p50"])]


def _cell(value: float | None) -> str:
    return "-" if value is None else seconds(value)


if __name__ == "__main__":
    main()
