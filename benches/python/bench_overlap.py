"""What of a mask stays visible in a step of decoding, engines side by side.

    python benches/python/bench_overlap.py --tokenizer path/to/model --batches 1 16

A step computes logits, masks them, and selects tokens. An engine that fills its masks while the
model computes can take

    T_step = max(T_model, T_mask) + T_sync + T_select

and one that does not T_model + T_mask + T_sync + T_select. Measured in each step:

- *model*: from tokens to logits. By default a small random Llama of transformers; with --model
  decoder one of a published --shape, which is a CUDA graph on a GPU; or, with --model timed,
  nothing but a time to wait: a host waits for its device no other way;
- *mask*: the engine reads the tokens selected last and fills the masks, by its own clock;
- *waiting*: what of that the step had to wait for;
- *visible*: all that a step has because of masks: handing over, waiting, transfer and apply. On a
  GPU the model is queued first, and what the host does until it is done is hidden;
- *share*: visible by the whole step; *first*: in the first run, when no mask has been met. The aim
  is under 1 % for tokfold;
- *select*: the largest logit of each row, and its token on the host;
- *added*: how much longer a step is than one without masks: of the medians, and of the p99s.

Figures are medians over the steps of all runs but the first; the files have means as well. Runs of
the engines take turns. One of more than --seconds stops where it is, and is not repeated.

The texts are drawn under the grammar once, with a seed: of the allowed classes one, of its tokens
one. All engines read the same ones: the token that comes is given the largest logit, so an engine
that masks it is seen to ("refused"). For tokfold that is an error. XGrammar contradicts itself at
some tokens, and llguidance allows fewer on purpose where a text is forced.

Engines: "none"; tokfold with NextMasks, by class masks and by token masks; "serial", which fills
when the logits are there; "thread", which fills in a thread, as many masks at once as --threads.
llguidance's masks are applied by apply_token_bitmask_, since its own needs torch.compile.

On a CPU the model leaves a core to the masks: --torch-threads.

One file: the drawn texts, the loops of the engines and the clock must agree to the step.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import bench_common as common
import numpy as np
import numpy.typing as npt
import tokfold
import torch
from bench_models import SHAPES, Decoder
from tokfold import Vocabulary
from tokfold.cli.console import Step, steps
from tokfold.cli.render import seconds
from tokfold.laboratory.instruments.lark import to_lark
from tokfold.torch import Fold, MaskTable, NextMasks, apply_token_bitmask_

AIM = 0.01
LARGEST = 1e4
"""The logit of the token that comes; random ones are far below."""
PACKAGES = ("torch", "triton", "transformers", "xgrammar", "llguidance", "numpy")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

Times = npt.NDArray[np.float64]
Script = list[list[int]]
"""For each step the token of each row; -1 where the text has ended."""


def main() -> None:
    """Measure and print."""
    options = _parser().parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("error: torch sees no GPU; without --device the CPU is measured")
    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    options.dtype = options.dtype or ("float32" if options.device == "cpu" else "bfloat16")
    torch.set_num_threads(options.torch_threads)
    report: common.Result = {
        "machine": common.machine(),
        "versions": common.versions(*PACKAGES),
        "date": datetime.date.today().isoformat(),
        "device": options.device,
        "model": _model_name(options),
        "threads": {"torch": options.torch_threads, "masks": options.threads},
        "rows": [],
    }
    if options.device == "cuda":
        report["machine"]["gpu"] = torch.cuda.get_device_name()
        report["versions"]["CUDA"] = torch.version.cuda
    with common.stoppable(), steps() as step:
        for name, vocabulary in common.tokenizers(options).items():
            for grammar in options.grammars:
                bench = Bench(options, vocabulary, name, grammar)
                for batch in options.batches:
                    with step(f"{grammar}, {name}, {batch} rows") as done:
                        for row in bench.rows(batch, done):
                            label = {"grammar": grammar, "tokenizer": name, "batch": batch}
                            common.add(report, {**label, **row})
    report["aims"] = list(_aims(report))
    common.publish(options, "overlap", report, _sheets(report), _notes(report))
    if any(row.get("refused") for row in report["rows"] if row["engine"].startswith("tokfold")):
        sys.exit("error: tokfold masks a token that its own grammar allows")


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    cores = os.cpu_count() or 1
    parser = common.parser(__doc__, writes=True)
    parser.set_defaults(grammars=["json", "cpp"])
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: a GPU if there is one")
    parser.add_argument(
        "--dtype", choices=list(DTYPES), help="default: float32 on a CPU, bfloat16 on a GPU"
    )
    parser.add_argument(
        "--batches", nargs="+", type=int, default=[1, 4, 16, 64], metavar="N", help="texts at once"
    )
    parser.add_argument("--steps", type=int, default=32, metavar="N", help="of a run")
    parser.add_argument(
        "--runs", type=int, default=4, metavar="N", help="of each engine; the first meets new masks"
    )
    parser.add_argument(
        "--seconds", type=float, default=10.0, metavar="S", help="after which a run stops"
    )
    parser.add_argument(
        "--engines",
        nargs="+",
        default=list(ENGINES),
        choices=list(ENGINES),
        metavar="NAME",
        help=f"in quotes; default all: {', '.join(ENGINES)}",
    )
    parser.add_argument("--model", choices=("llama", "decoder", "timed"), default="llama")
    parser.add_argument(
        "--shape", choices=list(SHAPES), default="1b", help="of the decoder (default: 1b)"
    )
    parser.add_argument(
        "--model-ms", type=float, default=10.0, metavar="MS", help="of a step, with --model timed"
    )
    parser.add_argument("--hidden", type=int, default=256, metavar="N", help="width of the Llama")
    parser.add_argument("--layers", type=int, default=4, metavar="N", help="of the Llama")
    parser.add_argument(
        "--torch-threads",
        type=int,
        default=max(1, cores - 1),
        metavar="N",
        help="of the model on a CPU (default: all cores but one)",
    )
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="of the masks of a batch (default: 1)"
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser


# -------------------------------------------------------------------------------------- the model


class Model(Protocol):
    """From the tokens selected last to logits, which are the caller's to write."""

    def begin(self) -> None:
        """Begin all texts."""

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of the next step."""


class Llama:
    """A small random transformer."""

    def __init__(self, options: argparse.Namespace, size: int) -> None:
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(options.seed)
        heads = max(1, options.hidden // 64)
        config = LlamaConfig(
            vocab_size=size,
            hidden_size=options.hidden,
            intermediate_size=4 * options.hidden,
            num_hidden_layers=options.layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            max_position_embeddings=max(512, options.steps + 1),
        )
        model: Any = LlamaForCausalLM(config)
        self._model = model.to(options.device, DTYPES[options.dtype]).eval()
        self._past: Any = None

    def begin(self) -> None:
        """Forget what was read."""
        self._past = None

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """One step, with what is remembered of those before."""
        result = self._model(tokens[:, None], past_key_values=self._past, use_cache=True)
        self._past = result.past_key_values
        logits: torch.Tensor = result.logits[:, -1]
        return logits


def _decoder(options: argparse.Namespace, size: int) -> Model:
    """A decoder of a published shape."""
    dtype = DTYPES[options.dtype]
    return Decoder(
        SHAPES[options.shape], size, options.steps + 1, options.device, dtype, options.seed
    )


class Timed:
    """Random logits after a set time, in which the processor is free."""

    def __init__(self, options: argparse.Namespace, size: int) -> None:
        generator = torch.Generator().manual_seed(options.seed)
        shape = (max(options.batches), size)
        source = torch.randn(shape, generator=generator).to(DTYPES[options.dtype])
        self._source = source.to(options.device)
        self._logits = torch.empty_like(self._source)
        self._seconds = options.model_ms / 1e3
        self._cycles = 0
        if options.device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(20_000_000)
            begin.record()
            torch.cuda._sleep(20_000_000)
            end.record()
            torch.cuda.synchronize()
            self._cycles = int(20_000_000 / (begin.elapsed_time(end) / 1e3) * self._seconds)

    def begin(self) -> None:
        """There is nothing to forget."""

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """The same logits each time."""
        began = time.perf_counter()
        logits = self._logits[: len(tokens)]
        logits.copy_(self._source[: len(tokens)])
        if self._cycles:
            torch.cuda._sleep(self._cycles)
        else:
            time.sleep(max(0.0, self._seconds - (time.perf_counter() - began)))
        return logits


def _model_name(options: argparse.Namespace) -> str:
    if options.model == "timed":
        return f"{options.model_ms:g} ms of waiting, {options.dtype}"
    if options.model == "decoder":
        return f"decoder of the shape {options.shape}, {options.dtype}"
    return f"Llama of {options.layers} layers of width {options.hidden}, {options.dtype}"


# ------------------------------------------------------------------------------------ the engines


class Host(Protocol):
    """An engine's masks on the host, and how they get onto logits."""

    def work(self, tokens: list[int] | None) -> list[int]:
        """Read tokens, if there are any, and fill masks; the rows that they are for."""

    def apply(self, logits: torch.Tensor, rows: list[int]) -> None:
        """The masks onto those rows."""


