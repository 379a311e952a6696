"""The backend of SGLang, driven as its scheduler drives it, against tokfold's own matcher.

One file, since all of it stands on the one stand-in of the server that its fixtures make.
"""

from __future__ import annotations

import inspect
import json
import random
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from serving.server_fakes import RECORDED, is_installed
from serving.server_samples import (
    END_OF_THINK,
    EOS,
    OLD_TAG,
    PAD,
    SAMPLES,
    SCHEMA,
    SIZE,
    TAG,
    TEXT,
    THINK,
    TOKENIZER,
    TOOL,
    WORDS,
    Sample,
    allows,
    mask_of,
    run_with_entry_points,
    some_refused,
    tokens,
    truth,
)

torch = pytest.importorskip("torch")

import tokfold  # noqa: E402
import tokfold.sglang  # noqa: E402
from sglang.srt import runtime_context  # noqa: E402
from sglang.srt.constrained import base_grammar_backend as base  # noqa: E402
from support.processes import DEADLINE_S  # noqa: E402
from tokfold.sglang.backend import TokfoldGrammar, TokfoldGrammarBackend  # noqa: E402

REAL = is_installed("sglang")
only_real = pytest.mark.skipif(not REAL, reason="needs SGLang: make test-serving")
MINE = {"BaseGrammarObject": TokfoldGrammar, "BaseGrammarBackend": TokfoldGrammarBackend}
KINDS = ("json", "regex", "ebnf", "full_assistant_ebnf", "structural_tag")
OURS = [sample for sample in SAMPLES if sample.kind in KINDS]


@pytest.fixture(autouse=True)
def serving(monkeypatch):
    """What SGLang was told about serving."""
    told = SimpleNamespace(
        reasoning_parser=None,
        enable_strict_thinking=False,
        skip_tokenizer_init=False,
        constrained_json_disable_any_whitespace=False,
        constrained_json_max_whitespace_cnt=None,
    )
    monkeypatch.setattr(runtime_context, "get_serving", lambda: told)
    return told


def make_backend(eos=frozenset({EOS})):
    return tokfold.sglang.create_backend(SimpleNamespace(), TOKENIZER, SIZE, set(eos))


@pytest.fixture(scope="module")
def backend():
    with pytest.MonkeyPatch.context() as patch:
        told = SimpleNamespace(reasoning_parser=None)
        patch.setattr(runtime_context, "get_serving", lambda: told)
        return make_backend()


def made(backend, sample: Sample, reasoning: bool = False):
    """As the grammar manager asks: the cache first, then a thread."""
    key = (sample.kind, sample.spec)
    value, hit = backend.get_cached_or_future_value(key, reasoning)
    if not hit:
        value = value.result(timeout=DEADLINE_S)
        backend.set_cache(key, value.copy())
    return value


def filled(grammar) -> np.ndarray:
    mask = grammar.allocate_vocab_mask(vocab_size=SIZE, batch_size=3, device="cpu")
    assert tuple(mask.shape) == (3, WORDS)
    grammar.fill_vocab_mask(mask, 1)
    assert (mask[0] == -1).all()
    assert (mask[2] == -1).all()
    return mask[1].numpy()


class TestContract:
    @pytest.mark.parametrize("name", MINE)
    def test_calls_bind(self, name: str) -> None:
        calls = [call for group in RECORDED["sglang"]["calls"].values() for call in group]
        for owner, method, count, keywords in calls:
            if owner == name:
                static = isinstance(inspect.getattr_static(MINE[owner], method), staticmethod)
                signature = inspect.signature(getattr(MINE[owner], method))
                own = 0 if static else 1
                signature.bind(*range(count + own), **dict.fromkeys(keywords))

    @pytest.mark.parametrize("name", MINE)
    def test_methods_take_what_sglang_passes(self, name: str) -> None:
        for method, spec in RECORDED["sglang"]["names"][name]["methods"].items():
            if spec["property"] or method == "__init__":
                continue
            theirs = [one["name"] for one in spec["parameters"] if one["name"] != "self"]
            ours = list(inspect.signature(getattr(MINE[name], method)).parameters)
            assert [one for one in ours if one != "self"] == theirs

    def test_all_that_sglang_leaves_open_is_there(self) -> None:
        """What the base class only raises for; the rest of it is as good as it is."""
        ours = {name for name in vars(TokfoldGrammar) if not name.startswith("__")}
        for name in RECORDED["sglang"]["names"]["BaseGrammarObject"]["methods"]:
            assert name in ours | {"__init__", "maybe_init_reasoning", "finished"}

    @only_real
    def test_the_recorded_version_is_this_one(self) -> None:
        assert tokfold._extras.installed_version("sglang") == RECORDED["sglang"]["version"]


