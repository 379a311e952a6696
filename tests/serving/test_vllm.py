"""The backend of vLLM, driven as its engine drives it, against tokfold's own matcher.

One file, since all of it stands on the one stand-in of the server that its fixtures make.
"""

from __future__ import annotations

import inspect
import json
import random
import re
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from serving.server_fakes import RECORDED, is_installed
from serving.server_samples import (
    END_OF_THINK,
    EOS,
    PAD,
    SAMPLES,
    SCHEMA,
    SIZE,
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
import tokfold.vllm  # noqa: E402
from support import processes  # noqa: E402
from support.processes import DEADLINE_S  # noqa: E402
from tokfold._serving import Passed  # noqa: E402
from tokfold._tags import assembly  # noqa: E402
from tokfold.interrupt import governing  # noqa: E402
from tokfold.vllm import backend as backend_module  # noqa: E402
from tokfold.vllm.backend import (  # noqa: E402
    TokfoldBackend,
    TokfoldGrammar,
    check_request,
    end_in_time,
)
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.sampling_params import SamplingParams, StructuredOutputsParams  # noqa: E402
from vllm.v1.structured_output import StructuredOutputManager  # noqa: E402
from vllm.v1.structured_output.backend_types import (  # noqa: E402
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

REAL = is_installed("vllm")
only_real = pytest.mark.skipif(not REAL, reason="needs vLLM: make test-serving")
MINE = {"StructuredOutputGrammar": TokfoldGrammar, "StructuredOutputBackend": TokfoldBackend}
OPTIONS = {
    "ebnf": StructuredOutputOptions.GRAMMAR,
    "lark": StructuredOutputOptions.GRAMMAR,
    **{option.name.lower(): option for option in StructuredOutputOptions},
}
OURS = [sample for sample in SAMPLES if sample.kind in OPTIONS]
CONFIG = SimpleNamespace(
    structured_outputs_config=SimpleNamespace(backend="auto", disable_any_whitespace=False)
)


def make_backend() -> TokfoldBackend:
    return TokfoldBackend(CONFIG, tokenizer=TOKENIZER, vocab_size=SIZE)


@pytest.fixture(scope="module")
def backend():
    return make_backend()


def compiled(backend, sample: Sample, stops=None) -> TokfoldGrammar:
    return backend.compile_grammar(OPTIONS[sample.kind], sample.spec, stop_token_ids=stops)


def filled(backend, grammar) -> np.ndarray:
    bitmask = backend.allocate_token_bitmask(3)
    grammar.fill_bitmask(bitmask, 1)
    assert (bitmask[0] == -1).all()
    assert (bitmask[2] == -1).all()
    return bitmask[1].numpy()


class TestContract:
    @pytest.mark.parametrize("name", MINE)
    def test_methods_take_what_vllm_passes(self, name: str) -> None:
        for method, spec in RECORDED["vllm"]["names"][name]["methods"].items():
            ours = inspect.signature(getattr(MINE[name], method)).parameters
            theirs = [one["name"] for one in spec["parameters"]]
            assert list(ours)[: len(theirs)] == theirs or method == "fill_bitmask"

    def test_calls_bind(self) -> None:
        calls = [call for made in RECORDED["vllm"]["calls"].values() for call in made]
        assert len(calls) >= 8
        for owner, method, count, keywords in calls:
            signature = inspect.signature(getattr(MINE[owner], method))
            signature.bind(*range(count + 1), **dict.fromkeys(keywords))

    def test_they_are_vllms(self, backend) -> None:
        assert isinstance(backend, StructuredOutputBackend)
        assert isinstance(compiled(backend, OURS[0]), StructuredOutputGrammar)

    @only_real
    def test_the_recorded_version_is_this_one(self) -> None:
        assert (
            tokfold._extras.installed_version("vllm").split("+")[0] == (RECORDED["vllm"]["version"])
        )


class TestConversation:
    @pytest.mark.parametrize("sample", OURS, ids=lambda sample: sample.kind)
    def test_masks_and_verdicts_are_the_matchers(self, backend, sample: Sample) -> None:
        grammar, matcher = compiled(backend, sample), truth(sample)
        for at, token_id in enumerate([*tokens(sample.text), EOS]):
            expected = mask_of(matcher)
            assert (filled(backend, grammar) == expected).all()
            state = grammar.conversation.matcher.state
            for refused in some_refused(expected, at):
                assert not matcher.accept_token(refused)
                assert not grammar.accept_tokens("r", [refused])
                assert grammar.validate_tokens([refused, token_id]) == []
            if token_id != EOS:  # one that is refused takes those before it back
                assert not grammar.accept_tokens("r", [token_id, SIZE - 1])
            assert grammar.conversation.matcher.state == state
            assert not grammar.is_terminated()
            assert grammar.accept_tokens("r", [token_id])
            assert matcher.accept_token(token_id)
        assert grammar.is_terminated()
        grammar.reset()
        assert not grammar.is_terminated()
        assert grammar.accept_tokens("r", [*tokens(sample.text), EOS])
        assert grammar.is_terminated()

    def test_validation_goes_to_the_end_and_leaves_the_state(self, backend) -> None:
        grammar = compiled(backend, OURS[0])
        ids = tokens(TEXT)
        before = filled(backend, grammar)
        assert grammar.validate_tokens([*ids, EOS, 7, 7]) == [*ids, EOS]
        assert grammar.validate_tokens([*ids[:4], PAD, *ids[4:]]) == ids[:4]
        assert grammar.validate_tokens([]) == []
        assert grammar.validate_tokens([-1, SIZE, 1 << 70]) == []
        assert (filled(backend, grammar) == before).all()
        assert not grammar.is_terminated()
        grammar.accept_tokens("r", [*ids, EOS])
        assert grammar.validate_tokens([5]) == []

    def test_drafts_are_taken_back(self, backend) -> None:
        """As the manager fills the rows of a draft: accept one by one, then roll all back."""
        grammar, rng = compiled(backend, OURS[0]), random.Random(1)
        ids = [*tokens(TEXT), EOS]
        masks = []
        for token_id in ids:
            masks.append(filled(backend, grammar))
            grammar.accept_tokens("r", [token_id])
        for _ in range(30):
            back = rng.randint(0, len(ids))
            grammar.rollback(back)
            at = len(ids) - back
            assert grammar.is_terminated() == (at == len(ids))
            if at < len(ids):
                assert (filled(backend, grammar) == masks[at]).all()
            assert grammar.accept_tokens("r", ids[at:])

    def test_what_follows_the_end_is_ignored(self, backend) -> None:
        grammar = compiled(backend, OURS[2])
        ids = [*tokens("2024-"), EOS]
        assert grammar.accept_tokens("r", [*ids, 7])
        assert grammar.is_terminated()
        assert grammar.accept_tokens("r", [8, 9])
        grammar.rollback(3)
        assert grammar.is_terminated()
        grammar.rollback(1)
        assert not grammar.is_terminated()
        with pytest.raises(tokfold.MatcherStateError):
            grammar.rollback(len(ids))

    def test_the_ends_of_a_request(self, backend) -> None:
        """EOS and the request's own ids end it; what the model does not have is left out."""
        grammar = compiled(backend, OURS[2], {EOS, TOOL, SIZE + 5})
        assert not allows(filled(backend, grammar), TOOL)
        grammar.accept_tokens("r", tokens("20-"))
        mask = filled(backend, grammar)
        assert allows(mask, TOOL)
        assert allows(mask, EOS)
        assert grammar.accept_tokens("r", [TOOL])
        assert grammar.is_terminated()

    def test_special_tokens_are_text_of_tags_alone(self, backend) -> None:
        text = compiled(backend, OURS[0])
        text.accept_tokens("r", tokens('{"name": "'))
        assert not allows(filled(backend, text), TOOL)
        tag = compiled(backend, next(s for s in OURS if s.kind == "structural_tag"))
        assert allows(filled(backend, tag), TOOL)
        assert tag.accept_tokens("r", [TOOL])

    def test_rows_of_a_batch_in_threads(self, backend) -> None:
        samples = OURS * 8
        grammars, matchers = [], []
        for number, sample in enumerate(samples):
            ids = tokens(sample.text)
            ids = ids[: number % (len(ids) + 1)]
            grammars.append(compiled(backend, sample))
            matchers.append(truth(sample))
            assert grammars[-1].accept_tokens("r", ids)
            assert matchers[-1].accept_tokens(ids) == len(ids)
        bitmask = backend.allocate_token_bitmask(len(samples))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda at: grammars[at].fill_bitmask(bitmask, at), range(len(samples))))
        for row, matcher in zip(bitmask.numpy(), matchers, strict=True):
            assert (row == mask_of(matcher)).all()

    def test_equal_requests_are_compiled_once(self, backend) -> None:
        one, two = compiled(backend, OURS[0]), compiled(backend, OURS[0])
        assert one.conversation.matcher.compiled is two.conversation.matcher.compiled
        one.accept_tokens("r", tokens("{"))
        assert two.conversation.matcher.num_steps == 0