class Way(Protocol):
    """Masks in the course of a step."""

    mask_seconds: float
    wait_seconds: float

    def begin(self, tokens: list[int] | None) -> None:
        """Tokens were selected; the model is about to begin."""

    def mask(self, logits: torch.Tensor) -> None:
        """The model is done, or on a GPU at work."""

    def close(self) -> None:
        """End it."""


class Unmasked:
    """No masks at all."""

    mask_seconds = wait_seconds = 0.0

    def begin(self, tokens: list[int] | None) -> None:
        """Nothing."""

    def mask(self, logits: torch.Tensor) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Overlapped:
    """:class:`tokfold.torch.NextMasks`."""

    def __init__(self, matchers: list[tokfold.Matcher], fold: Fold | None, threads: int) -> None:
        self._next = NextMasks(matchers, fold=fold, threads=threads)

    @property
    def mask_seconds(self) -> float:
        """Its own count."""
        return self._next.fill_seconds

    @property
    def wait_seconds(self) -> float:
        """Its own count."""
        return self._next.visible_seconds

    def begin(self, tokens: list[int] | None) -> None:
        """The thread sets to work."""
        self._next.begin(tokens)

    def mask(self, logits: torch.Tensor) -> None:
        """Waits, and writes."""
        self._next.apply_(logits)

    def close(self) -> None:
        """Ends the thread."""
        self._next.close()