class TestRegister:
    def test_the_name_is_known(self) -> None:
        tokfold.sglang.register()
        tokfold.sglang.register()
        from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

        assert base.GRAMMAR_BACKEND_REGISTRY["tokfold"] is tokfold.sglang.create_backend
        assert GRAMMAR_BACKEND_CHOICES.count("tokfold") == 1

    def test_arguments_reach_other_processes(self, tmp_path) -> None:
        limits = tokfold.Limits(max_rules=9)
        tokfold.sglang.register(cache_dir=tmp_path, limits=limits)
        settings = tokfold._serving.Settings.from_environment()
        assert settings.cache_dir == tmp_path
        assert settings.limits == limits

    @only_real
    def test_sglang_makes_it_by_name(self, monkeypatch) -> None:
        tokfold.sglang.register()
        chosen = SimpleNamespace(kernel=SimpleNamespace(grammar_backend="tokfold"))
        monkeypatch.setattr(base, "get_exec", lambda: chosen)
        made = base.create_grammar_backend(SimpleNamespace(), TOKENIZER, SIZE, {EOS})
        assert isinstance(made, TokfoldGrammarBackend)

    @only_real
    def test_sglang_finds_it(self, tmp_path) -> None:
        code = (
            "import argparse\n"
            "from sglang.srt.plugins import load_plugins; load_plugins()\n"
            "from sglang.srt.constrained.base_grammar_backend import GRAMMAR_BACKEND_REGISTRY\n"
            "from sglang.srt.server_args import ServerArgs\n"
            "parser = argparse.ArgumentParser(); ServerArgs.add_cli_args(parser)\n"
            "chosen = parser.parse_args('--model-path m --grammar-backend tokfold'.split())\n"
            "print(chosen.grammar_backend in GRAMMAR_BACKEND_REGISTRY)"
        )
        assert run_with_entry_points(tmp_path, code) == "True"


class TestConversation:
    @pytest.mark.parametrize("sample", OURS, ids=lambda sample: sample.kind)
    def test_masks_and_verdicts_are_the_matchers(self, backend, sample: Sample) -> None:
        grammar, matcher = made(backend, sample), truth(sample)
        assert isinstance(grammar, base.BaseGrammarObject)
        for at, token_id in enumerate([*tokens(sample.text), EOS]):
            expected = mask_of(matcher)
            assert (filled(grammar) == expected).all()
            state = grammar.conversation.matcher.state
            for refused in [*some_refused(expected, at), -1, SIZE, 1 << 70]:
                with pytest.raises(ValueError, match="not accepted"):
                    grammar.accept_token(refused)
            assert grammar.conversation.matcher.state == state
            assert not grammar.is_terminated()
            grammar.accept_token(token_id)
            assert grammar.current_token == token_id
            assert matcher.accept_token(token_id)
        assert grammar.is_terminated()
        assert not grammar.finished
        grammar.finished = True
        assert grammar.finished

    def test_rollback(self, backend) -> None:
        grammar, rng = made(backend, OURS[0]), random.Random(1)
        ids = [*tokens(TEXT), EOS]
        masks = []
        for token_id in ids:
            masks.append(filled(grammar))
            grammar.accept_token(token_id)
        grammar.accept_token(7)  # after the end: ignored, and taken back like any other
        grammar.rollback(1)
        for _ in range(30):
            back = rng.randint(0, len(ids))
            grammar.rollback(back)
            at = len(ids) - back
            assert grammar.is_terminated() == (at == len(ids))
            if at < len(ids):
                assert (filled(grammar) == masks[at]).all()
            for token_id in ids[at:]:
                grammar.accept_token(token_id)

    def test_copies_begin_where_they_are_made(self, backend) -> None:
        grammar = made(backend, OURS[0])
        fresh = grammar.copy()
        grammar.accept_token(tokens(TEXT)[0])
        later = grammar.copy()
        assert (filled(later) == filled(grammar)).all()
        assert (filled(fresh) != filled(grammar)).any()
        later.accept_token(tokens(TEXT)[1])
        assert grammar.conversation.matcher.num_steps == 1
        assert fresh.conversation.matcher.num_steps == 0
        assert fresh.conversation.matcher.compiled is grammar.conversation.matcher.compiled
        assert fresh.grammar_stats.is_cache_hit
        assert fresh.grammar_stats.dispatch_type == "json"

    def test_a_batch_at_once(self, backend) -> None:
        for samples in (OURS, OURS * 9, OURS[:1]):
            grammars, matchers = [], []
            for number, sample in enumerate(samples):
                ids = tokens(sample.text)
                ids = ids[: number % (len(ids) + 1)]
                grammars.append(made(backend, sample))
                matchers.append(truth(sample))
                for token_id in ids:
                    grammars[-1].accept_token(token_id)
                    assert matchers[-1].accept_token(token_id)
            mask = grammars[0].allocate_vocab_mask(SIZE, 2 * len(samples), "cpu")
            entries = [base.GrammarRow(2 * at + 1, each) for at, each in enumerate(grammars)]
            grammars[0].fill_vocab_mask_batched(entries, mask)
            assert (mask[::2] == -1).all()
            for row, matcher in zip(mask[1::2].numpy(), matchers, strict=True):
                assert (row == mask_of(matcher)).all()
            grammars[0].reset_vocab_mask(mask)
            assert (mask == -1).all()

    def test_a_mask_that_is_wider_forbids_the_rest(self, backend) -> None:
        grammar = made(backend, OURS[1])
        mask = grammar.allocate_vocab_mask(SIZE + 100, 2, "cpu")
        grammar.fill_vocab_mask(mask, 0)
        assert (mask[0, :WORDS].numpy() == mask_of(truth(OURS[1]))).all()
        assert (mask[0, WORDS:] == 0).all()

    def test_logits(self, backend) -> None:
        grammar = made(backend, OURS[0])
        mask = grammar.allocate_vocab_mask(SIZE, 2, "cpu")
        grammar.fill_vocab_mask(mask, 1)
        logits = torch.zeros(2, SIZE)
        moved = grammar.move_vocab_mask(mask, logits.device)
        grammar.apply_vocab_mask(logits=logits, vocab_mask=moved)
        assert (logits[0] == 0).all()
        allowed = [allows(mask[1].numpy(), token_id) for token_id in range(SIZE)]
        assert (logits[1] == 0).tolist() == allowed
        assert set(logits[1].tolist()) == {0, -np.inf}

    def test_special_tokens_are_text_of_tags_and_whole_outputs_alone(self, backend) -> None:
        grammar = made(backend, OURS[0])
        for token_id in tokens('{"name": "'):
            grammar.accept_token(token_id)
        assert not allows(filled(grammar), TOOL)
        assert allows(filled(made(backend, Sample("structural_tag", json.dumps(TAG), ""))), TOOL)
        assert allows(filled(made(backend, Sample("full_assistant_ebnf", OURS[3].spec, ""))), THINK)


