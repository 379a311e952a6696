"""One call for a model of ``transformers``: draw with masks, and see what they do.

Not imported by the package: ``from tokfold.laboratory.fidelity.hf import sample_transformers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokfold._extras import require
from tokfold.compiler import GrammarCompiler
from tokfold.engine import CompiledGrammar
from tokfold.grammar import Grammar
from tokfold.laboratory.fidelity.errors import ModelError
from tokfold.laboratory.fidelity.samplers import Method, Sample, sample
from tokfold.vocabulary import Vocabulary

__all__ = ["TransformersStepper", "sample_transformers"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class TransformersStepper:
    """A causal language model after a prompt, asked for many sequences side by side.

    All sequences have the same length at any time, so there is no padding. Keys and values are
    kept and follow the sequences; models that keep none are asked for the whole text each time.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - transformers has no type for its models
        prompt_ids: Sequence[int],
        *,
        temperature: float = 1.0,
    ) -> None:
        """Take a model.

        Args:
            model: a causal language model of transformers; it stays in the mode it is in.
            prompt_ids: tokens before the text, at least one (a begin token where there is no
                prompt).
            temperature: the distribution meant is that of the logits over the temperature.

        Raises:
            ModelError: there is no prompt, or the temperature is not above 0.
        """
        if not len(prompt_ids):
            raise ModelError("a model needs a token to begin with: pass its begin token as prompt")
        if not temperature > 0:
            raise ModelError(
                f"the temperature must be above 0, not {temperature}: greedy search draws nothing"
            )
        self._torch = require("torch", "transformers", "tokfold.laboratory.fidelity.hf")
        self._model, self._temperature = model, temperature
        self._prompt = [int(token) for token in prompt_ids]
        self._ids: Any = None
        self._cache: Any = None

    def begin(self, count: int) -> Floats:  # noqa: D102
        torch = self._torch
        prompt = torch.tensor([self._prompt], device=self._model.device)
        with torch.inference_mode():
            out = self._model(input_ids=prompt, use_cache=True)
            self._ids = prompt.repeat(count, 1)
            cache = getattr(out, "past_key_values", None)
            movable = hasattr(cache, "batch_repeat_interleave") and hasattr(cache, "reorder_cache")
            self._cache = cache if movable else None
            if self._cache is not None:
                self._cache.batch_repeat_interleave(count)
        return np.repeat(self._last(out.logits), count, axis=0)

    def step(self, parents: Integers, tokens: Integers) -> Floats:  # noqa: D102
        torch, device = self._torch, self._model.device
        places = torch.tensor(parents, device=device)
        new = torch.tensor(tokens, device=device)[:, None]
        with torch.inference_mode():
            self._ids = torch.cat([self._ids[places], new], dim=1)
            if self._cache is None:
                out = self._model(input_ids=self._ids, use_cache=False)
            else:
                self._cache.reorder_cache(places)
                out = self._model(input_ids=new, past_key_values=self._cache, use_cache=True)
                self._cache = out.past_key_values
        return self._last(out.logits)

    def _last(self, logits: Any) -> Floats:  # noqa: ANN401 - torch may be missing
        last = logits[:, -1].double() / self._temperature
        values: Floats = last.cpu().numpy()
        return values


def sample_transformers(
    model: Any,  # noqa: ANN401 - transformers has no type for its models
    grammar: Grammar | CompiledGrammar | str,
    prompt: str | Sequence[int],
    *,
    tokenizer: Any = None,  # noqa: ANN401 - nor for its tokenizers
    method: Method = "smc",
    count: int = 64,
    max_tokens: int = 256,
    temperature: float = 1.0,
    seed: int = 0,
) -> Sample:
    """Draw texts of a grammar's language from a model, and estimate what masks do to it.

    Args:
        model: a causal language model.
        grammar: the grammar, or one compiled for the model's vocabulary.
        prompt: text for the tokenizer, or tokens.
        tokenizer: the model's; needed unless the grammar is compiled and the prompt is tokens.
        method: ``mask``, ``importance`` or ``smc``; see
            :mod:`tokfold.laboratory.fidelity.samplers`.
        count: sequences, which is the batch that the model is asked with.
        max_tokens: where sequences are cut.
        temperature: of the distribution that is meant.
        seed: of the random numbers.

    Raises:
        ModelError: no tokenizer where one is needed, or see :class:`TransformersStepper`.
        DeadEndError, LimitExceededError, ValueError: as
            :func:`tokfold.laboratory.fidelity.sample`.
    """
    if tokenizer is None and not (
        isinstance(grammar, CompiledGrammar) and not isinstance(prompt, str)
    ):
        raise ModelError(
            "a tokenizer is needed for a prompt that is text and a grammar that is not compiled"
        )
    if not isinstance(grammar, CompiledGrammar):
        vocabulary = Vocabulary.from_huggingface(tokenizer, size=model.config.vocab_size)
        if isinstance(grammar, str):
            grammar = Grammar.from_ebnf(grammar)
        with GrammarCompiler(vocabulary) as compiler:
            grammar = compiler.compile_grammar(grammar)
    ids = tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else prompt
    stepper = TransformersStepper(model, list(ids), temperature=temperature)
    return sample(stepper, grammar, method=method, count=count, max_tokens=max_tokens, seed=seed)
