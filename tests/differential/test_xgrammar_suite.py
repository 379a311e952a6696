"""The cases of XGrammar's own tests of structural tags, ``TagDispatch`` and tokens, in our engine.

They are replayed from a file (``record_xgrammar_suite.py`` says what is in it): the same texts and
tokens are taken, the same masks filled, the same tags and grammars refused. Nothing here needs
XGrammar.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

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
    # every text of the schema holds what is excluded; XGrammar excludes nothing from patterns
    "no value satisfies the schema and can be written": {
        "test_deepseek_v41_excluded_fixed_key-2",
        "test_excluded_branch_mask_rejects_unicode_and_stop_token-1",
        "test_excluded_branch_mask_rejects_unicode_and_stop_token-2",
        "test_excluded_branch_mask_rejects_unicode_and_stop_token-3",
        "test_excluded_branch_mask_rejects_unicode_and_stop_token-4",
        "test_excluded_fixed_key-2",
        "test_pattern_branches_are_not_filtered-3",
        "test_pattern_branches_are_not_filtered-4",
    },
    # the standard gives such a schema no meaning, and a oneOf of it contradicts itself
    "the schema applies itself to the same value without end": {
        *(f"test_deepseek_mutually_recursive_parameter_references-{n}" for n in (1, 3, 5, 7)),
        *(
            f"test_deepseek_recursive_parameter_references-{n}"
            for n in (1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18)
        ),
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
# XGrammar takes more here than we do, which docs/differences.md describes.
MORE = {
    # a stop token by its bytes or its id, where these complete the text
    "test_stop_token_mid_token_exclude_probe-2",
    "test_stop_token_terminal_matching_paths-2",
    # a token of which the first bytes end a text, and free tokens begin there
    *(f"test_stag_free_text_region_entered_mid_token-{n}" for n in range(1, 7)),
    "test_token_edge_in_lookahead_entered_mid_token-1",
}
# XGrammar's matcher loses its way after a token of several bytes that is read both whole and as
# bytes (test_token_edges_xgrammar.py): it refuses what may follow such a token.
LOST = {"test_e2e_mixed_tag_and_token_dispatch-2"}

# XGrammar refuses these by name: it cannot exclude texts in these styles.
TAKEN = {
    "test_unsupported_style_excludes_are_not_silently_ignored-2",
    "test_unsupported_style_excludes_are_not_silently_ignored-4",
    "test_xml_excludes_reject_padding_boundaries-1",
    "test_xml_excludes_reject_padding_boundaries-3",
    "test_xml_excludes_reject_padding_boundaries-5",
}


class Otherwise(NamedTuple):
    """Texts of which our verdict is not XGrammar's: by the case, its tag and the text."""

    case: str
    tag: str
    text: str
    theirs: str
    ours: str


OTHERWISE = {
    "XGrammar takes the end of a value for its letter where the value is too short to end": [
        Otherwise("typed_parameters_keep", '"minLength":1}', 'true"></', "prefix", "refused"),
        Otherwise("kimi_k3_xml_all_value_types", "", "", "prefix", "refused"),
        Otherwise("excludes_drop_length", '"minLength": ?2', ">a<", "prefix", "refused"),
        Otherwise("excludes_preserve_unicode_pattern", "", '[>"]你[<"]', "prefix", "refused"),
    ],
    "`allOf` of a string and a length takes every type in XGrammar": [
        Otherwise("typed_parameters_keep", '"allOf"', 'false">42</', "accepted", "refused"),
    ],
    "`oneOf` of a schema and itself has no value; XGrammar reads `anyOf`": [
        Otherwise("parameter_alternatives_have_linear", "oneOf", ">2<", "accepted", "refused"),
    ],
    "an object that is listed has its members in any order where all objects have": [
        Otherwise(
            "root_object_literals", '"any_order": ?true', '^<[^>]* name="a"', "refused", "prefix"
        ),
    ],
    "a name comes once in any order": [
        Otherwise("schema_format_any_order", "", '"c": true, "c": false', "accepted", "refused"),
    ],
    "XGrammar leaves out lengths where texts are excluded": [
        Otherwise("excludes_drop_length", '"minLength": ?2', '[>"]a[<"]', "accepted", "refused"),
        Otherwise("excludes_drop_length", '"maxLength": ?3', "abde|axax", "accepted", "refused"),
    ],
    "XGrammar excludes nothing from patterns, formats and the names that patterns allow": [
        Otherwise("pattern_and_format_strings_are_not", "", "bc|cb", "accepted", "refused"),
        Otherwise("pattern_branches_are_not", "", "BAD", "accepted", "refused"),
        Otherwise("property_name_excludes", "", "bad", "accepted", "refused"),
    ],
    "Kimi K3 knows no integers; XGrammar takes them where no schema says the type": [
        Otherwise("kimi_k3_(xml_)?free_form", "", 'type="integer"', "accepted", "refused"),
    ],
}