CALLS = {
    "type": "triggered_tags",
    "triggers": ["<a"],
    "tags": [
        {
            "begin": "<a>",
            "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
            "end": "</a>",
        }
    ],
}
INVALID = [
    ("json", "{"),
    ("json", '{"type": "nothing"}'),
    ("json", '{"not": {"type": "array", "uniqueItems": true}}'),
    ("json", '{"type": "integer", "enum": ["a"]}'),
    ("json", '{"type": "string", "pattern": "(a)\\\\1"}'),
    ("json", '{"$ref": "#/nowhere"}'),
    ("json", '{"type": "string", "pattern": "a\\u0000"}'),
    ("json", '{"items":' * 5_000 + "{}" + "}" * 5_000),
    ("regex", "a\0"),
    ("regex", "(" * 50_000),
    ("regex", "["),
    ("ebnf", "root ::= "),
    ("ebnf", "root ::= nowhere"),
    ("ebnf", "root ::= root"),
    ("ebnf", ""),
    ("choice", "[]"),
    ("choice", '"yes"'),
    ("choice", "[1]"),
    ("choice", '["a\\u0000"]'),
    ("structural_tag", "{}"),
    ("structural_tag", "[]"),
    ("structural_tag", "{"),
    ("structural_tag", '{"structures": [{"begin": "<a>"}], "triggers": ["<a"]}'),
    ("structural_tag", '{"structures": [], "triggers": ["<a"]}'),
    ("structural_tag", '{"format": {"type": "what"}}'),
    ("structural_tag", "<a>"),
    ("structural_tag", json.dumps({"format": {**CALLS, "triggers": ["<a", "<b"]}})),
    ("structural_tag", json.dumps({"format": CALLS}).replace("integer", "intege")),
    ("structural_tag", json.dumps({"format": {"type": "grammar", "grammar": "root ::= <a> b"}})),
]


