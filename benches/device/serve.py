r"""A real vLLM engine under structured outputs: tokfold beside the back ends that vLLM has.

    python benches/device/serve.py --tokenizer path/to/llama3 --json serve.json
    python benches/device/serve.py --tokenizer path/to/llama3 --engines tokfold xgrammar guidance
    python benches/device/serve.py --tokenizer path/to/llama3 \
        --vllm '{"enforce_eager": true, "attention_backend": "TRITON_ATTN"}'

The model is a small Llama with random weights, which puts out nearly every allowed token with the
same probability. So texts are as odd as a grammar allows, and all grammars here bound their length.
Each engine is a process of its own, with vLLM's AsyncLLM, and gets the same rounds of requests, all
of a round at once:

    new       each request has a JSON schema that the engine has not seen
    mixed     few schemas, patterns, choices and tool calls, each for several requests
    again     the same requests once more

The time to the first token is that of a client: it has the check of a request, its compilation and
the wait for the other requests in it. Before the rounds each engine compiles its kernels and reads
the vocabulary, which is not counted. Every text that ended is held against its grammar by tokfold's
recognizer, parsed, and where jsonschema is installed validated by it. A text that max_tokens cut
off is counted apart. The file of figures is written anew after each round of each engine.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tokfold

ENGINES = ("tokfold", "xgrammar", "guidance", "outlines")
ROUNDS = ("new", "mixed", "again")
PACKAGES = ("tokfold", "vllm", "xgrammar", "llguidance", "torch", "triton", "transformers")
PROMPT = "Answer as the schema says. "
TOOL = ("<tool>", "</tool>")

Json = dict[str, Any]


def string(most: int) -> Json:
    return {"type": "string", "maxLength": most}


def integer(least: int, most: int) -> Json:
    return {"type": "integer", "minimum": least, "maximum": most}


def record(**properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def items(of: Json, least: int, most: int) -> Json:
    return {"type": "array", "items": of, "minItems": least, "maxItems": most}


def optional(of: Json, **required: Json) -> Json:
    return {**record(**required, extra=of), "required": list(required)}


PERSON = record(name=string(16), age=integer(0, 120), role={"enum": ["user", "admin", "guest"]})
PLACE = record(city=string(12), code={"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"})
SCHEMAS: dict[str, Json] = {
    "person": PERSON,
    "place": PLACE,
    "people": items(PERSON, 1, 4),
    "order": record(
        id={"type": "string", "format": "uuid"},
        day={"type": "string", "format": "date"},
        lines=items(record(item=string(10), count=integer(1, 99)), 1, 5),
    ),
    "answer": record(
        answer={"anyOf": [string(24), integer(-1000, 1000), {"type": "boolean"}, {"type": "null"}]}
    ),
    "shape": {
        "anyOf": [
            record(kind={"const": "circle"}, radius=integer(1, 500)),
            record(kind={"const": "box"}, sides=items(integer(1, 500), 2, 3)),
            record(kind={"const": "label"}, text=string(20)),
        ]
    },
    "labels": items({"enum": ["red", "green", "blue", "cyan", "black"]}, 2, 8),
    "nested": record(a=record(b=record(c=record(d=items(PLACE, 1, 2))))),
    "optional": optional(string(8), name=string(8)),
    "matrix": items(items(integer(0, 9), 3, 3), 3, 3),
    "event": record(
        at={"type": "string", "format": "date-time"}, level={"enum": [1, 2, 3]}, text=string(32)
    ),
    "tree": {
        **record(root={"$ref": "#/$defs/node"}),
        "$defs": {"node": record(name=string(6), leaves=items({"$ref": "#/$defs/leaf"}, 0, 3)),
                  "leaf": record(value=integer(0, 255), name=string(6))},
    },
    "pair": {
        "type": "array",
        "prefixItems": [string(10), integer(0, 10)],
        "items": False,
        "minItems": 2,
    },
    "flags": record(**{f"flag_{n}": {"type": "boolean"} for n in range(8)}),
    "mail": record(to=items({"type": "string", "pattern": "^[a-z]{1,8}@[a-z]{1,8}[.]org$"}, 1, 3)),
    "long": record(text={"type": "string", "minLength": 20, "maxLength": 80}),
}  # fmt: skip
PATTERNS = {
    "version": r"v[0-9]{1,2}\.[0-9]{1,2}(-rc[1-9])?",
    "words": r"[a-z]{3,9}( [a-z]{3,9}){4}",
}
CHOICES = {"stars": ["one star", "two stars", "three stars"]}
TOOLS = {"call": record(name={"const": "get_weather"}, arguments=PLACE)}


@dataclass
class Asked:
    """What a request asks for: the name of a field of StructuredOutputsParams, and its value."""

    name: str
    kind: str
    value: Any


@dataclass
class Answer:
    """What came back."""

    asked: Asked
    text: str
    tokens: int
    finish: str
    first: float
    total: float


@dataclass
class Round:
    """The figures of a round; times are seconds."""

    name: str
    requests: int
    seconds: float
    requests_per_second: float
    tokens: int
    tokens_per_second: float
    first_token_median: float
    first_token_p90: float
    first_token_max: float
    between_tokens_median: float
    finished: int
    valid: int
    cut_off: int
    errors: list[str] = field(default_factory=list)


def main() -> None:
    options = _parser().parse_args()
    if options.one:
        asyncio.run(_serve(options))
        return
    report: Json = {"versions": _versions(), "options": _told(options), "engines": {}}
    for name in options.engines:
        part = options.json.with_suffix(f".{name}.json")
        part.unlink(missing_ok=True)
        command = [sys.executable, __file__, *sys.argv[1:], "--one", name, "--part", str(part)]
        print(f"{name} starts", flush=True)
        try:
            code: int | str = subprocess.run(
                command, env=_environment(options, name), timeout=options.seconds, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            code = f"stopped after {options.seconds:.0f} s"
        figures = json.loads(part.read_text()) if part.exists() else {}
        report["engines"][name] = {**figures, "exit": code}
        options.json.write_text(json.dumps(report, indent=1))
    print(_table(report))
    rounds = [r for engine in report["engines"].values() for r in engine.get("rounds", [])]
    whole = len(rounds) == len(options.engines) * len(ROUNDS)
    if not whole or any(r["errors"] or r["valid"] < r["finished"] for r in rounds):
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", type=Path, required=True, help="a folder")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["tokfold", "xgrammar"])
    parser.add_argument("--requests", type=int, default=64, help="of a round (default: 64)")
    parser.add_argument("--max-tokens", type=int, default=400, help="of a text (default: 400)")
    parser.add_argument("--end-in-time", action="store_true", help="tokfold ends within max-tokens")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument(
        "--vllm", type=json.loads, default={}, metavar="JSON", help="engine options"
    )
    parser.add_argument("--seconds", type=float, default=180, help="of an engine (default: 180)")
    parser.add_argument("--json", type=Path, default=Path("serve.json"), metavar="FILE")
    parser.add_argument("--one", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    return parser


def _told(options: argparse.Namespace) -> Json:
    return {name: value for name, value in vars(options).items() if not isinstance(value, Path)}


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _environment(options: argparse.Namespace, name: str) -> dict[str, str]:
    ours = {
        "TOKFOLD_VLLM": str(int(name == "tokfold")),
        "TOKFOLD_END_IN_TIME": str(int(options.end_in_time)),
        "TOKFOLD_WHITESPACE": "compact",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
    }
    return {**ours, **os.environ, "TOKFOLD_VLLM": ours["TOKFOLD_VLLM"]}


def _model(options: argparse.Namespace, folder: Path) -> None:
    """A folder with the configuration of a small Llama, and the tokenizer; there are no weights."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(options.tokenizer / name, folder)
    vocabulary = tokfold.Vocabulary.from_file(options.tokenizer)
    heads = max(1, options.hidden // 64)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(vocabulary),
        "hidden_size": options.hidden,
        "intermediate_size": options.hidden * 3,
        "num_hidden_layers": options.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": max(1, heads // 2),
        "head_dim": 64,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "tie_word_embeddings": True,
        "torch_dtype": options.dtype,
        "bos_token_id": 0,
        "eos_token_id": vocabulary.stop_token_ids[0],
    }
    (folder / "config.json").write_text(json.dumps(config))


