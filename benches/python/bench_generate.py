"""What a mask adds to a step of generate(): tokfold, XGrammar and llguidance on one model.

    python benches/python/bench_generate.py --tokenizer path/to/model --shape 1b --batches 1 16

The model is transformers' Llama with random weights, in bfloat16 on a GPU. Each engine is a logits
processor: tokfold.transformers.GrammarLogitsProcessor, xgrammar.contrib.hf.LogitsProcessor, and for
llguidance, which has none, its batches and our kernel for token masks. All write long lists under
one JSON Schema, so no text ends. A step is the time from one call of the last processor to the
next; generate() itself waits for the device in each. Runs of the engines take turns, the first of
each is not counted. "added" compares with steps without masks: in each turn the medians of the two
runs, and of these ratios the median; at p99 all steps at once.

--breakdown waits for the device before each call of a processor, in runs of their own: "lag" is how
far the device was behind the host there, "call" is what the processor takes of the host after that.
What a step gets longer by is the call, and of the lag what the host would have done meanwhile.

Every text is held against the schema's grammar, by tokfold's recognizer of prefixes.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Callable
from typing import Any

import bench_common as common
import numpy as np
import tokfold
import torch
from bench_models import SHAPES, llama
from tokfold import Vocabulary
from tokfold.cli.console import steps
from tokfold.cli.render import seconds
from tokfold.torch import apply_token_bitmask_

PACKAGES = ("tokfold", "torch", "triton", "transformers", "xgrammar", "llguidance")
SCHEMA = {
    "type": "array",
    "minItems": 1_000,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "kind": {"enum": ["north", "south", "east", "west"]},
            "size": {"type": "integer"},
        },
        "required": ["name", "kind", "size"],
        "additionalProperties": False,
    },
}
DTYPES = {"cpu": torch.float32, "cuda": torch.bfloat16}

Processor = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def main() -> None:
    options = _parser().parse_args()
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    report: common.Result = {
        "machine": common.machine(),
        "versions": common.versions(*PACKAGES),
        "date": datetime.date.today().isoformat(),
        "device": device,
        "shape": options.shape,
        "rows": [],
    }
    if device == "cuda":
        report["machine"]["gpu"] = torch.cuda.get_device_name()
    with common.stoppable(), steps() as step:
        for name, vocabulary in common.tokenizers(options).items():
            with step(f"a model of the shape {options.shape}"):
                torch.manual_seed(options.seed)
                shape, width = SHAPES[options.shape], len(vocabulary)
                model = llama(shape, width, options.tokens + 1, device, DTYPES[device])
                engines = _engines(vocabulary)
            for batch in options.batches:
                with step(f"{name}, {batch} rows"):
                    for row in _rows(model, engines, vocabulary, batch, options, device):
                        common.add(report, {"tokenizer": name, "batch": batch, **row})
    common.publish(options, "generate", report, _sheets(report), [])
    if any(row.get("invalid") for row in report["rows"] if row["engine"] == "tokfold"):
        sys.exit("error: a text under tokfold's masks is none of the grammar")


def _sheets(report: common.Result) -> list[common.Sheet]:
    columns = [">rows", "engine", ">step", ">p99", ">added", ">at p99", ">steps", ">not valid"]
    columns += [">lag", ">call", ">p99"] if any("call" in row for row in report["rows"]) else []
    rows = []
    for row in report["rows"]:
        cells = [str(row["batch"]), row["engine"]]
        if "failure" in row:
            rows.append([*cells, row["failure"], *[""] * (len(columns) - 3)])
            continue
        cells += [seconds(row["step"]), seconds(row["step_p99"])]
        cells += [f"{row['added']:+.1%}", f"{row['added_p99']:+.1%}"]
        cells += [str(row["steps"]), str(row.get("invalid", "-"))]
        if "call" in row:
            cells += [seconds(row[name]) for name in ("lag", "call", "call_p99")]
        rows.append(cells + [""] * (len(columns) - len(cells)))
    title = f"generate(), {report['shape']}, {DTYPES[report['device']]}"
    return [common.Sheet(title, columns, rows)]


def _parser() -> argparse.ArgumentParser:
    parser = common.parser(__doc__ or "", writes=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: a GPU if there is one")
    parser.add_argument("--shape", choices=list(SHAPES), default="tiny", help="default: tiny")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16], metavar="N")
    parser.add_argument("--tokens", type=int, default=32, metavar="N", help="of a text")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="beside the first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--breakdown", action="store_true", help="what a processor takes by itself")
    return parser


# -------------------------------------------------------------------------------------- engines


class _Llguidance:
    """A logits processor: masks are made in order, and applied by our kernel."""

    def __init__(self, matcher: Any, size: int) -> None:
        import llguidance

        self._first, self._size = matcher, size
        self._executor = llguidance.LLExecutor()
        self._matchers: list[Any] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        rows = len(ids)
        if not self._matchers:
            self._matchers = [self._first.deep_copy() for _ in range(rows)]
        else:
            for matcher, token in zip(self._matchers, ids[:, -1].tolist(), strict=True):
                matcher.consume_token(token)
        masks = tokfold.allocate_bitmask(rows, self._size)
        numbered = [(matcher, row) for row, matcher in enumerate(self._matchers)]
        place, width = masks.ctypes.data, masks.shape[1] * 4
        self._executor.unsafe_compute_mask_ptr(numbered, place, width, rows)
        on_device = torch.from_numpy(masks).to(scores.device, non_blocking=True)
        return apply_token_bitmask_(scores, on_device, self._size)


def _engines(vocabulary: Vocabulary) -> dict[str, Callable[[], Processor | None] | str]:
    """A new processor for each run; why there is none for an engine that gives up."""
    compiled = tokfold.compile(SCHEMA, vocabulary, classes="now")

    def ours() -> Processor:
        from tokfold.transformers import GrammarLogitsProcessor

        return GrammarLogitsProcessor(compiled)

    def xgrammar() -> Callable[[], Processor]:
        import xgrammar as xgr
        from xgrammar.contrib.hf import LogitsProcessor

        compiler = xgr.GrammarCompiler(common.xgrammar_info(vocabulary), max_threads=1)
        theirs = compiler.compile_json_schema(SCHEMA, any_whitespace=False)
        return lambda: LogitsProcessor(theirs)

    def llguidance() -> Callable[[], Processor]:
        import llguidance as llg

        tokenizer = common.llguidance_tokenizer(vocabulary)
        grammar = llg.LLMatcher.grammar_from_json_schema(SCHEMA)
        matcher = llg.LLMatcher(tokenizer, grammar, log_level=0)
        if matcher.get_error():
            raise RuntimeError(matcher.get_error())
        return lambda: _Llguidance(matcher, len(vocabulary))

    made: dict[str, Callable[[], Processor | None] | str] = {"none": lambda: None, "tokfold": ours}
    for name, peer in (("xgrammar", xgrammar), ("llguidance", llguidance)):
        try:
            made[name] = peer()
        except Exception as error:  # a peer that gives up is a result
            made[name] = (str(error).strip().splitlines() or [repr(error)])[0][:60]
    return made


# ------------------------------------------------------------------------------------- measuring


class _Clock:
    """The last processor: notes when it is called."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.times.append(time.perf_counter())
        return scores


