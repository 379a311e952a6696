"""The logits processors, with a real ``generate()`` on a tiny random model.

What takes the fixture ``compiled`` runs with our own engine and with XGrammar over classes.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
xgr = pytest.importorskip("xgrammar")
tokenizers = pytest.importorskip("tokenizers")

import tokfold  # noqa: E402
from oracles.xgrammar_doors import schema_grammar  # noqa: E402
from serving.processor_contract import SIZE, STOP, EndingContract, by_itself, ids  # noqa: E402
from strategies.engine import compiled_with  # noqa: E402
from support import processes  # noqa: E402
from tokfold import xgrammar as txgr  # noqa: E402
from tokfold.errors import MatcherStateError  # noqa: E402
from tokfold.transformers import GrammarLogitsProcessor  # noqa: E402

TEXTS = ['{"name": "Ada", "age": 36, "likes": ["tea", "engines"]}', "a list: [1, 2, 3]"] * 20
PROMPTS = ["A person:", "Now a much longer prompt, so that the other one is padded:", "x"]
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"enum": ["Ada", "Bob", "Adam"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["x", "yy"]}, "maxItems": 2},
    },
    "required": ["name", "age", "tags"],
}
BYTES = tokfold.Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], [256])
NO_SPACES = {"any_whitespace": False, "separators": (",", ":")}


@pytest.fixture(scope="module")
def tokenizer():
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<pad>", "</s>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(TEXTS, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<pad>", eos_token="</s>", padding_side="left"
    )


@pytest.fixture(scope="module")
def width(tokenizer) -> int:
    return len(tokenizer) + 13  # the output layer is wider than the vocabulary


@pytest.fixture(scope="module")
def model(tokenizer, width):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=width,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def info(tokenizer):
    return xgr.TokenizerInfo.from_huggingface(tokenizer)


@pytest.fixture(scope="module")
def vocabulary(tokenizer):
    return tokfold.Vocabulary.from_huggingface(tokenizer)


@pytest.fixture(scope="module")
def over_classes(info):
    found = txgr.GrammarCompiler(info).compile_json_schema(SCHEMA, **NO_SPACES)
    assert found.is_compressed
    return found


@pytest.fixture(scope="module")
def own(vocabulary):
    """The grammar is XGrammar's, so that what is drawn is comparable."""
    return tokfold.compile(schema_grammar(SCHEMA, **NO_SPACES), vocabulary, classes="now")


@pytest.fixture(scope="module", params=["own engine", "XGrammar over classes"])
def compiled(request, own, over_classes):
    return own if request.param == "own engine" else over_classes


def allowed_after(compiled, tokens: list[int]):
    """The mask of a fresh matcher after these tokens, as bools; None where the text has ended."""
    if isinstance(compiled, tokfold.CompiledGrammar):
        size = len(compiled.vocabulary)
        matcher, bitmask = tokfold.Matcher(compiled), tokfold.allocate_bitmask(1, size)
        for token in tokens:
            assert matcher.is_terminated or matcher.accept_token(token)
        if matcher.is_terminated:
            return None
        matcher.fill_bitmask(bitmask)
        return txgr.testing.bitmask_to_bool_mask(torch.from_numpy(bitmask), size)[0]
    size = compiled.tokenizer_info.vocab_size
    matcher, bitmask = txgr.GrammarMatcher(compiled), txgr.allocate_token_bitmask(1, size)
    for token in tokens:
        assert matcher.is_terminated() or matcher.accept_token(token)
    if matcher.is_terminated():
        return None
    matcher.fill_next_token_bitmask(bitmask)
    return txgr.testing.bitmask_to_bool_mask(bitmask, size)[0]


@pytest.fixture(scope="module")
def inputs(tokenizer):
    return tokenizer(PROMPTS, padding=True, return_tensors="pt", return_token_type_ids=False)


def generate(model, inputs, processor, **options):
    torch.manual_seed(7)
    options = {"max_new_tokens": 120, "do_sample": False, **options}
    return model.generate(**inputs, logits_processor=[processor], **options)


def texts_of(tokenizer, inputs, output) -> list[str]:
    generated = output[:, inputs["input_ids"].shape[1] :]
    return tokenizer.batch_decode(generated, skip_special_tokens=True)


def check(text: str) -> None:
    value = json.loads(text)
    assert list(value) == ["name", "age", "tags"]
    assert value["name"] in ("Ada", "Bob", "Adam")
    assert 0 <= value["age"] <= 99
    assert set(value["tags"]) <= {"x", "yy"}


