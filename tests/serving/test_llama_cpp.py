"""The logits processor of llama-cpp-python: by its call shape, and with a tiny model.

The call shape is that of ``Llama._init_sampler``: ``input_ids`` is a view of a buffer that is
written on, ``scores`` a column of an array of records, and what is returned is written into it.
"""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np
import pytest
import tokfold
from serving import tiny_gguf
from serving.processor_contract import (
    RECORD,
    SIZE,
    STOP,
    Contract,
    allowed,
    bits,
    by_itself,
    compiled,
    ids,
    only,
    taken,
)
from tokfold.errors import MatcherStateError, MissingExtraError, VocabularyError
from tokfold.llama_cpp import GrammarLogitsProcessor, vocabulary

RECORDS = np.dtype([("id", np.intc), ("logit", np.single), ("p", np.single)], align=True)


class Driver:
    def __init__(self, grammar, **options) -> None:
        self.processor = GrammarLogitsProcessor(grammar, **options)
        self.buffer = np.zeros(512, dtype=np.intc)

    def __call__(self, tokens, width=SIZE, dtype="float32"):
        del dtype  # single precision it is
        records = np.zeros(width, dtype=RECORDS)
        records["id"], records["p"] = np.arange(width), 0.5
        self.buffer[: len(tokens)] = tokens
        column = records["logit"]
        column[:] = self.processor(self.buffer[: len(tokens)], column)
        assert (records["id"] == np.arange(width)).all()
        assert (records["p"] == 0.5).all()
        return column.tolist()


class TestCallShape(Contract):
    @pytest.fixture
    def drive(self):
        return Driver


def test_a_text_that_ends_by_itself_stops() -> None:
    """The library need not wait for the stop token that alone may come."""
    call = Driver(by_itself('root ::= "ab"'))
    text = [5, *ids("ab")]
    for end in range(1, len(text) + 1):
        call(text[:end])
        assert call.processor.should_stop(call.buffer[:end], np.zeros(SIZE)) == (end == len(text))


def test_scores_keep_their_values() -> None:
    processor = GrammarLogitsProcessor(compiled())
    before = np.linspace(-2, 2, SIZE, dtype=np.single)
    scores = before.copy()
    assert processor(np.array([5], dtype=np.intc), scores) is scores
    mask = np.array(bits(tokfold.Matcher(compiled())))
    assert (scores[mask] == before[mask]).all()
    assert np.isneginf(scores[~mask]).all()


def test_more_than_one_row() -> None:
    processor = GrammarLogitsProcessor(compiled())
    with pytest.raises(ValueError, match=r"\(width,\), not \(1, 109\)"):
        processor(np.array([5], dtype=np.intc), np.zeros((1, SIZE), dtype=np.single))
    with pytest.raises(ValueError, match=r"\(length,\), not \(1, 1\)"):
        processor(np.array([[5]], dtype=np.intc), np.zeros(SIZE, dtype=np.single))


def test_a_text_that_fails_stops_where_the_model_ends_it(monkeypatch) -> None:
    call = Driver(compiled())
    call([5])

    def limited(matcher, bitmask, row=0):
        raise tokfold.LimitExceededError("too much", "max_mask_work", 1)

    monkeypatch.setattr(tokfold.Matcher, "fill_bitmask", limited)
    brace = ids("{")
    assert taken(call([5, *brace])) == [token == STOP for token in range(SIZE)]
    call.processor.check()
    assert not call.processor.should_stop(None, None)
    call([5, *brace, STOP])
    assert call.processor.should_stop(None, None)
    assert call.processor.failures[0].limit == "max_mask_work"


def test_an_error_leaves_scores_to_choose_from() -> None:
    """The library drops the error, and would draw from scores that are all -inf."""
    options = tokfold.CompileOptions(check_tokens=False)
    vocabulary = tokfold.Vocabulary([b"a", b"b"])
    endless = tokfold.compile('root ::= "a"', vocabulary, options=options)
    for grammar, width, error in (
        (endless, 2, MatcherStateError),  # no stop token
        (compiled(), SIZE, MatcherStateError),
        (compiled(), 9, VocabularyError),  # none that has a score
    ):
        processor = GrammarLogitsProcessor(grammar, on_error="raise")
        scores = np.zeros(width, dtype=np.single)
        if error == MatcherStateError:
            processor(np.array([5], dtype=np.intc), scores)
        scores[:] = 0
        with pytest.raises(error):
            processor(np.array([5, 1], dtype=np.intc), scores)
        assert taken(scores.tolist()) == (only(STOP) if width == SIZE else [True] * width)
        with pytest.raises(error):
            processor.should_stop(None, None)