def is_read_otherwise(one: Otherwise, case: dict[str, Any], text: str, verdict: str) -> bool:
    return bool(
        verdict == one.theirs
        and re.search(one.case, name_of(case))
        and re.search(one.tag, case.get("tag", ""))
        and re.search(one.text, text)
    )


def our_verdict(case: dict[str, Any], text: str, verdict: str) -> str:
    for one in itertools.chain.from_iterable(OTHERWISE.values()):
        if is_read_otherwise(one, case, text, verdict):
            CASES["XGrammar's suite: texts that mean another thing"] += 1
            return one.ours
    return verdict


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
    compiled = tokfold.compile(
        grammar,
        vocabulary or BYTES,
        classes="never",
        options=tokfold.CompileOptions(check_tokens=False),
    )
    for text, verdict in case.get("texts", {}).items():
        ours = our_verdict(case, text, verdict)
        assert verdict_on(tokfold.Matcher(compiled), text) == ours, text
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
EXCEPTIONS = LOST.union(TAKEN, MORE, *REFUSED.values())


@pytest.mark.parametrize("name", sorted(CASES_BY_NAME.keys() - EXCEPTIONS))
def test_replayed(name: str) -> None:
    case = CASES_BY_NAME[name]
    try:
        replay(case)
    except tokfold.TokfoldError:
        if "error" not in case:
            raise
    else:
        assert "error" not in case, "XGrammar refuses it"


@pytest.mark.parametrize(
    ("name", "reason"),
    [(name, reason) for reason in REFUSED for name in sorted(REFUSED[reason])],
)
def test_what_we_refuse(name: str, reason: str) -> None:
    """If one of these fails we take it now: leave it out of the list."""
    with pytest.raises(tokfold.TokfoldError, match=reason):
        replay(CASES_BY_NAME[name])


@pytest.mark.parametrize("name", sorted(MORE))
def test_where_xgrammar_takes_more(name: str) -> None:
    """Up to the first step at which we differ, and there every token that we take."""
    case = CASES_BY_NAME[name]
    vocabulary = vocabulary_of(case)
    compiled = tokfold.compile(
        grammar_of(case, vocabulary),
        vocabulary,
        options=tokfold.CompileOptions(check_tokens=False),
    )
    for steps in case["walks"]:
        matcher = tokfold.Matcher(compiled)
        for kind, *rest in steps:
            if kind == "mask":
                ours, _ = mask_of(matcher, len(case["tokens"]))
                taken = {token for token, bit in enumerate(ours) if bit}
                assert taken <= set(rest[0])
                if taken < set(rest[0]):
                    break
            else:
                check_step(matcher, [kind, *rest], steps)
        else:
            pytest.fail("we differ nowhere: leave it out of the list")


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_what_we_take(name: str) -> None:
    case = CASES_BY_NAME[name]
    assert "error" in case
    replay(case)


@pytest.mark.parametrize("reason", OTHERWISE)
def test_each_difference_is_seen(reason: str) -> None:
    """If one of these fails XGrammar's verdict is ours now: leave it out of the table."""
    texts = [
        (case, text, verdict)
        for case in RECORDED
        for text, verdict in case.get("texts", {}).items()
        if name_of(case) not in EXCEPTIONS
    ]
    for one in OTHERWISE[reason]:
        assert any(is_read_otherwise(one, *each) for each in texts), one


@pytest.mark.parametrize("name", sorted(LOST))
def test_where_xgrammar_loses_its_way(name: str) -> None:
    with pytest.raises(AssertionError):
        replay(CASES_BY_NAME[name])


def test_the_file_is_whole() -> None:
    """Of the version that our converters are, with a name for each case."""
    assert HEADER["version"] == "0.2.9"
    assert len(CASES_BY_NAME) == len(RECORDED)
    count = {key: sum(len(case.get(key, ())) for case in RECORDED) for key in ("texts", "walks")}
    assert len(RECORDED) > 1_100
    assert count["texts"] > 3_500
    assert count["walks"] > 370
    assert sum("error" in case for case in RECORDED) > 90