@pytest.mark.parametrize("sample", [False, True])
def test_batches_with_left_padding_equal_xgrammars(
    model, tokenizer, inputs, compiled, width, sample
) -> None:
    # XGrammar leaves scores past the vocabulary alone, so it gets one of the full width
    wide = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=width)
    plain = xgr.GrammarCompiler(wide).compile_json_schema(SCHEMA, **NO_SPACES)
    theirs = generate(model, inputs, xgr.contrib.hf.LogitsProcessor(plain), do_sample=sample)
    ours = generate(model, inputs, GrammarLogitsProcessor(compiled), do_sample=sample)
    assert ours.tolist() == theirs.tolist()
    for text in texts_of(tokenizer, inputs, ours):
        check(text)

    again = txgr.GrammarCompiler(wide).compile_json_schema(SCHEMA, **NO_SPACES)
    processor = txgr.contrib.hf.LogitsProcessor(again)
    assert generate(model, inputs, processor, do_sample=sample).tolist() == theirs.tolist()


@pytest.mark.parametrize("more", [0, 4])
def test_texts_of_xgrammars_processor_end_in_time(model, tokenizer, inputs, width, more) -> None:
    wide = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=width)
    compiled = txgr.GrammarCompiler(wide).compile_json_schema(SCHEMA, **NO_SPACES)
    with pytest.raises(tokfold.TokenBudgetError) as caught:
        generate(model, inputs, txgr.contrib.hf.LogitsProcessor(compiled, max_tokens=1))
    budget = caught.value.needed + more
    processor = txgr.contrib.hf.LogitsProcessor(compiled, max_tokens=budget)
    output = generate(model, inputs, processor, do_sample=True, max_new_tokens=budget)
    for text in texts_of(tokenizer, inputs, output):
        check(text)


@pytest.mark.parametrize("beams", [2, 5])
@pytest.mark.parametrize("sample", [False, True])
def test_beams(model, tokenizer, inputs, compiled, beams, sample) -> None:
    processor = GrammarLogitsProcessor(compiled, dead_rows="leave")
    output = generate(
        model, inputs, processor, num_beams=beams, num_return_sequences=2, do_sample=sample
    )
    found = texts_of(tokenizer, inputs, output)
    assert len(found) == 2 * len(PROMPTS)
    for text in found:
        check(text)


def test_beams_follow_their_histories(compiled, info) -> None:
    """Every permutation, doubling and loss of rows gives the masks of a fresh matcher."""
    generator = torch.Generator().manual_seed(3)
    processor = GrammarLogitsProcessor(compiled)
    rows = torch.tensor([[0, 5], [0, 5], [0, 5], [0, 5]])
    size = info.vocab_size
    for _ in range(25):
        scores = processor(rows, torch.zeros(4, size))
        tokens = []
        for row, allowed in zip(rows.tolist(), (scores == 0), strict=True):
            expected = allowed_after(compiled, row[2:])
            if expected is None:
                tokens.append(0)
                continue
            assert (allowed == expected).all()
            choices = expected.nonzero()[:, 0]
            tokens.append(choices[torch.randint(len(choices), (1,), generator=generator)].item())
        rows = torch.cat([rows, torch.tensor(tokens)[:, None]], dim=1)
        rows = rows[torch.randint(4, (4,), generator=generator)]


def test_drafts_that_are_taken_back(compiled, info, tokenizer) -> None:
    processor = GrammarLogitsProcessor(compiled, dead_rows="leave")
    size = info.vocab_size

    def mask(row: list[int]) -> list[int]:
        scores = processor(torch.tensor([[5, *row]]), torch.zeros(1, size))
        return (scores[0] == 0).nonzero()[:, 0].tolist()

    start = mask([])
    brace = tokenizer.encode("{", add_special_tokens=False)
    quote = tokenizer.encode('"', add_special_tokens=False)
    after_brace = mask(brace)
    assert after_brace != start
    mask([*brace, *quote])
    wrong = mask([*brace, *quote, *brace])  # no key begins with a brace
    assert len(wrong) == size  # left as it is
    assert mask([*brace, *quote, *quote]) == wrong  # nor with a quote
    name = tokenizer.encode("n", add_special_tokens=False)
    right = mask([*brace, *quote, *name])  # back out of the dead end
    assert 0 < len(right) < size
    assert mask(brace) == after_brace


@pytest.mark.parametrize("engines", ["ooo", "xxx", "oxo"])
def test_a_grammar_for_each_row(model, tokenizer, inputs, info, vocabulary, engines) -> None:
    compiler = txgr.GrammarCompiler(info)
    patterns = ["a+", "(bc)+", "[0-9]{3}"]
    grammars = [
        tokfold.compile(tokfold.Grammar.from_regex(pattern), vocabulary)
        if engine == "o"
        else compiler.compile_regex(pattern)
        for pattern, engine in zip(patterns, engines, strict=True)
    ]
    output = generate(model, inputs, GrammarLogitsProcessor(grammars), max_new_tokens=12)
    texts = texts_of(tokenizer, inputs, output)
    assert set(texts[0]) == {"a"}
    assert set(texts[1]) == {"b", "c"}
    assert texts[2].isdecimal()
    assert len(texts[2]) == 3

    processor = GrammarLogitsProcessor(grammars, dead_rows="leave")
    output = generate(
        model, inputs, processor, max_new_tokens=6, num_beams=3, num_return_sequences=3
    )
    texts = texts_of(tokenizer, inputs, output)
    assert all(set(text) <= {"a"} for text in texts[:3])
    assert all(set(text) <= {"b", "c"} for text in texts[3:6])
    assert all(text.isdecimal() for text in texts[6:])

    with pytest.raises(ValueError, match="3 rows cannot be shared out among 2 grammars"):
        generate(model, inputs, GrammarLogitsProcessor(grammars[:2]))
    with pytest.raises(ValueError, match="at least one"):
        GrammarLogitsProcessor([])


