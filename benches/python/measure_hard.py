"""One hard grammar under one engine, in a process of its own: its texts read twice, and timed.

Run by bench_hard.py. A fresh process keeps what one engine leaves behind out of the next, and can
be stopped by a time limit whatever it is doing. Through a pipe go ``("at", where)``
now and then, and at last ``("done", figures)`` or ``("failed", reason)``.
"""

from __future__ import annotations

import contextlib
import gc
import io
import re
import runpy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import bench_common as common
import numpy as np
import tokfold
from tokfold import Grammar, Vocabulary
from tokfold.cli.inputs import read_tokenizer
from tokfold.laboratory.instruments.lark import to_lark

FOLDED = "auto, classes"
OURS = {"stack": "stack", "chart": "chart", "auto": "auto", FOLDED: "auto"}
"""Names of our configurations, and what each is as ``engine`` of ``tokfold.compile``."""
TOGETHER = "all of ours"
"""The job of :func:`compare`."""
PEERS = {"xgrammar": '".[xgrammar]"', "llguidance": "./laboratory"}
"""Names of the peers' packages, and what brings them, in a checkout."""
LONG = 500
"""Tokens of a text over which the memory of one matcher is looked at."""
READINGS = 4
"""Warm readings of each engine where they are compared."""
GROWING = 100
"""Tokens of a text from which on masks are asked whether they grow along it."""

Say = Callable[[str], None]


class GaveUpError(Exception):
    """There are no figures; says why."""


class Job(NamedTuple):
    """What one process measures."""

    grammar: str
    folder: Path
    """Its own: the grammar and its texts."""
    engine: str
    tokenizer: str
    texts: int | None
    """So many of them, the longest."""
    max_tokens: int | None
    """Of each text."""
    memory: float
    """Gigabytes of address space."""


class Text(NamedTuple):
    """A text that must be taken."""

    name: str
    tokens: list[int]
    is_whole: bool


class Source(NamedTuple):
    """A grammar as it stands in its folder."""

    grammar: Grammar
    text: str
    is_lark: bool


class Subject(NamedTuple):
    """An engine that has compiled a grammar."""

    row: Any
    """Where it writes masks."""
    begin: Callable[[], common.Walk]
    figures: common.Result
    compiled: tokfold.CompiledGrammar | None
    """What it made, if it is ours."""


