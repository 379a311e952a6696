"""Ambiguous grammars: a chart beside stacks, XGrammar and llguidance, a letter or tag at a time.

    python benches/python/bench_chart.py --tokenizer path/to/model

A step is one terminal read, and then all that may come next: `expected_bytes` of ours, a mask over
256 bytes of the others, which have no such question. Sentences of tags are measured with one letter
for each tag; long ones are sentences joined by `CC`. Token masks are of the tokenizer; the second
walk over a text counts, what the first left behind is there. Every engine has a process of its own
for each text, and so many seconds (`--budget`); past them the steps that were done count, and the
row says how many. Thread time, one thread. Where ours took little it walks again, with new
matchers: the first walk of a process is one of page faults. A reading of the clock costs as much as
a light step: it is in p50 and p99; the mean of ours is then of walks that are timed as a whole, the
best of five.
"""

from __future__ import annotations

import datetime
import multiprocessing
import re
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import bench_common as common
import numpy as np
import tokfold
from tokfold import Grammar, Matcher, Vocabulary
from tokfold.laboratory.instruments.lark import to_lark

Result = common.Result
ENGINES = ("chart", "auto", "stack", "XGrammar", "llguidance")
BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [b"</s>"], stop_token_ids=[256])
LENGTHS = (100, 200, 500, 1_000)
GRACE = 60.0
"""Seconds for imports, compiling and a last step, besides the budget."""

SENTENCES = """
DT NN VBZ DT JJ NN IN DT NN IN NNP
NNP NNP COMMA CD NNS JJ COMMA MD VB DT NN IN DT JJ NN NNP CD
PRP VBD IN DT NN IN NNS IN NNP CC NNP VBD RB VBN DT NNS WDT VBP IN DT NN
IN DT JJ NN COMMA DT NN POS JJ NNS VBD CD TO CD NN COMMA VBG DT NN IN NN
DT NNS IN DT NN VBP RB JJ TO VB DT NN CC VB NNS IN PRPS NN
""".strip().splitlines()


SQL = """
root ::= (query ";")+
query ::= "select " columns " from " name (" where " test)?
columns ::= column | columns "," column
column ::= name | name "." name | "count(" name ")"
test ::= clause | test " and " clause
clause ::= name [=<>] value | "(" test ")"
value ::= name | number | "(" query ")"
number ::= [0-9] | number [0-9]
name ::= [a-z] | name [a-z]
"""
QUERY = b"select a,t.bc,count(de) from t where a=12 and (bc>(select x from uv where y<7) and de=f);"

BARS = {
    "english_tags, sentences": {"p50": 8, "p99": 40},
    "english_tags, n = 100": {"mean": 50},
    "english_tags, n = 200": {"mean": 100},
    "english_tags, n = 500": {"mean": 280},
    "english_tags, n = 1000": {"mean": 700, "bytes": 1.5, "start": 25},
    "5,500 productions": {"mean": 12},
    "5,500 productions of 70 phrases": {"mean": 12, "start": 2_000},
    "64 symbols, 5,000 rules": {"mean": 4_200},
    "SQL, n = 500": {"mean": 0.6},
    "SQL, n = 5,000": {"mean": 0.6},
    "english_tags, token masks": {"mean": 100},
}
"""What a chart is to take at most: microseconds; megabytes; milliseconds to start."""
SCALES = {"bytes": ("MB", 1e-6), "start": ("start, ms", 1e3)}


WIDE = tokfold.Limits(max_network_work=1 << 40, max_accept_work=1 << 40)
"""Work is bounded by the budget here."""


class Sample(NamedTuple):
    """A grammar, and a text of it in steps."""

    name: str
    grammar: str
    steps: list[bytes]
    limits: tokfold.Limits = WIDE


class Times(NamedTuple):
    """What one engine took."""

    start: float
    """Seconds to compile and begin."""
    steps: list[int]
    """Nanoseconds each."""
    held: int | None
    """Bytes of the matcher, where it says."""
    trouble: str
    mean: float | None = None
    """Nanoseconds for each step of a walk that was timed as a whole."""


