r"""MaskBench: JSON schemas with valid and invalid instances, engines side by side.

    python benches/python/bench_maskbench.py FOLDER --tokenizer path/to/model \
        --engines tokfold xgrammar llguidance llguidance-lenient --key-order schema any

FOLDER holds files of MaskBench's layout: ``{"description", "schema", "tests": [{"description",
"valid", "data"}]}``. An instance is the text ``json.dumps(data, ensure_ascii=False)`` as the
tokenizer cuts it, without special tokens (greedily, where the package ``tokenizers`` does not read
the tokenizer). For each token the mask is made, its bit looked at, and the token accepted.

*Compile* is from the text of a schema to the first mask. *Between masks* is mask and accept
together, for each token up to the one that is refused (there the mask alone: no engine would be
given that token). An instance is accepted when each of its tokens is, and a stop token is allowed
after the last.

One process for each schema and engine, one after the other, so no schema profits from another; it
is forked from one that has loaded this and nothing of the other engines:

- tokfold: vocabulary and its trie; the pool of masks that grammars share is empty. With
  ``--classes auto`` a second thread makes classes meanwhile.
- xgrammar: TokenizerInfo and a GrammarCompiler with one thread, its cache switched on and empty.
- llguidance: LLTokenizer with its default slices.

Before and after the fork a small schema and one of 480 members (in XGrammar the small one alone) go
through the engine, so that code and memory are there as they are in a server: each page of memory
that the fork shares takes microseconds when it is first written.

``--shared`` takes one process for all schemas of an engine instead, as a server would, so that
what an engine keeps from one grammar for the next counts. A process that is past ``--timeout`` for
one schema, or needs more than ``--memory``, is killed, and the next schema has a new one.

A schema is *right* when the engine takes it and judges each of its instances as the label says. A
schema that is refused is not right, also where it allows nothing and the engine says so.

Objects that do not say otherwise take further properties, as the standard has it. ``--closed``
closes them, in tokfold and XGrammar. Schemas whose name has a hash of 0 modulo 3 are held back:
nothing is tuned on them, and ``--held-back`` takes these alone, ``--open`` the others.

``--cpu`` counts the processor's time of the one thread, for machines that others use too; what a
second thread does is then left out.

One file of more than 600 lines, so that what is timed, judged and reported is read in one place.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import hashlib
import itertools
import json
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bench_common as common
from tokfold import Vocabulary
from tokfold.cli.inputs import read_tokenizer
from tokfold.cli.render import escaped, number, seconds

CLASSES = ("never", "auto", "now")
KEY_ORDERS = ("schema", "any")
THIRDS = 3
LEVELS = (50.0, 99.0, 99.9)
PACKAGES = ("xgrammar", "llguidance", "numpy")
FORK: Any = multiprocessing.get_context("fork")


@dataclass
class Instance:
    """A text that the schema allows, or must not allow."""

    description: str
    valid: bool
    tokens: list[int]


@dataclass
class Case:
    """A schema with its instances."""

    name: str
    schema: str
    instances: list[Instance]


@dataclass
class Verdict:
    """What an engine made of an instance; times in nanoseconds."""

    masks: list[int]
    accepts: list[int]
    accepted: bool
    contradictions: int
    """Tokens of which the mask said one thing and accepting them the other."""
    trouble: str
    """Why the engine gave up; empty where it did not."""

    @property
    def steps(self) -> list[int]:
        """The times between masks."""
        return [mask + accept for mask, accept in zip(self.masks, self.accepts, strict=True)]


@dataclass
class Outcome:
    """What an engine made of a schema."""

    status: str = "crashed"
    """``taken``, ``refused``, ``timeout`` or ``crashed``."""
    reason: str = ""
    compile: int = 0
    """Nanoseconds from the text of the schema to the first mask."""
    verdicts: list[Verdict] = field(default_factory=list)


Outcomes = dict[str, Outcome]


@dataclass
class Settings:
    """How schemas are run."""

    timeout: float = 60.0
    """Seconds for each schema."""
    memory: float = 16.0
    """Gigabytes of address space for each process."""
    shared: bool = False
    """One process for all schemas."""
    cpu: bool = False
    """Times are those of the thread on its processor, not the clock's."""