class Serial:
    """Masks are filled when the logits are there."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tokens: list[int] | None = None
        self.mask_seconds = self.wait_seconds = 0.0

    def begin(self, tokens: list[int] | None) -> None:
        """Remembers them."""
        self._tokens = tokens

    def mask(self, logits: torch.Tensor) -> None:
        """Does all of it."""
        if logits.is_cuda:
            torch.cuda.synchronize()
        began = time.perf_counter()
        rows = self._host.work(self._tokens)
        spent = time.perf_counter() - began
        self.mask_seconds += spent
        self.wait_seconds += spent
        self._host.apply(logits, rows)

    def close(self) -> None:
        """Nothing."""


class Threaded:
    """Masks are filled in a thread while the model computes."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._executor = ThreadPoolExecutor(1)
        self._pending: Future[list[int]] | None = None
        self.mask_seconds = self.wait_seconds = 0.0

    def begin(self, tokens: list[int] | None) -> None:
        """The thread sets to work."""
        self._pending = self._executor.submit(self._work, tokens)

    def _work(self, tokens: list[int] | None) -> list[int]:
        began = time.perf_counter()
        rows = self._host.work(tokens)
        self.mask_seconds += time.perf_counter() - began
        return rows

    def mask(self, logits: torch.Tensor) -> None:
        """Waits, and writes."""
        assert self._pending is not None
        began = time.perf_counter()
        rows = self._pending.result()
        self.wait_seconds += time.perf_counter() - began
        self._host.apply(logits, rows)

    def close(self) -> None:
        """Ends the thread."""
        self._executor.shutdown()