# -- the requests ---------------------------------------------------------------------------------


def asked(name: str, count: int) -> list[Asked]:
    """The requests of a round."""
    shared = [
        *(Asked(key, "json", schema) for key, schema in SCHEMAS.items()),
        *(Asked(key, "regex", pattern) for key, pattern in PATTERNS.items()),
        *(Asked(key, "choice", texts) for key, texts in CHOICES.items()),
        *(Asked(key, "structural_tag", _tag(schema)) for key, schema in TOOLS.items()),
    ]
    if name != "new":
        return [copy.deepcopy(shared[n % len(shared)]) for n in range(count)]
    schemas = list(SCHEMAS.items())
    return [_named(n, *copy.deepcopy(schemas[n % len(schemas)])) for n in range(count)]


def _named(number: int, name: str, schema: Json) -> Asked:
    """A schema that no other request has: its only property has a name of its own."""
    outer = record(**{f"answer_{number}": schema})
    if "$defs" in schema:
        outer["$defs"] = schema.pop("$defs")
    return Asked(name, "json", outer)


def _tag(schema: Json) -> str:
    begin, end = TOOL
    content = {"type": "json_schema", "json_schema": schema}
    tag = {"type": "tag", "begin": begin, "content": content, "end": end}
    return json.dumps({"type": "structural_tag", "format": tag})


