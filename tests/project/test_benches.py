"""The benchmarks run, on little, and count what they should."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from cli.cli_runner import write_tokenizer
from strategies.profiles import LONG
from support import processes

ROOT = Path(__file__).resolve().parents[2]
PARTS = [bytes([byte]) for byte in range(256)] + [b'{"', b'": ', b"true", b"12", b", ", b"word"]
SCHEMAS = {
    "object": {
        "schema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        "tests": [
            {"description": "all", "valid": True, "data": {"a": 12, "b": "wörd"}},
            {"description": "no integer", "valid": False, "data": {"a": True}},
            {"description": "nothing", "valid": False, "data": {}},
        ],
    },
    "impossible": {
        "schema": {"type": "integer", "minimum": 2, "maximum": 1},
        "tests": [{"description": "one", "valid": False, "data": 1}],
    },
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder / "small.json", PARTS)
    return str(folder / "small.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    for name, document in SCHEMAS.items():
        text = json.dumps({"description": name, **document})
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


@functools.cache
def server() -> processes.Child:
    """What runs scripts: they import the same packages, which takes each of them seconds."""
    paths = os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests")])
    command = [sys.executable, ROOT / "tests" / "project" / "script_server.py"]
    command += ["tokfold", "xgrammar", "transformers.models.llama.modeling_llama", "rich.table"]
    return processes.start(
        command, env={**os.environ, "PYTHONPATH": paths}, stdin=processes.PIPE, stderr=None
    )


def run(script: str, *arguments: object, code: int = 0, **more: str) -> str:
    """What a benchmark prints; on standard error, where it is to fail."""
    pytest.importorskip("xgrammar")
    path, words = str(ROOT / "benches" / "python" / script), [*map(str, arguments)]
    if hasattr(os, "fork") and not more:
        returned, out, err = json.loads(server().ask(json.dumps([path, words])))
    else:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **more}
        result = processes.run([sys.executable, path, *words], env=environment)
        returned, out, err = result.returncode, result.stdout, result.stderr
    assert returned == code, err
    return str(err if code else out)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
class TestMaskbench:
    def test_schemas_and_verdicts_are_counted(
        self, folder: Path, tokenizer: str, tmp_path: Path
    ) -> None:
        out = tmp_path / "out.json"
        options = ["--tokenizer", tokenizer, "--classes", "never", "now", "--json", out]
        options += ["--results", tmp_path, "--machine", "A (R) b"]
        printed = run("bench_maskbench.py", folder, *options)
        report = json.loads(out.read_text(encoding="utf-8"))
        kept = tmp_path / f"maskbench-a-b-{report['date']}"
        figures = json.loads(Path(f"{kept}.json").read_text(encoding="utf-8"))
        assert figures.pop("load") >= 0
        assert figures.items() <= report.items()
        assert "| tokfold now | 1 |" in Path(f"{kept}.md").read_text(encoding="utf-8")
        assert report["schemas"] == 2
        assert list(report["engines"]) == ["tokfold never", "tokfold now"]
        for name, engine in report["engines"].items():
            assert name in printed
            assert engine["taken"] == 1
            assert engine["right"] == 1
            assert engine["refused"] == 1
            assert (engine["rejecting"], engine["accepting"]) == (0, 0)
            assert engine["timeout"] == engine["crashed"] == engine["contradictions"] == 0
            assert (engine["valid"], engine["valid_rejected"]) == (1, 0)
            assert (engine["invalid"], engine["invalid_accepted"]) == (2, 0)
            assert 0 < engine["between_masks"]["p50"] <= engine["between_masks"]["max"]
            (reason,) = engine["reasons"]
            assert "no value satisfies the schema" in reason
        (whole, no_integer, nothing) = report["details"]["tokfold now"]["object"]["instances"]
        assert whole["accepted"]
        assert len(whole["masks_ns"]) == len(whole["accepts_ns"])
        assert not no_integer["accepted"]
        assert not nothing["accepted"]
        assert len(nothing["masks_ns"]) < len(whole["masks_ns"])

    def test_engines_are_compared(self, folder: Path, tokenizer: str) -> None:
        options = ["--engines", "tokfold", "xgrammar", "--compare", "--slowest", 2, "--shared"]
        printed = run("bench_maskbench.py", folder, "--tokenizer", tokenizer, *options)
        assert "xgrammar against tokfold never" in printed
        assert "There is no instance that xgrammar judges rightly" in printed
        assert "tokfold never: slowest tokens" in printed

    def test_llguidance_judges_alike(self, folder: Path, tokenizer: str, tmp_path: Path) -> None:
        pytest.importorskip("llguidance")
        out = tmp_path / "out.json"
        options = ["--tokenizer", tokenizer, "--engines", "llguidance", "--json", out]
        run("bench_maskbench.py", folder, *options)
        engine = json.loads(out.read_text(encoding="utf-8"))["engines"]["llguidance"]
        assert (engine["valid_rejected"], engine["invalid_accepted"]) == (0, 0)

    def test_a_third_is_held_back(self, folder: Path, tokenizer: str, tmp_path: Path) -> None:
        counts = []
        for options in (["--held-back"], ["--open"], []):
            out = tmp_path / "out.json"
            run("bench_maskbench.py", folder, "--tokenizer", tokenizer, *options, "--json", out)
            counts.append(json.loads(out.read_text(encoding="utf-8"))["schemas"])
        assert counts == [1, 1, 2]

    def test_a_schema_that_takes_too_long_is_counted(self, folder: Path, tokenizer: str) -> None:
        printed = run("bench_maskbench.py", folder, "--tokenizer", tokenizer, "--timeout", 0)
        (row,) = (line.split() for line in printed.splitlines() if "of 0" in line)
        assert row[2:6] == ["0", "0", "2", "0"]

    def test_a_folder_without_schemas_is_an_error(self, tmp_path: Path, tokenizer: str) -> None:
        run("bench_maskbench.py", tmp_path, "--tokenizer", tokenizer, code=1)

    def test_ablation(self, folder: Path, tokenizer: str, tmp_path: Path) -> None:
        out = tmp_path / "out.json"
        run("ablation.py", folder, "--tokenizer", tokenizer, "--json", out)
        report = json.loads(out.read_text(encoding="utf-8"))
        names = list(report["rows"])
        assert names[0] == "baseline"
        assert names[-1] == "+ classes"
        assert len(names) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_tools(tokenizer: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = ["--tokenizer", tokenizer, "--tools", 3, "--tokens", 200, "--matchers", 4]
    run("bench_tools.py", *options, "--engines", "tokfold", "xgrammar", "--json", out)
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert [row["form"] for row in rows] == ["triggered tags"] * 2 + ["dispatch"] * 2
    for row in rows:
        assert "failure" not in row
        assert row["start"] > 0
        assert row["calls warm"]["mask"]["p50"] > 0
        assert row["equal, 2 threads"] > 0


class TestApply:
    def test_all_ways_are_measured_and_judged(self, tokenizer: str, tmp_path: Path) -> None:
        pytest.importorskip("torch")
        out = tmp_path / "out.json"
        options = ["--tokenizer", tokenizer, "--grammars", "json", "--device", "cpu", "--steps", 4]
        options += ["--batches", 1, 3, "--json", out, "--results", tmp_path, "--machine", "A (R) b"]
        printed = run("bench_apply.py", *options)
        report = json.loads(out.read_text(encoding="utf-8"))
        cases = [(row["dtype"], row["batch"]) for row in report["rows"]]
        assert cases == [(dtype, rows) for dtype in ("float32", "bfloat16") for rows in (1, 3)]
        for row in report["rows"]:
            for way in ("floor", "class masks", "classes, anew", "token masks", "XGrammar"):
                assert row["times"][way]["p50"] > 0
        (sent,) = report["bytes"]
        assert sent["class masks"] == 4 * -(-sent["classes"] // 32)
        assert sent["numbered"] == 4 <= sent["numbered, first"]
        assert sent["XGrammar"] == 4 * -(-sent["width"] // 32)
        assert len(report["bars"]) == 5
        for bar in report["bars"]:
            assert bar["holds"] == (bar["worst"] >= (40 if "bytes" in bar["bar"] else 2))
            assert bar["bar"] in " ".join(printed.split())
        kept = tmp_path / f"apply-a-b-{report['date']}"
        assert json.loads(Path(f"{kept}.json").read_text(encoding="utf-8")) == report
        assert "| json |" in Path(f"{kept}.md").read_text(encoding="utf-8")

    def test_a_gpu_that_is_not_there_is_an_error(self, tokenizer: str) -> None:
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
        run("bench_apply.py", "--tokenizer", tokenizer, "--device", "cuda", code=1)


class TestOverlap:
    @pytest.mark.parametrize("model", ["llama", "timed"])
    def test_exact_engines_allow_what_comes(
        self, tokenizer: str, tmp_path: Path, model: str
    ) -> None:
        pytest.importorskip("transformers" if model == "llama" else "torch")
        out = tmp_path / "out.json"
        engines = ["none", "tokfold classes", "tokfold tokens", "tokfold serial"]
        engines += ["xgrammar serial", "xgrammar thread"]
        options = ["--tokenizer", tokenizer, "--grammars", "json", "--device", "cpu"]
        options += ["--batches", 1, 3, "--steps", 8, "--runs", 2, "--engines", *engines]
        options += ["--model", model, "--model-ms", 1, "--hidden", 64, "--layers", 1, "--json", out]
        run("bench_overlap.py", *options)
        rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
        assert [(row["batch"], row["engine"]) for row in rows] == [
            (batch, engine) for batch in (1, 3) for engine in engines
        ]
        for row in rows:
            assert row["refused"] == 0
            assert row["steps"] == 8
            assert 0 < row["model"] < row["step"]
            assert (row["mask"] > 0) == (row["engine"] != "none")
            assert row["waiting"] <= row["visible"]
            assert 0 <= row["share"] < 1

    def test_texts_that_end_are_left_alone(self, tmp_path: Path, tokenizer: str) -> None:
        (tmp_path / "short.gbnf").write_text('root ::= "1" [23]', encoding="utf-8")
        options = ["--tokenizer", tokenizer, "--grammar-dir", tmp_path, "--grammars", "short"]
        options += ["--device", "cpu", "--model", "timed", "--model-ms", 0, "--runs", 1]
        run("bench_overlap.py", *options, "--batches", 2, "--steps", 6)


class TestHard:
    ITEMS = 'root ::= "{" item (", " item)* "}"\nitem ::= "word" | [0-9]+ | "\\"" [a-z]* "\\""\n'

    @pytest.fixture
    def hard(self, tmp_path: Path) -> Path:
        valid = tmp_path / "items" / "valid"
        valid.mkdir(parents=True)
        (valid.parent / "items.gbnf").write_text(self.ITEMS, encoding="utf-8")
        text = "{" + ", ".join(f'word, {number}, "abc"' for number in range(12)) + "}"
        (valid / "long.txt").write_text(text, encoding="utf-8")
        (valid / "short.txt").write_text("{1}", encoding="utf-8")
        return tmp_path

    def test_each_engine_has_its_figures(self, tokenizer: str, hard: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.json"
        options = ["--folder", hard, "--tokenizer", tokenizer, "--json", out]
        printed = " ".join(run("bench_hard.py", *options).split())
        report = json.loads(out.read_text(encoding="utf-8"))
        engines = ["stack", "chart", "auto", "auto, classes"]
        assert [(row["grammar"], row["engine"]) for row in report["rows"]] == [
            ("items", engine) for engine in engines
        ]
        for row in report["rows"]:
            assert (row["texts"], row["limits"], row["refused"]) == (2, 0, 0)
            assert row["misses"] == 0
            assert row["tokens"] > 100
            for part in ("mask", "accept"):
                for sight in ("first", "warm"):
                    assert 0 < row[sight][part]["p50"] <= row[sight][part]["max"]
            assert row["growth"] > 0
            assert row["network"] > 0
            assert row["bytes"] > 0
            assert row["matcher_bytes"] > 0
            assert f"items {row['engine']}" in printed
        assert list(report["compared"]["items"]) == engines
        assert report["rows"][2]["better"]["mask"] > 0
        assert report["rows"][3]["without"] > 0
        assert report["rows"][3]["classes"] > 0
        assert "valid texts refused" not in printed

    def test_a_missed_bar_is_a_line(self, tokenizer: str, hard: Path) -> None:
        (hard / "items" / "items.gbnf").unlink()
        (hard / "items" / "make.py").write_text(f"print({self.ITEMS!r})", encoding="utf-8")
        (hard / "items" / "valid" / "wrong.txt").write_text("{1, 2", encoding="utf-8")
        options = ["--folder", hard, "--tokenizer", tokenizer, "--texts", 3, "--max-tokens", 9]
        printed = run("bench_hard.py", "items", *options)
        assert "items, auto: wrong.txt, it may not end\n" in printed
        assert "missed: valid texts refused, auto, at most 0: items 1\n" in printed
        assert "missed: valid texts refused, auto, classes, at most 0: items 1\n" in printed

    def test_what_takes_too_long_is_a_row(self, tokenizer: str, hard: Path) -> None:
        options = ["--folder", hard, "--tokenizer", tokenizer, "--timeout", 0]
        printed = run("bench_hard.py", *options)
        assert "items, stack: out of time after 0 s, at: starting\n" in printed
        assert "missed: figures of items, auto: out of time after 0 s, at: starting\n" in printed

    @pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process")
    def test_an_interrupt_ends_it(self, tokenizer: str, hard: Path) -> None:
        begun = hard / "begun"
        (hard / "items" / "items.gbnf").unlink()
        text = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(60)\n"
        (hard / "items" / "make.py").write_text(text, encoding="utf-8")
        script = str(ROOT / "benches" / "python" / "bench_hard.py")
        command = [sys.executable, script, "--folder", str(hard), "--tokenizer", tokenizer]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        with processes.start(command, env=environment) as process:
            processes.until(begun.exists, process)
            process.send_signal(signal.SIGINT)
            _, printed = process.communicate(timeout=processes.DEADLINE_S)
        assert process.returncode == 130
        assert printed == "\ninterrupted; what was measured before:\n"

    def test_faults_are_errors(self, tokenizer: str, hard: Path) -> None:
        options = ["--folder", hard, "--tokenizer", tokenizer]
        message = run("bench_hard.py", "others", *options, code=1)
        assert message == f"error: {hard} holds no others; it has items\n"
        message = run("bench_hard.py", "--folder", hard / "items", code=1)
        assert "holds no grammar: neither NAME/NAME.gbnf" in message
        (hard / "sitecustomize.py").write_text(
            "import sys\nsys.modules['llguidance'] = None\n", encoding="utf-8"
        )
        path = f"{hard}{os.pathsep}{ROOT / 'python'}"
        message = run("bench_hard.py", *options, "--engines", "llguidance", code=1, PYTHONPATH=path)
        assert message == (
            "error: --engines llguidance needs the package 'llguidance', which is not installed: "
            "pip install ./laboratory in a checkout of tokfold\n"
        )


def test_charts_on_a_gpu_say_when_there_is_none() -> None:
    torch = pytest.importorskip("torch", minversion="2.4")
    pytest.importorskip("triton")
    printed = run("bench_chart_gpu.py", "--check") if torch.cuda.is_available() else ""
    if not printed:
        assert "no GPU" in run("bench_chart_gpu.py")
        printed = run("bench_chart_gpu.py", "--check", TRITON_INTERPRET="1")
    assert "12 steps of 2 texts and a mask of" in printed
    assert "as on the CPU" in printed


@pytest.mark.skipif(not LONG, reason="minutes: TOKFOLD_HYPOTHESIS=long")
def test_what_a_gpu_proves_without_one(tmp_path: Path, tokenizer: str) -> None:
    command = [sys.executable, ROOT / "benches" / "device" / "run.py", "--small", "--out", tmp_path]
    command += ["--tokenizer", tokenizer]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    result = processes.run(command, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    parts = json.loads((tmp_path / "device.json").read_text())["parts"]
    assert [part["name"] for part in parts] == ["charts", "gather", "loop", "generate"]
    assert {part["result"] for part in parts} == {"passed"}


def test_a_part_that_is_stopped_keeps_its_figures(tmp_path: Path) -> None:
    script = f"""