class TokfoldHost:
    """Ours, by class masks."""

    def __init__(self, matchers: list[tokfold.Matcher], fold: Fold, threads: int) -> None:
        self._matchers, self._threads = matchers, threads
        self._masks = fold.allocate(len(matchers))
        self._table = MaskTable(fold, max_rows=len(matchers))

    def work(self, tokens: list[int] | None) -> list[int]:
        """Reads and fills."""
        rows = [row for row, matcher in enumerate(self._matchers) if not matcher.is_terminated]
        if tokens is not None:
            matchers = [self._matchers[row] for row in rows]
            chosen = [tokens[row] for row in rows]
            if not tokfold.accept_token_batch(matchers, chosen, self._threads).all():
                raise RuntimeError("refuses a token")
            rows = [row for row in rows if not self._matchers[row].is_terminated]
        matchers = [self._matchers[row] for row in rows]
        tokfold.fill_class_bitmask_batch(matchers, self._masks, threads=self._threads)
        return rows

    def apply(self, logits: torch.Tensor, rows: list[int]) -> None:
        """By a table of masks."""
        if rows:
            self._table.apply_(logits, self._masks[: len(rows)], rows)


class XgrammarHost:
    """XGrammar, by its own batches."""

    def __init__(self, compiled: Any, batch: int, size: int, threads: int) -> None:
        import xgrammar

        self._module = xgrammar
        self._matchers = [xgrammar.GrammarMatcher(compiled) for _ in range(batch)]
        self._batch = xgrammar.BatchGrammarMatcher(max_threads=threads)
        self._masks = xgrammar.allocate_token_bitmask(batch, size)

    def work(self, tokens: list[int] | None) -> list[int]:
        """Reads and fills."""
        rows = self._live(range(len(self._matchers)))
        if tokens is not None:
            matchers = [self._matchers[row] for row in rows]
            if not all(self._batch.batch_accept_token(matchers, [tokens[row] for row in rows])):
                raise RuntimeError("refuses a token")
            rows = self._live(rows)
        matchers = [self._matchers[row] for row in rows]
        self._batch.batch_fill_next_token_bitmask(matchers, self._masks, rows)
        return rows

    def _live(self, rows: Sequence[int]) -> list[int]:
        return [row for row in rows if not self._matchers[row].is_terminated()]

    def apply(self, logits: torch.Tensor, rows: list[int]) -> None:
        """By its own kernels."""
        masks = self._masks.to(logits.device, non_blocking=True)
        indices = None if len(rows) == len(logits) else rows
        self._module.apply_token_bitmask_inplace(logits, masks, indices=indices)


class LlguidanceHost:
    """llguidance, by its own batches."""

    def __init__(self, compiled: Any, batch: int, size: int, threads: int) -> None:
        import llguidance

        self._matchers = [compiled.deep_copy() for _ in range(batch)]
        self._executor = llguidance.LLExecutor(threads)
        self._size = size
        self._masks = tokfold.allocate_bitmask(batch, size)

    def work(self, tokens: list[int] | None) -> list[int]:
        """Reads and fills."""
        rows = self._live(range(len(self._matchers)))
        if tokens is not None:
            for row in rows:
                if not self._matchers[row].consume_token(tokens[row]):
                    raise RuntimeError(self._matchers[row].get_error() or "refuses a token")
            rows = self._live(rows)
        masks = self._masks
        numbered = [(self._matchers[row], place) for place, row in enumerate(rows)]
        place, width = masks.ctypes.data, masks.shape[1] * 4
        self._executor.unsafe_compute_mask_ptr(numbered, place, width, len(masks))
        return rows

    def _live(self, rows: Sequence[int]) -> list[int]:
        return [row for row in rows if not self._matchers[row].is_stopped()]

    def apply(self, logits: torch.Tensor, rows: list[int]) -> None:
        """By our kernel for token masks."""
        if rows:
            masks = torch.from_numpy(self._masks[: len(rows)]).to(logits.device, non_blocking=True)
            apply_token_bitmask_(logits, masks, self._size, rows)


