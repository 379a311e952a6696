"""``examples/serving`` as written, with a stand-in for the engine: it has no model to load here.

The engine asks tokfold for its grammar as the server would, and "generates" a text by it.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import sglang
import tokfold.vllm
import vllm
from serving.server_samples import EOS, SIZE, TEXT, TOKENIZER, tokens
from sglang.srt.constrained.base_grammar_backend import GRAMMAR_BACKEND_REGISTRY
from vllm.sampling_params import SamplingParams
from vllm.v1.structured_output.backend_types import StructuredOutputOptions

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "serving"


def run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", [name, "path/to/model", "A person, as JSON:"])
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    return capsys.readouterr().out.strip()


def test_all_are_here() -> None:
    assert [file.name for file in sorted(FOLDER.glob("*"))] == [
        "sglang_generate.py",
        "vllm_generate.py",
    ]


def test_sglang(monkeypatch, capsys) -> None:
    class Engine:
        def __init__(self, model_path: str, grammar_backend: str) -> None:
            make = GRAMMAR_BACKEND_REGISTRY[grammar_backend]
            self.backend = make(SimpleNamespace(), TOKENIZER, SIZE, {EOS})

        def generate(self, prompt: str, sampling_params: dict) -> dict:
            grammar = self.backend.dispatch_json(sampling_params["json_schema"])
            for token_id in [*tokens(TEXT), EOS]:
                grammar.accept_token(token_id)
            assert grammar.is_terminated()
            return {"text": grammar.conversation.matcher.text.decode()}

        def shutdown(self) -> None:
            pass

    monkeypatch.setattr(sglang, "Engine", Engine, raising=False)
    assert run("sglang_generate.py", monkeypatch, capsys) == TEXT


def test_vllm(monkeypatch, capsys) -> None:
    class Model:
        def __init__(self, path: str) -> None:
            assert hasattr(SamplingParams._validate_structured_outputs, "_tokfold_wraps")

        def generate(self, prompts: list[str], options: SimpleNamespace) -> list:
            from tokfold.vllm.backend import TokfoldBackend

            backend = TokfoldBackend(SimpleNamespace(), tokenizer=TOKENIZER, vocab_size=SIZE)
            schema = json.dumps(options.structured_outputs.json)
            grammar = backend.compile_grammar(StructuredOutputOptions.JSON, schema)
            assert grammar.accept_tokens("r", [*tokens(TEXT), EOS])
            text = grammar.conversation.matcher.text.decode()
            return [SimpleNamespace(outputs=[SimpleNamespace(text=text)])]

    monkeypatch.setattr(vllm, "LLM", Model, raising=False)
    monkeypatch.setattr(vllm, "SamplingParams", SimpleNamespace, raising=False)
    try:
        assert run("vllm_generate.py", monkeypatch, capsys) == TEXT
    finally:
        tokfold.vllm.uninstall()
