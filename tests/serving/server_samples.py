"""A small tokenizer, requests of all kinds with texts, and what a mask should be."""

from __future__ import annotations

import json
import os
import random
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
pytest.importorskip("xgrammar")

import tokfold  # noqa: E402
from support import processes  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAD, EOS, THINK, END_OF_THINK, TOOL = range(5)
SPECIAL = ["<pad>", "</s>", "<think>", "</think>", "<tool_call>"]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
TEXT = '{"name": "Ada é", "age": 36}'
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<tool_call>"],
        "tags": [
            {
                "type": "tag",
                "begin": "<tool_call>",
                "content": {"type": "json_schema", "json_schema": SCHEMA},
                "end": "</tool_call>",
            }
        ],
    },
}
OLD_TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<f>", "schema": SCHEMA, "end": "</f>"}],
    "triggers": ["<f"],
}
EBNF = 'root ::= "[" (root ("," root)*)? "]" | [a-z]+ "é"?'


@dataclass(frozen=True)
class Sample:
    """A request, a text that it takes, and the same grammar by tokfold alone."""

    kind: str
    spec: str
    text: str

    def grammar(self, vocabulary: tokfold.Vocabulary) -> tokfold.Grammar:
        if self.kind in ("json", "json_object"):
            schema = self.spec or '{"type": "object"}'
            return tokfold.Grammar.from_json_schema(schema)
        if self.kind == "regex":
            return tokfold.Grammar.from_regex(self.spec)
        if self.kind == "lark":
            return tokfold.Grammar.from_lark(self.spec)
        if self.kind == "choice":
            texts = " | ".join(json.dumps(text) for text in json.loads(self.spec))
            return tokfold.Grammar.from_ebnf(f"root ::= {texts}")
        if self.kind == "structural_tag":
            tag = json.loads(self.spec)
            if "structures" in tag:
                (old,) = tag["structures"]
                content = {"type": "json_schema", "json_schema": old["schema"]}
                tags = [{"type": "tag", "begin": old["begin"], "content": content}]
                tags[0]["end"] = old["end"]
                tag = {"type": "triggered_tags", "triggers": tag["triggers"], "tags": tags}
                tag = {"type": "structural_tag", "format": tag}
            return tokfold.Grammar.from_structural_tag(tag, vocabulary)
        return tokfold.Grammar.from_ebnf(self.spec)

    @property
    def takes_special(self) -> bool:
        return self.kind in ("structural_tag", "lark", "full_assistant_ebnf")


SAMPLES = [
    Sample("json", json.dumps(SCHEMA), TEXT),
    Sample("json_object", "", TEXT),
    Sample("regex", r"[0-9]{2,4}-(é|x)*", "2024-éx"),
    Sample("ebnf", EBNF, "[ab,[cdé,[]]]"),
    Sample(
        "full_assistant_ebnf", 'root ::= "<think>" [a-z ]* "</think>" [a-z]+', "<think>so</think>it"
    ),
    Sample("lark", 'start: "a" WORD\nWORD: /[b-d]+/', "abcd"),
    Sample("choice", json.dumps(["yes", 'the "é"\n']), 'the "é"\n'),
    Sample("structural_tag", json.dumps(TAG), f"I call: <tool_call>{TEXT}</tool_call> now"),
    Sample("structural_tag", json.dumps(OLD_TAG), f"I call: <f>{TEXT}</f> now"),
]


def run_with_entry_points(folder: Path, code: str, **variables: str) -> str:
    """What a new process prints in which tokfold's entry points are there, installed or not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    written = []
    for group, entries in project["entry-points"].items():
        written += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    info = folder / "tokfold-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tokfold\nVersion: 0\n")
    (info / "entry_points.txt").write_text("\n".join(written))
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    result = processes.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path, **variables}
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


def make_tokenizer():
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=SPECIAL,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator([TEXT, "I call: <f> now", "2024-éx"] * 20, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<pad>", eos_token="</s>"
    )


TOKENIZER = make_tokenizer()
SIZE = len(TOKENIZER) + 21
"""The model's output layer is wider than the vocabulary, and no multiple of 32."""
WORDS = -(-SIZE // 32)


def truth(sample: Sample) -> tokfold.Matcher:
    """A matcher of tokfold's own for a request."""
    vocabulary = tokfold.Vocabulary.from_huggingface(TOKENIZER, SIZE, [EOS])
    if sample.takes_special:
        vocabulary = vocabulary.replace(special_token_ids=())
    compiled = tokfold.compile(sample.grammar(vocabulary), vocabulary, classes="never")
    return tokfold.Matcher(compiled)


def mask_of(matcher: tokfold.Matcher) -> np.ndarray:
    """Shape ``(WORDS,)``: what the matcher allows next."""
    mask = tokfold.allocate_bitmask(1, SIZE)
    matcher.fill_bitmask(mask)
    return mask[0]


def tokens(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


def allows(mask: np.ndarray, token_id: int) -> bool:
    return bool(mask[token_id // 32] >> (token_id % 32) & 1)


def some_refused(mask: np.ndarray, seed: int, count: int = 8) -> list[int]:
    refused = [token_id for token_id in range(SIZE) if not allows(mask, token_id)]
    return random.Random(seed).sample(refused, min(count, len(refused)))