@dataclass
class Sight:
    """What one reading of all texts took; nanoseconds, a list for each text."""

    masks: list[list[int]] = field(default_factory=list)
    accepts: list[list[int]] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    """What was over a limit, each time."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why a text was not taken, by its name."""
    held: int = 0
    """Bytes of the largest matcher, after :data:`LONG` tokens or at the end of its text."""

    def summary(self) -> common.Result:
        """Times in seconds."""
        return {
            "mask": common.summary([time for masks in self.masks for time in masks]),
            "accept": common.summary([time for accepts in self.accepts for time in accepts]),
        }

    def growth(self) -> float | None:
        """What the last quarter of masks takes, by what the first does; of the long texts."""
        long = [masks for masks in self.masks if len(masks) >= GROWING]
        if not long:
            return None
        first = np.concatenate([masks[: len(masks) // 4] for masks in long])
        last = np.concatenate([masks[-(len(masks) // 4) :] for masks in long])
        return float(last.mean() / first.mean())


def work(results: Any, job: Job) -> None:
    """What the process does."""
    try:
        _bound_memory(job.memory)
        do = compare if job.engine == TOGETHER else measure
        results.send(("done", do(job, lambda where: results.send(("at", where)))))
    except Exception as error:  # whatever it is, it is a row
        results.send(("failed", f"{type(error).__name__}: {shortened(str(error))}"))


def measure(job: Job, say: Say) -> common.Result:
    """All figures of one grammar under one engine; see also :func:`compare`.

    Args:
        job: what to measure.
        say: is told where it is.
    """
    vocabulary, source, texts = _loaded(job, say)
    subject = (_ours if job.engine in OURS else _peer)(job, vocabulary, source, say)
    first, _ = _sight("first sight", subject, texts, vocabulary, say)
    warm, misses = _sight("warm", subject, texts, vocabulary, say)
    reasons = [*first.limits, *warm.limits, *first.refused.values(), *warm.refused.values()]
    figures = {
        "texts": len(texts),
        "tokens": sum(len(text.tokens) for text in texts),
        **subject.figures,
        "first": first.summary(),
        "warm": warm.summary(),
        "growth": warm.growth(),
        "limits": len(first.limits) + len(warm.limits),
        "refused": len({**first.refused, **warm.refused}),
        "troubles": list(dict.fromkeys(reasons))[:8],
    }
    if subject.compiled is not None:
        figures["bytes"], figures["misses"] = subject.compiled.num_bytes, misses
        figures["matcher_bytes"] = max(first.held, warm.held)
    return figures


def compare(job: Job, say: Say) -> common.Result:
    """Our engines on each text in turn, warm: seconds of a mask and of an accept, by engine.

    A machine that others use is slower at times, and processes differ: so all are in one process,
    and each step is the fastest of its readings. What reached a limit is left out.
    """
    vocabulary, source, texts = _loaded(job, say)
    subjects, sights = {}, {}
    for engine in OURS:
        with contextlib.suppress(tokfold.LimitExceededError):
            subjects[engine] = _ours(job._replace(engine=engine), vocabulary, source, say)
            sights[engine] = [Sight() for _ in range(1 + READINGS)]
    gc.collect()
    gc.disable()
    for turn in range(1 + READINGS):
        for number, text in enumerate(texts):
            say(f"reading {turn + 1} of {1 + READINGS}, text {number + 1} of {len(texts)}")
            order = list(subjects.items())
            at = turn % max(1, len(order))  # each comes behind another that uses the caches
            for engine, subject in order[at:] + order[:at]:
                sight = sights[engine][turn]
                read(subject.begin(), text, subject.row, vocabulary.stop_token_ids, sight)
    whole = {name: of for name, of in sights.items() if not any(sight.limits for sight in of)}
    return {name: least(of[1:]) for name, of in whole.items()}


def _loaded(job: Job, say: Say) -> tuple[Vocabulary, Source, list[Text]]:
    say("loading")
    vocabulary = read_tokenizer(job.tokenizer)
    source, texts = read_grammar(job.folder), read_texts(job, vocabulary)
    say("compiling")
    return vocabulary, source, texts


def least(sights: list[Sight]) -> dict[str, float]:
    """Means in seconds over the fastest of the readings of each step."""

    def mean(part: str) -> float:
        lists = [[time for times in getattr(sight, part) for time in times] for sight in sights]
        return float(np.min(lists, axis=0).mean()) / 1e9 if lists[0] else 0.0

    return {"mask": mean("masks"), "accept": mean("accepts")}


def _sight(
    name: str, subject: Subject, texts: list[Text], vocabulary: Vocabulary, say: Say
) -> tuple[Sight, int]:
    """Reads all texts; and how many answers it missed, where the engine says."""
    counters = subject.compiled.counters if subject.compiled else lambda: {"memo_misses": 0}
    before, sight = counters()["memo_misses"], Sight()
    gc.collect()
    gc.disable()
    for number, text in enumerate(texts):
        say(f"{name}, text {number + 1} of {len(texts)}")
        read(subject.begin(), text, subject.row, vocabulary.stop_token_ids, sight)
    gc.enable()
    return sight, counters()["memo_misses"] - before


def read(
    walk: common.Walk, text: Text, row: Any, stop_token_ids: tuple[int, ...], sight: Sight
) -> None:
    """Read a text, a mask before each token and one at its end, as a server asks for them."""
    clock = time.thread_time_ns
    masks: list[int] = []
    accepts: list[int] = []
    sight.masks.append(masks)
    sight.accepts.append(accepts)
    ends = min(LONG, len(text.tokens))

    def timed(times: list[int], do: Callable[..., Any], *of: int) -> Any:
        began = clock()
        try:
            return do(*of)
        except (tokfold.LimitExceededError, RuntimeError) as error:
            sight.limits.append(f"{text.name}, token {len(accepts)}: {shortened(str(error))}")
            return None
        finally:
            times.append(clock() - began)

    def refused(what: str) -> None:
        why = shortened(walk.trouble())
        sight.refused.setdefault(text.name, f"{text.name}, {what}{': ' if why else ''}{why}")

    def masked(*tokens: int) -> bool:
        """Makes a mask; whether it allows one of the tokens, or reached a limit."""
        before = len(sight.limits)
        timed(masks, walk.fill)
        return before < len(sight.limits) or any(is_set(row, token) for token in tokens)

    for at, token in enumerate(text.tokens):
        if not masked(token):
            if walk.trouble():
                sight.limits.append(f"{text.name}, token {at}: {shortened(walk.trouble())}")
                return
            refused(f"token {at} is not in the mask")
        taken = timed(accepts, walk.accept, token)
        if not taken:
            if taken is not None:
                refused(f"token {at} is not accepted")
            return
        if at + 1 == ends and isinstance(walk.matcher, tokfold.Matcher):
            sight.held = max(sight.held, walk.matcher.counters()["bytes_held"])
    if not masked(*stop_token_ids) and text.is_whole:
        refused("it may not end")


def is_set(row: Any, token: int) -> bool:
    """Whether a mask allows a token."""
    return bool(row[token >> 5] >> (token & 31) & 1)


def _ours(job: Job, vocabulary: Vocabulary, source: Source, say: Say) -> Subject:
    """Our engine, with what compiling and classes took."""
    options = {"engine": OURS[job.engine], "pool": None}
    engine = common.TokfoldEngine("never", compile=options)
    engine.prepare(vocabulary)
    grammar = source.grammar
    took, compiled = _timed(lambda: engine.compile(grammar))
    figures: common.Result = {"network": took}
    if job.engine == FOLDED:
        say("folding the vocabulary")
        took, classes = _timed(lambda: tokfold.compile_classes(grammar, vocabulary))
        figures["classes_seconds"], figures["classes"] = took, len(classes)
        compiled.take_classes(classes)
    return Subject(engine.row[0], lambda: engine.walk(compiled), figures, compiled)


def _peer(job: Job, vocabulary: Vocabulary, source: Source, say: Say) -> Subject:
    """Another engine, with what compiling took."""
    peer: Any
    say(f"compiling by {job.engine}")
    if job.engine == "xgrammar":
        peer = common.XgrammarEngine()
        peer.prepare(vocabulary)
        from_ebnf = peer.module.Grammar.from_ebnf
        text, root = str(source.grammar) if source.is_lark else source.text, source.grammar.root
        took, compiled = _timed(
            lambda: peer.compiler.compile_grammar(from_ebnf(text, root_rule_name=root))
        )
    else:
        peer = common.LlguidanceEngine(job.tokenizer)
        peer.prepare(vocabulary)
        lark = source.text if source.is_lark else to_lark(source.grammar)
        known = peer.module.LLMatcher.grammar_from_lark(lark)
        took, compiled = _timed(lambda: peer.module.LLMatcher(peer.tokenizer, known, log_level=0))
        if compiled.is_error():
            raise GaveUpError(compiled.get_error())
    return Subject(peer.row[0], lambda: peer.walk(compiled), {"network": took}, None)


def _timed(make: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what was made."""
    began = time.process_time()
    made = make()
    return time.process_time() - began, made


def grammar_file(folder: Path) -> Path | None:
    """Where the grammar of a folder is: ``NAME.gbnf``, ``NAME.lark`` or ``make.py``."""
    names = (f"{folder.name}.gbnf", f"{folder.name}.lark", "make.py")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_grammar(folder: Path) -> Source:
    """The grammar of a folder; ``make.py`` is run, and prints its text."""
    path = grammar_file(folder)
    if path is None:
        raise GaveUpError(f"{folder} holds no grammar")
    if path.suffix == ".py":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(path), run_name="__main__")
        text = printed.getvalue()
    else:
        text = path.read_text(encoding="utf-8")
    if path.suffix == ".lark":
        return Source(Grammar.from_lark(text), text, True)
    return Source(Grammar.from_ebnf(text), text, False)


def read_texts(job: Job, vocabulary: Vocabulary) -> list[Text]:
    """The texts of a grammar in the order of their names, as the tokenizer cuts them."""
    paths = sorted(path for path in (job.folder / "valid").glob("*") if path.is_file())
    if job.texts is not None:
        longest = sorted(paths, key=lambda path: -path.stat().st_size)[: job.texts]
        paths = [path for path in paths if path in longest]
    if not paths:
        raise GaveUpError(f"{job.folder / 'valid'} holds no texts")
    encode, _ = common.encoder(vocabulary, job.tokenizer)
    texts = []
    for path in paths:
        data = path.read_bytes()
        tokens = encode(data.decode("utf-8"))
        if b"".join(vocabulary[token] for token in tokens) != data:
            tokens = vocabulary.encode_greedy(data)  # its tokenizer changes texts
        cut = tokens[: job.max_tokens]
        texts.append(Text(path.name, cut, len(cut) == len(tokens)))
    return texts


def shortened(message: str) -> str:
    """The first line of a message, without when and where in the source."""
    line = message.strip().splitlines()[0] if message.strip() else ""
    line = re.sub(r"^\[[^]]*\]\s*(\S+:\d+:\s*)?", "", line)
    return line if len(line) <= 120 else line[:117] + "..."


def _bound_memory(gigabytes: float) -> None:
    try:
        import resource
    except ImportError:  # no such bound on this system
        return
    size = int(gigabytes * (1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
