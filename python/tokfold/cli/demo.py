"""``tokfold demo``: a JSON Schema decoded with and without masks, on a vocabulary made here.

The "model" is a table of scores: each token has one after each other token, drawn once from a seed.
It knows nothing of JSON, so what comes out right comes out right because of the masks.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console

from tokfold import CompiledGrammar, Grammar, Matcher, Vocabulary, allocate_bitmask, compile
from tokfold.cli.console import print_json, stdout
from tokfold.cli.render import escaped, number, seconds

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]+$", "maxLength": 12},
        "born": {"type": "string", "format": "date"},
        "height": {"type": "number", "minimum": 0.5, "maximum": 2.5},
        "languages": {
            "type": "array",
            "items": {"enum": ["Rust", "Python", "C"]},
            "minItems": 1,
            "maxItems": 3,
        },
    },
    "required": ["name", "born", "height", "languages"],
    "additionalProperties": False,
}
"""What pydantic writes of a model of a person, without its titles."""

WORDS = (
    *("the", "and", " is", "er", "an", "on", "ing", "Ada", "Grace", "Alan", "Lin", "ar", "en"),
    *('{"', '"}', '": "', '": ', '", "', ', "', '["', '"]', "name", "born", "height", "languages"),
    *("Rust", "Python", "19", "20", "18", "-0", "-1", "-2", "0.", "1.", "2.", " was", " born in"),
)
SEED = 7
MAX_TOKENS = 60
SHOWN = 24
"""Tokens that are listed."""


@dataclass
class _Text:
    """A text, and what its masks were."""

    tokens: list[int]
    allowed: list[int]
    """How many tokens each mask allowed."""
    seconds: list[float]
    """What each mask took."""


def demo(
    real: Annotated[
        bool,
        typer.Option(
            "--real",
            help="Fold a vocabulary of 131,072 tokens under a grammar of C++ instead, and compare "
            "the masks with XGrammar's; under a minute. Needs the extra demo.",
        ),
    ] = False,
    compared: Annotated[
        int | None,
        typer.Option(
            "--steps",
            min=1,
            metavar="N",
            help="With --real: masks to compare with plain XGrammar, spread over the text. Without "
            "it: as many as 25 seconds allow.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Draws the scores of the model.")
    ] = SEED,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Decode a JSON Schema with and without masks, on a vocabulary made here.

    A model that knows nothing writes what the schema of a person allows,
    once each token is chosen of those that the mask allows. Needs no files,
    no network, and a moment.

    Exit code: 0 the text satisfies the schema; 1 it does not, which must
    not be.

    [bold]Examples[/bold]
      tokfold demo
      tokfold demo --seed 1
      tokfold demo --real
    """
    if real:
        from tokfold.cli.real_demo import show

        show(compared, as_json=as_json)
        return
    vocabulary = small_vocabulary()
    began = time.perf_counter()
    grammar = Grammar.from_json_schema(SCHEMA)
    compiled = compile(grammar, vocabulary, classes="never")
    compile_seconds = time.perf_counter() - began
    scores = np.random.default_rng(seed).random((len(vocabulary), len(vocabulary)))
    free = vocabulary.decode(_written(None, scores, vocabulary).tokens)
    masked = _written(compiled, scores, vocabulary)
    text = vocabulary.decode(masked.tokens)
    matcher = Matcher(compiled)
    is_right = matcher.accept_bytes(text) and matcher.is_accepting
    document = {
        "schema": SCHEMA,
        "vocabulary": {"tokens": len(vocabulary)},
        "without_masks": escaped(free),
        "with_masks": text.decode(),
        "satisfies": is_right,
        "tokens": [escaped(vocabulary[token]) for token in masked.tokens],
        "allowed": masked.allowed,
        "seconds": {"compile": compile_seconds, "masks": sum(masked.seconds)},
    }
    if as_json:
        print_json(document)
    else:
        _show(stdout(), document)
    if not is_right:
        raise typer.Exit(1)


def small_vocabulary() -> Vocabulary:
    """Printable ASCII, some words, and a token that ends the text."""
    tokens = [*(bytes([byte]) for byte in range(0x20, 0x7F)), *map(str.encode, WORDS)]
    return Vocabulary([*tokens, b"</s>"], [len(tokens)], name="demo")


def _written(
    compiled: CompiledGrammar | None, scores: npt.NDArray[np.float64], vocabulary: Vocabulary
) -> _Text:
    """The text that is written by taking the token with the best score each time.

    A token loses some score each time that it is taken, so that the text goes on.
    """
    text = _Text([], [], [])
    matcher = None if compiled is None else Matcher(compiled, max_tokens=MAX_TOKENS)
    row = allocate_bitmask(1, len(vocabulary))
    (stop,) = vocabulary.stop_token_ids
    taken = np.zeros(len(vocabulary))
    for _ in range(MAX_TOKENS):
        now = scores[text.tokens[-1] if text.tokens else stop] - taken
        if matcher is not None:
            began = time.perf_counter()
            matcher.fill_bitmask(row)
            text.seconds.append(time.perf_counter() - began)
            bits = np.unpackbits(row.view(np.uint8)[0], count=len(now), bitorder="little")
            text.allowed.append(int(bits.sum()))
            now = np.where(bits, now, -np.inf)
        token = int(now.argmax())
        if token == stop:
            break
        if matcher is not None:
            matcher.accept_token(token)
        text.tokens.append(token)
        taken[token] += 0.2
    return text


def _show(console: Console, found: dict[str, Any]) -> None:
    members = found["schema"]["properties"]
    console.print("A schema, as pydantic writes it of a model of a person:\n")
    for name, schema in members.items():
        console.print(f"  {name:<10} {json.dumps(schema)}", soft_wrap=True)
    size = found["vocabulary"]["tokens"]
    console.print(f"\nA model that knows nothing, over {number(size)} tokens, without masks:\n")
    console.print(f"  {found['without_masks']}", soft_wrap=True)
    console.print("\nThe same model, each token the best of those that the mask allows:\n")
    console.print(f"  {found['with_masks']}", soft_wrap=True)
    console.print("\n  token          allowed", style="bold")
    for token, allowed in list(zip(found["tokens"], found["allowed"], strict=False))[:SHOWN]:
        console.print(f"  {chr(34) + token + chr(34):<14} {allowed:>3} of {number(size)}")
    masks = len(found["allowed"])
    if masks > SHOWN:
        console.print(f"  ... and {masks - SHOWN} more")
    took = found["seconds"]
    console.print(
        f"\nCompiled in {seconds(took['compile'])}; {masks} masks in {seconds(took['masks'])}. "
        + ("It satisfies the schema." if found["satisfies"] else "IT DOES NOT SATISFY THE SCHEMA.")
    )
