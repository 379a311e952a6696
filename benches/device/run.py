"""All that can be proved on a GPU alone, in one command: `make device`.

    python benches/device/run.py                      # everything, 25 minutes at most
    python benches/device/run.py --only tests gather  # these parts
    python benches/device/run.py --small              # on a CPU, to try the parts themselves

A bare machine with a CUDA device, Python and PyTorch is enough; what it lacks comes out of .device,
which bring.py packs. The most telling part comes first. Each part is a process of its own with a
time-out; after each one OUT/device.json and OUT/device.md are written anew, so that they are
complete whenever the run is stopped. What a part prints is in OUT/NAME.log, its figures in
OUT/NAME.json.

The tests draw no numbers from the parts: a part that fails or runs out of time says so in the
table, and the command exits with 1. Where vLLM is installed it is the last part (serve.py).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCHES = ROOT / "benches" / "python"
GRACE = 8.0
"""Seconds for a part that is asked to stop: it writes the figures that it has."""


@dataclass
class Part:
    """One process.

    Attributes:
        name: of the part and its files.
        shows: what it shows, in a few words.
        command: behind ``python``.
        seconds: after which it is stopped.
        environment: variables beside those of this process.
    """

    name: str
    shows: str
    command: list[str]
    seconds: float
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Outcome:
    """What became of a part."""

    name: str
    shows: str
    result: str
    seconds: float
    said: str


def main() -> None:
    options = _parser().parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    environment = {} if options.list else _environment(options)
    parts = _parts(options, _tokenizers(options))
    unknown = set(options.only or []) - {part.name for part in parts}
    if unknown:
        names = ", ".join(part.name for part in parts)
        sys.exit(f"error: no part is named {', '.join(sorted(unknown))}: they are {names}")
    if options.list:
        for part in parts:
            print(f"{part.name:12} {part.seconds:5.0f} s  {part.shows}")
        return
    ends = time.monotonic() + options.seconds
    outcomes: list[Outcome] = []
    for part in parts:
        if options.only and part.name not in options.only:
            continue
        left = min(part.seconds, options.at_most, ends - time.monotonic())
        if left < GRACE:
            outcomes.append(Outcome(part.name, part.shows, "no time left", 0.0, ""))
        else:
            print(f"{part.name}: {part.shows} ({left:.0f} s at most)", flush=True)
            outcomes.append(_run(part, left, environment, out))
            print(f"  {outcomes[-1].result}, {outcomes[-1].seconds:.0f} s", flush=True)
        _write(out, outcomes)
    print((out / "device.md").read_text())
    if any(outcome.result != "passed" for outcome in outcomes):
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these parts; --list names them")
    parser.add_argument("--list", action="store_true", help="name the parts, and run none")
    parser.add_argument("--seconds", type=float, default=1_500, help="of all parts (default: 1500)")
    parser.add_argument("--at-most", type=float, default=240, metavar="SECONDS", help="of a part")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="of the tests")
    parser.add_argument(
        "--small", action="store_true", help="small sizes in Triton's interpreter, without a GPU"
    )
    parser.add_argument("--brought", type=Path, default=ROOT / ".device", metavar="FOLDER")
    parser.add_argument("--tokenizer", nargs="*", type=Path, help="in place of those brought along")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "device", metavar="FOLDER")
    return parser


def _environment(options: argparse.Namespace) -> dict[str, str]:
    """The variables of all parts; installs what was brought along, beside what is there."""
    wheels = sorted((options.brought / "wheels").glob("*.whl"))
    path = os.environ.get("PYTHONPATH", "")
    if wheels and not options.small:
        site = options.brought / "site"
        stamp = options.brought / "installed"
        brought = "".join(f"{wheel.name} {wheel.stat().st_mtime_ns}\n" for wheel in wheels)
        if not stamp.exists() or stamp.read_text() != brought:
            shutil.rmtree(site, ignore_errors=True)
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
            command += ["--no-cache-dir", "--target", str(site), *map(str, wheels)]
            subprocess.run(command, check=True)
            stamp.write_text(brought)
        path = f"{site}{os.pathsep}{path}" if path else str(site)
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"} if path else dict(os.environ)


def _tokenizers(options: argparse.Namespace) -> dict[str, str]:
    """The option --tokenizer of the benchmarks, by name."""
    if options.tokenizer is not None:
        return {path.name: str(path) for path in options.tokenizer}
    found = {}
    for packed in sorted((options.brought / "tokenizers").glob("*/tokenizer.json.xz")):
        unpacked = packed.with_suffix("")
        if not unpacked.exists():
            unpacked.write_bytes(lzma.decompress(packed.read_bytes()))
        found[packed.parent.name] = str(packed.parent)
    return found


def _parts(options: argparse.Namespace, tokenizers: Mapping[str, str]) -> list[Part]:
    """The parts in their order; where nothing was brought along the default tokenizer serves."""
    small: bool = options.small
    results = ["--results", str(options.out)]

    def bench(script: str, *words: object) -> list[str]:
        return [str(BENCHES / script), *map(str, words)]

    all_of = [word for path in tokenizers.values() for word in ("--tokenizer", path)]
    one = all_of[:2]

    def figures(name: str) -> list[str]:
        return ["--json", str(options.out / f"{name}.json")]

    if small:
        interpreted = {"TRITON_INTERPRET": "1"}
        check = bench("bench_chart_gpu.py", "--check")
        apply = ["--device", "cpu", "--steps", 4, "--batches", 1, 4, "--grammars", "json"]
        loop = ["--model", "decoder", "--shape", "tiny", "--batches", 2, "--steps", 6, "--runs", 2]
        write = ["--shape", "tiny", "--batches", 2, "--tokens", 6, "--runs", 2]
        return [
            Part("charts", "charts: as on the CPU", check, 300, interpreted),
            Part("gather", "masks onto logits", bench("bench_apply.py", *apply, *one), 300),
            Part("loop", "a loop of one's own", bench("bench_overlap.py", *loop, *one), 300),
            Part("generate", "generate()", bench("bench_generate.py", *write, *one), 300),
        ]
    tests = ["-m", "pytest", "-p", "no:cacheprovider", "-n", str(options.workers), "-rfE"]
    tests += ["--timeout", "120", "--tb", "short", "--durations", "12", "--maxfail", "40"]
    # The rest of these folders shows the same on any CPU.
    tests += ["--deselect", "tests/logits/test_interpreter.py"]
    tests += ["--deselect", "tests/chart_gpu/test_interpreter.py"]
    tests += ["-k", "not threads_that_run_at_once and not by_inductor", "tests/logits"]
    tests += ["tests/chart_gpu"]
    loop = ["--model", "decoder", "--grammars", "json", "--steps", 64, "--runs", 4, "--seconds", 1]
    loop += ["--threads", min(8, os.cpu_count() or 1), *one]
    loop += ["--engines", "none", "tokfold classes", "xgrammar thread", "llguidance thread"]
    apply = ["--device", "cuda", "--steps", 20]
    dtypes = ["--dtypes", "float32", "bfloat16", "float16", *figures("gather-wide")]
    write = [*one, "--tokens", 48, "--runs", 3]
    has_vllm = importlib.util.find_spec("vllm") is not None
    serve = [str(ROOT / "benches" / "device" / "serve.py"), *one, "--seconds", "115"]
    serve += figures("serve")
    return [
        Part("tests", "bit for bit as on the CPU", tests, 240),
        Part(
            "charts",
            "charts: steps, texts, trees, masks of a tokenizer",
            bench("bench_chart_gpu.py", "--kernel", "cuda", *one, *results),
            150,
        ),
        Part(
            "gather",
            "masks onto logits",
            bench("bench_apply.py", *apply, "--grammars", "json", "cpp", *one, *results),
            120,
        ),
        *(
            Part(
                f"loop-{shape}",
                f"a loop of one's own in CUDA graphs, {shape}",
                bench("bench_overlap.py", *loop, "--shape", shape, "--batches", *batches)
                + figures(f"loop-{shape}"),
                120,
            )
            for shape, batches in (("1b", (1, 16, 64, 256)), ("8b", (1, 16, 64, 256)))
        ),
        *(
            Part(
                f"generate-{shape}",
                f"generate() of transformers, {shape}",
                bench("bench_generate.py", *write, "--shape", shape, "--batches", 1, 16, 64, 256)
                + figures(f"generate-{shape}"),
                120,
            )
            for shape in ("1b", "8b")
        ),
        Part(
            "gather-wide",
            "masks onto logits: other vocabularies and dtypes",
            bench("bench_apply.py", *apply, "--grammars", "cpp", "--batches", 64, *all_of, *dtypes),
            90,
        ),
        *([Part("serve", "vLLM, beside its own back end", serve, 240)] if has_vllm else []),
    ]


def _run(part: Part, seconds: float, environment: Mapping[str, str], out: Path) -> Outcome:
    """One part, in a group of its own, so that its children end with it."""
    log = out / f"{part.name}.log"
    began = time.monotonic()
    with log.open("wb") as file:
        child = subprocess.Popen(
            [sys.executable, *part.command],
            cwd=ROOT,
            env={**environment, **part.environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = child.wait(seconds)
            result = "passed" if code == 0 else f"failed ({code})"
        except subprocess.TimeoutExpired:
            result = "out of time"
            _stop(child)
        except KeyboardInterrupt:
            _stop(child)
            raise
    lines = log.read_text(errors="replace").strip().splitlines()
    return Outcome(part.name, part.shows, result, time.monotonic() - began, "\n".join(lines[-60:]))


def _stop(child: subprocess.Popen[bytes]) -> None:
    os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _write(out: Path, outcomes: list[Outcome]) -> None:
    report = {"machine": _machine(), "parts": [asdict(outcome) for outcome in outcomes]}
    (out / "device.json").write_text(json.dumps(report, indent=1) + "\n")
    lines = [f"# On {report['machine']}", "", "| part | shows | result | seconds |"]
    lines += ["| --- | --- | --- | ---: |"]
    lines += [f"| {o.name} | {o.shows} | {o.result} | {o.seconds:.0f} |" for o in outcomes]
    for outcome in outcomes:
        lines += ["", f"## {outcome.name}", "", "```text", outcome.said, "```"]
    (out / "device.md").write_text("\n".join(lines) + "\n")


def _machine() -> str:
    command = [
        "nvidia-smi",
        "--query-gpu=name,driver_version,memory.total",
        "--format=csv,noheader",
    ]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "a machine without a GPU"
    return found.stdout.strip().replace("\n", "; ")


if __name__ == "__main__":
    main()
