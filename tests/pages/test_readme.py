"""README.md and the pages that its parts moved to say what is so: code runs, commands exist.

The blocks of Python under one heading are one program. They run in a folder of their own that
holds a small model under ``path/to/model``, the path that the pages use; a ``text`` block that
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
PAGES = ("README.md", "CONTRIBUTING.md", "docs/benchmarks.md", "docs/install.md")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND_LINE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
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


COMMANDS = {"classes", "check", "explain", "walk", "replay", "inspect", "report"}
RUN = ("README.md", "docs/from-xgrammar.md", "docs/own-loop.md", "docs/token-classes.md")
PROGRAMS = list(
    dict.fromkeys(
        (page, block.heading)
        for page in RUN
        for block in blocks((ROOT / page).read_text(encoding="utf-8"))
        if block.language == "python"
    )
)
OBJECT = "From a model folder to an object"


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
        max_position_embeddings=512,
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


@pytest.mark.parametrize(("page", "heading"), PROGRAMS)
def test_python(
    page: str, heading: str, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xgrammar")
    pytest.importorskip("pydantic")
    monkeypatch.chdir(model_folder)
    namespace: dict[str, object] = {"__name__": "page"}
    printed, all_printed = "", ""
    for block in blocks((ROOT / page).read_text(encoding="utf-8")):
        if block.heading == heading and block.language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                # Models need their annotations as values.
                program = compile(block.text, f"{page}, {heading}", "exec", dont_inherit=True)
                exec(program, namespace)
            printed = output.getvalue()
            all_printed += printed
        elif block.heading == heading and block.language == "text":
            assert printed == block.text
    if heading == OBJECT:  # with transformers, and in an own loop: a model of random weights
        answers = all_printed.splitlines()
        assert len(answers) == 2
        assert all(re.fullmatch(r"Answer\(name=.*, year=-?\d+\)", answer) for answer in answers)


def test_the_first_model_is_soon_found() -> None:
    """A stranger finds a program on the first screen, and the whole page in a few."""
    lines = README.splitlines()
    assert len(lines) <= 150
    assert lines.index("```python") + 1 <= 25
    assert next(i for i, line in enumerate(lines, 1) if "from_pretrained(" in line) <= 40


@pytest.mark.parametrize("command", ["check", "explain"])
def test_command_prints_what_is_shown(command: str) -> None:
    pytest.importorskip("typer")
    shown_blocks = (block.text for block in blocks(COMMAND_LINE))
    (shown,) = (text for text in shown_blocks if text.startswith(f"$ tokfold {command}"))
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
    found = [line for line in commands(COMMAND_LINE, "tokfold") if "demo" not in line]
    assert {shlex.split(line)[1] for line in found} == COMMANDS
    (cases,) = (b.text for b in blocks(COMMAND_LINE) if b.language == "json")
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


def test_extras_that_are_named_exist() -> None:
    import tomllib

    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    text = README + (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    named = re.findall(r'"\.\[([a-z,-]+)\]"', text)
    assert named
    assert {name for group in named for name in group.split(",")} <= set(extras)