class _Timed:
    """A processor whose calls are timed, apart from what the device has still to do before."""

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        self.lags: list[float] = []
        self.calls: list[float] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        began = time.perf_counter()
        if scores.is_cuda:
            torch.cuda.synchronize()
        waited = time.perf_counter()
        scores = self._processor(ids, scores)
        self.calls.append(time.perf_counter() - waited)
        self.lags.append(waited - began)
        return scores


def _rows(
    model: Any,
    engines: dict[str, Callable[[], Processor | None] | str],
    vocabulary: Vocabulary,
    batch: int,
    options: argparse.Namespace,
    device: str,
) -> list[common.Result]:
    prompt = torch.full((batch, 4), 100, dtype=torch.long, device=device)
    prompt += torch.arange(batch, device=device)[:, None]  # every text its own
    found: dict[str, list[list[float]]] = {}
    failures: dict[str, str] = {}
    texts: dict[str, list[list[int]]] = {}
    timed: dict[str, _Timed] = {}
    last = options.runs + 1 if options.breakdown else options.runs
    for turn in range(last + 1):
        for name, made in engines.items():
            if isinstance(made, str):
                failures[name] = made
            if name in failures:
                continue
            clock = _Clock()
            try:
                processor = made() if callable(made) else None
                if turn > options.runs and processor is not None:
                    processor = timed[name] = _Timed(processor)
                given = [clock] if processor is None else [processor, clock]
                ids = model.generate(
                    prompt,
                    attention_mask=torch.ones_like(prompt),
                    max_new_tokens=options.tokens,
                    do_sample=False,
                    eos_token_id=None,
                    pad_token_id=0,
                    logits_processor=given,
                )
            except Exception as error:  # a peer that gives up is a result
                if name in ("none", "tokfold"):
                    raise
                failures[name] = (str(error).strip().splitlines() or [repr(error)])[0][:60]
                continue
            if 0 < turn <= options.runs:
                found.setdefault(name, []).append(np.diff(clock.times).tolist())
                texts[name] = ids[:, prompt.shape[1] :].tolist()
    grammar = tokfold.Grammar.from_json_schema(SCHEMA)
    result: list[common.Result] = []
    for name in engines:
        if name in failures:
            result.append({"engine": name, "failure": failures[name]})
            continue
        middle, late = np.percentile(found[name], [50, 99]).tolist()
        row = {"engine": name, "step": middle, "step_p99": late, "steps": np.size(found[name])}
        turns = np.median(found[name], axis=1) / np.median(found["none"], axis=1)
        row["added"] = float(np.median(turns)) - 1
        row["added_p99"] = late / float(np.percentile(found["none"], 99)) - 1
        if name in timed:
            calls = timed[name].calls[1:]  # the first has the prompt
            row["lag"] = float(np.median(timed[name].lags[1:]))
            row["call"], row["call_p99"] = np.percentile(calls, [50, 99]).tolist()
        if name in ("tokfold", "xgrammar"):  # llguidance bounds no white space
            written = [vocabulary.decode(ids) for ids in texts[name]]
            row["invalid"] = sum(not _begins(grammar, text) for text in written)
        result.append(row)
    return result


def _begins(grammar: tokfold.Grammar, text: bytes) -> bool:
    """Whether some text of the grammar begins so."""
    letters = Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=[256])
    compiled = tokfold.compile(
        grammar, letters, classes="never", options=tokfold.CompileOptions(pool=None)
    )
    return tokfold.Matcher(compiled).accept_bytes(text)


if __name__ == "__main__":
    main()
