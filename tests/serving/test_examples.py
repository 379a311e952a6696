"""What ``examples`` and ``docs/integrations.md`` show runs, where its packages are installed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import pytest
from serving import tiny_gguf
from support import processes

ROOT = Path(__file__).resolve().parents[2]
NEEDS = {
    "own_loop.py": (),
    "transformers_generate.py": ("torch", "transformers", "tokenizers"),
    "mlx_generate.py": ("mlx_lm", "torch", "transformers", "tokenizers"),
    "llama_cpp_generate.py": ("llama_cpp",),
}


def run(name: str, *arguments: object) -> list[str]:
    """The lines that an example prints."""
    for package in NEEDS[name]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    result = processes.run(
        [sys.executable, ROOT / "examples" / name, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONIOENCODING": "utf-8"},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_all_are_here() -> None:
    files = sorted((ROOT / "examples").glob("*.py"))
    assert [file.name for file in files] == sorted(NEEDS)
    for file in files:
        assert len(file.read_text(encoding="utf-8").splitlines()) < 60


def test_own_loop() -> None:
    text, counts = run("own_loop.py")
    assert list(json.loads(text)) == ["name", "age"]
    tokens, calls = map(int, re.findall(r"\d+", counts))
    assert 0 < calls < tokens


def test_transformers() -> None:
    alone, together = (eval(line) for line in run("transformers_generate.py"))
    for text in (alone[0], together[0]):
        assert list(json.loads(text)) == ["name", "age", "likes"]
    assert together[1] in ("yes.", "no.", "perhaps.")


def test_mlx(tmp_path) -> None:
    folder = tmp_path / "model"
    if all(importlib.util.find_spec(package) for package in NEEDS["mlx_generate.py"]):
        save_model(folder)
    first, *batch = run("mlx_generate.py", folder, "A person:")
    assert list(json.loads(first)) == list(json.loads(batch[0])) == ["name", "age"]
    assert batch[1:] in (["yes."], ["no."], ["perhaps."])


def test_llama_cpp(tmp_path) -> None:
    words = [" ", *"abcdefghij0123456789", '": "', '{"', "name", "age"]
    path = tiny_gguf.write(tmp_path / "tiny.gguf", words)
    [text] = run("llama_cpp_generate.py", path, "A person:")
    assert list(json.loads(text)) == ["name", "age"]


PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("heading", "example"),
    [
        ("transformers", "transformers_generate.py"),
        ("mlx-lm", "mlx_generate.py"),
        ("llama-cpp-python", "llama_cpp_generate.py"),
    ],
)
def test_page(heading, example, tmp_path, monkeypatch, capsys) -> None:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    code = "\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    for package in NEEDS[example]:
        pytest.importorskip(package)
    folder = tmp_path / "path" / "to"
    folder.mkdir(parents=True)
    if heading == "llama-cpp-python":
        tiny_gguf.write(folder / "model.gguf", [" ", *"yesno."])
    else:
        save_model(folder / "model")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert capsys.readouterr().out.splitlines()[-1] in ("yes.", "no.")


def test_links_of_the_page() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", PAGE) if "://" not in link]
    assert len(links) > 5
    for link in links:
        if link.startswith("#"):
            assert f"\n## {link[1:]}\n" in PAGE
        else:
            assert (ROOT / "docs" / link).exists()


def save_model(folder: Path) -> None:
    """A model of transformers in a folder, with random weights."""
    import tokenizers
    import torch
    import transformers

    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {text: i for i, text in enumerate(["</s>", *alphabet])}
    words = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="</s>")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        bos_token_id=None,
        eos_token_id=0,
    )
    tokenizer.save_pretrained(folder)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
