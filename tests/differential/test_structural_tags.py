"""Structural tags that we assemble beside those that XGrammar converts as a whole."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.composition import joined as joined_texts
from strategies.conversations import (
    ADD,
    OURS,
    REASONING_IS_OPTIONAL,
    REASONLESS,
    TOOLS,
    WEATHER,
    WRITERS,
    WRONG,
    forced,
)
from strategies.model_families import mended
from strategies.profiles import CASES, LONG, LONG_FACTOR, examples
from strategies.structural_tags import OF_TAGS, structural_tags

xgr = pytest.importorskip("xgrammar")

import tokfold  # noqa: E402
from tokfold._tags import assembly, known, reading  # noqa: E402
from tokfold.errors import StructuralTagError  # noqa: E402
from tokfold.structural_tags import (  # noqa: E402
    assemble,
    default_cache,
    families,
    for_model,
)
from tokfold.xgrammar.forms import IS_028  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MANY = LONG_FACTOR if LONG else 1
BYTES = [bytes([byte]) for byte in range(256)]
VOCABULARY = tokfold.Vocabulary(BYTES)
LETTERS = [letter.encode() for letter in 'ab<>/1t{}[]":,x '] + [b"\xc3", b"\xa9", b"\xff"]


def compiled_by_xgrammar(tag: object, tokens: list[bytes] = BYTES) -> Any:
    info = xgr.TokenizerInfo(tokens, xgr.VocabType.RAW, stop_token_ids=[])
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    return compiler.compile_structural_tag(tag)


def its_verdict(theirs: Any, text: str | bytes) -> str:
    matcher = xgr.GrammarMatcher(theirs)
    if not matcher.accept_string(text):
        return "refused"
    return "accepted" if matcher.is_completed() else "prefix"


def our_verdict(
    ours: tokfold.CompiledGrammar, text: str | bytes, *, recognized: bool = True
) -> str:
    """By the matcher; the recognizer, which reads the grammar anew each time, says the same."""
    data = text.encode() if isinstance(text, str) else text
    matcher = tokfold.Matcher(ours)
    found = "refused"
    if matcher.accept_bytes(data):
        found = "accepted" if matcher.is_accepting else "prefix"
    if not recognized:
        return found
    said = tokfold.recognize(ours.grammar, data)
    read = "prefix" if said.read == len(data) else "refused"
    assert found == ("accepted" if said.accepted else read)
    return found


def compile_ours(tag: object, vocabulary: tokfold.Vocabulary = VOCABULARY) -> Any:
    grammar = assemble(tag, vocabulary)
    return tokfold.compile(
        grammar, vocabulary, classes="never", options=tokfold.CompileOptions(check_tokens=False)
    )


# -------------------------------------------------------------- recorded cases

RECORDED = (ROOT / "tests" / "data" / "structural_tags.jsonl").read_text(encoding="utf-8")


def test_what_is_recorded_is_what_xgrammar_says():
    lines = RECORDED.splitlines()
    sample = lines if LONG else Random(3).sample(lines, 120)
    for line in sample:
        case = json.loads(line)
        theirs = compiled_by_xgrammar(case["tag"])
        for text, verdict in case["texts"].items():
            assert its_verdict(theirs, text) == verdict, (case["tag"], text)


# ---------------------------------------------------------------- random trees


RANDOMS = st.randoms(use_true_random=False, note_method_calls=False)


@examples(150)
@given(structural_tags(), RANDOMS)
def test_random_tags_byte_by_byte(tag, random):
    compare(tag, random, LETTERS)


@examples(150)
@given(structural_tags(kinds=OF_TAGS), RANDOMS)
def test_random_tags_handed_over(tag, random):
    """The core has the tags as they are, as it has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "MANY_TAGS", 1)
        compare(tag, random, LETTERS)
        with contextlib.suppress(StructuralTagError):  # compared: both refuse it
            parts = assemble(tag, VOCABULARY)._source.parts.values()
            way = "handed over" if any(part._tags is not None for part in parts) else "written"
            CASES[f"structural tags: {way}, {tag['format']['type']}"] += 1


@examples(50)
@given(structural_tags(counted=True), RANDOMS)
def test_random_tags_that_count_characters(tag, random):
    """Counted text is characters in ours and bytes in theirs: ASCII tells no difference."""
    compare(tag, random, [letter for letter in LETTERS if letter.isascii()])