def letters_for_tags(text: str) -> tuple[str, dict[str, bytes]]:
    """A grammar over words of capitals with one letter for each word and no spaces."""
    body = re.sub(r"#[^\n]*", "", text)
    literal = re.compile(r'"([A-Z ]+)"')
    words = sorted({word for found in literal.findall(body) for word in found.split()})
    free = [chr(code) for code in range(0x30, 0x7F) if chr(code) not in '"\\']
    letter = dict(zip(words, free, strict=False))
    if len(letter) < len(words):
        raise ValueError(f"{len(words)} words are more than there are letters")
    short = literal.sub(lambda m: '"' + "".join(letter[w] for w in m[1].split()) + '"', body)
    return short, {word: found.encode() for word, found in letter.items()}


def tag_samples(folder: Path, lengths: tuple[int, ...]) -> list[Sample]:
    """Sentences of tags one by one, and joined."""
    grammar, letter = letters_for_tags(common.grammar_text(folder, "english_tags"))
    ends = [[letter[tag] for tag in [*line.split(), "DOT"]] for line in SENTENCES]
    out = [Sample(f"english_tags, sentence {i + 1}", grammar, end) for i, end in enumerate(ends)]
    joined: list[bytes] = []
    for sentence in cycle(SENTENCES):
        if len(joined) >= max(lengths, default=0):
            break
        joined += [*([letter["CC"]] if joined else []), *(letter[tag] for tag in sentence.split())]
    return out + [Sample(f"english_tags, n = {n}", grammar, joined[:n]) for n in lengths]


def dense(symbols: int, rules: int) -> str:
    """Rules of two symbols each, drawn evenly; every symbol is one of two letters too."""
    random = Random(1)
    names = [f"n{number}" for number in range(symbols)]
    drawn: dict[tuple[str, str, str], None] = {}
    while len(drawn) < rules:
        drawn[random.choice(names), random.choice(names), random.choice(names)] = None
    bodies = {name: [f'"{"ab"[at % 2]}"'] for at, name in enumerate(names)}
    for name, left, right in drawn:
        bodies[name].append(f"{left} {right}")
    return "root ::= n0\n" + "".join(f"{n} ::= {' | '.join(b)}\n" for n, b in bodies.items())


def phrases(productions: int, names: int, seed: int) -> tuple[str, dict[str, list[list[str]]]]:
    """A grammar like those read off a treebank, and its productions by phrase.

    Few phrases and 45 tags of one letter, some of each far more frequent; one to eight parts.
    """
    random = Random(seed)
    tags = [chr(code) for code in (*range(0x61, 0x7B), *range(0x41, 0x54))]
    labels = [f"p{number}" for number in range(names)]

    def one(of: list[str]) -> str:
        return of[min(int(random.paretovariate(0.6)) - 1, len(of) - 1)]

    drawn: dict[str, dict[tuple[str, ...], None]] = {
        label: {(f'"{random.choice(tags)}"',): None} for label in labels
    }
    while sum(map(len, drawn.values())) < productions:
        head = one(labels)
        length = 1 + min(7, int(random.expovariate(0.4)))
        body = [one(labels) if random.random() < 0.45 else f'"{one(tags)}"' for _ in range(length)]
        if body != [head]:
            drawn[head][tuple(body)] = None
    bodies = {label: [list(body) for body in drawn[label]] for label in labels}
    rules = "".join(
        f"{label} ::= {' | '.join(' '.join(body) for body in of)}\n" for label, of in bodies.items()
    )
    return f'root ::= p0 "."\n{rules}', bodies


def derived(bodies: dict[str, list[list[str]]], least: int, most: int, seed: int) -> bytes:
    """A sentence of so many letters, derived from the leftmost phrase on."""
    random = Random(seed)
    while True:
        left, read = ["p0"], ""
        while left and len(read) + len(left) <= most:
            part = left.pop()
            if part in bodies:
                left += reversed(random.choice(bodies[part]))
            else:
                read += part.strip('"')
        if not left and len(read) >= least:
            return read.encode()