class TestJump:
    def test_the_text_that_must_come(self, backend) -> None:
        grammar = made(backend, Sample("ebnf", 'root ::= "{\\"né\\": " [0-9]+ "}"', ""))
        helper = grammar.try_jump_forward(TOKENIZER)
        assert helper == ([], '{"né": ')
        text, state = grammar.jump_forward_str_state(helper)
        old, new = [], tokens(text)
        grammar.jump_and_retokenize(old, new, state)
        assert grammar.conversation.matcher.text == text.encode()
        assert grammar.try_jump_forward(TOKENIZER) is None

    def test_retokenizing(self, backend) -> None:
        grammar = made(backend, Sample("ebnf", 'root ::= "name" [0-9]+', ""))
        old = [tokens(letter)[0] for letter in "nam"]
        for token_id in old:
            grammar.accept_token(token_id)
        with pytest.raises(ValueError, match="not accepted"):
            grammar.jump_and_retokenize(old, [*old[:2], *tokens("x")], -1)
        with pytest.raises(ValueError, match="not accepted"):
            grammar.jump_and_retokenize([*old, 7], [8], -1)
        assert grammar.conversation.matcher.text == b"nam"
        assert grammar.conversation.matcher.num_steps == 3
        grammar.jump_and_retokenize(old, [*old[:1], *tokens("ame1")], -1)
        assert grammar.conversation.matcher.text == b"name1"

    def test_characters_stay_whole(self, backend) -> None:
        grammar = made(backend, Sample("ebnf", 'root ::= "a" ("é" | "è")', ""))
        assert grammar.try_jump_forward(TOKENIZER) == ([], "a")
        grammar.accept_token(tokens("a")[0])
        assert grammar.try_jump_forward(TOKENIZER) is None

    def test_after_the_end(self, backend) -> None:
        grammar = made(backend, Sample("ebnf", 'root ::= "a"', ""))
        for token_id in [*tokens("a"), EOS]:
            grammar.accept_token(token_id)
        assert grammar.try_jump_forward(TOKENIZER) is None