def main() -> None:
    """Measure and print."""
    options = _parser().parse_args()
    vocabulary = read_tokenizer(options.tokenizer)
    if not vocabulary.stop_token_ids:
        sys.exit("error: the tokenizer has no stop token: no text can end")
    cases, tokenization = read_cases(
        options.folder, options.tokenizer, vocabulary, options.limit, options.held_back
    )
    results = {}
    settings = Settings(options.timeout, options.memory, options.shared, options.cpu)
    for name, engine in _engines(options).items():
        results[name] = measure(engine, vocabulary, cases, settings, _progress(name))
    report: common.Result = {
        "machine": common.machine(),
        "versions": common.versions(*PACKAGES),
        "date": datetime.date.today().isoformat(),
        "tokenizer": vocabulary.name,
        "tokenization": tokenization,
        "shared": options.shared,
        "clock": "processor" if options.cpu else "wall",
        "closed": options.closed,
        "held_back": {True: "only", False: "none", None: "all"}[options.held_back],
        "schemas": len(cases),
        "tokens": sum(len(i.tokens) for case in cases for i in case.instances),
        "engines": {name: summarize(cases, outcomes) for name, outcomes in results.items()},
        "common": summarize_common(cases, results),
    }
    out = common.console(width=140)
    _show(out, report)
    if options.compare:
        for left, right in itertools.combinations(results, 2):
            _show_pair(out, cases, (left, results[left]), (right, results[right]))
        for name in results:
            if "xgrammar" in results and name != "xgrammar":
                _show_worse(out, cases, results["xgrammar"], name, results[name])
    for name, outcomes in results.items():
        if options.slowest:
            _show_slowest(out, vocabulary, cases, name, outcomes, options.slowest)
    if options.json:
        details = {name: _details(cases, outcomes) for name, outcomes in results.items()}
        options.json.write_text(json.dumps({**report, "details": details}), encoding="utf-8")
    notes = [*_notes(report), *common.load(report)]
    common.keep(options, "maskbench", report, _sheets(report), notes)


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    parser = common.described(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="files of MaskBench's layout")
    parser.add_argument("--tokenizer", default="tekken", metavar="PATH", help="file or folder")
    parser.add_argument("--engines", nargs="+", default=["tokfold"], choices=list(ENGINES))
    parser.add_argument(
        "--classes", nargs="+", default=["never"], choices=CLASSES, help="for tokfold; one or more"
    )
    parser.add_argument(
        "--key-order",
        nargs="+",
        default=["schema"],
        choices=KEY_ORDERS,
        help="for tokfold; one or more",
    )
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument(
        "--held-back", action="store_true", default=None, help="only schemas that are held back"
    )
    parts.add_argument(
        "--open", action="store_false", dest="held_back", help="only schemas that are not"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="N schemas, spread over the folder")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="for a schema")
    parser.add_argument("--memory", type=float, default=16.0, metavar="GB", help="for a process")
    parser.add_argument("--shared", action="store_true", help="one process for all schemas")
    parser.add_argument("--cpu", action="store_true", help="processor time of the thread")
    parser.add_argument("--closed", action="store_true", help="no further properties")
    parser.add_argument("--compare", action="store_true", help="engines two by two; verdicts too")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="show the slowest")
    parser.add_argument("--json", type=Path, metavar="OUT", help="everything, each mask too")
    common.add_results(parser)
    return parser


def _tokfold(options: argparse.Namespace) -> dict[str, common.Engine]:
    """An engine for each choice of classes and of key order."""
    return {
        f"tokfold {classes}" + (", any order" if order == "any" else ""): common.TokfoldEngine(
            classes, schema={"key_order": order, "additional_properties": not options.closed}
        )
        for classes in options.classes
        for order in options.key_order
    }


ENGINES: dict[str, Callable[[argparse.Namespace], dict[str, common.Engine]]] = {
    "tokfold": _tokfold,
    "xgrammar": lambda options: {"xgrammar": common.XgrammarEngine(strict=options.closed)},
    "llguidance": lambda options: {"llguidance": common.LlguidanceEngine(options.tokenizer)},
    "llguidance-lenient": lambda options: {
        "llguidance lenient": common.LlguidanceEngine(options.tokenizer, lenient=True)
    },
}


def _engines(options: argparse.Namespace) -> dict[str, common.Engine]:
    return {k: v for name in options.engines for k, v in ENGINES[name](options).items()}


