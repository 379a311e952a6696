"""The logits processor of mlx-lm: by its call shape, and with a tiny model if installed."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import types

import numpy as np
import pytest
import tokfold
from serving.processor_contract import (
    RECORD,
    SIZE,
    STOP,
    VOCABULARY,
    Contract,
    allowed,
    bits,
    compiled,
    ids,
)
from tokfold.errors import MatcherStateError, MissingExtraError

HAS_MLX = importlib.util.find_spec("mlx") is not None


def stand_in() -> dict[str, types.ModuleType]:
    """numpy by the names that the processor uses of MLX."""
    core = types.ModuleType("mlx.core")
    core.array, core.where, core.inf = np.array, np.where, np.inf
    core.uint32, core.float16, core.float32 = np.uint32, np.float16, np.float32
    core.async_eval = lambda *arrays: None
    package = types.ModuleType("mlx")
    package.core = core
    return {"mlx": package, "mlx.core": core}


@pytest.fixture(scope="module")
def module():
    """:mod:`tokfold.mlx`, with MLX or what stands for it."""
    if HAS_MLX:
        yield importlib.import_module("tokfold.mlx")
        return
    sys.modules.pop("tokfold.mlx", None)
    with pytest.MonkeyPatch.context() as patch:  # others that look for MLX must not find this
        for name, found in stand_in().items():
            patch.setitem(sys.modules, name, found)
        yielded = importlib.import_module("tokfold.mlx")
    yield yielded
    sys.modules.pop("tokfold.mlx", None)


@pytest.fixture(scope="module")
def mx(module):
    return module.mx


@pytest.fixture(scope="module")
def processor_type(module):
    return module.GrammarLogitsProcessor


class Driver:
    def __init__(self, mx, processor) -> None:
        self.mx, self.processor = mx, processor

    def __call__(self, tokens, width=SIZE, dtype="float32"):
        mx = self.mx
        kind = getattr(mx, dtype)
        logits = mx.array(np.zeros((1, width), dtype=np.float32)).astype(kind)
        masked = self.processor(mx.array(np.array(tokens), dtype=mx.uint32), logits)
        assert (masked.shape, masked.dtype) == ((1, width), kind)
        assert logits.tolist() == [[0] * width]  # never written to
        [scores] = masked.tolist()
        return scores


class TestCallShape(Contract):
    dtypes = ("float32", "float16", "bfloat16") if HAS_MLX else ("float32", "float16")

    @pytest.fixture
    def drive(self, mx, processor_type):
        return lambda grammar, **options: Driver(mx, processor_type(grammar, **options))

    def test_a_prompt_that_goes_on_by_much(self, drive) -> None:
        """The next turn of a conversation."""
        call, text = drive(compiled()), ids('{"name')
        for end in range(len(text) + 1):
            call([7, *text[:end]])
        turn = [7, *text, 3, 4, 5]
        for end in range(len(text) + 1):
            scores = call([*turn, *text[:end]])
            assert [score == 0 for score in scores] == allowed(RECORD, text[:end])


def test_logits_keep_their_values(mx, processor_type) -> None:
    before = np.linspace(-2, 2, SIZE, dtype=np.float32)
    masked = processor_type(compiled())(mx.array([5]), mx.array(before[None]))
    mask = np.array(bits(tokfold.Matcher(compiled())))
    assert (np.array(masked)[0, mask] == before[mask]).all()
    assert np.isneginf(np.array(masked)[0, ~mask]).all()


def test_more_than_one_row(mx, processor_type) -> None:
    for shape in [(2, SIZE), (SIZE,), (1, 1, SIZE)]:
        with pytest.raises(ValueError, match="each sequence needs a processor of its own"):
            processor_type(compiled())(mx.array([5]), mx.array(np.zeros(shape)))
    with pytest.raises(ValueError, match=r"\(length,\), not \(1, 1\)"):
        processor_type(compiled())(mx.array([[5]]), mx.array(np.zeros((1, SIZE))))


def test_the_extra_that_is_missing(monkeypatch) -> None:
    for name in ("mlx", "mlx.core"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "tokfold.mlx", raising=False)
    with pytest.raises(MissingExtraError, match=r"\.\[mlx\]"):
        importlib.import_module("tokfold.mlx")


# ------------------------------------------------------------------ with a model


@pytest.fixture(scope="module")
def lm():
    return pytest.importorskip("mlx_lm")


def tiny(mx, seed: int, dtype: str = "float32", width: int = SIZE + 11):
    from mlx.utils import tree_map
    from mlx_lm.models.llama import Model, ModelArgs

    mx.random.seed(seed)
    model = Model(
        ModelArgs(
            model_type="llama",
            hidden_size=32,
            num_hidden_layers=2,
            intermediate_size=64,
            num_attention_heads=2,
            rms_norm_eps=1e-5,
            vocab_size=width,
            tie_word_embeddings=False,
        )
    )
    spread = tree_map(lambda weights: (weights * 6).astype(getattr(mx, dtype)), model.parameters())
    model.update(spread)
    mx.eval(model.parameters())
    return model


SHORT = r"""
root   ::= "{" "\"name\": " string (", \"age\": " [1-9] [0-9]{0,2})? "}"
string ::= "\"" [a-z ]{0,12} "\""
"""


class Recorder:
    """A processor after ours that compares what it sees with a matcher of its own."""

    def __init__(self, grammar: str = RECORD) -> None:
        self.compiled, self.prompt, self.compared = compiled(grammar), None, 0

    def __call__(self, tokens, logits):
        import mlx.core as mx

        ids = np.array(tokens).tolist()
        self.prompt = len(ids) if self.prompt is None else self.prompt
        matcher = tokfold.Matcher(self.compiled)
        finite = np.isfinite(np.array(logits.astype(mx.float32)))[0]
        for token in ids[self.prompt :]:
            if matcher.is_terminated:
                break
            assert matcher.accept_token(token)
        if matcher.is_terminated:
            assert finite.all()
        else:
            assert finite.tolist() == [*bits(matcher), *[False] * (len(finite) - SIZE)]
            self.compared += 1
        return logits


def text_of(tokens: list[int]) -> bytes:
    """The text up to the stop token, which must be there."""
    return VOCABULARY.decode(tokens[: tokens.index(STOP)])


def exhaust(batch) -> None:
    while batch.next_generated():
        pass


def sampler(mx):
    return lambda logprobs: mx.random.categorical(logprobs.astype(mx.float32))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("sample", [False, True])
def test_generate_step(mx, lm, processor_type, dtype, sample) -> None:
    from mlx_lm.generate import generate_step

    processor, model = processor_type(compiled(SHORT)), tiny(mx, 1, dtype)
    for seed, prompt in enumerate([[5, 6, 7], [8], [5, 6, 7], list(range(40))]):
        mx.random.seed(seed)
        recorder = Recorder(SHORT)
        steps = generate_step(
            mx.array(prompt),
            model,
            max_tokens=80,
            sampler=sampler(mx) if sample else None,
            logits_processors=[processor, recorder],
            prefill_step_size=16,
        )
        tokens = []
        for token, logprobs in steps:
            assert np.isfinite(logprobs[token].item())
            tokens.append(token)
            if token == STOP:
                break
        assert recorder.compared == len(tokens)
        assert set(json.loads(text_of(tokens))) <= {"name", "age"}


def test_a_draft_model(mx, lm, processor_type) -> None:
    """Drafts change nothing in what is generated."""
    from mlx_lm.generate import generate_step, speculative_generate_step

    model, draft, grammar = tiny(mx, 1), tiny(mx, 2), compiled()
    for prompt in ([5, 6, 7], [9], [5, 6, 7]):
        options = {"max_tokens": 40}
        plain = generate_step(
            mx.array(prompt), model, logits_processors=[processor_type(grammar)], **options
        )
        expected = [token for token, _ in plain]
        end = expected.index(STOP) + 1 if STOP in expected else len(expected)
        for count, drafts in [(1, draft), (3, draft), (3, model)]:
            recorder = Recorder()
            recorder.prompt = 1  # the rest of a prompt is not told
            processor = processor_type(grammar)
            for _ in range(2):  # one generation after another
                found = speculative_generate_step(
                    mx.array(prompt),
                    model,
                    drafts,
                    num_draft_tokens=count,
                    logits_processors=[processor, recorder],
                    **options,
                )
                assert [token for token, _, _ in found][:end] == expected[:end]
            assert recorder.compared > 40


def test_batches(mx, lm, processor_type) -> None:
    from mlx_lm.generate import BatchGenerator

    model = tiny(mx, 3)
    grammars = [RECORD, 'root ::= "true" | "name"', "root ::= [a-c]{3,9}", RECORD]
    prompts = [[5, 6], [7, 8, 9, 10], [5, 6], [5, 6]]
    batch = BatchGenerator(model, max_tokens=300, stop_tokens=[[STOP]], sampler=sampler(mx))
    rows = [[processor_type(compiled(text)), Recorder(text)] for text in grammars]
    numbers = batch.insert(prompts, logits_processors=rows)
    found = {number: [] for number in numbers}
    while responses := batch.next_generated():
        for response in responses:
            found[response.uid].append(response.token)
    batch.close()
    for text, number in zip(grammars, numbers, strict=True):
        matcher = tokfold.Matcher(compiled(text))
        assert matcher.accept_tokens(found[number]) == len(found[number])
        assert matcher.is_terminated

    batch = BatchGenerator(model, logits_processors=[processor_type(compiled())])
    batch.insert([[5, 6], [7, 8, 9], [10]])
    with pytest.raises(MatcherStateError, match="each sequence needs a processor of its own"):
        exhaust(batch)
    batch.close()


@pytest.fixture(scope="module")
def tokenizer(lm):
    from mlx_lm.tokenizer_utils import TokenizerWrapper

    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = tokenizers.Tokenizer(tokenizers.models.BPE())
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["</s>", "<end>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words.train_from_iterator(['{"name": "Ada", "age": 36}'] * 9, trainer)
    inner = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="</s>")
    return TokenizerWrapper(inner, eos_token_ids=[0, 1])


def test_generate_and_the_next_turn(mx, lm, processor_type, tokenizer) -> None:
    vocabulary = tokfold.Vocabulary.from_huggingface(
        tokenizer, stop_token_ids=tokenizer.eos_token_ids
    )
    assert vocabulary.stop_token_ids == (0, 1)
    grammar = tokfold.compile(tokfold.Grammar.from_ebnf(SHORT), vocabulary)
    processor, model = processor_type(grammar), tiny(mx, 4, width=len(vocabulary) + 5)
    options = {"max_tokens": 400, "logits_processors": [processor], "sampler": sampler(mx)}
    mx.random.seed(2)
    first = lm.generate(model, tokenizer, "A person:", **options)
    assert set(json.loads(first)) <= {"name", "age"}
    *_, last = lm.stream_generate(model, tokenizer, f"A person:{first}</s> And now:", **options)
    assert last.finish_reason == "stop"
    assert last.token in (0, 1)