# ------------------------------------------------------------------------------------- measuring


class Bench:
    """One vocabulary and grammar, and what is made of them once."""

    def __init__(
        self, options: argparse.Namespace, vocabulary: Vocabulary, name: str, grammar: str
    ) -> None:
        self.options, self.vocabulary, self.name = options, vocabulary, name
        self.size = len(vocabulary)
        self.text = common.grammar_text(options.grammar_dir, grammar)
        self.compiled = tokfold.compile(
            tokfold.Grammar.from_ebnf(self.text), vocabulary, classes="now"
        )
        self.fold = Fold(self.compiled, options.device)
        made: dict[str, Callable[[argparse.Namespace, int], Model]]
        made = {"llama": Llama, "decoder": _decoder, "timed": Timed}
        self.model = made[options.model](options, self.size)
        self._peers: dict[str, Any] = {}

    def matchers(self, batch: int) -> list[tokfold.Matcher]:
        """New texts."""
        return [tokfold.Matcher(self.compiled) for _ in range(batch)]

    def tokfold_host(self, batch: int) -> Host:
        """Ours."""
        return TokfoldHost(self.matchers(batch), self.fold, self.options.threads)

    def xgrammar_host(self, batch: int) -> Host:
        """XGrammar, which compiles once."""
        if "xgrammar" not in self._peers:
            import xgrammar

            info = common.xgrammar_info(self.vocabulary)
            compiler = xgrammar.GrammarCompiler(info, max_threads=1)
            self._peers["xgrammar"] = compiler.compile_grammar(self.text)
        return XgrammarHost(self._peers["xgrammar"], batch, self.size, self.options.threads)

    def llguidance_host(self, batch: int) -> Host:
        """llguidance, which reads the grammar once."""
        if "llguidance" not in self._peers:
            import llguidance

            tokenizer = common.llguidance_tokenizer(self.vocabulary)
            grammar = llguidance.LLMatcher.grammar_from_lark(to_lark(self.text))
            matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
            if matcher.get_error():
                raise RuntimeError(matcher.get_error())
            self._peers["llguidance"] = matcher
        return LlguidanceHost(self._peers["llguidance"], batch, self.size, self.options.threads)

    def script(self, batch: int) -> Script:
        """Texts under the grammar."""
        classes = self.compiled.classes
        assert classes is not None
        members = [np.flatnonzero(classes.class_of == c) for c in range(len(classes))]
        stops = {int(classes.class_of[token]) for token in self.vocabulary.stop_token_ids}
        draws = [random.Random(f"{self.options.seed} {row}") for row in range(batch)]
        matchers = self.matchers(batch)
        mask = tokfold.allocate_bitmask(1, len(classes))
        result = []
        for _ in range(self.options.steps):
            tokens = []
            for matcher, draw in zip(matchers, draws, strict=True):
                if matcher.is_terminated:
                    tokens.append(-1)
                    continue
                matcher.fill_class_bitmask(mask)
                bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(classes)]
                allowed = np.flatnonzero(bits).tolist()
                # Texts end where they must.
                found = draw.choice([c for c in allowed if c not in stops] or allowed)
                tokens.append(int(draw.choice(members[found])))
                matcher.accept_token(tokens[-1])
            result.append(tokens)
        return result

    def rows(self, batch: int, done: Step) -> Iterator[common.Result]:
        """The figures of all engines at one batch."""
        script = self.script(batch)
        runs: dict[str, list[Run]] = {name: [] for name in self.options.engines}
        failures: dict[str, str] = {}
        _run(self.model, Unmasked(), script[:3], self.options)
        total = self.options.runs * len(runs)
        for turn in range(self.options.runs):
            for place, (name, found) in enumerate(runs.items()):
                done(turn * len(runs) + place, total)
                if name in failures or any(len(run.step) < len(script) for run in found):
                    continue
                try:
                    way = ENGINES[name](self, batch)
                    try:
                        found.append(_run(self.model, way, script, self.options))
                    finally:
                        way.close()
                except ImportError as error:
                    failures[name] = f"not installed: {error.name}"
                except Exception as error:  # a peer that gives up is a result
                    if name.startswith("tokfold"):
                        raise
                    failures[name] = (str(error).strip().splitlines() or [repr(error)])[0][:60]
        for name, found in runs.items():
            if name in failures:
                yield {"engine": name, "failure": failures[name]}
            else:
                yield {"engine": name, **_summary(found)}


