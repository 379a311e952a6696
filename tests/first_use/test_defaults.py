"""What a new user gets wrong: nothing goes wrong in silence, and each error says what to do.

One file of more than 600 lines: a list of mistakes, each by itself, that is read from one end.
"""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from itertools import product

import pytest
import tokfold
import tokfold.structural_tags
from tokfold.errors import TokfoldError, VocabularyError

BYTES = [bytes([byte]) for byte in range(256)]
STOP = 256
VOCABULARY = tokfold.Vocabulary([*BYTES, b"</s>"], stop_token_ids=[STOP])


def refused(call, *arguments, **options) -> str:
    """The text of the error, which is one of tokfold's."""
    with pytest.raises(TokfoldError) as caught:
        call(*arguments, **options)
    return str(caught.value)


# --------------------------------------------------------------- logits of another width


@pytest.mark.parametrize("width", [1, 32, 224, 256])
def test_transformers_with_fewer_logits_than_tokens(width) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokfold.transformers import GrammarLogitsProcessor

    processor = GrammarLogitsProcessor(tokfold.compile('root ::= "a"', VOCABULARY))
    scores = torch.zeros(1, width)
    with pytest.raises(VocabularyError, match=rf"{width} columns, .* 257 tokens") as caught:
        processor(torch.tensor([[5]]), scores)
    assert f"size={width}" in str(caught.value)
    assert scores.eq(0).all()  # nothing was written


def test_transformers_with_padded_logits() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokfold.transformers import GrammarLogitsProcessor

    processor = GrammarLogitsProcessor(tokfold.compile('root ::= "a"', VOCABULARY))
    found = processor(torch.tensor([[5]]), torch.zeros(1, 320))
    assert found[0].isfinite().nonzero().tolist() == [[ord("a")]]


# ------------------------------------------------------------------ tokens that a text names

TOOLS = tokfold.Vocabulary(
    [*BYTES, b"</s>", b"<|tool|>", b"<t>", b"<t>"], stop_token_ids=[STOP], special_token_ids=[257]
)


def walks(compiled, *tokens: int) -> bool:
    """Whether the tokens are a whole text."""
    matcher = tokfold.Matcher(compiled)
    return all(map(matcher.accept_token, tokens)) and matcher.is_accepting


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("compile_lark", 'start: <|tool|> "x"'),
        ("compile_grammar", 'root ::= <|tool|> "x"'),
        ("compile", 'root ::= <|tool|> "x"'),
    ],
)
def test_a_compiler_knows_the_tokens_of_its_vocabulary(method, text) -> None:
    compiler = tokfold.GrammarCompiler(TOOLS, seed=False)
    compiled = getattr(compiler, method)(text)
    assert walks(compiled, 257, ord("x"))
    assert not walks(compiled, *b"<|tool|>x")
    said = refused(getattr(compiler, method), text.replace("tool", "nope"))
    assert "<|nope|>: the vocabulary has no such token" in said


def test_compile_knows_the_tokens_of_its_vocabulary() -> None:
    assert walks(tokfold.compile("root ::= <|tool|>", TOOLS), 257)
    without = tokfold.Grammar.from_ebnf("root ::= <|tool|>")
    assert "vocabulary=" in refused(tokfold.recognize, without, "")
    tag = {"format": {"type": "grammar", "grammar": 'root ::= <|tool|> "x"'}}
    assert walks(tokfold.compile({"type": "structural_tag", **tag}, TOOLS), 257, ord("x"))


def test_a_compiler_with_another_vocabulary_for_lark() -> None:
    compiler = tokfold.GrammarCompiler(TOOLS, seed=False)
    text = "start: <|tool|>"
    assert walks(compiler.compile_lark(text, vocabulary=None), 257)
    assert walks(compiler.compile_lark(text, vocabulary=TOOLS), 257)
    said = refused(compiler.compile_lark, text, vocabulary=VOCABULARY)
    assert "leave out vocabulary=" in said


def test_tokens_are_named_where_no_text_stands() -> None:
    text = r"""
    # a comment "with <|tool|>
    root ::= "<|tool|>\"<|tool|>" [<|tool>\]] | <t> <|tool|>+ | !<t> <[65]>
    """
    grammar = tokfold.Grammar.from_ebnf(text, vocabulary=TOOLS)
    assert grammar == tokfold.Grammar.from_ebnf(
        r"""root ::= "<|tool|>\"<|tool|>" [<|tool>\]]
        | Token(258, 259) Token(257)+ | ExcludeToken(258, 259) Token(65)"""
    )


@pytest.mark.parametrize("wrong", ["=", "missing", '"unclosed'])
def test_places_behind_a_token_are_those_of_the_text(wrong) -> None:
    text = f'root ::= "a"\n  <t> <|tool|> <t> {wrong}'
    with pytest.raises(tokfold.GrammarSyntaxError) as caught:
        tokfold.Grammar.from_ebnf(text, vocabulary=TOOLS)
    assert (caught.value.line, caught.value.column) == (2, 20)
    assert str(caught.value).startswith("line 2, column 20: ")


# ------------------------------------------------------------- special tokens in tags

SPECIALS = [
    *("<tool_call>", "</tool_call>", "<think>", "</think>", "<|channel|>", "<|message|>"),
    *("<|constrain|>", "<|start|>", "<|end|>", "<|return|>", "<|call|>"),
]
MARKED = tokfold.Vocabulary(
    [*BYTES, b"</s>", *map(str.encode, SPECIALS)],
    stop_token_ids=[STOP],
    special_token_ids=range(257, 257 + len(SPECIALS)),
)
NOW = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]
QWEN_CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
HARMONY_CALL = (
    "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant"
    "<|channel|>commentary to=functions.now<|constrain|>json<|message|>{}<|call|>"
)


def tokens_of(text: str, vocabulary: tokfold.Vocabulary = MARKED) -> list[int]:
    """The tokens of a text as a tokenizer makes them: special ones first, then bytes."""
    ids, at = [], 0
    texts = {vocabulary[i].decode(): i for i in (*vocabulary.special_token_ids, STOP)}
    while at < len(text):
        found = next((t for t in texts if text.startswith(t, at)), None)
        ids += [texts[found]] if found else text[at].encode()
        at += len(found or "x")
    return ids


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("qwen_3", "Let me see. " + QWEN_CALL),
        ("qwen_3", QWEN_CALL + QWEN_CALL + " That is it."),
        ("qwen_3_coder", "<tool_call>\n<function=now>\n\n</function>\n</tool_call>"),
        ("harmony", HARMONY_CALL),
        ("harmony", "<|channel|>final<|message|>Noon.<|return|>"),
    ],
)
@pytest.mark.parametrize("markers", ["tokens", "both"])
def test_special_tokens_of_families_are_taken_whole(family, text, markers) -> None:
    tag = tokfold.structural_tags.for_model(
        family, NOW, reasoning=family == "harmony", markers=markers
    )
    for given in (tag, tokfold.Grammar.from_structural_tag(tag), json.loads(json.dumps(tag))):
        compiled = tokfold.compile(given, MARKED)
        assert walks(compiled, *tokens_of(text))
        assert walks(compiled, *text.encode()) is (markers == "both")  # the same, spelled out
        assert walks(tokfold.compile(given, VOCABULARY), *text.encode())  # without these tokens
        assert not walks(
            compiled, *tokens_of(text.replace("now", "nope", 1).replace("Noon", "<|end|>"))
        )


