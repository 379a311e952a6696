"""The command ``tokfold fidelity``."""

from __future__ import annotations

import json
import math

import pytest
import typer
import typer.testing
from tokfold.cli.app import _Group
from tokfold.laboratory.commands.fidelity import fidelity
from tokfold.laboratory.fidelity import ExactSurvival, MarkovModel, byte_vocabulary

TEXTS = b"[1,2]\n[]\n[3]\n[1,[2]]\n{}\n[\n"
GRAMMAR = 'root ::= "[" (item ("," item)*)? "]"\nitem ::= [0-9] | root\n'


@pytest.fixture
def files(tmp_path):
    (tmp_path / "lists.gbnf").write_text(GRAMMAR)
    (tmp_path / "texts").write_bytes(TEXTS)
    return tmp_path


def run(*arguments, code=0):
    app = typer.Typer(cls=_Group)
    app.command()(fidelity)
    app.command()(lambda: None)
    result = typer.testing.CliRunner().invoke(app, ["fidelity", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_json_has_the_numbers(files):
    result = run(
        files / "lists.gbnf", "--model-text", files / "texts", "--lines", "--exact", "--json"
    )
    document = json.loads(result.stdout)
    sequences = [list(line) for line in TEXTS.splitlines()]
    model = MarkovModel.from_sequences(byte_vocabulary(), sequences, 0.01)
    exact = ExactSurvival(GRAMMAR, model)
    assert document["exact"]["log_h"] == pytest.approx(exact.log_h)
    assert document["exact"]["is_proved_unambiguous"]
    assert abs(document["log_h"]["log_h"] - exact.log_h) < 1
    assert document["log_h"]["low"] <= document["log_h"]["log_h"] <= document["log_h"]["high"]
    assert document["exact"]["total_variation"]["low"] > 0
    assert len(document["texts"]) == 3
    assert document["cut"] == document["dead"] == 0


@pytest.mark.parametrize("sampler", ["mask", "importance", "smc", "exact"])
def test_samplers(files, sampler):
    result = run(
        files / "lists.gbnf", "--model-text", files / "texts", "--lines", "--sampler", sampler
    )
    assert "drawn with masks" in result.stdout
    assert "log h" in result.stdout
    assert ("exact log h" in result.stdout) == (sampler == "exact")
    assert '"[' in result.stdout


def test_a_tokenizer_and_a_picture(files):
    from cli.cli_runner import TEXTS as TOKENS
    from cli.cli_runner import write_tokenizer

    tokenizer = write_tokenizer(files / "tokenizer.json", [*TOKENS, b"[", b"]", b"],"])
    (files / "texts").write_bytes(b"[1,[12],1]")
    picture = files / "masses.svg"
    pytest.importorskip("matplotlib")
    result = run(
        files / "lists.gbnf",
        *("--model-text", files / "texts", "-t", tokenizer, "--plot", picture, "--max-tokens", 4),
    )
    assert "cut" in result.stdout
    assert picture.read_text().lstrip().startswith("<?xml")
    result = run(
        files / "lists.gbnf",
        *("--model-text", files / "texts", "--plot", files / "masses.nothing"),
        code=2,
    )
    assert "masses.nothing" in result.stderr


def test_a_model_of_transformers(files):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    torch.manual_seed(0)
    pieces = {chr(c): i for i, c in enumerate(b"[]0123456789,ab")} | {"</s>": 15}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(pieces, []))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    reader = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>")
    config = transformers.GPT2Config(
        vocab_size=16, n_positions=64, n_embd=8, n_layer=1, n_head=1, eos_token_id=15
    )
    reader.save_pretrained(files / "model")
    transformers.GPT2LMHeadModel(config).save_pretrained(files / "model")
    result = run(
        files / "lists.gbnf",
        *("--transformers", files / "model", "--prompt", "ab", "--sampler", "smc"),
        *("--samples", 16, "--max-tokens", 20, "--json"),
    )
    document = json.loads(result.stdout)
    assert document["model"].endswith("after 2 tokens")
    assert math.isfinite(float(document["log_h"]["log_h"]))


def test_bad_input(files):
    grammar, text = files / "lists.gbnf", files / "texts"
    assert "name one model" in run(grammar, code=2).stderr
    both = run(grammar, "--model-text", text, "--transformers", "x", code=2)
    assert "name one model" in both.stderr
    exact = run(grammar, "--transformers", "x", "--exact", code=2)
    assert "Markov" in exact.stderr
    (files / "operators.gbnf").write_text('root ::= root "+" root | "1"')
    ambiguous = run(files / "operators.gbnf", "--model-text", text, "--exact", code=2)
    assert "ambiguous" in " ".join(ambiguous.stderr.split())
    assert "No such file" in run(grammar, "--model-text", files / "none", code=2).stderr
    (files / "empty").write_bytes(b"")
    assert "no text" in run(grammar, "--model-text", files / "empty", "--lines", code=2).stderr


@pytest.mark.parametrize(
    ("given", "idle", "needed"),
    [
        (("--transformers", "x", "--lines"), "--lines", "--model-text"),
        (("--transformers", "x", "--smoothing", 0.5), "--smoothing", "--model-text"),
        (("--model-text", "texts", "--prompt", "ab"), "--prompt", "--transformers"),
        (("--model-text", "texts", "--temperature", 0.5), "--temperature", "--transformers"),
        (("--model-text", "texts", "--assume-unambiguous"), "--assume-unambiguous", "--exact"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(files, monkeypatch, given, idle, needed):
    monkeypatch.chdir(files)
    result = run("lists.gbnf", *given, code=2)
    assert f"{idle} is for {needed}, which is not given" in " ".join(result.stderr.split())
    assert not result.stdout


def test_options_that_have_an_effect_are_taken(files, monkeypatch):
    monkeypatch.chdir(files)
    counted = ("lists.gbnf", "--model-text", "texts", "--samples", 4, "--seed", 1, "--lines")
    run(*counted, "--smoothing", 0.5)
    run(*counted, "--exact", "--assume-unambiguous")
    run(*counted, "--sampler", "exact", "--assume-unambiguous")


def test_standard_input_is_read_once(files, monkeypatch):
    monkeypatch.chdir(files)
    for given in (("-", "--model-text", "-"), ("lists.gbnf", *("--model-text", "-") * 2)):
        message = "only one of grammar and texts can come from standard input"
        assert message in " ".join(run(*given, code=2).stderr.split())