ENGINES: dict[str, Callable[[Bench, int], Way]] = {
    "none": lambda bench, batch: Unmasked(),
    "tokfold classes": lambda bench, batch: Overlapped(
        bench.matchers(batch), bench.fold, bench.options.threads
    ),
    "tokfold tokens": lambda bench, batch: Overlapped(
        bench.matchers(batch), None, bench.options.threads
    ),
    "tokfold serial": lambda bench, batch: Serial(bench.tokfold_host(batch)),
    "xgrammar serial": lambda bench, batch: Serial(bench.xgrammar_host(batch)),
    "xgrammar thread": lambda bench, batch: Threaded(bench.xgrammar_host(batch)),
    "llguidance serial": lambda bench, batch: Serial(bench.llguidance_host(batch)),
    "llguidance thread": lambda bench, batch: Threaded(bench.llguidance_host(batch)),
}


@dataclass
class Run:
    """Seconds of each step of a run."""

    model: list[float] = field(default_factory=list)
    handing: list[float] = field(default_factory=list)
    mask: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    visible: list[float] = field(default_factory=list)
    applying: list[float] = field(default_factory=list)
    select: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    refused: int = 0


@torch.inference_mode()
def _run(model: Model, way: Way, script: Script, options: argparse.Namespace) -> Run:
    """Decode the texts of a script, and see where the time goes."""
    run = Run()
    # On the device beforehand: a copy in the midst of a step would wait for the model.
    known = torch.tensor(script, device=options.device).clamp(min=0)
    ids = torch.zeros_like(known[0])
    clock = time.perf_counter
    mark, between = _marks(options.device)
    tokens: list[int] | None = None
    is_queued = options.device != "cpu"
    model.begin()
    gc.collect()
    gc.disable()
    ends = clock() + options.seconds
    try:
        for coming, largest in zip(script, known[:, :, None], strict=True):
            masks, waited = way.mask_seconds, way.wait_seconds
            began = clock()
            handed = 0.0  # on a device the model is queued first, and hides it
            if not is_queued:
                way.begin(tokens)
                handed = clock() - began
            marks = [mark()]
            logits = model(ids)
            if is_queued:
                way.begin(tokens)
            logits.scatter_(1, largest, LARGEST)
            marks.append(mark())
            way.mask(logits)
            marks.append(mark())
            ids = logits.argmax(-1)
            marks.append(mark())
            selected = ids.tolist()
            run.step.append(clock() - began)
            run.model.append(between(marks[0], marks[1]))
            masking = between(marks[1], marks[2])
            run.handing.append(handed)
            run.visible.append(handed + masking)
            run.applying.append(masking - (way.wait_seconds - waited))
            run.select.append(between(marks[2], marks[3]))
            run.mask.append(way.mask_seconds - masks)
            run.waiting.append(way.wait_seconds - waited)
            pairs = zip(coming, selected, strict=True)
            run.refused += sum(token not in (-1, found) for token, found in pairs)
            tokens, ids = [max(0, token) for token in coming], largest[:, 0]
            if clock() > ends:
                break
    finally:
        gc.enable()
    return run


def _marks(device: str) -> tuple[Callable[[], Any], Callable[[Any, Any], float]]:
    """What marks a moment, of the stream if there is one, and the seconds between two."""
    if device == "cpu":
        return time.perf_counter, lambda before, after: after - before

    def mark() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(before: Any, after: Any) -> float:
        after.synchronize()
        return float(before.elapsed_time(after)) / 1e3

    return mark, between


