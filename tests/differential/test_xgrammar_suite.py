"""The cases of XGrammar's own tests of structural tags, ``TagDispatch`` and tokens, in our engine.

They are replayed from a file (``record_xgrammar_suite.py`` says what is in it): the same texts and
tokens are taken, the same masks filled, the same tags and grammars refused. XGrammar is needed only
where a tag has a schema or a pattern.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokfold._core")

import tokfold
from strategies.engine import mask_of
from strategies.profiles import CASES

FILE = Path(__file__).resolve().parents[1] / "data" / "xgrammar_suite.jsonl.gz"
with gzip.open(FILE, "rt", encoding="utf-8") as lines:
    HEADER, *RECORDED = map(json.loads, lines)
BYTES = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])

# Where we differ, by what our error says. The first three are on the pages in docs.
REFUSED = {
    "'max_tokens' counts tokens of the model": {
        "test_any_text_budgets_are_independent_per_format-1",
        "test_any_text_length_budgets-1",
        "test_any_text_max_tokens_forces_multitoken_end-1",
        "test_any_text_max_tokens_int32_does_not_overflow_after_prefix-1",
        "test_any_text_token_and_character_budgets_combine-1",
        "test_any_tokens_format_max_tokens-1",
        "test_any_tokens_max_tokens_forces_token_end-1",
        "test_length_budget_pydantic_roundtrip-1",
        "test_length_budget_pydantic_roundtrip-2",
    },
    # every text of the schema holds what is excluded: no text is ever complete
    "the language is empty": {
        "test_deepseek_v41_excluded_fixed_key-2",
        "test_excluded_branch_mask_rejects_unicode_and_stop_token-1",
        "test_excluded_branch_mask_rejects_unicode_and_stop_token-2",
        "test_excluded_branch_mask_rejects_unicode_and_stop_token-3",
        "test_excluded_branch_mask_rejects_unicode_and_stop_token-4",
        "test_excluded_fixed_key-2",
    },
    "max_chars: ": {"test_token_edges_are_retried_in_place_under_char_budget-2"},
    # options of rules that only XGrammar's printer of Lark grammars writes
    "capture_hidden_": {
        "test_lark_dynamic_suffix_stop_preserves_stop_capture-1",
        "test_lark_dynamic_suffix_stop_preserves_stop_capture-2",
        "test_lark_suffix_stop_round_trip_serialization_and_cache-1",
        "test_lark_suffix_stop_round_trip_serialization_and_cache-2",
    },
}
# XGrammar's matcher loses its way after a token of several bytes that is read both whole and as
# bytes (test_token_edges_xgrammar.py): it refuses what may follow such a token.
LOST = {"test_e2e_mixed_tag_and_token_dispatch-2"}


def vocabulary_of(case: dict[str, Any]) -> tokfold.Vocabulary | None:
    if "tokens" not in case:
        return None
    tokens = [token.encode() for token in case["tokens"]]
    return tokfold.Vocabulary(tokens, stop_token_ids=case["stops"])


def grammar_of(case: dict[str, Any], vocabulary: tokfold.Vocabulary | None) -> tokfold.Grammar:
    if "tag" in case:
        return tokfold.Grammar.from_structural_tag(case["tag"], vocabulary)
    # lookahead in these texts is that of XGrammar's converters
    root = case.get("root", "root")
    return tokfold.Grammar.from_ebnf(case["ebnf"], root, lookahead="implied")


def replay(case: dict[str, Any]) -> None:
    vocabulary = vocabulary_of(case)
    grammar = grammar_of(case, vocabulary)
    if vocabulary is None and not (case.keys() & {"texts", "walks", "error"}):
        return  # it was read, and no more
    compiled = tokfold.compile(grammar, vocabulary or BYTES, classes="never")
    for text, verdict in case.get("texts", {}).items():
        assert verdict_on(tokfold.Matcher(compiled), text) == verdict, text
        CASES["XGrammar's suite: texts"] += 1
    for steps in case.get("walks", ()):
        matcher = tokfold.Matcher(compiled)
        for number, step in enumerate(steps):
            check_step(matcher, step, steps[: number + 1])
        CASES["XGrammar's suite: walks"] += 1


def verdict_on(matcher: tokfold.Matcher, text: str) -> str:
    if not matcher.accept_string(text):
        return "refused"
    return "accepted" if matcher.is_accepting else "prefix"


def check_step(matcher: tokfold.Matcher, step: list[Any], so_far: list[Any]) -> None:
    kind, *rest = step
    if kind == "text":
        text, taken = rest
        assert matcher.accept_string(text) == taken, so_far
    elif kind == "token":
        token, taken = rest
        assert takes(matcher, token) == taken, so_far
        CASES["XGrammar's suite: tokens"] += 1
    elif kind == "mask":
        size = len(matcher.compiled.vocabulary)
        mask, _ = mask_of(matcher, size)
        assert [token for token in range(size) if mask[token]] == rest[0], so_far
        CASES["XGrammar's suite: masks"] += 1
    elif kind == "back":
        matcher.rollback(*rest)
    else:
        assert kind == "end"
        assert matcher.is_accepting == rest[0], so_far


def takes(matcher: tokfold.Matcher, token: int) -> bool:
    """XGrammar says False where the text has ended and where there is no such token; we raise."""
    try:
        return matcher.accept_token(token)
    except (tokfold.MatcherStateError, tokfold.VocabularyError):
        return False


def name_of(case: dict[str, Any]) -> str:
    return str(case["case"].split("::")[1])


CASES_BY_NAME = {name_of(case): case for case in RECORDED}
EXCEPTIONS = LOST.union(*REFUSED.values())


@pytest.mark.parametrize("name", sorted(CASES_BY_NAME.keys() - EXCEPTIONS))
def test_replayed(name: str) -> None:
    case = CASES_BY_NAME[name]
    try:
        replay(case)
    except tokfold.MissingExtraError as error:
        pytest.skip(str(error))
    except tokfold.TokfoldError:
        if "error" not in case:
            raise
    else:
        assert "error" not in case, "XGrammar refuses it"


@pytest.mark.parametrize(
    ("name", "reason"), [(name, reason) for reason in REFUSED for name in sorted(REFUSED[reason])]
)
def test_what_we_refuse(name: str, reason: str) -> None:
    """If one of these fails we take it now: leave it out of the list."""
    case = CASES_BY_NAME[name]
    try:
        with pytest.raises(tokfold.UnsupportedGrammarError, match=reason):
            replay(case)
    except tokfold.MissingExtraError as error:
        pytest.skip(str(error))
    if reason == "the language is empty":
        assert "accepted" not in case.get("texts", {}).values()


@pytest.mark.parametrize("name", sorted(LOST))
def test_where_xgrammar_loses_its_way(name: str) -> None:
    with pytest.raises(AssertionError):
        replay(CASES_BY_NAME[name])


def test_the_file_is_whole() -> None:
    """Of the version that our converters are, with a name for each case."""
    assert HEADER["version"] == "0.2.8"
    assert len(CASES_BY_NAME) == len(RECORDED)
    count = {key: sum(len(case.get(key, ())) for case in RECORDED) for key in ("texts", "walks")}
    assert len(RECORDED) > 1_100
    assert count["texts"] > 3_500
    assert count["walks"] > 370
    assert sum("error" in case for case in RECORDED) > 90
