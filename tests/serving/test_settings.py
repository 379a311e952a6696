"""What an operator may choose: the environment, and deadlines for what strangers send."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from support.processes import DEADLINE_S

pytest.importorskip("tokfold._core")

import tokfold
from tokfold._serving import Settings
from tokfold._serving import settings as module

NAMES = ("compile", "mask", "accept")
FIELDS = tuple(f"max_{name}_milliseconds" for name in NAMES)


@pytest.fixture(autouse=True)
def limits(monkeypatch) -> type:
    """Limits with deadlines, whatever those of the core are."""

    @dataclass(frozen=True)
    class Limits:
        max_rules: int = 10
        max_compile_milliseconds: int | None = None
        max_mask_milliseconds: int | None = None
        max_accept_milliseconds: int | None = None

    for name in NAMES:
        monkeypatch.delenv(f"TOKFOLD_{name.upper()}_MILLISECONDS")
    monkeypatch.setattr(module, "Limits", Limits)
    return Limits


def deadlines() -> list[int | None]:
    limits = Settings.from_environment().request_limits
    return [getattr(limits, field) for field in FIELDS]


class TestDeadlines:
    def test_by_default(self):
        settings = Settings.from_environment()
        assert settings.compile_milliseconds == 2_000
        assert settings.mask_milliseconds == 50
        assert settings.accept_milliseconds == 20
        assert deadlines() == [2_000, 50, 20]
        assert settings.limits.max_mask_milliseconds is None, "what the operator said"

    def test_by_the_environment(self, monkeypatch):
        monkeypatch.setenv("TOKFOLD_COMPILE_MILLISECONDS", "300")
        monkeypatch.setenv("TOKFOLD_MASK_MILLISECONDS", "0")
        assert deadlines() == [300, None, 20]

    def test_limits_come_first(self, monkeypatch):
        monkeypatch.setenv("TOKFOLD_LIMITS", '{"max_mask_milliseconds": 7, "max_rules": 3}')
        monkeypatch.setenv("TOKFOLD_MASK_MILLISECONDS", "9")
        assert deadlines() == [2_000, 7, 20]
        assert Settings.from_environment().request_limits.max_rules == 3

    def test_limits_that_were_written_there_leave_deadlines_open(self, limits, monkeypatch):
        """An object of limits has all fields, and says nothing by those that are None."""
        monkeypatch.setenv("TOKFOLD_LIMITS", "")
        given = limits(max_rules=3, max_accept_milliseconds=5)
        for name, value in Settings.variables(None, None, given).items():
            monkeypatch.setenv(name, value)
        assert deadlines() == [2_000, 50, 5]

    @pytest.mark.parametrize("value", ["-1", "1.5", "soon", "99999999999999999999"])
    @pytest.mark.parametrize("name", NAMES)
    def test_values_that_are_none(self, monkeypatch, name, value):
        variable = f"TOKFOLD_{name.upper()}_MILLISECONDS"
        monkeypatch.setenv(variable, value)
        with pytest.raises(ValueError, match=f"{variable} must be .* 0 for none, not '{value}'"):
            Settings.from_environment()

    def test_what_counts_the_last_tokens_needs_a_count(self, monkeypatch):
        monkeypatch.setenv("TOKFOLD_PREFER_END", "40")
        with pytest.raises(ValueError, match="TOKFOLD_PREFER_END needs TOKFOLD_END_IN_TIME=1"):
            Settings.from_environment()
        monkeypatch.setenv("TOKFOLD_END_IN_TIME", "1")
        assert Settings.from_environment().prefer_end == 40
        monkeypatch.setenv("TOKFOLD_PREFER_END", "few")
        with pytest.raises(ValueError, match="TOKFOLD_PREFER_END must be whole tokens, or 0 for"):
            Settings.from_environment()

    @pytest.mark.parametrize(
        ("text", "means"),
        [("1", True), ("True", True), ("yes", True), (" on", True), ("0", False), ("off", False)],
    )
    def test_switches_take_the_words_of_the_plugin(self, monkeypatch, text, means):
        monkeypatch.setenv("TOKFOLD_END_IN_TIME", text)
        assert Settings.from_environment().end_in_time is means

    @pytest.mark.parametrize(
        ("variable", "meant"),
        [
            ("TOKFOLD_MASK_MILISECONDS", "TOKFOLD_MASK_MILLISECONDS"),
            ("TOKFOLD_MAX_MASK_MILLISECONDS", "TOKFOLD_MASK_MILLISECONDS"),
            ("TOKFOLD_LIMIT", "TOKFOLD_LIMITS"),
            ("TOKFOLD_CACHE", "TOKFOLD_CACHE_DIR"),
        ],
    )
    def test_a_variable_that_is_misspelled_is_a_warning(self, monkeypatch, variable, meant):
        monkeypatch.setenv(variable, "5")
        said = f"nothing reads the variable {variable}; did you mean {meant}\\?"
        with pytest.warns(UserWarning, match=said):
            Settings.from_environment()

    def test_variables_of_others_are_no_warning(self, monkeypatch, recwarn):
        for variable in ("TOKFOLD_VLLM", "TOKFOLD_TOKENIZERS", "TOKFOLD_HYPOTHESIS", "VLLM_CACHE"):
            monkeypatch.setenv(variable, "0")
        Settings.from_environment()
        assert not recwarn.list

    def test_the_folder_of_the_user_by_its_short_name(self, monkeypatch):
        """No shell expands what a service file sets."""
        monkeypatch.setenv("HOME", "/home/somebody")
        monkeypatch.setenv("TOKFOLD_CACHE_DIR", "~/cache")
        assert Settings.from_environment().cache_dir == Path("/home/somebody/cache")
        for name, value in Settings.variables("~/other", None, None).items():
            monkeypatch.setenv(name, value)
        assert Settings.from_environment().cache_dir == Path("/home/somebody/other")

    @pytest.mark.parametrize(
        "wrong",
        [
            ("", None, None),
            (__file__, None, None),
            (None, "sometimes", None),
            (None, None, {"max_rules": 5}),
            ("~/here", "auto", "none"),
        ],
    )
    def test_what_is_wrong_changes_nothing(self, wrong):
        before = dict(os.environ)
        with pytest.raises((ValueError, TypeError, tokfold.ArtifactError)):
            Settings.variables(*wrong)
        assert dict(os.environ) == before

    def test_whitespace(self, monkeypatch):
        assert Settings.from_environment().whitespace is None
        monkeypatch.setenv("TOKFOLD_WHITESPACE", "compact")
        assert Settings.from_environment().whitespace == "compact"
        monkeypatch.setenv("TOKFOLD_WHITESPACE", "none")
        with pytest.raises(ValueError, match="WHITESPACE must be one of any, compact, spaced, not"):
            Settings.from_environment()

    def test_limits_without_these_fields_stay_as_they_are(self, monkeypatch):
        @dataclass(frozen=True)
        class Old:
            max_rules: int = 10

        monkeypatch.setattr(module, "Limits", Old)
        settings = Settings.from_environment()
        assert settings.request_limits == settings.limits == Old()

    def test_a_limit_that_is_misspelled(self, monkeypatch):
        monkeypatch.setattr(module, "Limits", tokfold.Limits)
        monkeypatch.setenv("TOKFOLD_LIMITS", '{"max_rule": 1}')
        with pytest.raises(
            ValueError, match=r"TOKFOLD_LIMITS must be .*; did you mean 'max_rules'"
        ):
            Settings.from_environment()

    def test_equal_ones_are_equal(self, monkeypatch):
        """Backends with the same settings share their grammars."""
        one = Settings.from_environment()
        assert one == Settings.from_environment()
        monkeypatch.setenv("TOKFOLD_MASK_MILLISECONDS", "51")
        other = Settings.from_environment()
        assert other != one
        assert len({one, other}) == 2


def test_the_first_structural_tag_finds_all_made(monkeypatch):
    """The second reading of the vocabulary is made before a request asks for it."""
    monkeypatch.setattr(module, "Limits", tokfold.Limits)
    tokens = [*(bytes([byte]) for byte in range(256)), b"<tool>", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[257], special_token_ids=[256])
    grammars = tokfold._serving.Grammars(vocabulary, Settings(classes="never"))
    thread = grammars.prepare()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()
    monkeypatch.delattr(tokfold._serving.Grammars, "compiler")  # none is made from here on
    tag = {"type": "tag", "begin": "<tool>", "content": {"type": "any_text"}, "end": "."}
    request = json.dumps({"type": "structural_tag", "format": tag})
    compiled = grammars.tags.compile_structural_tag(request)
    assert tokfold.Matcher(compiled).accept_token(256)


def test_compilers_have_them(monkeypatch):
    """Whatever the settings give is what each compiler of the server gets."""
    monkeypatch.setattr(module, "Limits", tokfold.Limits)
    chosen = tokfold.Limits(max_rules=77)
    monkeypatch.setattr(Settings, "request_limits", property(lambda self: chosen))
    vocabulary = tokfold.Vocabulary([b"a", b"</s>"], stop_token_ids=[1])
    grammars = tokfold._serving.grammars_of(vocabulary, Settings(classes="never"))
    assert grammars.text.limits is chosen
    assert grammars.tags.limits is chosen
    assert asdict(Settings().limits) == asdict(tokfold.Limits())