@pytest.fixture(scope="module")
def failing(vocabulary):
    """A grammar whose masks pass their limit."""
    text = 'root ::= "a" x root x | "a" y root y | [ -~]\nx ::= [ -m]+\ny ::= [a-~]+'
    grammar = tokfold.Grammar.from_ebnf(text)
    limits = tokfold.Limits(max_mask_work=5)
    return compiled_with(grammar, vocabulary, limits=limits, classes="never", engine="stack")


@pytest.mark.parametrize("on_error", ["end", "unconstrained"])
def test_a_row_that_fails_is_alone(model, tokenizer, inputs, own, failing, on_error) -> None:
    processor = GrammarLogitsProcessor([own, failing, own], on_error=on_error)
    if on_error == "end":
        output = generate(model, inputs, processor)
    else:
        with pytest.warns(tokfold.FallbackWarning, match="row 1 goes on without its grammar"):
            output = generate(model, inputs, processor)
    assert list(processor.failures) == [1]
    assert isinstance(processor.failures[1], tokfold.LimitExceededError)
    alone = generate(model, inputs, GrammarLogitsProcessor(own))
    start = inputs["input_ids"].shape[1]
    for row in (0, 2):
        assert strip(output[row], start, tokenizer) == strip(alone[row], start, tokenizer)
    if on_error == "end":
        assert tokenizer.eos_token_id in output[1, start:].tolist()
    processor.reset()
    assert processor.failures == {}
    with pytest.raises(tokfold.LimitExceededError):
        generate(model, inputs, GrammarLogitsProcessor([own, failing, own], on_error="raise"))


def strip(row, start, tokenizer) -> list[int]:
    return [token for token in row[start:].tolist() if token != tokenizer.pad_token_id]


def test_rows_that_end_before_one_that_fails(vocabulary, failing) -> None:
    """Masks are made and sent for the rows that go on alone; an error names the row."""
    a, b = (vocabulary.encode_greedy(letter)[0] for letter in (b"a", b"b"))
    [stop] = vocabulary.stop_token_ids
    short = tokfold.compile(tokfold.Grammar.from_ebnf('root ::= "a" "b"*'), vocabulary)
    scores = torch.zeros(4, len(vocabulary))
    for on_error in ("end", "unconstrained", "raise"):
        processor = GrammarLogitsProcessor([short, short, failing, short], on_error=on_error)
        rows = torch.tensor([[5]] * 4)
        if on_error == "raise":
            with pytest.raises(tokfold.LimitExceededError, match=r"^row 2: limit max_mask_work"):
                processor(rows, scores.clone())
            continue
        steps = [[a, a, a, a], [stop, b, stop, stop], [0, stop, 0, 0]]
        for step in range(3):
            if on_error == "unconstrained" and step == 0:
                with pytest.warns(tokfold.FallbackWarning, match="row 2 goes on without"):
                    found = processor(rows, scores.clone())
            else:
                found = processor(rows, scores.clone())
            may = [(row == 0).nonzero()[:, 0].tolist() for row in found]
            everything = list(range(len(vocabulary)))
            told = [row[1:] for row in rows.tolist()]
            for index in (0, 1, 3):
                allowed = allowed_after(short, told[index])
                expected = everything if allowed is None else allowed.nonzero()[:, 0].tolist()
                assert may[index] == expected
            assert may[2] == ([stop] if on_error == "end" else everything)
            rows = torch.cat([rows, torch.tensor(steps[step])[:, None]], dim=1)


@pytest.mark.parametrize("on_host", [0, 40, 90])
def test_ids_that_are_too_many_for_the_host(model, inputs, own, monkeypatch, on_host) -> None:
    """They are compared where they are, also where they become too many on the way."""
    expected = generate(model, inputs, GrammarLogitsProcessor(own), num_beams=2)
    plain = generate(model, inputs, GrammarLogitsProcessor(own))
    monkeypatch.setattr("tokfold.transformers.ON_HOST", on_host)
    processor = GrammarLogitsProcessor(own, dead_rows="leave")
    assert generate(model, inputs, processor).tolist() == plain.tolist()
    assert generate(model, inputs, processor, num_beams=2).tolist() == expected.tolist()