def test_special_tokens_in_all_texts_of_tags() -> None:
    tag = {
        "type": "tag",
        "begin": "a<think>b",
        "content": {"type": "any_text"},
        "end": ["</think>", "!"],
    }
    assert walks(
        tokfold.compile({"type": "structural_tag", "format": tag}, MARKED),
        *tokens_of("a<think>bc</think>"),
    )
    dispatch = {
        "type": "dispatch",
        "rules": [["<|channel|>x", {"type": "const_string", "value": "<think>"}]],
        "excludes": ["</think>"],
    }
    for loop, markers in product((True, False), ("tokens", "both")):
        tag = {"type": "structural_tag", "format": {**dispatch, "loop": loop}, "markers": markers}
        compiled = tokfold.compile(tag, MARKED)
        assert walks(compiled, *tokens_of("free <|channel|>x<think>"))
        assert walks(compiled, *b"free <|channel|>x<think>") is (markers == "both")
        assert walks(compiled, *b"free <|channel|")
        assert walks(compiled, *b"free <|channel|>") is (markers == "both")
        assert walks(compiled, *tokens_of("<|channel|>x<think> and <|channel|>x<think> ")) is loop
        assert not walks(compiled, *tokens_of("free <|channel|>y"))
        assert not walks(compiled, *tokens_of("free <think>"))
        assert not walks(compiled, *b"free </think>")
    listed = {
        "type": "tags_with_separator",
        "separator": "<|start|>",
        "tags": [
            {"begin": "(", "content": {"type": "const_string", "value": "<|end|>"}, "end": ")"}
        ],
    }
    compiled = tokfold.compile({"type": "structural_tag", "format": listed}, MARKED)
    assert walks(compiled, *tokens_of("(<|end|>)<|start|>(<|end|>)"))


@pytest.mark.parametrize("triggers", [["<tool_call>"], ["<tool"], ["<tool_call>f", "<tool_call>g"]])
@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("markers", ["tokens", "both", None])
def test_special_tokens_and_triggers(triggers, once, needed, markers) -> None:
    content = {"type": "const_string", "value": "x"}
    tags = [
        {"begin": f"<tool_call>{name}", "content": content, "end": "</tool_call>"} for name in "fg"
    ]
    format = {
        "type": "triggered_tags",
        "triggers": triggers,
        "tags": tags,
        "at_least_one": needed,
        "stop_after_first": once,
    }
    tag = {"type": "structural_tag", "format": format}
    compiled = tokfold.compile(tag if markers is None else {**tag, "markers": markers}, MARKED)
    call = "<tool_call>gx</tool_call>"
    spelled_out = [*call.encode()]
    if markers == "tokens":
        for before in (b"", b"text "):
            matcher = tokfold.Matcher(compiled)
            assert all(map(matcher.accept_token, before)) is (not (needed and before))
            if not (needed and before):
                assert matcher.accept_tokens(spelled_out) < len("<tool_call>")
    for spelled in [tokens_of(call), spelled_out][: 1 if markers == "tokens" else 2]:
        assert walks(compiled, *spelled)
        assert walks(compiled, *b"text ", *spelled) is (not needed)
        assert walks(compiled, *spelled, *spelled, *b" text") is (not once)
    assert walks(compiled, *b"text") is (not needed)
    assert not walks(compiled, *tokens_of(call.replace("g", "h")))
    assert not walks(compiled, *tokens_of(call)[:-1])


def test_many_tools_with_special_tokens() -> None:
    tools = [{"type": "function", "function": {"name": f"f{i}"}} for i in range(100)]
    tag = tokfold.structural_tags.for_model("qwen_3", tools, reasoning=False)
    grammar = tokfold.Grammar.from_structural_tag(tag, MARKED)
    text = "So: " + QWEN_CALL.replace("now", "f77")
    assert walks(tokfold.compile(grammar, MARKED), *tokens_of(text))
    begin = '<tool_call>\n{"name": "f77", "arguments": '
    fewer = grammar.with_tags(removed=[begin])
    assert not walks(tokfold.compile(fewer, MARKED), *tokens_of(text))
    assert walks(tokfold.compile(fewer, MARKED), *tokens_of(text.replace("77", "78")))


@pytest.mark.parametrize("wrong", ["text", 1, None])
def test_markers_are_tokens_or_both(wrong) -> None:
    tag = {"type": "structural_tag", "format": {"type": "any_text"}, "markers": wrong}
    assert "'markers' is 'tokens' or 'both'" in refused(tokfold.Grammar.from_structural_tag, tag)
    said = refused(tokfold.structural_tags.for_model, "llama", markers=wrong)
    assert "markers: it is 'tokens' or 'both'" in said


def test_a_stop_token_in_the_text_of_a_tag() -> None:
    vocabulary = MARKED.replace(stop_token_ids=[STOP, 267])
    tag = tokfold.structural_tags.for_model("harmony", NOW)
    assert walks(tokfold.compile(tag, vocabulary), *tokens_of(HARMONY_CALL))
    # What must follow a stop token never does.
    content = {"type": "const_string", "value": "me"}
    begin = {"type": "tag", "begin": "<|call|>", "content": content, "end": ""}
    tag = {"type": "structural_tag", "format": begin, "markers": "tokens"}
    said = refused(tokfold.compile, tag, vocabulary)
    assert "token 267 is a stop token, and more has to follow it in every text" in said
    assert "leave it out of the vocabulary's stop tokens" in said
    mended = vocabulary.replace(stop_token_ids=[i for i in vocabulary.stop_token_ids if i != 267])
    assert walks(tokfold.compile(tag, mended), 267, *b"me")