def letters(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


def samples(folder: Path, lengths: tuple[int, ...]) -> list[Sample]:
    """All texts that are read letter by letter, or tag by tag."""
    most = max(lengths, default=100)
    out = tag_samples(folder, lengths)
    for name in ("english", "air_travel"):
        texts = sorted((folder / name / "valid").iterdir(), key=lambda p: p.stat().st_size)
        out.append(Sample(name, common.grammar_text(folder, name), letters(texts[-1].read_bytes())))
    unit = 'root ::= root root | "a"'
    out.append(Sample("S -> SS", unit, letters(b"a" * most)))
    three = 'root ::= root root root | root root | "a" | "b"'
    out.append(Sample("S -> SSS | SS", three, letters(b"ab" * (most // 2))))
    out.append(Sample("64 symbols, 5,000 rules", dense(64, 5_000), letters(b"ab" * (most // 4))))
    # As loops the left recursion of the second would take far more than the usual limits.
    for name, names, seed, limits in (
        ("5,500 productions", 26, 3, WIDE),
        ("5,500 productions of 70 phrases", 70, 1, tokfold.Limits()),
    ):
        grammar, bodies = phrases(5_500, names, seed)
        for number in range(5):
            sentence = letters(derived(bodies, 15, 25, number))
            out.append(Sample(f"{name}, sentence {number + 1}", grammar, sentence, limits))
    for count, length in (("500", 500), ("5,000", 5_000)):
        text = (QUERY * (length // len(QUERY) + 1))[:length]
        out.append(Sample(f"SQL, n = {count}", SQL, letters(text)))
    return out


def ours(engine: Any, sample: Sample, vocabulary: Vocabulary) -> tuple[Matcher, float]:
    limits, grammar = sample.limits, Grammar.from_ebnf(sample.grammar)
    before = time.thread_time()
    compiled = tokfold.compile(
        grammar,
        vocabulary,
        limits,
        classes="never",
        options=tokfold.CompileOptions(pool=None, engine=engine),
    )
    return Matcher(compiled), time.thread_time() - before


def theirs(engine: str, sample: Sample, vocabulary: Vocabulary) -> tuple[common.Walk, float]:
    if engine == "XGrammar":
        peer: Any = common.XgrammarEngine()
        peer.prepare(vocabulary)
        before = time.thread_time()
        compiled = peer.compiler.compile_grammar(sample.grammar)
    else:
        peer = common.LlguidanceEngine()
        peer.prepare(vocabulary)
        before = time.thread_time()
        lark = peer.module.LLMatcher.grammar_from_lark(to_lark(Grammar.from_ebnf(sample.grammar)))
        compiled = peer.module.LLMatcher(peer.tokenizer, lark, log_level=0)
        if compiled.is_error():
            raise RuntimeError(compiled.get_error())
    return peer.walk(compiled), time.thread_time() - before


def accept_all(accept: Callable[[int], bool], step: bytes) -> bool:
    """A step of some bytes, each a token."""
    return all(accept(byte) for byte in step)


def next_terminals(
    engine: str, sample: Sample, budget: float, send: Callable[[Times], None]
) -> None:
    """Reads a text, asking after each step what may come next."""
    taken: list[int] = []
    trouble = ""
    clock = time.thread_time_ns
    matcher = walk = None
    ask: Callable[[], object]
    try:
        if engine in ("chart", "auto", "stack"):
            matcher, start = ours(engine, sample, BYTES)
            accept, ask = matcher._core.accept_bytes, matcher._core.expected
        else:
            walk, start = theirs(engine, sample, BYTES)
            accept, ask = partial(accept_all, walk.accept), walk.fill
    except (RuntimeError, tokfold.TokfoldError) as error:
        send(Times(0, [], None, f"refused: {str(error)[:60]}"))
        return
    end = time.monotonic() + budget
    for step in sample.steps:
        before = clock()
        try:
            good = accept(step)
            ask()
        except (RuntimeError, tokfold.TokfoldError) as error:
            trouble = str(error)[:60]
            break
        taken.append(clock() - before)
        if not good or (walk is not None and walk.trouble()):
            trouble = (walk.trouble()[:60] if walk is not None else "") or "refused the text"
            break
        if time.monotonic() > end:
            trouble = "out of time"
            break
    held = mean = None
    if matcher is not None:
        held = matcher._core.bytes_held()
        if taken and not trouble and sum(taken) < budget / 8 * 1e9:
            taken, mean = again(matcher.compiled, sample.steps)
    send(Times(start, taken, held, trouble, mean))


def again(compiled: tokfold.CompiledGrammar, steps: list[bytes]) -> tuple[list[int], float]:
    """Nanoseconds of each step, and for each of walks without looks at the clock."""
    clock = time.thread_time_ns
    taken = []
    core = Matcher(compiled)._core
    for step in steps:
        before = clock()
        core.accept_bytes(step)
        core.expected()
        taken.append(clock() - before)
    walks = []
    for _ in range(5):
        core = Matcher(compiled)._core
        accept, ask = core.accept_bytes, core.expected
        before = clock()
        for step in steps:
            accept(step)
            ask()
        walks.append(clock() - before)
    return taken, min(walks) / len(steps)


def token_masks(
    engine: str,
    sample: Sample,
    vocabulary: Vocabulary,
    budget: float,
    send: Callable[[Times], None],
) -> None:
    """Masks before each token, on a second walk over the text."""
    taken: list[int] = []
    trouble, held, clock = "", None, time.thread_time_ns
    tokens = vocabulary.encode_greedy(b"".join(sample.steps))
    walks: list[tuple[Callable[[], object], Callable[[int], bool], Callable[[], str]]]
    try:
        if engine in ("chart", "auto", "stack"):
            matcher, start = ours(engine, sample, vocabulary)
            row = np.zeros((1, (len(vocabulary) + 31) // 32), dtype=np.int32)
            walks = [
                (partial(m.fill_bitmask, row), m.accept_token, str)
                for m in (matcher, matcher.fork())
            ]
        else:
            first, start = theirs(engine, sample, vocabulary)
            second = theirs(engine, sample, vocabulary)[0] if engine == "XGrammar" else first
            distinct = [first] if second is first else [first, second]
            walks = [(walk.fill, walk.accept, walk.trouble) for walk in distinct]
    except (RuntimeError, tokfold.TokfoldError) as error:
        send(Times(0, [], None, f"refused: {str(error)[:60]}"))
        return
    for fill, accept, complaint in walks:
        taken.clear()
        end = time.monotonic() + budget
        for token in tokens:
            try:
                before = clock()
                fill()
                taken.append(clock() - before)
                good = accept(token)
            except (RuntimeError, tokfold.TokfoldError) as error:
                trouble = str(error)[:60]
                break
            if not good or complaint():
                trouble = complaint()[:60] or "refused the text"
                break
            if time.monotonic() > end:
                trouble = "out of time"
                break
    send(Times(start, taken, held, trouble))


def apart(run: Callable[..., None], *arguments: Any, budget: float) -> Times:
    """Runs it in a process of its own, which may take its time and no more."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(*arguments, budget, there.send), daemon=True)
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(2 * budget + GRACE) else Times(0, [], None, "out of time")
    except EOFError:
        return Times(0, [], None, "ended without an answer")
    finally:
        process.kill()
        process.join()


def figures(name: str, engine: str, times: Times, wanted: int) -> Result:
    return {
        "sample": name,
        "engine": engine,
        "start": times.start,
        **common.summary(times.steps),
        **({} if times.mean is None else {"mean": times.mean / 1e9}),
        "steps": len(times.steps),
        "of": wanted,
        "bytes": times.held,
        "trouble": times.trouble,
    }


def cells(found: Result) -> list[str]:
    def micro(key: str) -> str:
        return f"{found[key] * 1e6:,.1f}" if key in found else ""

    held = "" if found["bytes"] is None else f"{found['bytes'] / 1e6:.2f}"
    done = f"{found['steps']}/{found['of']}"
    start = f"{found['start'] * 1e3:,.1f}" if found["start"] else ""
    times = [micro("p50"), micro("p99"), micro("mean")]
    return [found["sample"], found["engine"], *times, held, start, done]


COLUMNS = ["text", "engine", ">p50 µs", ">p99 µs", ">mean µs", ">MB", ">start ms", ">steps"]


def gathered(found: list[Result], times: dict[tuple[str, str], list[int]]) -> list[Result]:
    """All sentences of a grammar and engine as one row."""
    rows = []
    for (name, engine), taken in times.items():
        of_engine = [f for f in found if f["engine"] == engine]
        parts = [f for f in of_engine if f["sample"].startswith(f"{name}, sentence")]
        steps = sum(part["steps"] for part in parts)
        means = [part["mean"] * part["steps"] for part in parts if part["steps"]]
        every = Times(
            max((part["start"] for part in parts), default=0),
            taken,
            max((part["bytes"] or 0 for part in parts), default=0) or None,
            "; ".join(sorted({part["trouble"] for part in parts} - {""})),
            sum(means) / steps * 1e9 if means else None,
        )
        title = "english_tags, sentences" if name == "english_tags" else name
        rows.append(figures(title, engine, every, sum(p["of"] for p in parts)))
    return rows


def bars(found: list[Result]) -> list[list[str]]:
    """What a chart took, beside what it may take."""
    of_sample = {f["sample"]: f for f in found if f["engine"] == "chart"}
    rows = []
    for name, wanted in BARS.items():
        for key, most in wanted.items():
            unit, scale = SCALES.get(key, (f"{key}, µs", 1e6))
            took = of_sample.get(name, {}).get(key)
            rows.append([name, unit, f"{most:g}", "" if took is None else f"{took * scale:,.2f}"])
    return rows


def main() -> None:
    parser = common.parser(__doc__ or "", writes=True)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS))
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for an engine and text")
    parser.add_argument("--no-masks", action="store_true", help="next terminals only")
    options = parser.parse_args()
    steps: list[Result] = []
    sentence_times: dict[tuple[str, str], list[int]] = {}
    for sample in samples(options.grammar_dir, tuple(options.lengths)):
        for engine in options.engines:
            times = apart(next_terminals, engine, sample, budget=options.budget)
            steps.append(figures(sample.name, engine, times, len(sample.steps)))
            name, sentence, _ = sample.name.partition(", sentence")
            if sentence:
                sentence_times.setdefault((name, engine), []).extend(times.steps)
    steps = gathered(steps, sentence_times) + [f for f in steps if ", sentence" not in f["sample"]]
    sheets = [common.Sheet("A step with what may come next", COLUMNS, [cells(f) for f in steps])]
    masks: list[Result] = []
    for path, vocabulary in {} if options.no_masks else common.tokenizers(options).items():
        for name in ("english_tags", "english", "air_travel"):
            texts = sorted((options.grammar_dir / name / "valid").iterdir())
            data = max((text.read_bytes() for text in texts), key=len)
            if name == "english_tags":
                data = " ".join(f"{line} DOT" for line in SENTENCES).encode()
            sample = Sample(name, common.grammar_text(options.grammar_dir, name), [data])
            for engine in options.engines:
                times = apart(token_masks, engine, sample, vocabulary, budget=options.budget)
                count = len(vocabulary.encode_greedy(data))
                masks.append({"tokenizer": path, **figures(name, engine, times, count)})
    named = [{**found, "sample": f"{found['sample']}, token masks"} for found in masks]
    bar_sheet = common.Sheet("Bars", ["what", "", ">at most", ">chart"], bars([*steps, *named]))
    if "chart" in options.engines:
        sheets.append(bar_sheet)
    if masks:
        sheets.append(common.Sheet("A token mask", COLUMNS, [cells(f) for f in masks]))
    report = {
        "machine": common.machine(),
        "versions": common.versions("tokfold", "xgrammar", "llguidance"),
        "date": datetime.date.today().isoformat(),
        "steps": steps,
        "masks": masks,
    }
    notes = [
        f"{found['sample']}, {found['engine']}, {found['steps']} of {found['of']}: "
        f"{found['trouble']}"
        for found in (*steps, *masks)
        if found["trouble"]
    ]
    notes += [f"budget {options.budget:g} s for each engine and text; thread time, one thread"]
    common.publish(options, "chart", report, sheets, notes)


if __name__ == "__main__":
    main()