@pytest.mark.parametrize("beams", [2, 3])
def test_beams_that_fail(model, inputs, failing, beams) -> None:
    processor = GrammarLogitsProcessor(failing, dead_rows="leave")
    generate(model, inputs, processor, num_beams=beams, max_new_tokens=12)
    assert processor.failures


def test_what_on_error_may_be(own) -> None:
    with pytest.raises(ValueError, match="on_error must be"):
        GrammarLogitsProcessor(own, on_error="ignore")


def test_one_processor_for_one_generation_after_another(model, inputs, compiled) -> None:
    processor = GrammarLogitsProcessor(compiled)
    first = generate(model, inputs, processor)
    assert generate(model, inputs, processor).tolist() == first.tolist()
    one = {name: value[1:2] for name, value in inputs.items()}
    alone = generate(model, one, processor)
    assert alone.tolist() == generate(model, one, GrammarLogitsProcessor(compiled)).tolist()
    processor.reset()
    assert generate(model, inputs, processor).tolist() == first.tolist()


def step(processor, ids):
    """Ids and one token more, the first with the highest score."""
    scores = processor(ids, torch.zeros(len(ids), len(BYTES)))
    return torch.cat([ids, scores.argmax(dim=1, keepdim=True)], dim=1)


@pytest.mark.parametrize("rows", [1, 2])
def test_generations_that_take_turns_are_refused(vocabulary, rows) -> None:
    compiled = tokfold.compile('root ::= "abc"', BYTES)
    prompts = [torch.tensor([[1, 2]] * rows), torch.tensor([[3, 4, 5]] * rows)]
    shared = GrammarLogitsProcessor(compiled)
    one, other = (step(shared, ids) for ids in prompts)
    for _ in range(2):
        with pytest.raises(
            MatcherStateError, match=r"left for another one.* a processor of its own"
        ):
            step(shared, one)
    for _ in range(3):  # the one that came last goes on
        other = step(shared, other)
    assert bytes(other[0, 3:6].tolist()) == b"abc"
    step(shared, prompts[0])  # a text that has ended is left for good
    shared.reset()
    assert step(shared, one).shape[1] == 4
    own = [GrammarLogitsProcessor(compiled) for _ in prompts]
    found = prompts
    for _ in range(3):
        found = [step(processor, ids) for processor, ids in zip(own, found, strict=True)]
    assert [bytes(ids[0, -3:].tolist()) for ids in found] == [b"abc"] * 2


def test_a_generation_that_was_cut_is_left_for_good() -> None:
    compiled = tokfold.compile("root ::= [a-z]*", BYTES)
    processor = GrammarLogitsProcessor(compiled)
    for prompt in ([1, 2], [3], [1, 2], [3, 4], [1, 2]):
        ids = torch.tensor([prompt])
        for _ in range(4):
            ids = step(processor, ids)


def test_scores_of_which_nothing_is_left() -> None:
    compiled = tokfold.compile('root ::= "a" [bc]', BYTES)
    processor = GrammarLogitsProcessor(compiled)
    scores = torch.zeros(2, len(BYTES))
    scores[1, ord("a")] = -torch.inf
    with pytest.raises(
        MatcherStateError, match=r"row 1: the scores of all .*min_new_tokens"
    ) as caught:
        processor(torch.tensor([[1], [1]]), scores)
    assert caught.value.row == 1
    lenient = GrammarLogitsProcessor(compiled, dead_rows="leave")
    assert lenient(torch.tensor([[1]]), torch.full((1, len(BYTES)), -torch.inf)).isinf().all()
    narrow = torch.full((1, len(BYTES)), -torch.inf)
    narrow[0, ord("c")] = 1.0
    ids = step(processor, torch.tensor([[2]]))
    assert processor(ids, narrow)[0, ord("c")] == 1.0


def test_a_new_prompt_of_the_next_length(compiled, info, tokenizer) -> None:
    processor = GrammarLogitsProcessor(compiled)
    brace = tokenizer.encode("{", add_special_tokens=False)

    def mask(row: list[int]) -> list[bool]:
        scores = processor(torch.tensor([row]), torch.zeros(1, info.vocab_size))
        return (scores[0] == 0).tolist()

    start = mask([5, 6])
    assert mask([5, 6, *brace]) != start
    assert mask([5, 7, *brace]) == start  # another prompt that ends in a brace
    assert mask([5, 7, *brace, *brace]) != start
    assert mask([5, 7, *brace]) == start  # the same prompt again