class TestHostile:
    @pytest.mark.parametrize(("kind", "spec"), INVALID)
    def test_a_wrong_grammar_is_an_error_of_its_request(self, backend, kind, spec) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - of many kinds
            compiled(backend, Sample(kind, spec, ""))

    def test_limits_bound_a_grammar(self, monkeypatch) -> None:
        monkeypatch.setenv("TOKFOLD_LIMITS", '{"max_rules": 3}')
        text = "\n".join(f'r{n} ::= "a"' for n in range(9)) + "\nroot ::= r0"
        with pytest.raises(ValueError, match="max_rules"):
            compiled(make_backend(), Sample("ebnf", text, ""))

    def test_a_mask_past_the_limits_ends_the_request(self, monkeypatch) -> None:
        """The row allows an end alone, and taking it is refused: no truncated answer."""
        monkeypatch.setenv("TOKFOLD_LIMITS", '{"max_mask_work": 1}')
        backend = make_backend()
        grammar = compiled(backend, Sample("ebnf", 'root ::= [a-z]* "1"', ""))
        grammar.accept_tokens("r", tokens("ab"))
        mask = filled(backend, grammar)
        assert [i for i in range(32 * WORDS) if allows(mask, i)] == [EOS]
        assert not grammar.is_terminated()
        for token_id in (EOS, *tokens("c1")):
            assert not grammar.accept_tokens("r", [token_id])
            assert grammar.validate_tokens([token_id]) == []
        assert grammar.conversation.matcher.text == b"ab"
        grammar.rollback(1)
        assert grammar.accept_tokens("r", tokens("b1"))

    def test_a_token_past_the_limits_is_refused(self, monkeypatch) -> None:
        monkeypatch.setenv("TOKFOLD_LIMITS", '{"max_accept_work": 5}')
        text = 'root ::= "b" (x root x | "a")\nx ::= "a" | "a" x | x "a" x'
        grammar = compiled(make_backend(), Sample("ebnf", text, ""))
        assert grammar.accept_tokens("r", tokens("b"))
        assert not grammar.accept_tokens("r", tokens("a"))
        assert grammar.conversation.matcher.text == b"b"
        assert grammar.validate_tokens(tokens("a")) == []
        grammar.rollback(1)

    @pytest.mark.parametrize("value", ["[]", "{", '{"max_what": 1}', '{"max_rules": 0}'])
    def test_limits_that_cannot_be_read(self, monkeypatch, value) -> None:
        monkeypatch.setenv("TOKFOLD_LIMITS", value)
        with pytest.raises(ValueError, match="TOKFOLD_LIMITS"):
            make_backend()


class TestSettings:
    def test_engines_of_one_process_share(self, backend) -> None:
        assert make_backend().grammars is backend.grammars

    def test_whitespace_is_the_operators_choice(self, monkeypatch) -> None:
        """vLLM refuses its own option where it chooses the back end."""
        monkeypatch.setenv("TOKFOLD_WHITESPACE", "compact")
        backend = make_backend()
        grammar = compiled(backend, OURS[0])
        assert grammar.validate_tokens(tokens("{ ")) != tokens("{ ")
        spaces = TEXT.replace(": ", ":").replace(", ", ",")
        assert grammar.accept_tokens("r", [*tokens(spaces), EOS])

    def test_objects_that_do_not_say_are_closed(self, backend) -> None:
        """As with vLLM's own back ends."""
        more = tokens(TEXT[:-1] + ', "more": 1}')
        assert not compiled(backend, OURS[0]).accept_tokens("r", more)
        opened = Sample("json", json.dumps({**SCHEMA, "additionalProperties": True}), "")
        assert compiled(backend, opened).accept_tokens("r", [*more, EOS])

    def test_every_keyword_counts(self, backend) -> None:
        sample = Sample("json", '{"type": "integer", "multipleOf": 3}', "")
        assert compiled(backend, sample).accept_tokens("r", [*tokens("12"), EOS])
        assert not compiled(backend, sample).accept_tokens("r", [*tokens("13"), EOS])

    def test_a_folder_is_shared(self, monkeypatch, tmp_path) -> None:
        monkeypatch.setenv("TOKFOLD_CACHE_DIR", str(tmp_path))
        backend = make_backend()
        grammar = compiled(backend, OURS[0])
        filled(backend, grammar)
        backend.destroy()
        with pytest.raises(ValueError, match="destroyed"):
            compiled(backend, OURS[0])
        del backend, grammar
        assert [path for path in tmp_path.iterdir() if "mask-pool" in path.name]
        again = make_backend()
        assert again.grammars.text.pool.counters()["entries"] > 0

    def test_the_pool_is_saved_now_and_then(self, monkeypatch, tmp_path) -> None:
        monkeypatch.setenv("TOKFOLD_CACHE_DIR", str(tmp_path))
        backend = make_backend()
        for number in range(16):
            assert not list(tmp_path.glob("*mask-pool*"))
            tag = {"format": {"type": "const_string", "value": str(number)}}
            text = Sample("ebnf", f'root ::= "{number}"', "")
            compiled(backend, Sample("structural_tag", json.dumps(tag), "") if number % 2 else text)
        assert list(tmp_path.glob("*mask-pool*"))


# -- how vLLM comes to it --------------------------------------------------------------------------


@pytest.fixture
def installed():
    tokfold.vllm.install()
    yield
    tokfold.vllm.uninstall()