def test_for_model_looks_for_its_markers_in_the_vocabulary() -> None:
    for_model = tokfold.structural_tags.for_model
    assert for_model("harmony", NOW, vocabulary=MARKED) == for_model("harmony", NOW)
    ends = MARKED.replace(stop_token_ids=[STOP, 267])
    assert for_model("harmony", NOW, vocabulary=ends) == for_model("harmony", NOW)
    begins = MARKED.replace(stop_token_ids=[STOP, MARKED.token_bytes.index(b"<|channel|>")])
    said = refused(for_model, "harmony", NOW, vocabulary=begins)
    assert "'<|channel|>', which is the stop token" in said
    for_model("qwen_3", NOW, vocabulary=ends)
    ascii_only = tokfold.Vocabulary([*BYTES[:128], b"</s>"], [128], name="ascii")
    for_model("qwen_3", NOW, vocabulary=ascii_only)
    said = refused(for_model, "deepseek_v3_1", NOW, vocabulary=ascii_only)
    assert "the vocabulary 'ascii' cannot write" in said
    assert "no token has the byte b'\\xef'" in said
    marks = ["<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"]
    marks += ["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"]
    tokens = [*BYTES[:128], b"</s>", *map(str.encode, marks)]
    special = tokfold.Vocabulary(tokens, [128], range(129, len(tokens)))
    tag = for_model("deepseek_v3_1", NOW, vocabulary=special, reasoning=False)
    text = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
    ids, at = [], text + "<｜tool▁calls▁end｜>"
    while at:
        mark = next((i for i, one in enumerate(marks) if at.startswith(one)), None)
        ids.append(ord(at[0]) if mark is None else 129 + mark)
        at = at[1 if mark is None else len(marks[mark]) :]
    assert walks(tokfold.compile(tag, special), *ids)
    assert "vocabulary must be a tokfold.Vocabulary" in refused(for_model, "llama", vocabulary=3)