def test_a_new_prompt_that_begins_like_the_old_one(vocabulary) -> None:
    """It is shorter than what was generated, so only its tokens tell it from a draft taken back."""
    a, b, c = (vocabulary.encode_greedy(letter)[0] for letter in (b"a", b"b", b"c"))
    grammar = tokfold.Grammar.from_ebnf("root ::= [abc] [ab]*")
    processor = GrammarLogitsProcessor(tokfold.compile(grammar, vocabulary, classes="never"))

    def mask(row: list[int]) -> list[bool]:
        scores = processor(torch.tensor([row]), torch.zeros(1, len(vocabulary)))
        return (scores[0] == 0).tolist()

    start = mask([a, b])
    for end in range(1, 6):
        mask([a, b, *[a, a, b, b, a][:end]])
    assert mask([a, b, c, b]) == start
    assert mask([a, b, c, b, a]) != start


def test_a_token_that_was_masked(compiled, info) -> None:
    processor = GrammarLogitsProcessor(compiled)
    processor(torch.tensor([[5]]), torch.zeros(1, info.vocab_size))
    with pytest.raises(MatcherStateError, match=r"row 0: token 0, generated at place 0") as caught:
        processor(torch.tensor([[5, 0]]), torch.zeros(1, info.vocab_size))
    assert caught.value.row == 0
    with pytest.raises(ValueError, match="dead_rows"):
        GrammarLogitsProcessor(compiled, dead_rows="ignore")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("extra", [0, 13])
def test_scores_of_any_kind(compiled, info, dtype, extra) -> None:
    size = info.vocab_size + extra
    scores = torch.linspace(-2, 2, 2 * size).reshape(size, 2).t().to(dtype)  # not contiguous
    before = scores.clone()
    masked = GrammarLogitsProcessor(compiled)(torch.tensor([[5], [5]]), scores)
    assert masked.dtype == dtype
    assert masked.shape == scores.shape
    allowed = torch.zeros(size, dtype=torch.bool)
    allowed[: info.vocab_size] = allowed_after(compiled, [])[:size]
    for row in range(2):
        assert (masked[row][allowed] == before[row][allowed]).all()
        assert masked[row][~allowed].eq(-torch.inf).all()


@pytest.mark.parametrize("options", [{}, {"do_sample": True}, {"num_beams": 3}])
def test_both_engines_generate_the_same(model, inputs, own, over_classes, options) -> None:
    ours, theirs = (
        generate(model, inputs, GrammarLogitsProcessor(compiled, dead_rows="leave"), **options)
        for compiled in (own, over_classes)
    )
    assert ours.tolist() == theirs.tolist()


N = -torch.inf
# Two grammars, the tokens of a step, and the scores before and after it; a row that was given the
# stop token has finished.
LEFT_ALONE = {
    "all allowed, then finished": (
        ("root ::= [ab]*", 'root ::= "b" "a"?'),
        (2, 1),
        [[0, 0, 0, N], [N, 0, N, N]],
        [[0, 0, 0, 0], [0, N, 0, N]],
    ),
    "masked, then finished": (
        ("root ::= [ab]", 'root ::= "b"?'),
        (0, 2),
        [[0, 0, N, N], [N, 0, 0, N]],
        [[N, N, 0, N], [0, 0, 0, 0]],
    ),
}