INVALID = [
    ("json", "{"),
    ("json", '{"type": "nothing"}'),
    ("json", '{"not": {"type": "array", "uniqueItems": true}}'),
    ("json", '{"type": "integer", "enum": ["a"]}'),
    ("json", '{"type": "string", "pattern": "(a)\\\\1"}'),
    ("json", '{"type": "string", "pattern": "a\\u0000"}'),
    ("json", '{"items":' * 5_000 + "{}" + "}" * 5_000),
    ("regex", "a\0"),
    ("regex", "(" * 50_000),
    ("ebnf", "root ::= nowhere"),
    ("ebnf", "root ::= root"),
    ("full_assistant_ebnf", "root ::= ("),
    ("structural_tag", "{}"),
    ("structural_tag", "[]"),
    ("structural_tag", '{"structures": [{"begin": "<a>"}], "triggers": ["<a"]}'),
    ("structural_tag", '{"format": {"type": "what"}}'),
]


def _too_slow(self, token_id):
    raise tokfold.LimitExceededError("too slow", "max_accept_work", 5)


class TestHostile:
    @pytest.mark.parametrize(("kind", "spec"), INVALID)
    def test_a_wrong_grammar_is_sglangs_invalid_object(self, backend, kind, spec) -> None:
        for _ in range(2):  # from the cache too
            grammar = made(backend, Sample(kind, spec, ""))
            assert isinstance(grammar, base.InvalidGrammarObject)
            assert grammar.error_message

    def test_schemas_are_those_of_the_library(self, backend) -> None:
        """SGLang's framing needs them as values, which keep what the text says."""

        def frame(content: dict) -> dict:
            return {"format": {"type": "sequence", "elements": [content]}}

        for schema, text in (
            ('\ufeff{"const": "a"}', '"a"'),
            ('{"type": "integer", "maximum": %s}' % ("9" * 5_000), "17"),
            ('{"const": 9007199254740993.0}', "9007199254740993"),
        ):
            alone = made(backend, Sample("json", schema, ""))
            for grammar in (alone, backend.compile_framed_grammar(alone, frame)):
                for token_id in [*tokens(text), EOS]:
                    grammar.accept_token(token_id)
                assert grammar.is_terminated()

    def test_limits_bound_a_grammar(self, monkeypatch) -> None:
        monkeypatch.setenv("TOKFOLD_LIMITS", '{"max_rules": 3}')
        text = "\n".join(f'r{n} ::= "a"' for n in range(9)) + "\nroot ::= r0"
        grammar = made(make_backend(), Sample("ebnf", text, ""))
        assert "max_rules" in grammar.error_message

    def test_a_mask_past_the_limits_ends_the_request(self, monkeypatch) -> None:
        """The row allows what no draft proposes, and taking it is refused."""
        monkeypatch.setenv("TOKFOLD_LIMITS", '{"max_mask_work": 1}')
        backend = make_backend()
        grammar = made(backend, Sample("ebnf", 'root ::= [a-z]* "1"', ""))
        grammar.accept_token(tokens("a")[0])
        other = made(backend, Sample("ebnf", 'root ::= [b-z]* "1"', ""))
        mask = grammar.allocate_vocab_mask(SIZE, 2, "cpu")
        rows = [base.GrammarRow(0, grammar), base.GrammarRow(1, other)]
        grammar.fill_vocab_mask_batched(rows, mask)
        for row in mask.numpy():
            assert [i for i in range(32 * WORDS) if allows(row, i)] == [SIZE - 1]
        assert not grammar.is_terminated()
        for token_id in (EOS, SIZE - 1, *tokens("c1")):
            with pytest.raises(ValueError, match="max_mask_work"):
                grammar.accept_token(token_id)
        assert grammar.try_jump_forward(TOKENIZER) is None
        grammar.rollback(1)
        grammar.accept_token(tokens("b")[0])
        assert grammar.conversation.matcher.text == b"b"

    def test_a_token_past_the_limits_ends_the_request_at_the_next(self, monkeypatch) -> None:
        """An error would end the scheduler where it walks over drafts, which a mask allowed."""
        monkeypatch.setenv("TOKFOLD_LIMITS", '{"max_accept_work": 5}')
        text = 'root ::= "b" (x root x | "a")\nx ::= "a" | "a" x | x "a" x'
        grammar = made(make_backend(), Sample("ebnf", text, ""))
        grammar.accept_token(tokens("b")[0])
        allowed = filled(grammar)
        grammar.accept_token(tokens("a")[0])  # a draft
        assert [i for i in range(32 * WORDS) if allows(filled(grammar), i)] == [SIZE - 1]
        grammar.rollback(1)
        assert (filled(grammar) == allowed).all()
        monkeypatch.setattr(tokfold.Matcher, "accept_token", _too_slow)
        grammar.accept_token(tokens("a")[0])
        with pytest.raises(ValueError, match=f"token {SIZE - 1} is not accepted: too slow"):
            grammar.accept_token(SIZE - 1)

    def test_the_cache_is_bounded_in_bytes(self, monkeypatch) -> None:
        """What the compiler lets go is not held here instead."""
        backend = make_backend()
        samples = [Sample("ebnf", f'root ::= "{number}"', "") for number in range(5)]
        grammars = [made(backend, sample) for sample in samples]
        one = max(each.conversation.matcher.compiled.num_bytes for each in grammars)
        backend.reset()
        monkeypatch.setattr("tokfold.sglang.backend.MAX_CACHED_BYTES", 3 * one)
        for sample in samples:
            made(backend, sample)
            made(backend, samples[0])
        assert len(backend.cache) == 3
        assert ("ebnf", samples[0].spec) in backend.cache
        wrong = Sample("ebnf", "root ::= nowhere", "")
        assert isinstance(made(backend, wrong), base.InvalidGrammarObject)
        assert ("ebnf", wrong.spec) in backend.cache

    def test_what_waits_leaves_threads_to_others(self, backend) -> None:
        """SGLang's own threads, some for each CPU, would all wait for their turn to compile."""
        assert backend.executor._max_workers >= 100

    def test_the_cache_is_bounded(self, monkeypatch) -> None:
        monkeypatch.setattr("tokfold.sglang.backend.MAX_CACHED", 3)
        backend = make_backend()
        samples = [Sample("ebnf", f'root ::= "{number}"', "") for number in range(5)]
        for sample in samples:
            made(backend, sample)
            made(backend, samples[0])
        assert len(backend.cache) == 3
        assert ("ebnf", samples[0].spec) in backend.cache
        backend.reset()
        assert not backend.cache
        assert backend.grammars.text.statistics().grammars == 0

    def test_a_tokenizer_without_bytes(self) -> None:
        nobody = SimpleNamespace(get_vocab=lambda: {"##ing": 0, "word": 1})
        with pytest.raises(tokfold.VocabularyError):
            tokfold.sglang.create_backend(SimpleNamespace(), nobody, 2, {0})