def fault(asked: Asked, text: str) -> str | None:
    """What is wrong with a text that ended, if anything."""
    if asked.kind == "regex":
        return None if re.fullmatch(asked.value, text) else "the pattern does not match"
    if asked.kind == "choice":
        return None if text in asked.value else "no choice"
    schema = asked.value
    if asked.kind == "structural_tag":
        begin, end = TOOL
        if not (text.startswith(begin) and text.endswith(end)):
            return "no tag"
        text = text[len(begin) : -len(end)]
        schema = json.loads(asked.value)["format"]["content"]["json_schema"]
    grammar = tokfold.Grammar.from_json_schema(json.dumps(schema))
    if not tokfold.recognize(grammar, text.encode()):
        return "outside the grammar"
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"no JSON: {error}"
    if importlib.util.find_spec("jsonschema"):
        jsonschema = importlib.import_module("jsonschema")
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
        if errors:
            return f"invalid: {errors[0].message}"
    return None


# -- an engine, in a process of its own -----------------------------------------------------------


async def _serve(options: argparse.Namespace) -> None:
    from vllm import SamplingParams
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    if options.one == "tokfold":
        import tokfold.vllm

        tokfold.vllm.install()
    began = time.perf_counter()
    backend = "auto" if options.one == "tokfold" else options.one
    figures: Json = {"engine": options.one, "rounds": []}
    with tempfile.TemporaryDirectory() as folder:
        _model(options, Path(folder))
        engine_options: Json = {
            "model": folder,
            "load_format": "dummy",
            "dtype": options.dtype,
            "max_model_len": 2048,
            "max_num_seqs": options.requests,
            "gpu_memory_utilization": 0.3,
            "enable_prefix_caching": False,
            # tokfold has a variable for that, since vLLM refuses it beside "auto".
            "structured_outputs_config": {
                "backend": backend,
                "disable_any_whitespace": backend in ("xgrammar", "guidance"),
            },
            **options.vllm,
        }
        engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**engine_options))
        try:
            figures["start_seconds"] = time.perf_counter() - began
            # Kernels are compiled here, for batches of every size.
            free = [
                SamplingParams(max_tokens=8 + n, ignore_eos=True) for n in range(options.requests)
            ]
            await asyncio.gather(*(_ask(engine, n, None, one) for n, one in enumerate(free)))
            figures["warm_seconds"] = time.perf_counter() - began
            # The back end reads the vocabulary with the first request.
            digit = Asked("first", "json", record(first=integer(0, 9)))
            first = await _ask(engine, 0, digit, _params(options))
            coming = [_ask(engine, n, digit, _params(options)) for n in range(options.requests)]
            await asyncio.gather(*coming)
            figures["back_end_seconds"] = first.total
            _save(options, figures)
            for name in ROUNDS:
                began = time.perf_counter()
                coming = [
                    _ask(engine, n, one, _params(options))
                    for n, one in enumerate(asked(name, options.requests))
                ]
                answers = await asyncio.gather(*coming, return_exceptions=True)
                done = figured(name, list(answers), time.perf_counter() - began)
                figures["rounds"].append(asdict(done))
                print(f"{options.one} {name}: {done}", flush=True)
                _save(options, figures)
        finally:
            engine.shutdown()