def read_cases(
    folder: Path,
    tokenizer: str,
    vocabulary: Vocabulary,
    limit: int | None = None,
    held_back: bool | None = None,
) -> tuple[list[Case], str]:
    """The schemas of a folder, sorted by name, and how their instances were cut into tokens.

    Args:
        folder: files of MaskBench's layout.
        tokenizer: what cuts the texts.
        vocabulary: of the tokenizer.
        limit: so many schemas, spread over the folder.
        held_back: only those that are held back, or that are not; None for all.
    """
    paths = sorted(folder.glob("*.json"))
    if held_back is not None:
        paths = [path for path in paths if is_held_back(path.stem) is held_back]
    if not paths:
        sys.exit(f"error: {folder} holds no .json file")
    if limit is not None and limit < len(paths):
        paths = [paths[index * len(paths) // limit] for index in range(limit)]
    encode, tokenization = common.encoder(vocabulary, tokenizer)
    cases = []
    for path in paths:
        document = json.loads(path.read_text(encoding="utf-8"))
        instances = [
            Instance(
                test.get("description", ""),
                test["valid"],
                encode(json.dumps(test["data"], ensure_ascii=False)),
            )
            for test in document["tests"]
        ]
        cases.append(Case(path.stem, json.dumps(document["schema"]), instances))
    return cases, tokenization


def is_held_back(name: str) -> bool:
    """Whether a schema belongs to the third that nothing is tuned on."""
    return hashlib.sha256(name.encode()).digest()[0] % THIRDS == 0


def measure(
    engine: common.Engine,
    vocabulary: Vocabulary,
    cases: list[Case],
    settings: Settings,
    show: Callable[[int, int], None] = lambda done, total: None,
) -> Outcomes:
    """All cases through one engine.

    Args:
        engine: not yet prepared; it is prepared in a process of its own.
        vocabulary: the vocabulary.
        cases: the schemas.
        settings: how.
        show: called with the number done and the number of all.
    """
    receiving, sending = FORK.Pipe(duplex=False)
    arguments = (sending, engine, vocabulary, cases, settings)
    loader = FORK.Process(target=_load, args=arguments)
    loader.start()
    sending.close()
    outcomes: Outcomes = {}
    try:
        while len(outcomes) < len(cases):
            name, outcome = receiving.recv()
            outcomes[name] = outcome
            show(len(outcomes), len(cases))
    except EOFError:
        raise RuntimeError("the engine could not be prepared") from None
    finally:
        loader.join()
    return outcomes


def _load(
    sending: Any,
    engine: common.Engine,
    vocabulary: Vocabulary,
    cases: list[Case],
    settings: Settings,
) -> None:
    """Prepare an engine, then fork a process for each schema and see that it ends."""
    engine.prepare(vocabulary)
    gc.collect()
    gc.freeze()  # what is here is not to be copied into each process by a count of references
    rest = list(cases)
    while rest:
        batch = rest if settings.shared else rest[:1]
        results, worker_end = FORK.Pipe(duplex=False)
        worker = FORK.Process(target=_work, args=(worker_end, engine, vocabulary, batch, settings))
        worker.start()
        worker_end.close()
        for case in batch:
            outcome, is_alive = _receive(results, settings.timeout)
            sending.send((case.name, outcome))
            rest = rest[1:]
            if not is_alive:
                break
        worker.kill()
        worker.join()
        results.close()


def _receive(results: Any, timeout: float) -> tuple[Outcome, bool]:
    """The outcome of one case, put together from its parts; whether the worker lives on."""
    outcome = Outcome()
    ends = time.monotonic() + timeout
    while True:
        if not results.poll(max(0.0, ends - time.monotonic())):
            outcome.status = "timeout"
            return outcome, False
        try:
            kind, value = results.recv()
        except EOFError:
            return outcome, False
        if kind == "compiled":
            outcome.compile = value
        elif kind == "verdict":
            outcome.verdicts.append(value)
        else:
            outcome.status, outcome.reason = kind, value
            return outcome, True


def _work(
    results: Any,
    engine: common.Engine,
    vocabulary: Vocabulary,
    batch: list[Case],
    settings: Settings,
) -> None:
    """One schema after the other; what is known goes out at once, a timeout may come."""
    _bound_memory(settings.memory)
    clock = time.thread_time_ns if settings.cpu else time.perf_counter_ns
    # Converters warn there of what they do not enforce; writing that is no part of compiling.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    gc.disable()
    for _ in range(2):
        engine.touch()
    for case in batch:
        compiled = None  # what the schema before this one held is no part of compiling this one
        try:
            began = clock()
            compiled = engine.compile_schema(case.schema)
            engine.walk(compiled).fill()
            taken = clock() - began
        except Exception as error:
            results.send(("refused", _reason(str(error) or type(error).__name__)))
            continue
        results.send(("compiled", taken))
        for instance in case.instances:
            results.send(("verdict", _judge(engine, compiled, instance, vocabulary, clock)))
        results.send(("taken", ""))


def _judge(
    engine: common.Engine,
    compiled: Any,
    instance: Instance,
    vocabulary: Vocabulary,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Verdict:
    """Walk along an instance."""
    row = engine.row[0]
    verdict = Verdict([], [], False, 0, "")
    masks, accepts = verdict.masks, verdict.accepts
    try:
        fill, accept, trouble, _ = engine.walk(compiled)
        for token in instance.tokens:
            began = clock()
            fill()
            masks.append(clock() - began)
            accepts.append(0)
            is_allowed = _bit(row, token)
            if not is_allowed:
                verdict.trouble = _reason(trouble())
            began = clock()
            is_taken = accept(token)
            spent = clock() - began
            verdict.contradictions += is_allowed != is_taken
            if is_allowed:
                accepts[-1] = spent
            if not (is_allowed and is_taken):
                return verdict
        fill()
        verdict.accepted = any(_bit(row, stop) for stop in vocabulary.stop_token_ids)
        verdict.trouble = _reason(trouble())
    except Exception as error:  # a limit of the engine
        accepts.extend([0] * (len(masks) - len(accepts)))
        verdict.trouble = _reason(f"{type(error).__name__}: {error}")
    return verdict


def _bit(row: Any, token: int) -> bool:
    return bool(row[token >> 5] >> (token & 31) & 1)


def _bound_memory(gigabytes: float) -> None:
    try:
        import resource
    except ImportError:  # no such bound on this system
        return
    size = int(gigabytes * (1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _reason(message: str) -> str:
    """What to tally a message by: its first line, short."""
    line = message.strip().splitlines()[0] if message.strip() else ""
    line = re.sub(r"^\[[^]]*\]\s*(\S+:\d+:\s*)?", "", line)  # when and where in the source
    return line if len(line) <= 90 else line[:87] + "..."


def _progress(name: str) -> Callable[[int, int], None]:
    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}: {done} of {total} ", end="", file=sys.stderr, flush=True)
            if done == total:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    return show


def summarize(
    cases: list[Case], outcomes: Outcomes, names: set[str] | None = None
) -> common.Result:
    """What an engine needed and how it judged, over what it took, or over ``names``."""
    judged = [
        (case, outcomes[case.name])
        for case in cases
        if outcomes[case.name].status == "taken" and (names is None or case.name in names)
    ]
    verdicts = [pair for case, outcome in judged for pair in _pairs(case, outcome)]
    statuses = Counter(outcome.status for outcome in outcomes.values())
    refusals = [o.reason for o in outcomes.values() if o.status == "refused"]
    troubles = [verdict.trouble for _, verdict in verdicts if verdict.trouble]
    valid = [verdict for instance, verdict in verdicts if instance.valid]
    invalid = [verdict for instance, verdict in verdicts if not instance.valid]
    steps = [step for _, verdict in verdicts for step in verdict.steps]
    masks = [mask for _, verdict in verdicts for mask in verdict.masks]
    accepts = [accept for _, verdict in verdicts for accept in verdict.accepts]
    return {
        "schemas": len(judged),
        "steps": len(steps),
        "compile": common.summary([outcome.compile for _, outcome in judged], LEVELS),
        "between_masks": common.summary(steps, LEVELS),
        "mask": common.summary(masks, LEVELS),
        "accept": common.summary(accepts, LEVELS),
        **{status: statuses[status] for status in ("taken", "refused", "timeout", "crashed")},
        "right": sum(_is_whole(case, outcome) for case, outcome in judged),
        "rejecting": sum(_errs(case, outcome, valid=True) for case, outcome in judged),
        "accepting": sum(_errs(case, outcome, valid=False) for case, outcome in judged),
        "valid": len(valid),
        "valid_rejected": sum(not verdict.accepted for verdict in valid),
        "invalid": len(invalid),
        "invalid_accepted": sum(verdict.accepted for verdict in invalid),
        "contradictions": sum(verdict.contradictions for _, verdict in verdicts),
        "gave_up": len(troubles),
        "reasons": dict(Counter(refusals).most_common()),
        "troubles": dict(Counter(troubles).most_common()),
    }


def summarize_common(cases: list[Case], results: dict[str, Outcomes]) -> common.Result:
    """The same over the schemas that all engines took."""
    taken = [
        {n for n, o in outcomes.items() if o.status == "taken"} for outcomes in results.values()
    ]
    names = set.intersection(*taken)
    return {name: summarize(cases, outcomes, names) for name, outcomes in results.items()}


def _pairs(case: Case, outcome: Outcome) -> Iterator[tuple[Instance, Verdict]]:
    return zip(case.instances, outcome.verdicts, strict=True)


def _is_whole(case: Case, outcome: Outcome) -> bool:
    """Whether each instance is judged, and rightly."""
    judged = list(zip(case.instances, outcome.verdicts, strict=True))
    return all(_is_right(instance, verdict) and not verdict.trouble for instance, verdict in judged)


def _errs(case: Case, outcome: Outcome, *, valid: bool) -> bool:
    """Whether an instance that is valid, or that is not, is misjudged."""
    return any(i.valid is valid and not _is_right(i, v) for i, v in _pairs(case, outcome))


def _details(cases: list[Case], outcomes: Outcomes) -> common.Result:
    """Everything, for those who want to know more."""
    return {
        case.name: {
            "status": outcomes[case.name].status,
            "reason": outcomes[case.name].reason,
            "compile_ns": outcomes[case.name].compile,
            "instances": [
                {
                    "valid": instance.valid,
                    "accepted": verdict.accepted,
                    "contradictions": verdict.contradictions,
                    "trouble": verdict.trouble,
                    "masks_ns": verdict.masks,
                    "accepts_ns": verdict.accepts,
                }
                for instance, verdict in zip(
                    case.instances, outcomes[case.name].verdicts, strict=False
                )
            ],
        }
        for case in cases
    }


def _show(out: Any, report: common.Result) -> None:
    found = report["machine"]
    out.print(f"{found['processor']}, {found['cores']} cores, Python {found['python']}")
    out.print(_notes(report)[0])
    out.print()
    for sheet in _sheets(report):
        common.show(out, *sheet)
    reasons = [
        [name, what, number(count), reason]
        for name, row in report["engines"].items()
        for what, key in (("refused", "reasons"), ("gave up", "troubles"))
        for reason, count in row[key].items()
    ]
    if reasons:
        common.show(out, "Why", ["engine", "", ">times", "*reason"], reasons)


def _notes(report: common.Result) -> list[str]:
    """What was measured, a line each."""
    return [
        f"{number(report['schemas'])} schemas, {number(report['tokens'])} tokens of "
        f"{report['tokenizer']} ({report['tokenization']})",
        f"schemas that are held back: {report['held_back']}; clock: {report['clock']}",
    ]


def _sheets(report: common.Result) -> list[common.Sheet]:
    shared = next(iter(report["common"].values()))["schemas"]
    sheets = []
    if len(report["engines"]) > 1:
        sheets += _times(f"the {number(shared)} schemas that all took", report["common"])
    sheets += _times("all schemas that the engine took", report["engines"])
    columns = ["engine", ">right", ">refused", ">timeout", ">crashed"]
    columns += [">valid rejected", ">invalid accepted", ">gave up", ">contradictions"]
    rows = [
        [
            name,
            *(number(row[key]) for key in ("right", "refused", "timeout", "crashed")),
            _wrong(row, "valid_rejected", "rejecting", "valid"),
            _wrong(row, "invalid_accepted", "accepting", "invalid"),
            number(row["gave_up"]),
            number(row["contradictions"]),
        ]
        for name, row in report["engines"].items()
    ]
    title = f"Verdicts: of {number(report['schemas'])} schemas, over what the engine took"
    return [*sheets, common.Sheet(title, columns, rows)]


def _wrong(row: common.Result, wrong: str, schemas: str, of: str) -> str:
    """Wrong verdicts of all, and in how many schemas they are."""
    text = f"{number(row[wrong])} of {number(row[of])}"
    return f"{text}, {number(row[schemas])} schemas" if row[wrong] else text


def _times(which: str, rows: common.Result) -> list[common.Sheet]:
    keys: tuple[str, ...] = ("mean", "p50", "p99", "max")
    cells = [
        [name, number(row["schemas"]), *(_time(row["compile"], key) for key in keys)]
        for name, row in rows.items()
    ]
    columns = ["engine", ">schemas", *(f">{key}" for key in keys)]
    compiling = common.Sheet(f"Compile to first mask: {which}", columns, cells)
    keys = ("mean", "p50", "p99", "p99.9", "max")
    cells = [
        [name, number(row["steps"]), *(_time(row["between_masks"], key) for key in keys)]
        for name, row in rows.items()
    ]
    columns = ["engine", ">tokens", *(f">{key}" for key in keys)]
    return [compiling, common.Sheet(f"Between masks: {which}", columns, cells)]


def _time(summary: dict[str, float], key: str) -> str:
    return seconds(summary[key]) if key in summary else "-"


def _show_pair(
    out: Any, cases: list[Case], left: tuple[str, Outcomes], right: tuple[str, Outcomes]
) -> None:
    """Two engines over what both took: how many times the first's time the second takes."""
    sides = summarize_common(cases, dict((left, right)))
    first, second = sides[left[0]], sides[right[0]]
    both = list(_judged_by_both(cases, left[1], right[1]))
    better = sum(_is_right(i, a) and not _is_right(i, b) for _, _, i, a, b in both)
    worse = sum(_is_right(i, b) and not _is_right(i, a) for _, _, i, a, b in both)
    rows = [
        [what, *(_ratio(first[key], second[key], level) for level in ("mean", "p50", "p99", "max"))]
        for what, key in (("compile", "compile"), ("between masks", "between_masks"))
    ]
    title = f"{right[0]} against {left[0]}: times as long, {number(first['schemas'])} schemas"
    common.show(out, title, ["", ">mean", ">p50", ">p99", ">max"], rows)
    out.print(
        f"Of {number(len(both))} instances {left[0]} alone judges {number(better)} rightly, "
        f"{right[0]} alone {number(worse)}."
    )
    out.print()


def _ratio(first: dict[str, float], second: dict[str, float], key: str) -> str:
    return f"{second[key] / first[key]:,.2f}" if first.get(key) and second.get(key) else "-"


def _judged_by_both(
    cases: list[Case], left: Outcomes, right: Outcomes
) -> Iterator[tuple[Case, int, Instance, Verdict, Verdict]]:
    for case in cases:
        a, b = left[case.name], right[case.name]
        if a.status == b.status == "taken":
            together = zip(case.instances, a.verdicts, b.verdicts, strict=True)
            for index, (instance, first, second) in enumerate(together):
                yield case, index, instance, first, second


def _is_right(instance: Instance, verdict: Verdict) -> bool:
    return verdict.accepted == instance.valid


def _show_worse(
    out: Any, cases: list[Case], reference: Outcomes, name: str, outcomes: Outcomes
) -> None:
    """Instances that XGrammar judges rightly and another engine wrongly."""
    rows = [
        [
            case.name,
            number(index),
            "valid" if instance.valid else "invalid",
            "accepted" if theirs.accepted else f"refused at token {len(theirs.masks)}",
            instance.description,
        ]
        for case, index, instance, ours, theirs in _judged_by_both(cases, reference, outcomes)
        if _is_right(instance, ours) and not _is_right(instance, theirs)
    ]
    if rows:
        columns = ["schema", ">test", "is", name, "*description"]
        common.show(out, f"XGrammar is right, {name} is wrong", columns, rows)
    else:
        out.print(f"There is no instance that xgrammar judges rightly and {name} wrongly.")
        out.print()


def _show_slowest(
    out: Any,
    vocabulary: Vocabulary,
    cases: list[Case],
    name: str,
    outcomes: Outcomes,
    count: int,
) -> None:
    """The schemas that took longest to compile, and the tokens that took longest."""
    taken = [case for case in cases if outcomes[case.name].status == "taken"]
    taken.sort(key=lambda case: -outcomes[case.name].compile)
    rows = [[case.name, seconds(outcomes[case.name].compile / 1e9)] for case in taken[:count]]
    common.show(out, f"{name}: slowest to compile", ["schema", ">to the first mask"], rows)
    slow = [
        (verdict.masks[step], verdict.accepts[step], case.name, index, step, instance)
        for case in taken
        for index, (instance, verdict) in enumerate(_pairs(case, outcomes[case.name]))
        for step in range(len(verdict.masks))
    ]
    slow.sort(key=lambda entry: -entry[0] - entry[1])
    rows = []
    for mask, accept, schema, index, step, instance in slow[:count]:
        before = b"".join(vocabulary[token] for token in instance.tokens[:step])
        token = escaped(vocabulary[instance.tokens[step]])
        times = [seconds(mask / 1e9), seconds(accept / 1e9)]
        rows.append([*times, schema, number(index), number(step), token, escaped(before[-40:])])
    columns = [">mask", ">accept", "schema", ">test", ">number", "token", "*after"]
    common.show(out, f"{name}: slowest tokens", columns, rows)


if __name__ == "__main__":
    main()