class TestSettings:
    def test_backends_of_one_process_share(self, backend) -> None:
        assert make_backend().grammars is backend.grammars

    @pytest.mark.parametrize("eos", [set(), {EOS, SIZE + 3}, {EOS, PAD}])
    def test_ends_of_text(self, eos) -> None:
        backend = make_backend(eos)
        stops = {EOS} if not eos else {i for i in eos if i < SIZE}
        assert set(backend.grammars.vocabulary.stop_token_ids) == stops

    def test_tokenizers_that_know_xgrammar(self) -> None:
        import xgrammar

        info = xgrammar.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2])
        special = SimpleNamespace(init_xgrammar=lambda: (info, [2]))
        backend = tokfold.sglang.create_backend(SimpleNamespace(), special, 4, None)
        vocabulary = backend.grammars.vocabulary
        assert (vocabulary.token_bytes, vocabulary.stop_token_ids) == (
            (b"a", b"b", b"</s>", b""),
            (2,),
        )

    def test_whitespace_is_sglangs_choice(self, serving) -> None:
        serving.constrained_json_disable_any_whitespace = True
        grammar = made(make_backend(), OURS[0])
        grammar.accept_token(tokens("{")[0])
        assert not allows(filled(grammar), tokens(" ")[0])

    @pytest.mark.parametrize("arguments_ask", [True, False])
    def test_the_environment_comes_first(self, monkeypatch, serving, arguments_ask) -> None:
        serving.constrained_json_disable_any_whitespace = arguments_ask
        monkeypatch.setenv("TOKFOLD_WHITESPACE", "any")
        grammar = made(make_backend(), OURS[0])
        grammar.accept_token(tokens("{")[0])
        assert allows(filled(grammar), tokens(" ")[0])

    def test_the_longest_white_space_is_sglangs_choice(self, serving) -> None:
        serving.constrained_json_max_whitespace_cnt = 2
        grammar = made(make_backend(), OURS[0])
        for token_id in tokens("{"):
            grammar.accept_token(token_id)
        for expected in (True, True, False):
            assert allows(filled(grammar), tokens("\t")[0]) == expected
            if expected:
                grammar.accept_token(tokens("\t")[0])

    def test_objects_that_do_not_say_are_closed(self, backend) -> None:
        """As with SGLang's own back ends."""
        more = tokens(TEXT[:-1] + ', "more": 1}')
        opened = Sample("json", json.dumps({**SCHEMA, "additionalProperties": True}), "")
        for sample, expected in ((OURS[0], False), (opened, True)):
            matcher = made(backend, sample).conversation.matcher
            assert (matcher.accept_tokens(more) == len(more)) == expected, sample

    def test_every_keyword_counts(self, backend) -> None:
        sample = Sample("json", '{"type": "integer", "multipleOf": 3}', "")
        for text, expected in (("12", True), ("13", False)):
            grammar = made(backend, sample)
            for token_id in tokens(text):
                grammar.accept_token(token_id)
            assert allows(filled(grammar), EOS) == expected

    def test_any_json(self, backend) -> None:
        grammar = made(backend, Sample("json", "$$ANY$$", ""))
        for token_id in [*tokens('[1, {"a": null}]'), EOS]:
            grammar.accept_token(token_id)
        assert grammar.is_terminated()

    def test_missing_schemas_allow_any_json(self, backend) -> None:
        tag = json.loads(json.dumps(TAG))
        tag["format"]["tags"][0]["content"]["json_schema"] = None
        old = json.loads(json.dumps(OLD_TAG))
        del old["structures"][0]["schema"]
        for document, begin in ((tag, "<tool_call>"), (old, "<f>")):
            grammar = made(backend, Sample("structural_tag", json.dumps(document), ""))
            for token_id in tokens(f'{begin}{{"any": [1]}}'):
                grammar.accept_token(token_id)

    def test_filters_of_strict_thinking(self, backend) -> None:
        mask = backend.allocate_vocab_mask(SIZE, 2, "cpu")
        assert backend.is_support_token_filter
        backend.set_token_filter(mask, [31, 31, 64, 5], 1, is_allowed=True)
        assert [i for i in range(SIZE) if allows(mask[1].numpy(), i)] == [5, 31, 64]
        backend.set_token_filter(mask, [31, 5], 1, is_allowed=False, reset_vocab_mask=False)
        assert [i for i in range(SIZE) if allows(mask[1].numpy(), i)] == [64]
        backend.set_token_filter(mask, [63], 1, is_allowed=False)
        assert [i for i in range(SIZE) if not allows(mask[1].numpy(), i)] == [63]
        assert (mask[0] == -1).all()