def make_params(**options):
    params = StructuredOutputsParams(**options)
    sampling = SamplingParams.__new__(SamplingParams)
    sampling.structured_outputs = params
    return sampling, params


def verify(sampling, backend="auto", **model) -> None:
    SamplingParams._validate_structured_outputs(
        sampling,
        SimpleNamespace(is_diffusion=False, **model),
        SimpleNamespace(backend=backend),
        TOKENIZER,
    )


class TestPlugin:
    def test_it_does_nothing_unless_it_is_asked(self, monkeypatch) -> None:
        before = StructuredOutputManager.grammar_init, SamplingParams._validate_structured_outputs
        for value in ("", "0", "false"):
            monkeypatch.setenv("TOKFOLD_VLLM", value)
            tokfold.vllm.plugin()
        monkeypatch.setenv("TOKFOLD_VLLM", "ture")
        with pytest.warns(UserWarning, match="TOKFOLD_VLLM must be 1 or 0, not 'ture'"):
            tokfold.vllm.plugin()
        after = StructuredOutputManager.grammar_init, SamplingParams._validate_structured_outputs
        assert before == after

    def test_it_imports_nothing_of_vllm_unless_it_is_asked(self) -> None:
        code = (
            "import sys, tokfold.vllm; tokfold.vllm.plugin(); "
            "print([n for n in sys.modules if n.split('.')[0] in ('vllm', 'torch')])"
        )
        run = processes.run([sys.executable, "-c", code], check=True)
        assert run.stdout.strip() == "[]"

    def test_it_installs_where_the_environment_says(self, monkeypatch) -> None:
        monkeypatch.setenv("TOKFOLD_VLLM", "1")
        before = StructuredOutputManager.grammar_init
        tokfold.vllm.plugin()
        tokfold.vllm.plugin()
        try:
            assert StructuredOutputManager.grammar_init._tokfold_wraps is before
        finally:
            tokfold.vllm.uninstall()
        assert StructuredOutputManager.grammar_init is before

    def test_installing_tells_the_processes_of_vllm(self, monkeypatch, tmp_path) -> None:
        limits = tokfold.Limits(max_rules=9)
        tokfold.vllm.install(cache_dir=tmp_path, classes="never", limits=limits)
        try:
            settings = tokfold._serving.Settings.from_environment()
            assert (settings.cache_dir, settings.classes) == (tmp_path, "never")
            assert settings.limits == limits
            assert __import__("os").environ["TOKFOLD_VLLM"] == "1"
        finally:
            tokfold.vllm.uninstall()

    def test_plugins_that_keep_it_out(self, monkeypatch) -> None:
        monkeypatch.setenv("VLLM_PLUGINS", "other")
        with pytest.raises(ValueError, match="VLLM_PLUGINS"):
            tokfold.vllm.install()

    def test_a_vllm_that_is_made_otherwise(self, monkeypatch) -> None:
        before = SamplingParams._validate_structured_outputs
        monkeypatch.delattr(StructuredOutputManager, "grammar_init")
        with pytest.raises(RuntimeError, match="grammar_init"):
            tokfold.vllm.install()
        assert SamplingParams._validate_structured_outputs is before

    @pytest.mark.skipif(REAL, reason="vLLM is installed")
    @pytest.mark.parametrize(
        ("code", "extra"),
        [
            ("import tokfold.vllm; tokfold.vllm.install()", "vllm"),
            ("import tokfold.sglang; tokfold.sglang.register()", "sglang"),
        ],
    )
    def test_what_is_missing_names_its_extra(self, code: str, extra: str) -> None:
        run = processes.run([sys.executable, "-c", code])
        assert f'pip install ".[{extra}]" in a checkout of tokfold' in run.stderr
        assert "MissingExtraError" in run.stderr

    def test_a_method_of_other_parameters(self, monkeypatch) -> None:
        monkeypatch.setattr(StructuredOutputManager, "grammar_init", lambda self, other: None)
        with pytest.raises(RuntimeError, match="grammar_init"):
            tokfold.vllm.install()

    @only_real
    @pytest.mark.parametrize("asked", ["", "1"])
    def test_vllm_finds_it(self, tmp_path, asked: str) -> None:
        code = (
            "from vllm.plugins import load_general_plugins; load_general_plugins()\n"
            "from vllm.v1.structured_output import StructuredOutputManager as manager\n"
            "from vllm.sampling_params import SamplingParams as sampling\n"
            "methods = manager.grammar_init, sampling._validate_structured_outputs\n"
            "print([hasattr(method, '_tokfold_wraps') for method in methods])"
        )
        found = run_with_entry_points(tmp_path, code, TOKFOLD_VLLM=asked)
        assert found == str([bool(asked)] * 2)


def options_of(sample: Sample) -> dict:
    value = sample.spec
    name = {"ebnf": "grammar", "lark": "grammar"}.get(sample.kind, sample.kind)
    if name == "json_object":
        return {name: True}
    return {name: json.loads(value) if name == "choice" else value}