@pytest.mark.parametrize("engines", ["oo", "xx", "ox", "xo"])
@pytest.mark.parametrize("case", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_rows_that_are_left_as_they_are(case, engines) -> None:
    texts, step, before, after = case
    tokens = [b"a", b"b", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[2])
    info = xgr.TokenizerInfo(tokens, xgr.VocabType.RAW, vocab_size=3, stop_token_ids=[2])
    grammars = [
        tokfold.compile(tokfold.Grammar.from_ebnf(text), vocabulary)
        if engine == "o"
        else txgr.GrammarCompiler(info).compile_grammar(text)
        for text, engine in zip(texts, engines, strict=True)
    ]
    processor = GrammarLogitsProcessor(grammars)
    rows = torch.tensor([[0], [0]])
    assert processor(rows, torch.zeros(2, 4)).tolist() == before
    rows = torch.cat([rows, torch.tensor(step)[:, None]], dim=1)
    assert processor(rows, torch.zeros(2, 4)).tolist() == after


class Driver:
    """One row of a batch of one."""

    def __init__(self, grammar, **options) -> None:
        self.processor = GrammarLogitsProcessor(grammar, **options)

    def __call__(self, tokens, width=SIZE, dtype="float32"):
        scores = torch.zeros(1, width, dtype=getattr(torch, dtype))
        return self.processor(torch.tensor([tokens]), scores)[0].tolist()


class TestOneRow(EndingContract):
    @pytest.fixture
    def drive(self):
        return Driver


class TestEndedByItself:
    """Texts that end without a stop token, in batches and before a model."""

    @pytest.mark.filterwarnings("ignore:all texts have ended, with one of:tokfold.StopTokenWarning")
    @pytest.mark.parametrize("on_host", [1 << 17, 0])
    def test_rows_end_one_after_the_other(self, monkeypatch, on_host) -> None:
        monkeypatch.setattr("tokfold.transformers.ON_HOST", on_host)
        grammars = [by_itself('root ::= "a"'), by_itself('root ::= "abc"')]
        processor = GrammarLogitsProcessor(grammars)
        (a,), (b,), (c,) = map(ids, "abc")
        texts, allowed = [[], []], ["all", "all"]
        for tokens, expected in (
            (None, [{a}, {a}]),
            ((a, a), [{STOP}, {b}]),
            ((STOP, b), ["all", {c}]),
            ((7, c), ["all", {STOP}]),
            ((7, STOP), ["all", "all"]),
        ):
            for text, token in zip(texts, tokens or (), strict=False):
                text.append(token)
            rows = torch.tensor([[5, *text] for text in texts])
            scores = processor(rows, torch.zeros(2, SIZE)).tolist()
            found = [{at for at, score in enumerate(row) if score == 0} for row in scores]
            allowed = ["all" if len(row) == SIZE else row for row in found]
            assert allowed == expected

    @pytest.mark.parametrize("on_error", ["end", "raise", "unconstrained"])
    def test_beside_a_row_that_fails(self, monkeypatch, on_error) -> None:
        grammars = [by_itself('root ::= "a"'), by_itself('root ::= "abc"')]
        processor = GrammarLogitsProcessor(grammars, on_error=on_error)
        (a,) = ids("a")
        processor(torch.tensor([[5], [5]]), torch.zeros(2, SIZE))

        def fill_bitmask(self, bitmask, row=0):
            raise tokfold.LimitExceededError("too much", "max_mask_work", 1)

        monkeypatch.setattr(tokfold.Matcher, "fill_bitmask", fill_bitmask)
        rows, scores = torch.tensor([[5, a], [5, a]]), torch.zeros(2, SIZE)
        if on_error == "raise":
            with pytest.raises(tokfold.LimitExceededError, match="row 1"):
                processor(rows, scores)
            return
        with contextlib.ExitStack() as stack:
            if on_error == "unconstrained":
                stack.enter_context(pytest.warns(tokfold.FallbackWarning))
            found = processor(rows, scores) == 0
        assert found[0].nonzero().flatten().tolist() == [STOP]
        assert found[1].sum() == (1 if on_error == "end" else SIZE)

    @pytest.mark.parametrize("stops", [[], "the model's", "others"])
    @pytest.mark.parametrize("beams", [1, 3])
    def test_the_model_stops(self, model, tokenizer, inputs, width, recwarn, stops, beams) -> None:
        """At the tokens at which it does, whatever ends the other texts of the vocabulary."""
        eos = tokenizer.eos_token_id
        ends = {"the model's": [eos], "others": [7]}.get(str(stops), [])
        vocabulary = tokfold.Vocabulary.from_huggingface(tokenizer, width, [eos])
        vocabulary = vocabulary.replace(stop_token_ids=ends)
        options = tokfold.CompileOptions(terminate_without_stop_token=True)
        compiled = tokfold.compile(["Ada", "Bob"], vocabulary, options=options)
        processor = GrammarLogitsProcessor(
            compiled, model=model, on_error="raise", dead_rows="leave" if beams > 1 else "raise"
        )
        output = generate(model, inputs, processor, num_beams=beams, max_new_tokens=12)
        assert set(texts_of(tokenizer, inputs, output)) <= {"Ada", "Bob"}
        warned = [w for w in recwarn if issubclass(w.category, tokfold.StopTokenWarning)]
        assert len(warned) == (stops == "others")

    def test_nothing_stops_the_model(self, model, tokenizer, inputs, width, monkeypatch) -> None:
        monkeypatch.setattr(model.generation_config, "eos_token_id", None)
        monkeypatch.setattr(model.config, "eos_token_id", None)
        vocabulary = tokfold.Vocabulary.from_huggingface(tokenizer, width, [7])
        options = tokfold.CompileOptions(terminate_without_stop_token=True)
        compiled = tokfold.compile(["Ada"], vocabulary.replace(stop_token_ids=()), options=options)
        processor = GrammarLogitsProcessor(compiled, model=model, on_error="raise")
        with pytest.warns(tokfold.StopTokenWarning, match="generation goes on without the grammar"):
            generate(model, inputs, processor, max_new_tokens=12)


@pytest.mark.parametrize("begun_with", ["grammar", "matcher"])
def test_a_deep_copy_in_the_middle_of_a_generation(begun_with) -> None:
    letters = [bytes([byte]) for byte in range(97, 101)]
    vocabulary = tokfold.Vocabulary([*letters, b"</s>"], stop_token_ids=[4])
    compiled = tokfold.compile('root ::= "a" "b" "c" | "a" "d" "a"', vocabulary)
    source = compiled if begun_with == "grammar" else tokfold.Matcher(compiled)
    processor = GrammarLogitsProcessor(source)

    def allowed(processor: GrammarLogitsProcessor, row: list[int]) -> list[int]:
        scores = processor(torch.tensor([row]), torch.zeros(1, len(vocabulary)))
        return torch.isfinite(scores[0]).nonzero().flatten().tolist()

    assert allowed(processor, [3]) == [0]
    assert allowed(processor, [3, 0]) == [1, 3]
    copied = copy.deepcopy(processor)
    assert allowed(copied, [3, 0, 1]) == [2]
    assert allowed(processor, [3, 0, 3]) == [0]


def test_what_is_no_compiled_grammar(own, info, vocabulary) -> None:
    plain = xgr.GrammarCompiler(info).compile_regex("a")
    for wrong in (plain, own.grammar, None, [own, "a"]):
        with pytest.raises(TypeError, match=r"tokfold\.CompiledGrammar or a tokfold\.xgrammar"):
            GrammarLogitsProcessor(wrong)
    wide = tokfold.compile(own.grammar, vocabulary.replace(size=len(vocabulary) + 32))
    with pytest.raises(ValueError, match="different sizes"):
        GrammarLogitsProcessor([own, wide])


WITHOUT_XGRAMMAR = """
import sys
sys.modules["xgrammar"] = None
import tokfold, torch
from tokfold.transformers import GrammarLogitsProcessor
vocabulary = tokfold.Vocabulary([b"a", b"b", b"</s>"], stop_token_ids=[2])
compiled = tokfold.compile(tokfold.Grammar.from_ebnf('root ::= "b" "a"?'), vocabulary)
processor = GrammarLogitsProcessor(compiled)
rows = torch.tensor([[0]])
for token in (1, 2, 0):
    print(processor(rows, torch.zeros(1, 4)).tolist()[0])
    rows = torch.cat([rows, torch.tensor([[token]])], dim=1)
"""


def test_our_engine_needs_no_xgrammar() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parents[1])}
    command = [sys.executable, "-c", WITHOUT_XGRAMMAR]
    result = processes.run(command, env=environment)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "[-inf, 0.0, -inf, -inf]",
        "[0.0, -inf, 0.0, -inf]",
        "[0.0, 0.0, 0.0, 0.0]",
    ]