def _summary(runs: list[Run]) -> common.Result:
    """Over all steps of the runs but the first, if there are others."""
    again = runs[1:] or runs

    def all_steps(name: str, runs: list[Run] = again) -> Times:
        return np.concatenate([getattr(run, name) for run in runs])

    def share(name: str, runs: list[Run] = again) -> float:
        return float(np.median(all_steps(name, runs) / all_steps("step", runs)))

    parts = [part.name for part in fields(Run) if part.name != "refused"]
    return {
        **{name: float(np.median(all_steps(name))) for name in parts},
        "mean": {name: float(np.mean(all_steps(name))) for name in parts},
        "share": share("visible"),
        "share_first": share("visible", runs[:1]),
        "share_waiting": share("waiting"),
        "share_mean": float(np.sum(all_steps("visible")) / np.sum(all_steps("step"))),
        "step_p99": float(np.percentile(all_steps("step"), 99)),
        "steps": len(all_steps("step")),
        "refused": runs[0].refused,
    }


# ----------------------------------------------------------------------------------- showing them


def _aims(report: common.Result) -> Iterator[common.Result]:
    """What tokfold aims at, and the worst case found."""
    for engine in ("tokfold classes", "tokfold tokens"):
        rows = [row for row in report["rows"] if row["engine"] == engine]
        names = {"share": "visible"}
        if report["device"] == "cpu":  # a host that waits for masks beside a device waits for both
            names["share_waiting"] = "waiting"
        for key, name in names.items():
            if rows:
                worst = max(rows, key=lambda row, key=key: row[key])
                place = f"{worst['grammar']}, {worst['tokenizer']}, {worst['batch']} rows"
                yield {
                    "aim": f"{engine}: {name} under {AIM:.0%} of a step",
                    "holds": worst[key] < AIM,
                    "worst": worst[key],
                    "where": place,
                }


def _sheets(report: common.Result) -> list[common.Sheet]:
    columns = [">rows", "engine", ">model", ">mask", ">waiting", ">visible", ">share", ">first"]
    columns += [">select", ">step", ">added", ">at p99", ">steps"]
    sheets: dict[str, common.Sheet] = {}
    without: dict[tuple[str, int], common.Result] = {}
    for row in report["rows"]:
        if "failure" in row:
            continue
        title = f"Steps under {row['grammar']}, {row['tokenizer']}"
        sheet = sheets.setdefault(title, common.Sheet(title, columns, []))
        if row["engine"] == "none":
            without[title, row["batch"]] = row
        none = without.get((title, row["batch"]))
        cells = [str(row["batch"]), row["engine"], seconds(row["model"])]
        if row["engine"] == "none":
            cells += ["-"] * 5
        else:
            cells += [seconds(row[name]) for name in ("mask", "waiting", "visible")]
            cells += [f"{row[key]:.1%}" for key in ("share", "share_first")]
        cells += [seconds(row["select"]), seconds(row["step"])]
        for key in ("step", "step_p99"):
            cells.append(f"{row[key] / none[key] - 1:+.1%}" if none and none is not row else "-")
        cells.append(str(row["steps"]))
        sheet.rows.append(cells)
    return list(sheets.values())


def _notes(report: common.Result) -> list[str]:
    threads = report["threads"]
    notes = [
        f"model: {report['model']}, on {report['device']}; threads: {threads['torch']} of torch, "
        f"{threads['masks']} for masks",
        '"visible": handing over, waiting, transfer and apply; "first": its share in the first '
        'run; "added": to a step without masks, of medians and of p99s.',
    ]
    for row in report["rows"]:
        place = f"{row['engine']}, {row['grammar']}, {row['tokenizer']}, {row['batch']} rows"
        if "failure" in row:
            failed = f"{row['engine']}, {row['grammar']}, {row['tokenizer']}: {row['failure']}"
            if failed not in notes:
                notes.append(failed)
        elif row["refused"]:
            notes.append(f"{place}: masks {row['refused']} tokens that the grammar allows")
    for aim in report["aims"]:
        verdict = "holds" if aim["holds"] else "does not hold"
        notes.append(f"{verdict}: {aim['aim']} (worst: {aim['worst']:.2%}, {aim['where']})")
    return notes


if __name__ == "__main__":
    main()