@pytest.mark.usefixtures("installed")
class TestValidation:
    @pytest.mark.parametrize("sample", OURS, ids=lambda sample: sample.kind)
    def test_good_requests_are_ours(self, sample: Sample) -> None:
        sampling, params = make_params(**options_of(sample))
        verify(sampling)
        verify(sampling)  # parameters may be used again
        assert (params._backend, params._backend_was_auto) == ("tokfold", True)

    @pytest.mark.parametrize(
        ("kind", "spec"),
        [
            (kind, spec)
            for kind, spec in INVALID
            # the frontend has lists of texts alone
            if kind != "choice" or spec == "[]"
        ],
    )
    def test_bad_ones_are_refused_at_once(self, kind: str, spec: str) -> None:
        if kind == "ebnf" and spec == "root ::= root":
            pytest.skip("only compiling shows that there is no text")
        sampling, params = make_params(**options_of(Sample(kind, spec, "")))
        with pytest.raises(VLLMValidationError, match="Invalid structured outputs"):
            verify(sampling)
        assert params._backend is None

    def test_what_is_wrong_with_a_tag_is_told_at_once(self) -> None:
        for spec, said in (
            ("<a>", 'is no JSON: line 1, column 1: Expecting value; write {"type": "structural_t'),
            ("[]", "a structural tag is a JSON object, not a list"),
            ('{"type": "structural_tag"}', "a structural tag has a 'format', and this one has non"),
            (INVALID[-3][1], "format.triggers[1] (triggered_tags): no tag begins with this trigge"),
            (INVALID[-2][1], "behind '<a>': #: type: expected one of"),
        ):
            with pytest.raises(VLLMValidationError, match=re.escape(said)):
                verify(make_params(structural_tag=spec)[0])

    def test_tokens_of_a_tag_that_only_the_engine_knows(self) -> None:
        """Each is some token, and another one than all others."""
        tag = {"content": {"type": "any_tokens"}, "end": {"token": "</a>"}}
        tags = [{**tag, "begin": {"token": name}} for name in ("<a>", "<b>")]
        free = {"type": "token_triggered_tags", "trigger_tokens": ["<a>", "<b>"], "tags": tags}
        grammar = {"type": "grammar", "grammar": "root ::= <a> !<b>"}
        for format in (free, grammar, {"type": "sequence", "elements": [grammar, free]}):
            verify(make_params(structural_tag=json.dumps({"format": format}))[0])
        tags[1]["begin"]["token"] = "<c>"
        with pytest.raises(VLLMValidationError, match="trigger"):
            verify(make_params(structural_tag=json.dumps({"format": free}))[0])

    @pytest.mark.parametrize("given", ['"abc"', '{"a": 1}', 3, [], "3"])
    def test_choices_that_are_no_list_of_texts(self, given) -> None:
        """The class of the server itself refuses some of them before."""
        with pytest.raises(
            (VLLMValidationError, ValueError), match=r"are a list of texts|valid list"
        ):
            verify(make_params(choice=given)[0])

    @pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, '["\\u0000"]'])
    def test_choices_as_text_that_nobody_can_read(self, backend, text) -> None:
        with pytest.raises(VLLMValidationError, match=r"list of choices (is nested|holds NUL)"):
            check_request(make_params(choice=text)[1])
        with pytest.raises(ValueError, match=r"list of choices (is nested|holds NUL)"):
            backend.compile_grammar(StructuredOutputOptions.CHOICE, text)

    def test_a_tag_that_takes_long_is_the_engines_to_read(self, monkeypatch) -> None:
        monkeypatch.setattr(backend_module, "_passed", Passed())
        monkeypatch.setattr(
            assembly, "Interrupt", SimpleNamespace(_of=lambda *_: tokfold.Interrupt(0)._core)
        )
        verify(make_params(structural_tag=INVALID[-2][1])[0])
        ends = tokfold.Interrupt(60_000)._core
        with governing(ends):  # of each schema, not only between two of them
            assert tokfold.Interrupt._of(None, tokfold.Limits()) is ends

    def test_lark_with_a_literal_that_looks_like_grammar_text(self, backend) -> None:
        text = 'start: "a" OP "b"\nOP: "::="\n'
        verify(make_params(grammar=text)[0])
        grammar = compiled(backend, Sample("lark", text, ""))
        assert grammar.conversation.matcher.accept_string("a::=b")

    def test_schemas_as_values(self) -> None:
        sampling, params = make_params(json=SCHEMA)
        verify(sampling)
        assert params._backend == "tokfold"
        check_request(params)

    def test_what_has_passed_is_not_read_again(self, monkeypatch) -> None:
        """The same schema in each request costs a digest; another limit or text is read."""
        read = []
        original = backend_module._read
        monkeypatch.setattr(
            backend_module, "_read", lambda *given: read.append(given[0]) or original(*given)
        )
        monkeypatch.setattr(backend_module, "_passed", Passed(2))
        for _ in range(3):
            verify(make_params(json=SCHEMA)[0])
            verify(make_params(json_object=True)[0])
        assert read == ["json"] * 2
        for _ in range(2):
            with pytest.raises(VLLMValidationError):
                verify(make_params(regex="(a)\\1")[0])
        assert read.count("regex") == 2  # a refusal says why each time
        verify(make_params(choice=["a", "b"])[0])  # the third: the first is forgotten
        verify(make_params(json=SCHEMA)[0])
        assert read.count("json") == 3
        monkeypatch.setenv("TOKFOLD_LIMITS", '{"max_schema_formulas": 1000}')
        verify(make_params(json=SCHEMA)[0])
        assert read.count("json") == 4

    def test_what_takes_long_is_the_engines_to_read(self, monkeypatch) -> None:
        """A frontend reads on its event loop, where each request waits for the one before."""
        given = []

        def slow(kind: str, text: str, limits: tokfold.Limits) -> None:
            del kind, text
            given.append(limits.max_compile_milliseconds)
            raise tokfold.DeadlineExceededError("late", "max_compile_milliseconds", given[-1])

        monkeypatch.setenv("TOKFOLD_COMPILE_MILLISECONDS", "2000")
        monkeypatch.setattr(backend_module, "_read", slow)
        monkeypatch.setattr(backend_module, "_passed", Passed())
        for _ in range(2):
            verify(make_params(json=SCHEMA)[0])
        assert given == [backend_module.FRONTEND_MILLISECONDS]
        for milliseconds, passes in (("0", True), ("51", True), ("50", False), ("7", False)):
            monkeypatch.setenv("TOKFOLD_COMPILE_MILLISECONDS", milliseconds)
            if passes:
                verify(make_params(json=SCHEMA)[0])
                continue
            with pytest.raises(VLLMValidationError, match="late"):  # so it is in the engine
                verify(make_params(json=SCHEMA)[0])
        assert given[1:] == [50, 50, 50, 7]

    def test_json_object_must_be_true(self) -> None:
        with pytest.raises(VLLMValidationError, match="json_object"):
            verify(make_params(json_object=False)[0])

    def test_who_names_a_backend_gets_it(self) -> None:
        sampling, params = make_params(regex="[0-9]+")
        verify(sampling, backend="xgrammar")
        assert params._backend != "tokfold"


