"""README.md says what is so: its code runs, its commands exist, its links lead somewhere.

The blocks of Python under one heading are one program. They run in a folder of their own that
holds a small model under ``path/to/model``, the path that the README uses; a ``text`` block that
follows is what they must print.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import processes

pytest.importorskip("tokfold._core")

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "CONTRIBUTING.md")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the heading that it stands under."""

    language: str
    text: str
    heading: str


def blocks(page: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(page):
        headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page[: match.start()]), re.MULTILINE)
        found.append(Block(match[1], match[2], headings[-1]))
    return found


BLOCKS = blocks(README)
COMMANDS = {"classes", "check", "explain", "walk", "replay", "inspect"}
PROGRAMS = list(dict.fromkeys(b.heading for b in BLOCKS if b.language == "python"))


def commands(page: str, program: str) -> list[str]:
    """Commands of one program in the console blocks, without their comments."""
    lines = (line for block in blocks(page) for line in block.text.splitlines())
    found = (line.removeprefix("$ ").split("  #")[0].strip() for line in lines if line[:2] == "$ ")
    return [line for line in found if line.split()[0] == program]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``path/to/model``: a tokenizer trained on a few words, random weights."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    words = tokenizers.Tokenizer(tokenizers.models.BPE())
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["</s>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words.train_from_iterator(['{"name": "Ada", "age": 36}', "yes. no. [1, 23, [4]]"] * 20, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="</s>")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer) + 20,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )
    root = tmp_path_factory.mktemp("readme")
    folder = root / "path" / "to" / "model"
    folder.mkdir(parents=True)
    tokenizer.save_pretrained(folder)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return root


@pytest.mark.parametrize("heading", PROGRAMS)
def test_python(heading: str, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xgrammar")
    monkeypatch.chdir(model_folder)
    namespace: dict[str, object] = {"__name__": "readme"}
    printed = ""
    for block in (block for block in BLOCKS if block.heading == heading):
        if block.language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(block.text, f"README.md, {heading}", "exec"), namespace)
            printed = output.getvalue()
        elif block.language == "text":
            assert printed == block.text
    if heading == "transformers":
        assert re.search(r"(yes|no)\.$", printed.strip())


@pytest.mark.parametrize("command", ["check", "explain"])
def test_command_prints_what_is_shown(command: str) -> None:
    pytest.importorskip("typer")
    (shown,) = (b.text for b in BLOCKS if b.text.startswith(f"$ tokfold {command}"))
    line, _, expected = shown.partition("\n")
    if "tekken" in line:
        pytest.importorskip("mistral_common")
    result = processes.run(
        [sys.executable, "-m", "tokfold.cli", *shlex.split(line)[2:]], cwd=ROOT, env=environment()
    )
    assert result.returncode == 1, result.stderr
    printed = [line.rstrip() for line in result.stdout.rstrip().splitlines()]
    assert printed == expected.rstrip().splitlines()


def test_commands_of_the_command_line(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    pytest.importorskip("mistral_common")
    found = [line for line in commands(README, "tokfold") if "demo" not in line]
    assert {shlex.split(line)[1] for line in found} == COMMANDS
    (cases,) = (b.text for b in BLOCKS if b.language == "json")
    (tmp_path / "cases.jsonl").write_text(cases, encoding="utf-8")
    for line in found:
        arguments = [
            str(ROOT / word) if word.startswith("grammars/") else word
            for word in shlex.split(line)[1:]
        ]
        result = processes.run(
            [sys.executable, "-m", "tokfold.cli", *arguments],
            cwd=tmp_path,
            env=environment(),
            text=False,
        )
        refused = arguments[0] in ("check", "explain")  # the text that they show is refused
        assert result.returncode == (1 if refused else 0), result.stderr


def environment() -> dict[str, str]:
    import os

    clean = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "COLUMNS")}
    path = str(ROOT / "python")
    return {**clean, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80"}


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_make(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    declared = set(" ".join(re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)).split())
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {line.split()[1] for line in commands(text, "make")}
    named |= set(re.findall(r"`make ([a-z-]+)", text))
    assert named
    assert named <= declared


@pytest.mark.parametrize("page", PAGES)
def test_links(page: str) -> None:
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)]+)\)", text)
    files = [link for link in links if "://" not in link and not link.startswith("#")]
    assert [link for link in files if not (ROOT / link.split("#")[0]).exists()] == []
    anchors = [
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    ]
    assert [link for link in links if link[0] == "#" and link[1:] not in anchors] == []


def test_extras_that_are_named_exist() -> None:
    import tomllib

    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    named = re.findall(r'"\.\[([a-z,]+)\]"', README)
    assert {name for group in named for name in group.split(",")} <= set(extras)