class TestReasoning:
    @pytest.fixture
    def thinking(self, serving):
        serving.reasoning_parser = "qwen3"
        return make_backend()

    def test_it_is_free_until_its_end(self, thinking) -> None:
        grammar, matcher = made(thinking, OURS[0], True), truth(OURS[0])
        grammar.maybe_init_reasoning(True)
        for token_id in [THINK, *tokens("so what?"), END_OF_THINK]:
            mask = torch.full((1, WORDS), -1, dtype=torch.int32)
            grammar.fill_vocab_mask(mask, 0)
            assert (mask == -1).all()
            grammar.accept_token(token_id)
        for token_id in [*tokens(TEXT), EOS]:
            mask = torch.full((1, WORDS), -1, dtype=torch.int32)
            grammar.fill_vocab_mask(mask, 0)
            assert (mask[0].numpy() == mask_of(matcher)).all()
            assert not grammar.is_terminated()
            grammar.accept_token(token_id)
            matcher.accept_token(token_id)
        assert grammar.is_terminated()

    def test_without_it_the_grammar_begins_at_once(self, thinking) -> None:
        grammar = made(thinking, OURS[0], False)
        mask = torch.full((1, WORDS), -1, dtype=torch.int32)
        grammar.fill_vocab_mask(mask, 0)
        assert (mask[0].numpy() == mask_of(truth(OURS[0]))).all()

    def test_invalid_grammars(self, thinking) -> None:
        grammar = made(thinking, Sample("ebnf", "root ::= nowhere", ""), True)
        assert isinstance(grammar, base.InvalidGrammarObject)

    def test_frames_of_answers(self, backend) -> None:
        """A grammar in the frame of a model's messages; the frame's tokens are no text of it."""
        frame_backend = make_backend()
        frame_backend.reserve_framing_tokens([THINK, TOOL])

        def frame(content: dict) -> dict:
            around = [{"type": "token", "token": token_id} for token_id in (THINK, TOOL)]
            elements = [around[0], content, around[1]]
            return {
                "type": "structural_tag",
                "format": {"type": "sequence", "elements": elements},
            }

        for sample in OURS:
            inner = made(frame_backend, sample)
            framed = frame_backend.compile_framed_grammar(inner, frame)
            if sample.kind == "full_assistant_ebnf":
                assert framed is None
                continue
            if sample.kind != "structural_tag":
                for token_id in [THINK, *tokens(sample.text), TOOL, EOS]:
                    framed.accept_token(token_id)
                assert framed.is_terminated()
        any_json = made(frame_backend, Sample("json", "$$ANY$$", ""))
        assert frame_backend.compile_framed_grammar(any_json, frame) is None
        wrong = frame_backend.compile_framed_grammar(made(frame_backend, OURS[0]), lambda _: {})
        assert isinstance(wrong, base.InvalidGrammarObject)