def make_manager() -> StructuredOutputManager:
    manager = StructuredOutputManager.__new__(StructuredOutputManager)
    config = SimpleNamespace(
        model_config=SimpleNamespace(
            get_vocab_size=lambda: SIZE, is_diffusion=False, skip_tokenizer_init=False
        ),
        structured_outputs_config=CONFIG.structured_outputs_config,
        scheduler_config=SimpleNamespace(max_num_seqs=300),
        num_speculative_tokens=0,
    )
    manager.__dict__.update(
        backend=None,
        backend_name=None,
        reasoner_cls=None,
        vllm_config=config,
        _use_async_grammar_compilation=False,
        _grammar_bitmask=None,
        _full_mask=torch.tensor(-1, dtype=torch.int32),
        fill_bitmask_parallel_threshold=16,
        fill_bitmask_parallel_batch_size=4,
        tokenizer=TOKENIZER,
        enable_in_reasoning=False,
        executor=ThreadPoolExecutor(2),
        executor_for_fillmask=ThreadPoolExecutor(4),
    )
    return manager


class Request(SimpleNamespace):
    """What the manager and the wrapper read of vLLM's request."""

    def __init__(
        self, number: int, params, stops: set[int] | None = None, max_tokens: int | None = None
    ) -> None:
        key = None
        if not REAL:
            asked = {k: v for k, v in vars(params).items() if v is not None and k[0] != "_"}
            ((kind, value),) = asked.items()
            key = OPTIONS["ebnf" if kind == "grammar" else kind], value
        super().__init__(
            request_id=f"r{number}",
            sampling_params=SimpleNamespace(
                structured_outputs=params,
                all_stop_token_ids=stops or {EOS},
                max_tokens=max_tokens,
            ),
            structured_output_request=SimpleNamespace(structured_output_key=key, grammar=None),
            use_structured_output=True,
            prompt_token_ids=[5, 6],
            all_token_ids=[5, 6],
        )
        if REAL:
            from vllm.v1.structured_output.request import StructuredOutputRequest

            self.structured_output_request = StructuredOutputRequest(params=params)


@pytest.mark.usefixtures("installed")
class TestChoice:
    def test_the_first_request_makes_the_backend(self) -> None:
        manager = make_manager()
        for number, backend_name in enumerate(["tokfold", "xgrammar"]):
            params = StructuredOutputsParams(regex="[0-9]+")
            # the second came from a frontend without the plugin
            params._backend, params._backend_was_auto = backend_name, True
            request = Request(number, params)
            manager.grammar_init(request)
            assert isinstance(request.structured_output_request.grammar, TokfoldGrammar)
            assert (manager.backend_name, params._backend) == ("tokfold", "tokfold")
        assert isinstance(manager.backend, TokfoldBackend)

    def test_what_is_not_ours_is_vllms(self) -> None:
        manager = make_manager()
        params = StructuredOutputsParams(regex="[0-9]+")
        params._backend = "nobody's"
        with pytest.raises(ValueError, match="nobody's"):
            manager.grammar_init(Request(0, params))
        assert manager.backend is None