def compare(tag: dict[str, Any], random: Random, letters: list[bytes]) -> None:
    """Along random texts, every byte of an alphabet: taken or not, and complete or not."""
    try:
        theirs = compiled_by_xgrammar(tag)
    except RuntimeError:
        theirs = None
    try:
        ours = compile_ours(tag)
    except StructuralTagError:
        ours = None
    assert (ours is None) == (theirs is None)
    if ours is None:
        CASES["structural tags: refused by both"] += 1
        return
    for _ in range(3):
        matcher, plain = tokfold.Matcher(ours), xgr.GrammarMatcher(theirs)
        for _ in range(12):
            assert matcher.is_accepting == plain.is_completed(), (tag, matcher.text)
            taken = []
            for letter in letters:
                takes = matcher.fork().accept_bytes(letter)
                CASES["structural tags: bytes beside XGrammar's"] += 1
                assert takes == plain.fork().accept_string(letter), (tag, matcher.text, letter)
                taken += [letter] * takes
            if not taken:
                break
            letter = random.choice(taken)
            assert matcher.accept_bytes(letter)
            assert plain.accept_string(letter)


# -------------------------------------------------------------------- families


class Family:
    """A model family under some options: our tag in our engine, XGrammar's in its own."""

    def __init__(self, model: str, **options: Any) -> None:
        tag = for_model(model, TOOLS, **options, exclude_end_markers=False)
        its = {("parallel_tool_calls" if k == "parallel" else k): v for k, v in options.items()}
        dumped = xgr.get_model_structural_tag(model, TOOLS, **its).model_dump()["format"]
        right = mended(model, options.get("tool_choice"), options.get("reasoning"), dumped)
        self.theirs = compiled_by_xgrammar({"type": "structural_tag", "format": right})
        self.ours = [compile_ours(tag)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(known, "MANY_TAGS", 1)  # as where there are many tools
            self.ours.append(compile_ours(tag))

    def verdict(self, text: str, *, recognized: bool = True) -> str:
        found = our_verdict(self.ours[0], text, recognized=recognized)
        assert found == its_verdict(self.theirs, text), text
        assert found == our_verdict(self.ours[1], text, recognized=recognized), text
        CASES["structural tags: conversations"] += 1
        return found

    def accepts(self, text: str) -> None:
        """The text is accepted, and all its beginnings are taken."""
        assert self.verdict(text) == "accepted", text
        for end in range(0, len(text), 7):
            assert self.verdict(text[:end], recognized=LONG) != "refused", text[:end]


def test_every_family_has_conversations():
    assert sorted(WRITERS) == families()


MODES = [("enabled", "First\nthis."), ("disabled", None), ("auto", "First this."), ("auto", None)]


@pytest.mark.parametrize("model", sorted(WRITERS.keys() - OURS))
@pytest.mark.parametrize(("mode", "thought"), MODES)
class TestConversations:
    @pytest.fixture(autouse=True)
    def _writer(self, model: str, mode: str, thought: str | None) -> None:
        self.model, self.mode = model, mode
        self.write = lambda text, *calls: WRITERS[model](mode, thought, text, list(calls))

    def family(self, **options: Any) -> Family:
        return Family(self.model, reasoning=self.mode, **options)

    def test_text_and_calls(self):
        family = self.family()
        family.accepts(self.write("Hello. <Bye>"))
        family.accepts(self.write("", WEATHER))
        family.accepts(self.write("It is this: ", ADD))
        family.accepts(self.write("", WEATHER, ADD))
        assert family.verdict(self.write("", WEATHER)[:-1]) != "accepted"

    def test_one_call_where_calls_are_not_parallel(self):
        family = self.family(parallel=False)
        family.accepts(self.write("", WEATHER))
        family.accepts(self.write("Hello."))
        assert family.verdict(self.write("", WEATHER, ADD)) == "refused"

    def test_a_call_is_required(self):
        family = self.family(tool_choice="required")
        family.accepts(self.write("", WEATHER))
        family.accepts(self.write("", ADD, WEATHER))
        assert family.verdict(self.write("Hello.")) != "accepted"

    @pytest.mark.parametrize("what", WRONG)
    def test_calls_are_of_the_tools_there_are(self, what):
        family = self.family(tool_choice="required")
        assert family.verdict(self.write("", WRONG[what])) != "accepted"

    def test_a_tool_is_forced(self):
        family = self.family(tool_choice=forced("add"))
        family.accepts(self.write("", ADD))
        assert family.verdict(self.write("", WEATHER)) == "refused"

    def test_no_call_is_allowed(self):
        self.family(tool_choice="none").accepts(self.write("Hello."))


@pytest.mark.parametrize("model", sorted(WRITERS.keys() - OURS))
def test_reasoning_is_as_asked(model):
    write = WRITERS[model]
    required, forbidden = (Family(model, reasoning=mode) for mode in ("enabled", "disabled"))
    without, reasoned = write("disabled", None, "Hi.", []), write("enabled", "Hm.", "Hi.", [])
    required.accepts(reasoned)
    forbidden.accepts(without)
    optional = model in REASONLESS | REASONING_IS_OPTIONAL
    plain = "Hi." if model == "minimax" else without  # it closes a block that the prompt opened
    assert (required.verdict(plain) == "accepted") is optional
    assert (forbidden.verdict(reasoned) == "accepted") is (model in REASONLESS)


@pytest.mark.parametrize("choice", ["required", forced("add")])
def test_harmony_demands_a_call_where_one_must_come(choice):
    family = Family("harmony", tool_choice=choice)
    assert family.verdict("") == "prefix"
    assert family.verdict(WRITERS["harmony"]("enabled", "Hm.", "", [])) == "prefix"
    family.accepts(WRITERS["harmony"]("enabled", "Hm.", "", [ADD]))


# ---------------------------------------------------------------------- tokens

PIECES = [*(b"a", b"b", b"x", b"1", b"<", b">"), b"ab", b"<a>", b"<A>", b"<B>", b"<E>", b"xx"]
A, B, E = (PIECES.index(piece) for piece in (b"<A>", b"<B>", b"<E>"))


def token(which: int | str) -> dict[str, Any]:
    return {"type": "token", "token": which}


def token_tag(begin: Any, content: dict[str, Any], end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


X = {"type": "const_string", "value": "x"}
FREE = {"type": "any_tokens"}
TOKEN_TAGS = [
    token_tag(token("<A>"), X, token("<E>")),
    token_tag(token(B), {"type": "regex", "pattern": "[ab]*"}, ">"),
]
TRIGGERED = {"type": "token_triggered_tags", "trigger_tokens": ["<A>", B], "tags": TOKEN_TAGS}
TOKEN_FORMATS: dict[str, dict[str, Any]] = {
    "one": token(A),
    "one by its text": {"type": "sequence", "elements": [X, token("<A>"), X]},
    "the text of a token is text": {"type": "sequence", "elements": [token("ab"), X, token("a")]},
    "excluded": {
        "type": "sequence",
        "elements": [{"type": "exclude_token", "exclude_tokens": [0, "<A>"]}, X],
    },
    "nothing excluded": {"type": "sequence", "elements": [{"type": "exclude_token"}, X]},
    "excluded, and the end": token_tag("<", {"type": "exclude_token"}, token(E)),
    "free": FREE,
    "free, some excluded": {"type": "any_tokens", "exclude_tokens": ["a", E]},
    "free to the end": token_tag(token(A), FREE, token("<E>")),
    "free text to an end token": token_tag(token(A), {"type": "any_text"}, token(E)),
    "free within a tag of text": token_tag(token(A), token_tag("a", FREE, "b"), token(E)),
    "free, then text": token_tag(token(A), {"type": "sequence", "elements": [FREE, X]}, token(E)),
    "triggered": TRIGGERED,
    "triggered, some excluded": {**TRIGGERED, "exclude_tokens": ["a", "<E>"]},
    "triggered at least once": {**TRIGGERED, "at_least_one": True},
    "triggered at most once": {**TRIGGERED, "stop_after_first": True},
    "triggered once": {**TRIGGERED, "at_least_one": True, "stop_after_first": True},
    "triggered within a tag": token_tag("<", TRIGGERED, token(E)),
    "triggered, a trigger excluded": {**TRIGGERED, "exclude_tokens": [A]},
    "dispatch": {"type": "token_dispatch", "rules": [["<A>", X], [B, FREE]]},
    "dispatch once": {"type": "token_dispatch", "rules": [[A, X]], "loop": False},
    "dispatch, one excluded": {
        "type": "token_dispatch",
        "rules": [[A, X]],
        "exclude_tokens": ["b"],
    },
    "dispatch, one token twice": {
        "type": "token_dispatch",
        "rules": [[A, X], [A, {"type": "const_string", "value": "1"}]],
    },
    "repeated": {"type": "repeat", "min": 1, "max": 3, "content": token(A)},
    "a tag of text that ends in a token": {
        "type": "triggered_tags",
        "triggers": ["<a"],
        "tags": [token_tag("<a>", X, token(E))],
    },
    "either": {"type": "or", "elements": [token(A), X, {"type": "star", "content": token("ab")}]},
}

DUMMY = b"(dummy)"


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_token_formats_as_text_in_xgrammars_matcher(name):
    """The text that we assemble means the same to XGrammar as the tag."""
    tag = {"type": "structural_tag", "format": TOKEN_FORMATS[name]}
    vocabulary = tokfold.Vocabulary([*PIECES, DUMMY])
    frame = assembly._Frame(default_cache, assembly.Before(*({} for _ in assembly.Before._fields)))
    text = frame.text(reading.read(tag, reading.Settings(vocabulary)))
    # its reader wants at least one token, though its printer does not
    text = text.replace("ExcludeToken()", f"ExcludeToken({len(PIECES)})")
    joined = joined_texts(text, frame.parts)
    info = xgr.TokenizerInfo([*PIECES, DUMMY], xgr.VocabType.RAW, stop_token_ids=[])
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    ours = compiler.compile_grammar(joined)
    theirs = compiler.compile_structural_tag(tag)
    random = Random(name)
    for _ in range(30 * MANY):
        matchers = xgr.GrammarMatcher(ours), xgr.GrammarMatcher(theirs)
        read: list[bytes] = []
        for _ in range(8):
            first, second = (
                [matcher.fork().accept_token(i) for i in range(len(PIECES))] for matcher in matchers
            )
            assert first == second, read
            assert matchers[0].is_completed() == matchers[1].is_completed(), read
            if not any(first):
                break
            chosen = random.choice([i for i, taken in enumerate(first) if taken])
            assert all(matcher.accept_token(chosen) for matcher in matchers)
            read.append(PIECES[chosen])


def is_taken_within(matcher: tokfold.Matcher, token: int) -> bool:
    """Whether free tokens begin behind the first bytes of one: XGrammar 0.2.9 takes it from there,
    whole. Ours begins at the borders of tokens."""
    piece = PIECES[token]
    forks = [(matcher.fork(), piece[:count]) for count in range(1, len(piece))]
    return not IS_028 and any(
        fork.accept_bytes(first) and fork.accept_token(token) for fork, first in forks
    )


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_token_formats_token_by_token(name):
    tag = {"type": "structural_tag", "format": TOKEN_FORMATS[name]}
    theirs = compiled_by_xgrammar(tag, PIECES)
    ours = compile_ours(tag, tokfold.Vocabulary(PIECES))
    random = Random(name)
    for _ in range(20 * MANY):
        matcher, plain = tokfold.Matcher(ours), xgr.GrammarMatcher(theirs)
        read: list[bytes] = []
        for _ in range(8):
            assert matcher.is_accepting == plain.is_completed(), read
            takes = [matcher.fork().accept_token(i) for i in range(len(PIECES))]
            said = [plain.fork().accept_token(i) for i in range(len(PIECES))]
            differing = [i for i in range(len(PIECES)) if takes[i] != said[i]]
            assert all(said[i] and is_taken_within(matcher, i) for i in differing), read
            CASES["structural tags: taken by XGrammar within a token"] += len(differing)
            CASES["structural tags: tokens beside XGrammar's"] += len(PIECES)
            if not any(takes):
                break
            chosen = random.choice([i for i, taken in enumerate(takes) if taken])
            assert matcher.accept_token(chosen)
            assert plain.accept_token(chosen)
            read.append(PIECES[chosen])


# ------------------------------------------------------------------ differences

PAGE = (ROOT / "docs" / "structural-tags.md").read_text(encoding="utf-8")
WITNESSES = [json.loads(x) for x in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
WITNESSES = [witness for witness in WITNESSES if "ours" in witness]


@pytest.mark.parametrize("witness", WITNESSES, ids=lambda witness: json.dumps(witness)[:60])
def test_where_we_differ(witness):
    """Each witness of the page: a format (or the tag as text), a text or bytes, both verdicts."""
    if "tokens" in witness:
        pytest.skip("see test_where_we_differ_on_tokens")
    tag = witness.get("tag") or {"format": witness["format"]}
    text = bytes.fromhex(witness["bytes"]) if "bytes" in witness else witness["text"]
    try:
        theirs = its_verdict(compiled_by_xgrammar(tag), text)
    except RuntimeError:
        theirs = "error"
    assert theirs == witness["xgrammar"]
    try:
        ours = our_verdict(compile_ours(tag), text)
    except tokfold.TokfoldError as error:
        ours = type(error).__name__
    assert ours == witness["ours"]


@pytest.mark.parametrize(
    "witness",
    [witness for witness in WITNESSES if "tokens" in witness],
    ids=lambda witness: json.dumps(witness)[:60],
)
def test_where_we_differ_on_tokens(witness):
    """The text is a list of tokens; what XGrammar does not survive is not tried."""
    tokens = [piece.encode() for piece in witness["tokens"]]
    ids = [witness["tokens"].index(piece) for piece in witness["text"]]
    tag = {"format": witness["format"]}
    if witness["xgrammar"] not in ("crash", "error"):
        matcher = xgr.GrammarMatcher(compiled_by_xgrammar(tag, tokens))
        taken = all(matcher.accept_token(i) for i in ids)
        assert witness["xgrammar"] == _said(taken, matcher.is_completed())
    ours = tokfold.Matcher(compile_ours(tag, tokfold.Vocabulary(tokens)))
    taken = all(ours.accept_token(i) for i in ids)
    assert witness["ours"] == _said(taken, ours.is_accepting)


def _said(taken: bool, complete: bool) -> str:
    return "refused" if not taken else "accepted" if complete else "prefix"