# -- SGLang itself -------------------------------------------------------------------------------


class Req(SimpleNamespace):
    """What the grammar manager reads of SGLang's request."""

    def __init__(self, sample: Sample | None, reasoning: bool = False) -> None:
        asked = dict.fromkeys(("json_schema", "regex", "ebnf", "structural_tag"))
        if sample is not None:
            name = {"json": "json_schema", "full_assistant_ebnf": "ebnf"}.get(sample.kind)
            asked[name or sample.kind] = sample.spec
        super().__init__(
            rid="r",
            sampling_params=SimpleNamespace(
                **asked,
                ebnf_full_assistant=sample is not None and sample.kind == "full_assistant_ebnf",
                custom_params=None,
            ),
            require_reasoning=reasoning,
            origin_input_ids=[5],
            grammar=None,
            grammar_key=None,
            grammar_wait_ct=0,
            aborted=None,
        )

    def set_finish_with_abort(self, message: str) -> None:
        self.aborted = message

    def finished(self) -> bool:
        return self.aborted is not None


@only_real
class TestSglang:
    """SGLang's own manager, batch and draft tree."""

    @pytest.fixture
    def manager(self, serving, monkeypatch):
        from sglang.srt.constrained import grammar_manager

        tokfold.sglang.register()
        chosen = SimpleNamespace(kernel=SimpleNamespace(grammar_backend="tokfold"))
        alone = SimpleNamespace(pp_rank=0, pp_size=1)
        monkeypatch.setattr(base, "get_exec", lambda: chosen)
        monkeypatch.setattr(grammar_manager, "get_serving", lambda: serving)
        monkeypatch.setattr(grammar_manager, "get_parallel", lambda: alone)

        def make():
            group = SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True)
            return grammar_manager.GrammarManager(
                SimpleNamespace(
                    server_args=SimpleNamespace(),
                    tokenizer=TOKENIZER,
                    model_config=SimpleNamespace(
                        vocab_size=SIZE, hf_eos_token_id={EOS}, think_end_ids=[END_OF_THINK]
                    ),
                    dp_tp_cpu_group=None,
                    dp_tp_group=group,
                    pp_group=None,
                )
            )

        return make

    def ready(self, manager, samples, reasoning=False) -> list[Req]:
        reqs = [Req(sample, reasoning) for sample in samples]
        for req in reqs:
            manager.process_req_with_grammar(req)
        for _ in range(2_000):
            if not manager.has_waiting_grammars():
                break
            manager.get_ready_grammar_requests()
        return reqs

    def test_requests_come_and_go(self, manager) -> None:
        manager = manager()
        for _ in range(2):
            reqs = self.ready(manager, OURS)
            for req, sample in zip(reqs, OURS, strict=True):
                assert req.aborted is None
                for token_id in [*tokens(sample.text), EOS]:
                    req.grammar.accept_token(token_id)
                assert req.grammar.is_terminated()
        manager.clear()

    @pytest.mark.parametrize(("kind", "spec"), INVALID)
    def test_wrong_ones_are_aborted(self, manager, kind, spec) -> None:
        manager = manager()
        for _ in range(2):
            (req,) = self.ready(manager, [Sample(kind, spec, "")])
            assert "Failed to compile" in req.aborted

    def test_masks_of_a_batch(self, manager) -> None:
        from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo

        reqs = self.ready(manager(), OURS)
        grammars = [None, *(req.grammar for req in reqs)]
        matchers = [truth(sample) for sample in OURS]
        reqs[1].grammar.finished = True
        info = SimpleNamespace(
            grammars=grammars,
            vocab_size=SIZE,
            temperatures=[1.0] * len(grammars),
            device="cpu",
            grammar_mask=None,
        )
        SamplingBatchInfo.update_regex_vocab_mask(info)
        logits = torch.zeros(len(grammars), SIZE)
        info.grammar_mask.apply(logits)
        for row, matcher in enumerate([None, matchers[0], None, *matchers[2:]]):
            mask = None if matcher is None else mask_of(matcher)
            expected = [mask is None or allows(mask, token_id) for token_id in range(SIZE)]
            assert (logits[row] == 0).tolist() == expected

    @pytest.mark.parametrize("reasoning", [False, True])
    def test_a_tree_of_drafts(self, manager, serving, reasoning) -> None:
        """Nodes: the last token, then a chain of the text with a refused token beside each."""
        from sglang.srt.speculative.spec_utils import generate_token_bitmask

        if reasoning:
            serving.reasoning_parser = "qwen3"
            from sglang.srt.constrained import reasoner_grammar_backend  # noqa: F401
        (req,) = self.ready(manager(), OURS[:1], reasoning)
        matcher, ids = truth(OURS[0]), [*tokens(TEXT), EOS]
        if reasoning:
            for token_id in [THINK, *tokens("hm"), END_OF_THINK]:
                req.grammar.accept_token(token_id)
        depth = 4
        for at in range(len(ids)):
            chain = ids[at : at + depth]
            draft, child, sibling = [ids[at - 1] if at else PAD], [-1], [-1]
            rows, parent = [mask_of(matcher)], 0
            for token_id in chain:
                (wrong,) = some_refused(rows[parent], at, 1)
                child[parent] = len(draft)
                draft += [wrong, token_id]
                child += [-1, -1]
                sibling += [len(draft) - 1, -1]
                assert matcher.accept_token(token_id)
                all_allowed = np.full(WORDS, -1, dtype=np.int32)
                done = matcher.is_terminated
                rows += [all_allowed, all_allowed if done else mask_of(matcher)]
                parent = len(draft) - 1
            matcher.rollback(len(chain))
            bitmask, grammar = generate_token_bitmask(
                [req],
                torch.tensor([child]),
                torch.tensor([sibling]),
                torch.tensor([draft]),
                SIZE,
            )
            assert grammar is req.grammar
            assert (bitmask.numpy() == np.array(rows)).all()
            req.grammar.accept_token(ids[at])
            matcher.accept_token(ids[at])
        assert req.grammar.is_terminated()

    def test_a_refused_token_aborts_the_request_alone(self, manager) -> None:
        from sglang.srt.managers.scheduler_components.batch_result_processor import (
            SchedulerBatchResultProcessor,
        )

        (req,) = self.ready(manager(), OURS[:1])
        req.to_finish = None
        accept = SchedulerBatchResultProcessor._accept_grammar_tokens
        ids = tokens(TEXT)
        assert accept(None, req, [*ids, EOS, 7, 7]) == [*ids, EOS]
        (req,) = self.ready(manager(), OURS[:1])
        req.to_finish = None
        assert accept(None, req, [ids[0], SIZE - 1]) == ids[:1]
        assert "not accepted" in req.to_finish.message

    def test_the_wrapper_is_sglangs(self, manager, serving) -> None:
        from sglang.srt.constrained.reasoner_grammar_backend import (
            ReasonerGrammarBackend,
            ReasonerGrammarObject,
        )

        serving.reasoning_parser = "qwen3"
        manager = manager()
        assert isinstance(manager.grammar_backend, ReasonerGrammarBackend)
        (req,) = self.ready(manager, OURS[:1], True)
        assert isinstance(req.grammar, ReasonerGrammarObject)
        helper = req.grammar.try_jump_forward(TOKENIZER)
        assert helper is None
        for token_id in [*tokens("I think"), END_OF_THINK, *tokens('{"')]:
            req.grammar.accept_token(token_id)
        assert req.grammar.try_jump_forward(TOKENIZER) is not None
        req.grammar.rollback(4)
        req.grammar.accept_token(END_OF_THINK)

    def test_strict_thinking(self, manager, serving, monkeypatch) -> None:
        serving.reasoning_parser, serving.enable_strict_thinking = "qwen3", True
        monkeypatch.setenv("SGLANG_MAX_THINK_TOKENS", "2")
        (req,) = self.ready(manager(), OURS[:1], True)
        for token_id in tokens("ab"):
            req.grammar.accept_token(token_id)
        mask = req.grammar.allocate_vocab_mask(SIZE, 1, "cpu")
        req.grammar.fill_vocab_mask(mask, 0)
        assert [i for i in range(SIZE) if allows(mask[0].numpy(), i)] == [END_OF_THINK]

    def test_threads_compile_at_once(self, manager) -> None:
        backend = manager().grammar_backend
        before = backend.grammars.text.statistics().failures
        with ThreadPoolExecutor(8) as pool:
            grammars = list(pool.map(lambda sample: made(backend, sample), OURS * 8))
        assert all(isinstance(grammar, TokfoldGrammar) for grammar in grammars)
        assert backend.grammars.text.statistics().failures == before


def test_a_schema_of_text_is_the_same_as_of_values(backend) -> None:
    """The old tags have schemas as text, too."""
    old = json.loads(json.dumps(OLD_TAG))
    old["structures"][0]["schema"] = json.dumps(SCHEMA)
    grammar = made(backend, Sample("structural_tag", json.dumps(old), ""))
    matcher = truth(Sample("structural_tag", json.dumps(OLD_TAG), ""))
    for token_id in [*tokens(f"<f>{TEXT}</f>"), EOS]:
        assert (filled(grammar) == mask_of(matcher)).all()
        grammar.accept_token(token_id)
        matcher.accept_token(token_id)