@pytest.mark.usefixtures("installed")
class TestEndingInTime:
    """With TOKFOLD_END_IN_TIME=1 a text ends within the max_tokens of its request."""

    TEXT = 'root ::= "[" (root ("," root)*)? "]"'

    def start(self, monkeypatch, max_tokens, text=TEXT, switch="1"):
        monkeypatch.setenv("TOKFOLD_END_IN_TIME", switch)
        params = StructuredOutputsParams(grammar=text)
        params._backend, params._backend_was_auto = "tokfold", True
        request = Request(0, params, max_tokens=max_tokens)
        manager = make_manager()
        manager.grammar_init(request)
        return request, request.structured_output_request.grammar

    def walk(self, request, grammar, seed, most=60) -> int:
        """Random tokens that are allowed; how many there were until the text ended."""
        draw = random.Random(seed)
        for count in range(most):
            if grammar.is_terminated():
                return count
            rows = torch.full((1, WORDS), -1, dtype=torch.int32)
            grammar.fill_bitmask(rows, 0)
            allowed = [token for token in range(SIZE) if allows(rows[0].numpy(), token)]
            # What opens is likelier than what closes.
            opening = [token for token in allowed if "[" in TOKENIZER.decode([token])]
            token = draw.choice(opening if opening and draw.random() < 0.9 else allowed)
            request.num_output_tokens = getattr(request, "num_output_tokens", 0) + 1
            assert grammar.accept_tokens("r0", [token])
        return most

    def test_a_text_ends(self, monkeypatch) -> None:
        for seed in range(20):
            budget = 3 + seed
            request, grammar = self.start(monkeypatch, budget)
            assert self.walk(request, grammar, seed) <= budget

    def test_the_last_tokens_begin_nothing_new(self, monkeypatch) -> None:
        """From there on lists are closed: masks are those of a matcher that prefers the end."""
        monkeypatch.setenv("TOKFOLD_PREFER_END", "12")
        for seed in range(10):
            request, grammar = self.start(monkeypatch, 24)
            assert grammar.conversation.prefer_end == 12
            compiled = grammar.conversation.matcher.compiled
            twin = tokfold.Matcher(compiled, max_tokens=24, prefer_end=12)
            draw = random.Random(seed)
            while not grammar.is_terminated():
                rows = torch.full((1, WORDS), -1, dtype=torch.int32)
                grammar.fill_bitmask(rows, 0)
                assert (rows[0].numpy() == mask_of(twin)).all()
                token = draw.choice([t for t in range(SIZE) if allows(rows[0].numpy(), t)])
                request.num_output_tokens = getattr(request, "num_output_tokens", 0) + 1
                assert grammar.accept_tokens("r0", [token])
                assert twin.accept_token(token)

    def test_reasoning_counts(self, monkeypatch) -> None:
        request, grammar = self.start(monkeypatch, 20)
        request.num_output_tokens = 12
        grammar.fill_bitmask(torch.full((1, WORDS), -1, dtype=torch.int32), 0)
        assert self.walk(request, grammar, 1) <= 8

    def test_reasoning_counts_in_the_first_mask(self, monkeypatch) -> None:
        """A text that was begun too long could not be ended any more."""
        long = "q" * 12
        assert len(tokens(long)) > 2
        request, grammar = self.start(monkeypatch, 20, f'root ::= "z" | "{long}"')
        request.num_output_tokens = 20 - len(tokens("z")) - 1
        rows = torch.full((1, WORDS), -1, dtype=torch.int32)
        grammar.fill_bitmask(rows, 0)
        assert allows(rows[0].numpy(), tokens("z")[0])
        assert not allows(rows[0].numpy(), tokens(long)[0])

    def test_drafts_are_no_reasoning(self, monkeypatch) -> None:
        """They are read and taken back, and are not among the tokens of the request."""
        request, grammar = self.start(monkeypatch, 8)
        request.num_output_tokens = 5
        drafts = tokens("[[")
        rows = torch.full((1, WORDS), -1, dtype=torch.int32)
        for _ in range(2):
            grammar.fill_bitmask(rows, 0)
            assert grammar.conversation.tokens_left == 3
            assert grammar.accept_tokens("r0", drafts[:1])
            grammar.fill_bitmask(rows, 0)
            assert grammar.conversation.tokens_left == 2
            grammar.rollback(1)
            assert grammar.conversation.tokens_left == 3
        # Two tokens more: one of them is the text's, which was not masked before.
        request.num_output_tokens = 7
        assert grammar.accept_tokens("r0", drafts[:1])
        assert grammar.conversation.tokens_left == 1
        grammar.reset()
        grammar.fill_bitmask(rows, 0)
        assert grammar.conversation.tokens_before == 7

    def test_a_request_that_is_gone(self, monkeypatch) -> None:
        """What it took stays counted."""
        request, grammar = self.start(monkeypatch, 8)
        request.num_output_tokens = 5
        rows = torch.full((1, WORDS), -1, dtype=torch.int32)
        grammar.fill_bitmask(rows, 0)
        del request
        grammar.fill_bitmask(rows, 0)
        assert grammar.conversation.tokens_left == 3

    def test_only_where_it_is_asked_for(self, monkeypatch) -> None:
        for max_tokens, switch in ((8, "0"), (None, "1")):
            request, grammar = self.start(monkeypatch, max_tokens, switch=switch)
            assert grammar.conversation.tokens_left is None
            assert self.walk(request, grammar, 1) > 8

    def test_a_text_that_is_too_long_goes_on_without(self, monkeypatch, caplog) -> None:
        request, grammar = self.start(monkeypatch, 2, 'root ::= "[[[[" "]]]]"')
        assert self.walk(request, grammar, 1) > 2
        assert "may be cut at max_tokens = 2" in caplog.text

    def test_what_is_compiled_later(self, monkeypatch) -> None:
        request, grammar = self.start(monkeypatch, 9)
        grammar.conversation.max_tokens = None
        later: Future = Future()
        request.structured_output_request._grammar = later
        end_in_time(request)
        assert grammar.conversation.tokens_left is None
        later.set_result(grammar)
        assert grammar.conversation.tokens_left == 9

    def test_a_switch_that_is_none(self, monkeypatch) -> None:
        monkeypatch.setenv("TOKFOLD_END_IN_TIME", "soon")
        with pytest.raises(ValueError, match=r"TOKFOLD_END_IN_TIME must be 1 or 0 .*, not 'soon'"):
            make_backend()


