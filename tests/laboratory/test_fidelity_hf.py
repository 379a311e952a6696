"""One call for a model of transformers: keys and values follow the sequences, and h is right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from laboratory.fidelity_samples import VOCABULARY
from tokfold import Grammar
from tokfold import compile as compile_grammar
from tokfold.laboratory.fidelity import ModelError, sample

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXT = 'root ::= "a" ("b" | "(" "b" ")")? | "bb)"'


def _gpt2():
    config = transformers.GPT2Config(
        vocab_size=12,
        n_positions=64,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=8,
        eos_token_id=8,
    )
    return transformers.GPT2LMHeadModel(config)


def _llama():
    config = transformers.LlamaConfig(
        vocab_size=12,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
    )
    return transformers.LlamaForCausalLM(config)


@pytest.fixture(scope="module", params=[_gpt2, _llama])
def model(request):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the models are too small for more to help
    torch.manual_seed(0)
    made = request.param().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.mul_(8)  # sharper than at random: masses differ
    yield made
    torch.set_num_threads(threads)


def _logits(model, prompt, tokens):
    ids = torch.tensor([[*prompt, *tokens]])
    with torch.inference_mode():
        return model(input_ids=ids).logits[0, -1].double().numpy()


def test_the_stepper_says_what_the_model_says(model):
    from tokfold.laboratory.fidelity.hf import TransformersStepper

    random = np.random.default_rng(0)
    for has_cache in (True, False):
        stepper = TransformersStepper(model, [8, 0], temperature=0.5)
        rows = stepper.begin(4)
        if not has_cache:
            stepper._cache = None
        prefixes = [()] * 4
        for _ in range(3):
            for row, prefix in zip(rows, prefixes, strict=True):
                expected = _logits(model, [8, 0], prefix) / 0.5
                np.testing.assert_allclose(row, expected, atol=1e-3)
            parents = random.integers(0, 4, 4)
            tokens = random.integers(0, 12, 4)
            prefixes = [
                (*prefixes[parent], int(token))
                for parent, token in zip(parents, tokens, strict=True)
            ]
            rows = stepper.step(parents, tokens)


def test_one_call_estimates_h(model):
    from tokfold.laboratory.fidelity.hf import sample_transformers

    def log_p(tokens):
        logits = _logits(model, [8], tokens)
        return logits - np.logaddexp.reduce(logits)

    compiled = compile_grammar(Grammar.from_ebnf(TEXT), VOCABULARY, classes="never")
    texts = {b"a", b"ab", b"a(b)", b"bb)"}
    h, work = 0.0, [((), 0.0)]
    while work:
        tokens, weight = work.pop()
        logs = log_p(tokens)
        text = VOCABULARY.decode(tokens)
        if text in texts:
            h += sum(math.exp(weight + logs[stop]) for stop in VOCABULARY.stop_token_ids)
        for token, data in enumerate(VOCABULARY.token_bytes):
            if data and token not in (7, 8, 11):
                longer = text + data
                if any(other.startswith(longer) for other in texts):
                    work.append(((*tokens, token), weight + logs[token]))
    for method in ("importance", "smc"):
        drawn = sample_transformers(model, compiled, [8], method=method, count=64, max_tokens=12)
        assert drawn.ended.all()
        assert drawn.log_h.log_h == pytest.approx(math.log(h), abs=0.5)
        assert {VOCABULARY.decode(tokens[:-1]) for tokens in drawn.tokens} <= texts
    again = sample(log_p, compiled, method="mask", count=40, max_tokens=12)
    assert again.log_h.log_h == pytest.approx(math.log(h), abs=1.0)


def test_bad_input(model):
    from tokfold.laboratory.fidelity.hf import TransformersStepper, sample_transformers

    with pytest.raises(ModelError, match="begin token"):
        TransformersStepper(model, [])
    with pytest.raises(ModelError, match="above 0"):
        TransformersStepper(model, [1], temperature=0)
    with pytest.raises(ModelError, match="tokenizer is needed"):
        sample_transformers(model, Grammar.from_ebnf(TEXT), [8])