import signal, sys
sys.path.insert(0, {str(ROOT / "benches" / "python")!r})
import bench_common as common
report = {{"rows": []}}
with common.stoppable():
    common.add(report, {{"name": "one"}})
    signal.raise_signal(signal.SIGTERM)
    common.add(report, {{"name": "two"}})
print(report)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    result = processes.run([sys.executable, "-c", script], env=environment)
    assert result.stdout == "{'rows': [{'name': 'one'}]}\n", result.stderr
    assert "stopped: these are the figures so far" in result.stderr


def test_the_first_forbidden_byte_of_an_order_is_told(tmp_path: Path) -> None:
    tests = [{"valid": True, "data": data} for data in ({"b": [], "a": 2}, {"a": {"b": 1}}, 3)]
    case = {"schema": {"properties": {"a": {}, "b": {}}}, "tests": tests}
    (tmp_path / "case.json").write_text(json.dumps(case), encoding="utf-8")
    lines = run("bench_key_order.py", tmp_path).splitlines()
    rows = {tuple(cells[:3]): cells[4::2] for line in lines if len(cells := line.split()) == 12}
    asked = {way[1:]: shares for way, shares in rows.items() if way[0] == "given"}
    assert asked == {
        ("schema", "open"): ["0.0", "100.0", "0.0", "0.0"],
        ("schema", "closed"): ["0.0", "0.0", "100.0", "0.0"],
        ("any", "open"): ["100.0", "0.0", "0.0", "0.0"],
        ("any", "closed"): ["100.0", "0.0", "0.0", "0.0"],
    }