@pytest.mark.skipif(
    importlib.util.find_spec("mistral_common") is None, reason="no big vocabulary without it"
)
def test_a_big_vocabulary() -> None:
    """Masks of a 131,072-token vocabulary along generated text, against XGrammar's."""
    import mistral_common

    [path] = Path(mistral_common.__file__).parent.rglob("tekken_240911.json")
    document = json.loads(path.read_text())
    size = document["config"]["default_vocab_size"]
    special = document["config"]["default_num_special_tokens"]
    ranks = document["vocab"][: size - special]
    tokens = [b""] * special + [base64.b64decode(entry["token_bytes"]) for entry in ranks]
    info = xgr.TokenizerInfo(tokens, xgr.VocabType.RAW, vocab_size=size, stop_token_ids=[2])
    compiled = txgr.GrammarCompiler(info).compile_builtin_json_grammar()
    assert compiled.is_compressed
    plain = xgr.GrammarCompiler(info).compile_builtin_json_grammar()
    matchers = xgr.GrammarMatcher(plain), txgr.GrammarMatcher(compiled)
    expected, found = (txgr.allocate_token_bitmask(1, size) for _ in range(2))
    text = b'{"name": "Ada \\u00e9", "list": [1.5e3, true, null, {}], "x": "the quick fox"}'
    by_bytes = {token: index for index, token in reversed(list(enumerate(tokens)))}
    while text:
        for matcher, bitmask in zip(matchers, (expected, found), strict=True):
            assert matcher.fill_next_token_bitmask(bitmask)
        for word in (expected != found).nonzero()[:, 1].tolist():
            for token in range(32 * word, 32 * word + 32):
                bits = [(mask[0, word].item() >> (token % 32)) & 1 for mask in (expected, found)]
                if bits[0] != bits[1]:
                    assert matchers[0].fork().accept_token(token) == bool(bits[1])
        longest = max(end for end in range(1, len(text) + 1) if text[:end] in by_bytes)
        token = by_bytes[text[:longest]]
        assert all(matcher.accept_token(token) for matcher in matchers)
        text = text[longest:]
    assert all(matcher.accept_token(2) for matcher in matchers)


PADDED = tokfold.Vocabulary([b"</s>", b"a", b"b", b"c"], stop_token_ids=[0])


@pytest.mark.parametrize("on_error", ["end", "raise", "unconstrained"])
def test_a_token_past_the_vocabulary_had_been_masked(on_error):
    """The model has more ids than the vocabulary, and dead beams take any of them."""
    compiled = compiled_with(tokfold.Grammar.choices(["abc", "ac"]), PADDED)
    prompt, behind = torch.tensor([[1, 2]]), torch.tensor([[1, 2, 40]])
    processor = GrammarLogitsProcessor(compiled, on_error=on_error)
    processor(prompt, torch.zeros(1, 64))
    with pytest.raises(MatcherStateError, match=r"token 40, .* had been masked"):
        processor(behind, torch.zeros(1, 64))
    processor = GrammarLogitsProcessor(compiled, on_error=on_error, dead_rows="leave")
    processor(prompt, torch.zeros(1, 64))
    assert processor(behind, torch.zeros(1, 64)).isfinite().all()  # as it is
    assert not processor.failures