def test_several_tokens_at_once() -> None:
    """Drafts, with which llama-cpp-python tells processors more than what was generated."""
    call, text = Driver(compiled()), ids('{"name')
    call([5])
    with pytest.raises(MatcherStateError, match=r"draft_model; call reset\(\)"):
        call([5, *text])
    assert taken(call([5, text[0]])) == allowed(RECORD, text[:1])
    call.processor.reset()
    assert taken(call([5, *text, 6, 7])) == allowed(RECORD, [])


def test_what_llama_cpp_python_drops() -> None:
    """An error leaves only the end, and is raised where it is heard."""
    call = Driver(compiled())
    none = np.zeros(0)
    call([5])
    assert not call.processor.should_stop(none, none)
    scores = np.zeros(SIZE, dtype=np.single)
    for ask in (lambda: call.processor.should_stop(none, none), call.processor.check):
        with pytest.raises(MatcherStateError, match="had been masked"):
            call.processor(np.array([5, *ids("x")]), scores)
        assert [*np.flatnonzero(scores == 0)] == [STOP]
        with pytest.raises(MatcherStateError, match="had been masked"):
            ask()
        ask()  # once
    with pytest.raises(MatcherStateError, match="had been masked"):
        call([5, *ids("x")])
    call.processor.reset()
    call.processor.check()
    ended = Driver(compiled('root ::= "a"'))
    for tokens in ([5], [5, *ids("a")], [5, *ids("a"), STOP]):
        assert not ended.processor.should_stop(none, none)
        ended(tokens)
    assert ended.processor.should_stop(none, none)


def test_the_extra_that_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    module = importlib.reload(importlib.import_module("tokfold.llama_cpp"))  # needs numpy alone
    with pytest.raises(MissingExtraError, match=r"\.\[llama-cpp\]"):
        module.vocabulary(None)


# ------------------------------------------------------------------ with a model

# What a processor raises is printed, and dropped.
DROPPED = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

WORDS = [" ", "{", "}", '"', ":", ",", *"abcdefghij", *"0123456789", ' "', '":', '{"', "ab", "ageh"]
PERSON = r"""
root   ::= "{" "\"a\":" string ",\"b\":" [1-9] [0-9]{0,2} "}"
string ::= "\"" [a-z é]{0,20} "\""
"""


@pytest.fixture(scope="module")
def api():
    return pytest.importorskip("llama_cpp")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tiny_gguf.write(tmp_path_factory.mktemp("models") / "tiny.gguf", WORDS)


@pytest.fixture(scope="module")
def llm(api, path):
    return api.Llama(str(path), n_ctx=256, n_threads=1, verbose=False)


def tokens_of(words: list[str]) -> list[bytes]:
    alphabet = [bytes([byte]) for byte in range(256)]
    return [b"<unk>", b"<s>", b"</s>", *alphabet, *(word.encode() for word in words)]


def test_the_vocabulary_of_a_model(api, llm, monkeypatch) -> None:
    found = vocabulary(llm)
    assert list(found) == tokens_of(WORDS)
    assert (found.stop_token_ids, found.special_token_ids) == ((2,), (0, 1))
    assert found.name == "tiny"
    for kind, reason in (
        (api.LLAMA_VOCAB_TYPE_WPM, "WordPiece"),
        (api.LLAMA_VOCAB_TYPE_NONE, "no"),
    ):
        monkeypatch.setattr(api, "llama_vocab_type", lambda _, kind=kind: kind)
        with pytest.raises(VocabularyError, match=rf"tiny\.gguf: the file has {reason}"):
            vocabulary(llm)


def test_a_token_of_many_bytes(api, tmp_path) -> None:
    words = ["a" * 33, "b" * 700]
    llm = api.Llama(str(tiny_gguf.write(tmp_path / "long.gguf", words)), n_ctx=64, verbose=False)
    assert list(vocabulary(llm)) == tokens_of(words)
    assert llm.detokenize([259]) == b""  # why the page on integrations names it


class Recorder:
    """A processor after ours that compares what it sees with a matcher of its own."""

    def __init__(self, compiled) -> None:
        self.compiled, self.start, self.calls = compiled, None, 0

    def __call__(self, input_ids, scores):
        self.start = len(input_ids) if self.start is None else self.start
        matcher = tokfold.Matcher(self.compiled)
        for token in input_ids[self.start :].tolist():
            assert matcher.accept_token(token)
        size = len(self.compiled.vocabulary)
        bitmask = tokfold.allocate_bitmask(1, size)
        matcher.fill_bitmask(bitmask)
        expected = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:size]
        self.calls += bool((np.isfinite(scores) == expected).all())
        self.seen = len(input_ids) - self.start + 1
        return scores