@only_real
@pytest.mark.usefixtures("installed")
class TestManager:
    """vLLM's own manager, as the scheduler calls it."""

    def start(self, samples, drafts=0, reasoner=None):
        manager = make_manager()
        manager.vllm_config.num_speculative_tokens = drafts
        manager.reasoner_cls = reasoner
        requests = {}
        for number, sample in enumerate(samples):
            sampling, params = make_params(**options_of(sample))
            verify(sampling)
            request = Request(number, params)
            manager.grammar_init(request)
            assert request.structured_output_request.is_grammar_ready
            requests[request.request_id] = request
        return manager, requests

    @pytest.mark.parametrize("count", [3, 40])
    def test_a_batch_token_by_token(self, count: int) -> None:
        """With more requests than the threshold the rows are filled in threads."""
        samples = [OURS[at % len(OURS)] for at in range(count)]
        manager, requests = self.start(samples)
        matchers = [truth(sample) for sample in samples]
        texts = [[*tokens(sample.text), EOS] for sample in samples]
        for at in range(max(map(len, texts))):
            rows = manager.grammar_bitmask(requests, list(requests), {})
            for number, (request, matcher, ids) in enumerate(
                zip(requests.values(), matchers, texts, strict=True)
            ):
                if at >= len(ids):
                    assert (rows[number] == -1).all()
                    continue
                assert (rows[number] == mask_of(matcher)).all()
                request.all_token_ids.append(ids[at])
                assert manager.accept_tokens(request, [ids[at]])
                assert matcher.accept_token(ids[at])
        manager.clear_backend()
        assert manager.backend is None

    def test_drafts(self) -> None:
        sample, width = OURS[0], 4
        manager, requests = self.start([sample], drafts=width)
        (request,), matcher = requests.values(), truth(sample)
        ids, rng, at = [*tokens(sample.text), EOS], random.Random(3), 0
        while at < len(ids):
            draft = ids[at : at + rng.randint(0, width)]
            if rng.random() < 0.4:
                draft = [*draft, *some_refused(mask_of(matcher), at, 1)][:width]
            valid = manager.validate_tokens(request, [*draft, -1])
            assert valid == ids[at : at + len(valid)]
            scheduled = valid + [-1] * (len(draft) - len(valid))
            rows = manager.grammar_bitmask(requests, ["r0"], {"r0": scheduled})
            for row, token_id in zip(rows, [*valid, None], strict=False):
                if not matcher.is_terminated:
                    assert (row == mask_of(matcher)).all()
                if token_id is not None:
                    assert matcher.accept_token(token_id)
            matcher.rollback(len(valid))
            step = max(1, rng.randint(0, len(valid)))
            new = ids[at : at + step]
            request.all_token_ids.extend(new)
            assert manager.accept_tokens(request, new)
            assert matcher.accept_tokens(new) == len(new)
            at += len(new)

    def test_reasoning_is_free(self) -> None:
        class Reasoner:
            def __init__(self, tokenizer, **_):
                pass

            def is_reasoning_end(self, ids):
                return END_OF_THINK in ids

            def is_reasoning_end_streaming(self, ids, delta):
                return END_OF_THINK in delta

        manager, requests = self.start([OURS[0]], reasoner=Reasoner)
        (request,), matcher = requests.values(), truth(OURS[0])
        for token_id in [THINK, *tokens("what do I know"), END_OF_THINK]:
            assert (manager.grammar_bitmask(requests, ["r0"], {}) == -1).all()
            request.all_token_ids.append(token_id)
            assert manager.accept_tokens(request, [token_id])
        for token_id in [*tokens(TEXT), EOS]:
            rows = manager.grammar_bitmask(requests, ["r0"], {})
            assert (rows[0] == mask_of(matcher)).all()
            request.all_token_ids.append(token_id)
            assert manager.accept_tokens(request, [token_id])
            matcher.accept_token(token_id)

    @pytest.mark.parametrize("background", [False, True])
    def test_a_grammar_that_cannot_be_compiled(self, background: bool) -> None:
        manager = make_manager()
        manager._use_async_grammar_compilation = background
        params = StructuredOutputsParams(grammar="root ::= root")
        params._backend = "tokfold"
        request = Request(0, params)
        manager.grammar_init(request)
        given = request.structured_output_request._grammar
        assert isinstance(given, Future)
        given.exception(timeout=DEADLINE_S)
        assert request.structured_output_request.is_grammar_ready
        assert isinstance(request.structured_output_request.grammar, ValueError)

    def test_a_refused_token_ends_the_request_alone(self) -> None:
        manager, requests = self.start(OURS[:2])
        one, two = requests.values()
        assert not manager.accept_tokens(one, [PAD])
        assert manager.accept_tokens(two, tokens("{"))

    def test_masks_are_applied_by_vllm(self, monkeypatch) -> None:
        from vllm.v1.structured_output import utils

        manager, requests = self.start([OURS[0]])
        rows = manager.grammar_bitmask(requests, ["r0"], {})
        logits = torch.zeros(2, SIZE)
        monkeypatch.setattr(utils, "PIN_MEMORY", False)
        utils.apply_grammar_bitmask(
            SimpleNamespace(scheduled_spec_decode_tokens={}),
            SimpleNamespace(grammar_bitmask=rows, structured_output_request_ids=["r0"]),
            SimpleNamespace(req_ids=["other", "r0"]),
            logits,
        )
        assert (logits[0] == 0).all()
        assert [allows(rows[0], i) for i in range(SIZE)] == (logits[1] == 0).tolist()