@pytest.mark.parametrize(
    ("of_ids", "of_scores", "said"),
    [
        ((2, 3), (3, 4), r"input_ids of shape \(2, 3\) and scores of shape \(3, 4\)"),
        ((3, 3), (2, 4), "as many rows in both"),
        ((3,), (1, 4), r"shape \(3,\)"),
        ((1, 3), (4,), r"shape \(4,\)"),
    ],
)
def test_tensors_of_other_shapes(of_ids, of_scores, said):
    processor = GrammarLogitsProcessor(compiled_with(tokfold.Grammar.choices(["ab"]), PADDED))
    scores = torch.zeros(of_scores)
    with pytest.raises(ValueError, match=said):
        processor(torch.zeros(of_ids, dtype=torch.int64), scores)
    assert scores.isfinite().all()


def test_no_text_begins_behind_an_error():
    compiled = compiled_with(tokfold.Grammar.choices(["abc", "ac"]), PADDED)
    processor = GrammarLogitsProcessor(compiled)

    def allowed(*tokens: int) -> list[int]:
        row = processor(torch.tensor([[1, 2, *tokens]]), torch.zeros(1, 4))
        return row.isfinite().nonzero()[:, 1].tolist()

    assert (allowed(), allowed(1)) == ([1], [2, 3])
    with pytest.raises(MatcherStateError, match="had been masked"):
        allowed(1, 1)
    for tokens in ((1, 1, 2), (1, 1, 2, 3)):
        with pytest.raises(MatcherStateError, match="goes on that was left"):
            allowed(*tokens)
    assert allowed() == [1]  # another generation


def test_tensors_of_other_types():
    processor = GrammarLogitsProcessor(compiled_with(tokfold.Grammar.choices(["ab"]), PADDED))
    whole, floating = torch.zeros(1, 4, dtype=torch.int64), torch.zeros(1, 4)
    for given in ((whole, whole), (floating, floating)):
        with pytest.raises(TypeError, match="input_ids must be whole numbers and scores floating"):
            processor(*given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (1.5, "stop_token_ids: expected a list of token ids, found 1.5"),
        ("</s>", "stop_token_ids: expected a list of token ids, found '</s>'"),
        ([1.5], "stop_token_ids"),
        ([10**6], "stop_token_ids: id 1000000 is outside"),
    ],
)
def test_stop_tokens_of_a_processor_that_are_none(model, tokenizer, given, said):
    with pytest.raises(tokfold.VocabularyError, match=said):
        tokfold.transformers.processor(model, tokenizer, ["yes"], stop_token_ids=given)


def test_stop_tokens_may_be_given_twice_and_as_a_tensor(model, tokenizer, monkeypatch):
    end = tokenizer.eos_token_id
    made = tokfold.transformers.processor(model, tokenizer, ["yes"], stop_token_ids=[end, end])
    monkeypatch.setattr(model.generation_config, "eos_token_id", torch.tensor([end, 5]))
    other = tokfold.transformers.processor(model, tokenizer, ["yes"])
    assert (end in made._ends, sorted(other._ends)) == (True, sorted([end, 5]))


@pytest.mark.parametrize("dead_rows", ["raise", "leave"])
def test_a_row_that_allows_nothing_ends_alone(dead_rows) -> None:
    """No token has the byte that must come next: the row ends, and those beside it go on."""
    lacking = tokfold.Vocabulary([b"a", b"b", b"</s>"], [2])
    compiled = tokfold.compile('root ::= "a"+ | "b" "c"', lacking)
    processor = GrammarLogitsProcessor(compiled, dead_rows=dead_rows)
    processor(torch.tensor([[0], [0], [0]]), torch.zeros(3, 3))
    rows = torch.tensor([[0, 0], [0, 1], [0, 0]])
    found = processor(rows, torch.zeros(3, 3)) == 0
    assert found.tolist() == [[True, False, True], [False, False, True], [True, False, True]]
    assert list(processor.failures) == [1]
    assert isinstance(processor.failures[1], tokfold.UnwritableTextError)
    raising = GrammarLogitsProcessor(compiled, dead_rows=dead_rows, on_error="raise")
    raising(torch.tensor([[0], [0], [0]]), torch.zeros(3, 3))
    with pytest.raises(tokfold.UnwritableTextError, match=r"^row 1: no token") as refusal:
        raising(rows, torch.zeros(3, 3))
    assert refusal.value.row == 1