@pytest.mark.parametrize(
    ("family", "specials", "text"),
    [
        (
            "glm_4_7",
            [
                "<tool_call>",
                "</tool_call>",
                "<arg_key>",
                "</arg_key>",
                "<arg_value>",
                "</arg_value>",
            ],
            "<tool_call>f<arg_key>a</arg_key><arg_value>é!</arg_value></tool_call>",
        ),
        (
            "kimi_k3",
            ["<|open|>", "<|close|>", "<|sep|>"],
            '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="a" '
            'type="string"<|sep|>é!<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
            "<|close|>message<|sep|>",
        ),
        (
            "deepseek_v3_2",
            ["｜DSML｜"],
            '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="a" '
            'string="true">é!</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        ),
        (
            "minimax_m3",
            ["]<]minimax[>["],
            ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">]<]minimax[>[<a>é!'
            "]<]minimax[>[</a>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        ),
    ],
)
def test_special_tokens_in_arguments_of_families(family, specials, text) -> None:
    vocabulary = tokfold.Vocabulary(
        [*BYTES, b"</s>", *map(str.encode, specials)],
        stop_token_ids=[STOP],
        special_token_ids=range(257, 257 + len(specials)),
    )
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    tag = tokfold.structural_tags.for_model(family, tools, tool_choice="required", reasoning=False)
    if family == "kimi_k3":
        text = "<|close|>response<|sep|>" + text
    compiled = tokfold.compile(tag, vocabulary)
    assert walks(tokfold.compile({**tag, "markers": "both"}, vocabulary), *text.encode())
    assert not walks(compiled, *text.encode())
    whole = tokens_of(text, vocabulary)
    assert walks(compiled, *whole)
    value = whole.index(ord("!"))
    assert not walks(compiled, *whole[:value], 257, *whole[value:])  # no value has one


# --------------------------------------------------------------- arguments of wrong types

WRONG = [None, 3, [b"a"], object()]
COMPILED = tokfold.compile('root ::= "a"', VOCABULARY, classes="never")
TAG = {"format": {"type": "const_string", "value": "a"}}
A_GRAMMAR = tokfold.Grammar.from_ebnf('root ::= "a"')
DOORS = {
    "Vocabulary.from_file": tokfold.Vocabulary.from_file,
    "Vocabulary.from_huggingface": tokfold.Vocabulary.from_huggingface,
    "Vocabulary.from_tiktoken": tokfold.Vocabulary.from_tiktoken,
    "Grammar.from_file": tokfold.Grammar.from_file,
    "Grammar.from_ebnf": tokfold.Grammar.from_ebnf,
    "Grammar.from_lark": tokfold.Grammar.from_lark,
    "Grammar.from_regex": tokfold.Grammar.from_regex,
    "Grammar.from_structural_tag": tokfold.Grammar.from_structural_tag,
    "Grammar.choices": tokfold.Grammar.choices,
    "compile": lambda one: tokfold.compile(one, VOCABULARY),
    "compile, vocabulary": lambda one: tokfold.compile(A_GRAMMAR, one),
    "GrammarCompiler": tokfold.GrammarCompiler,
    "Matcher": tokfold.Matcher,
    "accept_string": lambda one: tokfold.Matcher(COMPILED).accept_string(one),
    "fill_bitmask": lambda one: tokfold.Matcher(COMPILED).fill_bitmask(one),
    "fill_bitmask_batch": lambda one: tokfold.fill_bitmask_batch(
        one, tokfold.allocate_bitmask(1, 257)
    ),
    "accept_token_batch": lambda one: tokfold.accept_token_batch(one, [1]),
    "recognize": lambda one: tokfold.recognize(one, "a"),
    "TokenClasses.load": tokfold.TokenClasses.load,
    "for_model": tokfold.structural_tags.for_model,
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("door", DOORS)
def test_wrong_types_are_named(door, wrong) -> None:
    said = refused(DOORS[door], wrong)
    assert "object has no attribute" not in said


@pytest.mark.parametrize("wrong", [3, "gpt2", object()], ids=["int", "str", "object"])
def test_wrong_vocabularies_and_limits_are_named(wrong) -> None:
    for call in (
        lambda: tokfold.Grammar.from_ebnf('root ::= "a"', vocabulary=wrong),
        lambda: tokfold.Grammar.from_structural_tag(TAG, wrong),
    ):
        assert "vocabulary must be a tokfold.Vocabulary, not" in refused(call)
    for call in (
        lambda: tokfold.compile(A_GRAMMAR, VOCABULARY, wrong),
        lambda: tokfold.GrammarCompiler(VOCABULARY, limits=wrong),
        lambda: tokfold.recognize(A_GRAMMAR, "a", wrong),
    ):
        assert "limits must be tokfold.Limits or None" in refused(call)
    said = refused(tokfold.compile, A_GRAMMAR, "gpt2")
    assert "Vocabulary.from_file(path)" in said


def test_a_tokenizer_for_a_vocabulary_is_told_so() -> None:
    class Tokenizer:
        def get_vocab(self):
            return {}

    said = refused(tokfold.compile, A_GRAMMAR, Tokenizer())
    assert "Vocabulary.from_huggingface(tokenizer)" in said


def test_files_that_are_not_there(tmp_path) -> None:
    path = tmp_path / "none"
    for door in (
        tokfold.Grammar.from_file,
        tokfold.Vocabulary.from_file,
        tokfold.TokenClasses.load,
        tokfold.MaskPool(VOCABULARY).load,
    ):
        assert str(path) in refused(door, path)
    with pytest.raises(FileNotFoundError):
        tokfold.Grammar.from_file(path)


def test_torch_with_wrong_arguments() -> None:
    torch = pytest.importorskip("torch")
    from tokfold.torch import Fold, MaskTable, NextMasks, apply_class_bitmask_, apply_token_bitmask_

    masks = tokfold.allocate_bitmask(1, 257)
    logits = torch.zeros(1, 257)
    assert "logits must be a torch.Tensor" in refused(apply_token_bitmask_, None, masks, 257)
    assert "float32" in refused(apply_token_bitmask_, logits.long(), masks, 257)
    assert "masks must be" in refused(apply_token_bitmask_, logits, None, 257)
    assert "masks must be int32" in refused(apply_token_bitmask_, logits, masks.view("u4"), 257)
    assert "vocab_size must be an int" in refused(apply_token_bitmask_, logits, masks, None)
    assert "rows must be" in refused(apply_token_bitmask_, logits, masks, 257, "0")
    assert "fold must be" in refused(apply_class_bitmask_, logits, masks, None)
    assert "fold must be" in refused(MaskTable, None)
    assert "not builtins.int" in refused(Fold, 3)
    compiled = tokfold.compile('root ::= "a"', VOCABULARY, classes="now")
    assert "no device 'nope'" in refused(Fold, compiled, "nope")
    assert "no device 'nope'" in refused(Fold(compiled).to, "nope")
    assert "matchers must be" in refused(NextMasks, COMPILED)
    assert "each of the matchers" in refused(NextMasks, [COMPILED])


def test_torch_bitmasks_are_taken() -> None:
    torch = pytest.importorskip("torch")
    matcher = tokfold.Matcher(COMPILED)
    bitmask = torch.zeros((2, 9), dtype=torch.int32)
    for call in (
        lambda one: matcher.fill_bitmask(one),
        lambda one: matcher.fill_bitmask_draft([97], one),
        lambda one: tokfold.fill_bitmask_batch([matcher], one),
    ):
        bitmask.zero_()
        call(bitmask)
        assert bitmask[0, 3] == 2  # written where it is
        assert "has the dtype torch.int64; pass one of torch.int32" in refused(call, bitmask.long())
        assert "is on meta; masks are written on the CPU" in refused(call, bitmask.to("meta"))
    assert matcher.fill_bitmask(bitmask.numpy())
    classes = tokfold.compile('root ::= "a"', VOCABULARY, classes="now")
    rows = torch.zeros((1, -(-len(classes.classes) // 32)), dtype=torch.int32)
    tokfold.Matcher(classes).fill_class_bitmask(rows)
    assert rows.any()


# ------------------------------------------------------------------- logits processors


@pytest.fixture(scope="module")
def tiny():
    """A tokenizer of bytes with more tokens, and a random model that is wider."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    names = ["<pad>", "</s>", "<|im_end|>", *alphabet, "in", "is"]
    model = tokenizers.models.BPE({name: i for i, name in enumerate(names)}, [])
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<pad>", "</s>", "<|im_end|>"])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", padding_side="left"
    )
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(fast) + 11,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config).eval(), fast


def generated(tiny, processor, **options) -> list[str]:
    model, tokenizer = tiny
    inputs = tokenizer(["a", "a longer one"], padding=True, return_tensors="pt")
    inputs.pop("token_type_ids", None)
    options = {"max_new_tokens": 300, "do_sample": False, **options}
    output = model.generate(**inputs, logits_processor=[processor], **options)
    return tokenizer.batch_decode(
        output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )


def sources() -> dict[str, object]:
    schema = {"type": "object", "properties": {"is": {"enum": ["a", "bb"]}}, "required": ["is"]}
    closed = {**schema, "additionalProperties": False}
    tag = {"begin": "<a>", "content": {"type": "const_string", "value": "x"}, "end": "</a>"}
    text = 'root ::= "yes" | "no"'
    return {
        "schema": closed,
        "text": text,
        "choices": ["yes", "no"],
        "Grammar": tokfold.Grammar.from_regex("(?:ab){2,4}"),
        "tag": {"type": "structural_tag", "format": {"type": "tag", **tag}},
        "type": bool,
    }


@pytest.mark.parametrize("name", sources())
def test_one_call_makes_a_processor(tiny, name) -> None:
    from tokfold.transformers import processor

    source = sources()[name]
    found = generated(tiny, processor(*tiny, source))
    grammar = tokfold.compile(source, VOCABULARY).grammar
    assert len(found) == 2
    for text in found:
        assert tokfold.recognize(grammar, text).accepted


LISTS = 'root ::= "[" (root ("," root)*)? "]" | "is"'


@pytest.mark.parametrize("options", [{}, {"do_sample": True}, {"num_beams": 3}])
def test_no_text_of_a_processor_is_cut(tiny, options) -> None:
    """A random model hardly ever ends a list by itself."""
    from tokfold.transformers import processor

    for max_tokens in (2, 3, 4, 9, 30):
        constrain = processor(*tiny, LISTS, max_tokens=max_tokens, dead_rows="leave")
        for text in generated(tiny, constrain, max_new_tokens=max_tokens, **options):
            assert tokfold.recognize(tokfold.Grammar.from_ebnf(LISTS), text).accepted
    with pytest.raises(tokfold.TokenBudgetError, match="takes 2") as caught:
        processor(*tiny, LISTS, max_tokens=1)
    assert caught.value.needed == 2


def test_one_call_for_a_pydantic_model(tiny) -> None:
    pydantic = pytest.importorskip("pydantic")
    from tokfold.transformers import processor

    class Answer(pydantic.BaseModel):
        sure: bool

    for text in generated(tiny, processor(*tiny, Answer)):
        Answer.model_validate_json(text)


def test_one_call_takes_what_was_compiled(tiny) -> None:
    from tokfold.transformers import processor

    model, tokenizer = tiny
    vocabulary = tokfold.Vocabulary.from_huggingface(tokenizer, model.config.vocab_size)
    one, two = (tokfold.compile([text], vocabulary) for text in ("one", "two"))
    assert generated(tiny, processor(model, tokenizer, one)) == ["one", "one"]
    assert generated(tiny, processor(model, tokenizer, [one, two])) == ["one", "two"]
    wide = tokfold.Vocabulary.from_huggingface(tokenizer, model.config.vocab_size + 1)
    said = refused(processor, model, tokenizer, tokfold.compile(["one"], wide))
    assert f"size={model.config.vocab_size}" in said


def test_one_call_reads_a_tokenizer_once(tiny, monkeypatch) -> None:
    from tokfold.transformers import processor

    model, tokenizer = tiny
    first = processor(model, tokenizer, ["x"])._grammars[0].vocabulary
    assert processor(model, tokenizer, ["y"])._grammars[0].vocabulary is first
    assert len(first) == model.config.vocab_size
    assert first.stop_token_ids == (1,)
    other = processor(model, tokenizer, ["y"], stop_token_ids=[1, 2])._grammars[0].vocabulary
    assert other.stop_token_ids == (1, 2)
    monkeypatch.setattr(model.generation_config, "eos_token_id", [2, 1])
    assert processor(model, tokenizer, ["y"])._grammars[0].vocabulary is other


def test_one_call_without_what_it_needs(tiny, monkeypatch) -> None:
    from tokfold.transformers import processor

    model, tokenizer = tiny
    assert "model must be a model" in refused(processor, None, tokenizer, ["x"])
    assert "no tokenizer" in refused(processor, model, None, ["x"]) or "get_vocab" in refused(
        processor, model, None, ["x"]
    )
    assert "no rule" in refused(processor, model, tokenizer, "yes")
    monkeypatch.setattr(model.generation_config, "eos_token_id", None)
    monkeypatch.setattr(model.config, "eos_token_id", None)
    said = refused(processor, model, tokenizer, ["x"])
    assert "generation_config.eos_token_id is not set" in said
    assert "the tokenizer's is 1" in said


def test_a_stop_token_that_is_not_the_models(tiny, recwarn) -> None:
    from tokfold.transformers import GrammarLogitsProcessor, processor

    model, tokenizer = tiny
    vocabulary = tokfold.Vocabulary.from_huggingface(tokenizer, stop_token_ids=[2])
    compiled = tokfold.compile(["yes"], vocabulary)
    with pytest.warns(tokfold.StopTokenWarning, match=r"stop tokens \[2\], and .* stops at \[1\]"):
        processor(model, tokenizer, compiled)
    with pytest.warns(tokfold.StopTokenWarning, match="behind 2 the text has ended"):
        GrammarLogitsProcessor(compiled, model=model)
    with pytest.warns(tokfold.StopTokenWarning, match="generation goes on without the grammar"):
        generated(tiny, GrammarLogitsProcessor(compiled))
    recwarn.clear()
    right = tokfold.compile(["yes"], vocabulary.replace(stop_token_ids=[1]))
    assert generated(tiny, GrammarLogitsProcessor(right, model=model)) == ["yes", "yes"]
    assert not [w for w in recwarn if issubclass(w.category, tokfold.StopTokenWarning)]


def test_a_model_that_stops_at_a_marker_of_a_tag(tiny, monkeypatch) -> None:
    """``generate()`` pads that row while others go on, as gpt-oss does behind ``<|call|>``."""
    from tokfold.transformers import GrammarLogitsProcessor, processor

    model, tokenizer = tiny
    vocabulary = tokfold.Vocabulary.from_huggingface(tokenizer, model.config.vocab_size, [1])

    def tag(text: str) -> tokfold.CompiledGrammar:
        content = {"type": "const_string", "value": text}
        call = {"begin": "<", "content": content, "end": "<|im_end|>"}
        calls = {
            "type": "tags_with_separator",
            "tags": [call],
            "separator": "",
            "at_least_one": True,
        }
        return tokfold.compile(
            {"format": calls, "markers": "tokens", "type": "structural_tag"}, vocabulary
        )

    both = [tag("a"), tag("abcdef")]
    monkeypatch.setattr(model.generation_config, "eos_token_id", [1, 2])
    expected = ["<a", "<abcdef"]
    assert generated(tiny, processor(model, tokenizer, both)) == expected
    assert generated(tiny, GrammarLogitsProcessor(both, model=model)) == expected
    with pytest.raises(tokfold.MatcherStateError, match="had been masked"):
        generated(tiny, GrammarLogitsProcessor(both))  # nothing says that the model has stopped


# ------------------------------------------------------------------------ mask stores

LARK = 'start: "[" [NUMBER ("," NUMBER)~0..3] "]"\nNUMBER: /[0-9]/'


@pytest.fixture(scope="module")
def store_of():
    pytest.importorskip("lark")
    from tokfold.mask_store import MaskStore, read_lark

    return lambda vocabulary: MaskStore(read_lark(LARK), vocabulary)


def test_mask_stores_in_transformers(tiny, store_of) -> None:
    from tokfold.transformers import GrammarLogitsProcessor, processor

    model, tokenizer = tiny
    store = store_of(tokfold.Vocabulary.from_huggingface(tokenizer, model.config.vocab_size))
    grammar = tokfold.Grammar.from_lark(LARK)
    for made in (GrammarLogitsProcessor(store), processor(model, tokenizer, store)):
        for text in generated(tiny, made):
            assert tokfold.recognize(grammar, text).accepted


def test_mask_stores_in_batches(store_of) -> None:
    from tokfold.mask_store import StoreMatcher

    store = store_of(VOCABULARY)
    compiled = tokfold.compile('root ::= "[1"', VOCABULARY, classes="never")
    matchers = [StoreMatcher(store), tokfold.Matcher(compiled), StoreMatcher(store)]
    rows = tokfold.allocate_bitmask(3, len(VOCABULARY))
    for matcher, token in zip(matchers, b"[[[", strict=True):
        assert matcher.accept_token(token)
    assert tokfold.accept_token_batch(matchers, list(b"]1x")).tolist() == [True, True, False]
    assert tokfold.fill_bitmask_batch(matchers, rows).tolist() == [True] * 3
    for row, matcher in zip(rows, matchers, strict=True):
        alone = tokfold.allocate_bitmask(1, len(VOCABULARY))
        matcher.fill_bitmask(alone)
        assert row.tolist() == alone[0].tolist()
    tokfold.rollback_batch(matchers, [1, 1, 0])
    assert [matcher.num_steps for matcher in matchers] == [1, 1, 1]
    said = refused(tokfold.fill_class_bitmask_batch, [matchers[0]], rows)
    assert "has no token classes" in said


def test_mask_stores_and_next_masks(store_of) -> None:
    torch = pytest.importorskip("torch")
    from tokfold.mask_store import StoreMatcher
    from tokfold.torch import NextMasks

    store = store_of(VOCABULARY)
    with NextMasks([StoreMatcher(store), StoreMatcher(store)]) as masks:
        masks.begin()
        logits = masks.apply_(torch.zeros(2, len(VOCABULARY)))
        assert logits.isfinite().nonzero().tolist() == [[0, ord("[")], [1, ord("[")]]
        masks.begin([ord("["), ord("[")])
        assert masks.apply_(torch.zeros(2, 257)).isfinite().sum(dim=1).tolist() == [11, 11]


# ------------------------------------------------------------ nothing that ends a text


def test_a_text_that_nothing_ends() -> None:
    compiled = tokfold.compile(
        'root ::= "ab"',
        tokfold.Vocabulary(BYTES),
        classes="never",
        options=tokfold.CompileOptions(check_tokens=False),
    )
    matcher = tokfold.Matcher(compiled)
    row = tokfold.allocate_bitmask(1, 256)
    assert matcher.fill_bitmask(row)
    assert matcher.accept_string("ab")
    for call in (
        lambda: matcher.fill_bitmask(row),
        lambda: matcher.fork().fill_bitmask(row[0]),
        lambda: tokfold.fill_bitmask_batch([matcher], row),
        lambda: tokfold.fill_bitmask_batch([matcher], row, [0]),
    ):
        with pytest.warns(
            tokfold.StopTokenWarning, match="terminate_without_stop_token=True"
        ) as said:
            call()
        assert "vocabulary.replace(stop_token_ids=[...])" in str(said[0].message)
        assert not row.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meant = tokfold.Matcher(compiled, stop_token_ids=[])
        assert meant.accept_string("ab")
        assert meant.fill_bitmask(row)
    ended = tokfold.Matcher(compiled, terminate_without_stop_token=True)
    assert ended.accept_string("ab")
    assert ended.is_terminated
    stopped = tokfold.Matcher(compiled, stop_token_ids=[0])
    assert stopped.accept_string("ab")
    assert stopped.fill_bitmask(row)
    assert row[0, 0] == 1


def test_a_text_that_may_go_on_needs_no_stop_token() -> None:
    compiled = tokfold.compile('root ::= "a"+', tokfold.Vocabulary(BYTES), classes="never")
    matcher = tokfold.Matcher(compiled)
    row = tokfold.allocate_bitmask(1, 256)
    assert matcher.accept_string("aaa")
    assert matcher.fill_bitmask(row)


# ------------------------------------------------------------------- names of families


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("qwen3", "qwen_3"),
        ("Qwen-3", "qwen_3"),
        ("qwen3-coder", "qwen_3_coder"),
        ("llama3", "llama"),
        ("Llama-3.1", "llama"),
        ("gpt-oss", "harmony"),
        ("gpt_oss", "harmony"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek_v3_1"),
        ("kimi-k2", "kimi"),
        ("Gemma 3", "gemma"),
        ("Gemma 4", "gemma_4"),
        ("gemma-4", "gemma_4"),
    ],
)
def test_names_of_families_as_people_write_them(name, family) -> None:
    for_model = tokfold.structural_tags.for_model
    assert for_model(name, NOW) == for_model(family, NOW)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Qwen/Qwen3-8B", "did you mean 'qwen_3'? there are: cohere"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "did you mean 'qwen_3_coder'?"),
        ("openai/gpt-oss-20b", "did you mean 'harmony'?"),
        ("meta-llama/Llama-3.1-8B-Instruct", "did you mean 'llama'?"),
        ("microsoft/Phi-4-mini-instruct", "did you mean 'phi'?"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "did you mean 'mistral'?"),
        ("hermony", "did you mean 'harmony'?"),
        ("hermes", "as 'qwen_3' does with reasoning=False"),
        ("nothing at all", "'nothing at all'; there are: cohere"),
        ("", "there is no model family ''; there are"),
        (None, "there is no model family null: pass a name; there are"),
        ("gpt-4", "'gpt-4'; there are"),
        ("gpt2", "'gpt2'; there are"),
        ("gemini-2.5", "'gemini-2.5'; there are"),
        ("gema", "did you mean 'gemma' or 'gemma_4'?"),
        ("Llama-4-Scout", "'llama' is Llama 3, which writes calls as JSON, and Llama 4 as Python;"),
    ],
)
def test_other_names_have_the_nearest_family(name, said) -> None:
    assert said in refused(tokfold.structural_tags.for_model, name)


def test_names_of_families_are_not_ambiguous() -> None:
    from tokfold.structural_tags.family_table import ALIASES, FAMILIES
    from tokfold.structural_tags.models import _squeezed

    squeezed = [_squeezed(name) for name in FAMILIES]
    assert len(set(squeezed)) == len(squeezed)
    assert not set(squeezed) & set(ALIASES)
    assert set(ALIASES.values()) <= set(FAMILIES)
    assert all(_squeezed(name) == name for name in ALIASES)


# ------------------------------------------------------------------------ names of tools


def tools_named(name: object) -> list[dict[str, object]]:
    return [{"type": "function", "function": {"name": name}}]


@pytest.mark.parametrize("family", tokfold.structural_tags.families())
def test_a_tool_without_a_name(family) -> None:
    for_model = tokfold.structural_tags.for_model
    unnamed = [{"type": "function", "function": {"parameters": {}}}]
    assert "tools[0].function: 'name' is missing" in refused(for_model, family, unnamed)
    assert "an empty name" in refused(for_model, family, tools_named(""))
    assert "'name' is a string, not null" in refused(for_model, family, tools_named(None))


@pytest.mark.parametrize(
    ("family", "name", "wrong"),
    [
        ("deepseek_v3_2", 'a"b', '"'),
        ("minimax", 'a"b', '"'),
        ("kimi_k3", 'a"b', '"'),
        ("cohere", 'a"b', '"'),
        ("qwen_3_coder", "a>b", ">"),
        ("kimi", "a:b", ":"),
        ("harmony", "a<b", "<"),
        ("glm_4_7", "a<b", "<"),
        ("mistral_13", "a[b", "["),
        ("deepseek_r1", "a\nb", "\\n"),
    ],
)
def test_a_name_that_ends_itself(family, name, wrong) -> None:
    said = refused(tokfold.structural_tags.for_model, family, tools_named(name))
    assert f"holds '{wrong}', which cannot stand in a name" in said


@pytest.mark.parametrize("family", ["llama", "qwen_3", "exaone", "mistral", "phi", "gemma"])
def test_a_name_with_a_quote_in_json(family) -> None:
    tag = tokfold.structural_tags.for_model(
        family, tools_named('a"b'), tool_choice="required", reasoning=False
    )
    grammar = tokfold.Grammar.from_structural_tag(tag)
    ((begin, end),) = {
        "llama": [('{"name": "a\\"b", "parameters": {}', "}")],
        "gemma": [('{"name": "a\\"b", "parameters": {}', "}")],
        "qwen_3": [('<tool_call>\n{"name": "a\\"b", "arguments": {}', "}\n</tool_call>")],
        "exaone": [('<tool_call>{"name": "a\\"b", "arguments": {}', "}</tool_call>")],
        "mistral": [('[TOOL_CALLS][{"name": "a\\"b", "arguments": {}', "}]")],
        "phi": [('<|tool_call|>[{"name": "a\\"b", "arguments": {}', "}]<|/tool_call|>")],
    }[family]
    assert tokfold.recognize(grammar, begin + end).accepted


# ---------------------------------------------------------------- tags of the old form


def test_the_old_form_is_shown_in_the_new_one() -> None:
    structure = {"begin": "<f=a>", "schema": {"type": "integer"}, "end": "</f>"}
    old = {"structures": [structure], "triggers": ["<f="]}
    for document in (old, {"type": "structural_tag", **old}):
        for call in (
            lambda one: tokfold.Grammar.from_structural_tag(one),
            lambda one: tokfold.compile(one, VOCABULARY),
            lambda one: tokfold.Grammar.from_structural_tag(json.dumps(one)),
        ):
            said = refused(call, document)
            assert said.startswith("this is the old form of structural tags; write it so: {")
            new = json.loads(said.partition("so: ")[2])
            grammar = tokfold.Grammar.from_structural_tag(new)
            assert tokfold.recognize(grammar, "so <f=a>12</f>.").accepted
            assert not tokfold.recognize(grammar, "so <f=a>x</f>.").accepted


@pytest.mark.parametrize(
    "old",
    [
        {"structures": [], "triggers": []},
        {"structures": [{}], "triggers": ["<"]},
        {"structures": None, "triggers": ["<"]},
        {"structures": [{"begin": "<", "schema": "{", "end": ">"}], "triggers": ["<"]},
        {
            "structures": [{"begin": "<", "schema": {"enum": ["x" * 3000]}, "end": ">"}],
            "triggers": ["<"],
        },
    ],
)
def test_other_tags_of_the_old_form_are_told_the_new_one(old) -> None:
    said = refused(tokfold.Grammar.from_structural_tag, old)
    assert '"type": "triggered_tags", "triggers": [...]' in said


def test_a_tag_without_its_type_is_no_schema() -> None:
    compiled = tokfold.compile({"format": {"type": "const_string", "value": "a"}}, VOCABULARY)
    assert walks(compiled, ord("a"))


# Tokens that a grammar names by their texts, read before there is a vocabulary

NAMING = {
    "text": lambda **options: tokfold.Grammar.from_ebnf('root ::= "a" <|tool|>', **options),
    "Lark": lambda **options: tokfold.Grammar.from_lark('start: "a" <|tool|>', **options),
}


@pytest.mark.parametrize("name", NAMING)
def test_tokens_are_looked_up_where_the_grammar_is_compiled(name: str) -> None:
    late, early = NAMING[name](), NAMING[name](vocabulary=TOOLS)
    compiler = tokfold.GrammarCompiler(TOOLS)
    word = tokfold.Grammar.choices(["a"]).optional()
    for grammar in (late, pickle.loads(pickle.dumps(late)), copy.copy(late), word + late):
        for compiled in (tokfold.compile(grammar, TOOLS), compiler.compile_grammar(grammar)):
            assert walks(compiled, ord("a"), 257)
    assert tokfold.compile(late, TOOLS).grammar == early
    assert tokfold.compile_classes(late, TOOLS) is not None
    assert late == NAMING[name]()
    assert hash(late) == hash(NAMING[name]())
    assert late != early
    assert repr(late).endswith("names tokens of a vocabulary)")
    said = refused(tokfold.recognize, late, "a")
    method = "from_ebnf" if name == "text" else "from_lark"
    assert f"pass the vocabulary, Grammar.{method}(text, vocabulary=vocabulary)" in said
    assert "<|tool|>" in said
    assert said == refused(tokfold.recognize, word + late, "a")
    assert "no such token" in refused(tokfold.compile, late, VOCABULARY)


def test_all_else_in_a_text_that_names_tokens_is_looked_at_at_once() -> None:
    said = refused(tokfold.Grammar.from_ebnf, 'root ::= "a" <think> %')
    assert said.startswith("line 1, column 22: ")
    said = refused(tokfold.Grammar.from_lark, 'start: "a" <think> b')
    assert said.startswith("line 1, column 20: ")


TEXT_OF_LARK = [
    "start: NAME\nNAME: /[a-z]+/",
    "  %import common.INT\nx: INT %",
    "?start[lazy]: x::0",
]
GRAMMAR_TEXT = ['root ::= "a" b\nb ::= [a-z]+', 'root[lazy] ::= "a"', "# first\n  x.y-1 ::= <t>"]


@pytest.mark.parametrize("text", TEXT_OF_LARK)
def test_lark_is_told_from_grammar_text(text: str) -> None:
    line, column = (1, 3) if text.startswith(" ") else (1, 1)
    for given in ({}, {"vocabulary": TOOLS}):
        said = refused(tokfold.Grammar.from_ebnf, text, **given)
        assert said.startswith(f"line {line}, column {column}: this is Lark")
        assert "call Grammar.from_lark(text)" in said
    assert "is Lark; call Grammar.from_lark(text)" in refused(tokfold.compile, text, TOOLS)


@pytest.mark.parametrize("text", GRAMMAR_TEXT)
def test_grammar_text_is_told_from_lark(text: str) -> None:
    line, column = (2, 3) if text.startswith("#") else (1, 1)
    said = refused(tokfold.Grammar.from_lark, text)
    assert said.startswith(f"line {line}, column {column}: this is grammar text")
    assert "call Grammar.from_ebnf(text)" in said


def test_other_faults_are_told_as_they_are() -> None:
    assert "`x` is not defined" in refused(tokfold.Grammar.from_lark, "start: x")
    for text in ('root ::= "a" %', 'root: "a"\nb ::= "a"', "a pattern: [a-z"):
        assert "this is Lark" not in refused(tokfold.Grammar.from_ebnf, text)


# ------------------------------------------------------------------------- saved states


def test_a_matcher_from_a_saved_state_says_whether_it_has_its_text() -> None:
    compiled = tokfold.compile("root ::= [a-z]*", VOCABULARY)
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_string("abc")
    assert matcher.has_whole_text
    saved = tokfold.MatcherState.from_bytes(matcher.state.to_bytes())
    assert repr(saved).endswith(" bytes, 3 bytes of text before it>")
    restored = tokfold.Matcher.from_state(compiled, saved)
    assert restored.accept_string("de")
    assert (restored.text, restored.has_whole_text) == (b"abcde", True)
    assert restored.state.text == b"abcde"

    saved = tokfold.MatcherState.from_bytes(saved.without_text().to_bytes())
    assert saved == matcher.state
    assert hash(saved) == hash(matcher.state)
    assert repr(saved).endswith(" bytes, without the text before it>")
    without = tokfold.Matcher.from_state(compiled, saved)
    assert not without.has_whole_text
    said = refused(lambda: without.text)
    assert said.startswith("the text is not known, since this matcher was made from a state")
    assert "Matcher.from_state(compiled, state, text=...)" in said
    assert without.state.text is None
    assert tokfold.Matcher.from_state(compiled, saved, text=b"").text == b""
    assert repr(without) == "<Matcher after 0 steps, from a state without its text>"
    assert not without.fork().has_whole_text

    whole = tokfold.Matcher.from_state(compiled, saved, text=matcher.text)
    assert whole.accept_string("def")
    assert (whole.text, whole.has_whole_text) == (b"abcdef", True)
    fork = whole.fork()
    fork.rollback()
    assert fork.text == b"abc"
    assert fork.state == saved
    said = refused(tokfold.Matcher.from_state, compiled, saved, text="abc")
    assert said == "text must be the bytes that were read before, matcher.text, not str"


@pytest.mark.parametrize("size", [0, 65_536, 65_537])
def test_how_long_a_text_a_state_keeps(size) -> None:
    compiled = tokfold.compile("root ::= [a-z]*", VOCABULARY, classes="never")
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_bytes(b"a" * size)
    for state in (
        matcher.state,
        tokfold.MatcherState.from_bytes(matcher.state.to_bytes()),
        pickle.loads(pickle.dumps(matcher.state)),
        copy.copy(matcher.state),
    ):
        assert state.text == (b"a" * size if size <= 65_536 else None)
        assert tokfold.Matcher.from_state(compiled, state).has_whole_text is (size <= 65_536)


def test_a_matcher_that_is_moved_to_other_tools_keeps_its_text() -> None:
    tag = {"type": "tag", "begin": "<f>", "content": {"type": "any_text"}, "end": "</f>"}
    free = {"type": "triggered_tags", "triggers": ["<"], "tags": [tag]}
    grammar = tokfold.Grammar.from_structural_tag({"type": "structural_tag", "format": free})
    matcher = tokfold.Matcher(tokfold.compile(grammar, VOCABULARY))
    assert matcher.accept_string("I look. ")
    more = grammar.with_tags(added=[{**tag, "begin": "<g>", "end": "</g>"}])
    moved = matcher.moved_to(tokfold.compile(more, VOCABULARY))
    assert moved.accept_string("<g>")
    assert moved.text == b"I look. <g>"


# ------------------------------------------------------------------------ forced tokens


def test_forced_tokens_leave_what_may_merge() -> None:
    """``encode_greedy(forced_bytes())`` keeps the last quote, which may merge with the name."""
    tokens = [*BYTES, b"</s>", b'{"', b"name", b'": "', b'"A', b"<s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[256], special_token_ids=[261])
    compiled = tokfold.compile(r'root ::= "{\"name\": \"" [A-Z]+ "\"}"', vocabulary)
    matcher = tokfold.Matcher(compiled)
    assert vocabulary.encode_greedy(matcher.forced_bytes()) == [257, 258, 259]
    assert matcher.forced_tokens() == [257, 258]
    assert matcher.num_steps == 0

    def encode(text: str) -> list[int]:
        assert text == '{"name": "'
        return [257, *b"name", *b'": ', ord('"')]

    assert matcher.forced_tokens(encode) == [257, *b"name", *b'": ']
    said = refused(matcher.forced_tokens, lambda text: [261, *encode(text)])
    assert said.startswith("encode must write the text '{\"name\": \"' alone, and wrote b'<s>{")
    assert "add_special_tokens=False" in said
    assert matcher.accept_string('{"name": "A')
    assert matcher.forced_tokens() == []


def test_forced_tokens_within_a_character() -> None:
    compiled = tokfold.compile('root ::= "a" [é-ê]', VOCABULARY)  # c3 a9, c3 aa
    matcher = tokfold.Matcher(compiled)
    assert matcher.forced_bytes() == b"a\xc3"
    assert matcher.forced_tokens() == [97, 0xC3]
    assert matcher.forced_tokens(lambda text: list(text.encode())) == [97]


# ------------------------------------------------------------------ prefixes in the prompt


@pytest.mark.parametrize("max_tokens", [None, 5])
def test_the_prefill_of_an_assistant_is_part_of_the_text(tiny, max_tokens) -> None:
    from tokfold.transformers import processor

    grammar = r'root ::= "{\"name\": " ("true" | "null") "}"'
    prefix = '{"name": '
    constrain = processor(*tiny, grammar, prefix=prefix, max_tokens=6)
    for text in generated(tiny, constrain, max_new_tokens=6):
        assert text in ("true}", "null}")
    said = refused(processor, *tiny, grammar, prefix='{"age": ', max_tokens=max_tokens)
    assert said.startswith(
        """no text of the grammar begins with the prefix '{"age": ': byte 3 of 8"""
    )
    if max_tokens:
        said = refused(processor, *tiny, grammar, prefix=prefix, max_tokens=5)
        assert said.startswith("5 tokens are left, and the shortest completion of the text takes 6")
    assert "prefix must be a str, not bytes" in refused(processor, *tiny, grammar, prefix=b"{")


def test_a_sequence_begins_behind_its_prefix() -> None:
    from tokfold._history import Sequence

    compiled = tokfold.compile('root ::= "ab" [cd]', VOCABULARY)
    sequence = Sequence(compiled, prefix="ab")
    sequence.follow([1, 2, 3])
    assert sequence.allowed(257).nonzero()[0].tolist() == [ord("c"), ord("d")]
    sequence.follow([1, 2, 3, ord("c")])
    assert sequence.allowed(257).nonzero()[0].tolist() == [STOP]


# ------------------------------------------------------------------ what a call does not take


def test_a_row_that_no_token_can_go_on() -> None:
    """The vocabulary lacks a byte of the grammar, and no other processor is to blame."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokfold.transformers import GrammarLogitsProcessor

    vocabulary = tokfold.Vocabulary([b"[", b"]", b"1", b"</s>"], stop_token_ids=[3])
    options = tokfold.CompileOptions(check_tokens=False)
    compiled = tokfold.compile('root ::= "[" | "[12]"', vocabulary, options=options)
    processor = GrammarLogitsProcessor(compiled, on_error="raise")
    ids = torch.tensor([[0]])
    for token in (0, 2):
        processor(ids, torch.zeros(1, 4))
        ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
    with pytest.raises(tokfold.UnwritableTextError) as refusal:
        processor(ids, torch.zeros(1, 4))
    assert str(refusal.value) == (
        "row 0: no token of the vocabulary spells what must come next, '2': take a vocabulary that "
        "has it, or have the grammar say something else"
    )
    # Where another one leaves nothing, that is said as before.
    processor = GrammarLogitsProcessor(compiled, on_error="raise")
    said = refused(processor, torch.tensor([[0]]), torch.full((1, 4), -torch.inf))
    assert "Another processor" in said