def _save(options: argparse.Namespace, figures: Json) -> None:
    options.part.write_text(json.dumps(figures))


def _params(options: argparse.Namespace) -> Any:
    from vllm import SamplingParams

    return SamplingParams(max_tokens=options.max_tokens, temperature=1.0)


async def _ask(engine: Any, number: int, what: Asked | None, params: Any) -> Answer:
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    params = params.clone()
    params.output_kind = RequestOutputKind.CUMULATIVE
    if what is not None:
        params.structured_outputs = StructuredOutputsParams(**{what.kind: what.value})
    began = time.perf_counter()
    name = f"{what.name if what else 'free'}-{number}-{time.monotonic_ns()}"
    first, output = 0.0, None
    async for last in engine.generate(PROMPT, params, name):
        if last.outputs and last.outputs[0].token_ids and not first:
            first = time.perf_counter() - began
        output = last
    total = time.perf_counter() - began
    if output is None:
        raise RuntimeError("there is no answer")
    one = output.outputs[0]
    what = what or Asked("free", "none", None)
    return Answer(what, one.text, len(one.token_ids), str(one.finish_reason), first, total)


def figured(name: str, answers: list[Answer | BaseException], seconds: float) -> Round:
    """The figures of what came back in a round."""
    came = [one for one in answers if isinstance(one, Answer)]
    errors = [f"{type(e).__name__}: {e}"[:300] for e in answers if isinstance(e, BaseException)]
    ended = [one for one in came if one.finish == "stop"]
    cut = sum(one.finish == "length" for one in came)
    errors += [f"{one.asked.name} ended with {one.finish}" for one in came
               if one.finish not in ("stop", "length")]  # fmt: skip
    valid = 0
    for one in ended:
        wrong = fault(one.asked, one.text)
        valid += wrong is None
        if wrong is not None:
            errors.append(f"{one.asked.name}: {wrong}: {one.text[:200]!r}")
    firsts = sorted(one.first for one in came) or [0.0]
    tokens = sum(one.tokens for one in came)
    between = [(one.total - one.first) / (one.tokens - 1) for one in came if one.tokens > 1]
    return Round(
        name=name,
        requests=len(answers),
        seconds=seconds,
        requests_per_second=len(came) / seconds,
        tokens=tokens,
        tokens_per_second=tokens / seconds,
        first_token_median=statistics.median(firsts),
        first_token_p90=firsts[int(0.9 * (len(firsts) - 1))],
        first_token_max=firsts[-1],
        between_tokens_median=statistics.median(between or [0.0]),
        finished=len(ended),
        valid=valid,
        cut_off=cut,
        errors=errors,
    )


def _table(report: Json) -> str:
    head = ("engine", "round", "requests/s", "tokens/s", "first token ms, median", "p90", "max",
            "ms a token", "valid", "ended", "cut off", "errors")  # fmt: skip
    lines = [" | ".join(head), " | ".join("-" * len(one) for one in head)]
    for name, engine in report["engines"].items():
        for one in engine.get("rounds", []):
            times = [one[f"first_token_{which}"] for which in ("median", "p90", "max")]
            cells = [name, one["name"], f"{one['requests_per_second']:.1f}"]
            cells += [f"{one['tokens_per_second']:.0f}", *(f"{1e3 * each:.0f}" for each in times)]
            cells += [f"{1e3 * one['between_tokens_median']:.2f}", str(one["valid"])]
            cells += [str(one["finished"]), str(one["cut_off"]), str(len(one["errors"]))]
            lines.append(" | ".join(cells))
        if engine["exit"] != 0:
            lines.append(f"{name} | exit: {engine['exit']}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