@pytest.mark.parametrize("options", [{"temperature": 0}, {"top_k": 0, "top_p": 1.0, "min_p": 0}])
@pytest.mark.parametrize("engine", ["own engine", "XGrammar over classes"])
def test_completions(api, llm, options, engine) -> None:
    own = tokfold.compile(tokfold.Grammar.from_ebnf(PERSON), vocabulary(llm))
    grammar = own
    if engine != "own engine":
        xgr = pytest.importorskip("xgrammar")
        from tokfold import xgrammar as txgr

        tokens = [b"", b"", *list(own.vocabulary)[2:]]
        info = xgr.TokenizerInfo(tokens, xgr.VocabType.RAW, stop_token_ids=[2])
        grammar = txgr.GrammarCompiler(info).compile_grammar(PERSON)
    processor = GrammarLogitsProcessor(grammar)
    for seed in range(6):
        recorder = Recorder(own)
        answer = llm.create_completion(
            f"{seed % 3}: a person",
            max_tokens=120,
            seed=seed,
            logits_processor=api.LogitsProcessorList([processor, recorder]),
            stopping_criteria=api.StoppingCriteriaList([processor.should_stop]),
            **options,
        )["choices"][0]
        assert answer["finish_reason"] == "stop"
        assert list(json.loads(answer["text"])) == ["a", "b"]
        assert recorder.calls == recorder.seen > 5


@DROPPED
def test_a_stream_and_the_next_turn(api, llm) -> None:
    grammar = tokfold.compile(tokfold.Grammar.from_ebnf(PERSON), vocabulary(llm))
    processor = GrammarLogitsProcessor(grammar)
    options = {
        "max_tokens": 100,
        "logits_processor": [processor],
        "stopping_criteria": processor.should_stop,
    }
    prompt = llm.tokenize(b"a person")
    parts = [part["choices"][0]["text"] for part in llm(prompt, stream=True, seed=3, **options)]
    first = llm._input_ids.tolist()
    json.loads("".join(parts))
    again = [*first, *llm.tokenize(b", and one more", add_bos=False)]
    with pytest.raises(MatcherStateError, match=r"several tokens .* call reset\(\)"):
        llm(again, **options)
    processor.reset()
    json.loads(llm(again, **options)["choices"][0]["text"])


@DROPPED
def test_a_draft_model(api, path) -> None:
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    llm = api.Llama(
        str(path),
        n_ctx=256,
        verbose=False,
        draft_model=LlamaPromptLookupDecoding(num_pred_tokens=3),
    )
    grammar = tokfold.compile(tokfold.Grammar.from_ebnf('root ::= "ababababab"'), vocabulary(llm))
    processor = GrammarLogitsProcessor(grammar)
    with pytest.raises(MatcherStateError, match="draft_model"):
        llm("abababab", logits_processor=[processor], stopping_criteria=processor.should_stop)


@DROPPED
def test_a_chat(api, path) -> None:
    """It takes no stopping criteria."""
    llm = api.Llama(str(path), n_ctx=256, verbose=False, chat_format="llama-2")
    grammar = tokfold.compile(tokfold.Grammar.from_ebnf(PERSON), vocabulary(llm))
    messages = [{"role": "user", "content": "a person"}]
    processor = GrammarLogitsProcessor(grammar)
    answer = llm.create_chat_completion(messages, logits_processor=[processor], max_tokens=80)
    json.loads(answer["choices"][0]["message"]["content"])
    processor.check()

    def allow_another(input_ids, scores):
        scores[:] = -np.inf
        scores[[2, 259]] = [0, 1]
        return scores

    llm.create_chat_completion(
        messages, logits_processor=[processor, allow_another], max_tokens=3, temperature=0
    )
    with pytest.raises(MatcherStateError, match="token 259, generated at place 0"):
        processor.check()


def test_a_stop_token_that_the_file_does_not_know(llm) -> None:
    of_file = vocabulary(llm)
    end = list(of_file).index(b"j")
    own = of_file.replace(stop_token_ids=[end])
    processor = GrammarLogitsProcessor(
        tokfold.compile(tokfold.Grammar.from_ebnf('root ::= "ab" "c"'), own)
    )
    prompt = llm.tokenize(b"x")
    tokens = [
        *llm.generate(
            prompt, logits_processor=[processor], stopping_criteria=processor.should_stop, temp=0
        )
    ]
    assert own.decode(tokens) == b"abcj"


def test_logit_bias_takes_the_place_of_processors(api, llm) -> None:
    """As the documentation says."""
    calls = []

    def record(input_ids, scores):
        calls.append(len(input_ids))
        return scores

    llm("x", max_tokens=2, logits_processor=api.LogitsProcessorList([record]), logit_bias={5: 1.0})
    assert calls == []
