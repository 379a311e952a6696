"""Instrumented engines: masks and steps are the engine's own, counters say what they say."""

from __future__ import annotations

import csv
import io
import json
import pickle
from functools import partial

import numpy as np
import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from oracles.earley import Oracle, accepts
from oracles.model import lower, to_ebnf
from oracles.sentences import SentenceSampler, random_prefix
from strategies.engine import settings_of_matchers
from strategies.grammars import grammars
from strategies.profiles import CASES, examples
from tokfold.laboratory.instruments import (
    EngineRefusedError,
    EngineStoppedError,
    InstrumentError,
    LlguidanceEngine,
    OwnEngine,
    TextRefusedError,
    XgrammarEngine,
    byte_vocabulary,
    make_engine,
    profile,
    profile_engine,
)
from tokfold.laboratory.instruments.base import bits_of, is_allowed, new_row
from tokfold.laboratory.instruments.lark import to_lark
from tokfold.laboratory.instruments.report import document, plot, rows, write_csv
from tokfold.laboratory.instruments.xgrammar import _trie_nodes

# The root is not recursive: XGrammar's masks forget tokens where it is.
LIST = 'root ::= list\nlist ::= "[" (item ("," item)*)? "]"\nitem ::= [a-z]+ | list\n'
TOKENS = [b"[", b"]", b",", b"a", b"ab", b"],", b"[a", b"b,", b"</s>"]
TEXT = b"[a,ab,[a,b]]"


def vocabulary() -> tokfold.Vocabulary:
    return tokfold.Vocabulary([*TOKENS, b"b", b"ba"], [8], [10])


def grammar(text: str = LIST) -> tokfold.Grammar:
    return tokfold.Grammar.from_ebnf(text)


def made(name: str):
    if name != "own":
        pytest.importorskip(name)
    return make_engine(name, grammar(), vocabulary())


@pytest.mark.parametrize("name", ["own", "xgrammar", "llguidance"])
@pytest.mark.parametrize("counting", [False, True])
def test_every_engine_masks_and_steps_as_the_grammar_says(name, counting):
    engine, words = made(name), vocabulary()
    for cold in (True, False):
        walk = engine.begin(cold=cold, counting=counting)
        read = b""
        for token_id in [*words.encode_greedy(TEXT), 8]:
            walk.fill()
            walk.check()
            allowed = bits_of(walk.row, words)
            for candidate, text in enumerate(words.token_bytes):
                found = tokfold.recognize(grammar(), read + text)
                possible = found.read == len(read + text)
                if candidate == 8:
                    possible = tokfold.recognize(grammar(), read).accepted
                if candidate == 10:
                    possible = False
                # Where a text is forced, llguidance allows only the token it would begin it with.
                assert allowed[candidate] == possible, (read, text)
                assert is_allowed(walk.row, candidate) == possible
                if not counting:
                    assert walk.would_accept(candidate) == possible, (read, text)
            if token_id == 8:
                break
            assert walk.accept(token_id)
            read += words[token_id]
    assert read == TEXT


@pytest.mark.parametrize("name", ["own", "xgrammar", "llguidance"])
def test_a_token_that_cannot_be_is_not_taken(name):
    walk = made(name).begin(cold=True)
    walk.fill()
    assert walk.accept(1) is False


@pytest.mark.parametrize("name", ["own", "xgrammar", "llguidance"])
def test_counters_are_the_same_in_every_run(name):
    tokens = vocabulary().encode_greedy(TEXT)
    first = profile_engine(made(name), tokens, repeats=1)
    second = profile_engine(made(name), tokens, repeats=1)
    for which in ("cold", "warm"):
        a, b = first.passes()[which].counters, second.passes()[which].counters
        assert a.keys() == b.keys()
        for counter in a:
            if counter != "mask.lexer_cost":  # depends on the order in hash tables of llguidance
                assert a[counter].tolist() == b[counter].tolist(), counter
            assert (a[counter] >= 0).all(), counter
            assert len(a[counter]) == len(tokens)


@given(settings_of_matchers(), st.randoms(use_true_random=False))
@examples(40)
def test_own_counters_tell_made_masks_from_remembered_ones(setting, random):
    if not any(setting.tokens) or not setting.oracle.productive:
        return
    words = setting.our_vocabulary()
    pieces = [text for text in setting.tokens if text]
    text = random_prefix(setting.oracle.letters.initial(True), random, 12, pieces)
    try:
        tokens = words.encode_greedy(text)
    except tokfold.VocabularyError:
        return
    engine = OwnEngine(setting.our_grammar(), words, classes="never")
    found = profile_engine(engine, tokens, repeats=1)
    assert not found.stopped or found.stopped.startswith("it does not take")
    cold, warm = found.cold.counters, found.warm.counters
    if not len(found.allowed):
        return
    assert not warm["mask.memo_misses"].any(), "a warm pass made a mask anew"
    assert not warm["mask.trie_nodes"].any()
    assert cold["mask.memo_misses"][0] > 0, "the first mask was there before the first text"
    assert (cold["mask.trie_nodes"][cold["mask.memo_misses"] == 0] == 0).all()
    assert cold["step.work"].tolist() == warm["step.work"].tolist()
    assert cold["step.bytes"].sum() == len(b"".join(words[t] for t in tokens[: len(found.allowed)]))
    matcher, row = tokfold.Matcher(engine.compiled), new_row(words)
    for index in range(len(found.allowed)):
        matcher.fill_bitmask(row)
        assert found.allowed[index] == bits_of(row, words).sum()
        assert cold["mask.allowed"][index] == found.allowed[index]
        matcher.accept_token(tokens[index])
    CASES["instruments: own profiles"] += 1


def test_forgetting_makes_a_walk_cold_again():
    engine = OwnEngine(grammar(), vocabulary())
    for _ in range(2):
        walk = engine.begin(cold=True, counting=True)
        walk.counters()
        walk.fill()
        assert walk.counters()["mask.memo_misses"] > 0
    walk = engine.begin(cold=False, counting=True)
    walk.fill()
    assert walk.counters()["mask.memo_misses"] == 0


def test_the_tokens_that_xgrammar_leaves_uncertain_are_counted():
    pytest.importorskip("xgrammar")
    # After a letter the inner rule may end, so "b," and the like run past its end.
    engine = XgrammarEngine(grammar(), vocabulary())
    walk = engine.begin(cold=True, counting=True)
    assert walk.counters()["mask.uncertain"] == 0
    for token in (0, 3):
        assert walk.accept(token)
    found = walk.counters()
    by_hand = engine._read_masks()
    assert found["state.states"] >= 1
    assert found["mask.uncertain"] > 0
    assert found["mask.uncertain"] <= sum(len(m["uncertain_indices"]) for m in by_hand.values())
    assert found["mask.uncertain_bytes"] >= found["mask.uncertain"]


@pytest.mark.parametrize(
    ("texts", "nodes"),
    [([], 0), ([b"a"], 1), ([b"a", b"ab", b"abc"], 3), ([b"ab", b"ac", b"b"], 4)],
)
def test_nodes_of_a_trie(texts, nodes):
    assert _trie_nodes(texts) == nodes
    assert nodes == len({text[:n] for text in texts for n in range(1, len(text) + 1)})


def test_xgrammar_with_masks_too_large_to_read_says_so():
    pytest.importorskip("xgrammar")
    engine = XgrammarEngine(grammar(), vocabulary(), max_cache_bytes=10)
    engine.begin(cold=True)
    with pytest.raises(InstrumentError, match="raise max_cache_bytes"):
        engine.begin(cold=True, counting=True)


@given(grammars(unicode=0.6), st.randoms(use_true_random=False))
@examples(60)
def test_grammars_translated_for_llguidance_keep_their_strings(g, random):
    pytest.importorskip("llguidance")
    if not Oracle(g).productive:
        return
    ours = tokfold.Grammar.from_ebnf(to_ebnf(g), root=g.root)
    try:
        engine = LlguidanceEngine(ours, byte_vocabulary())
    except EngineRefusedError:
        CASES["instruments: grammars llguidance refused"] += 1
        return
    sampler = SentenceSampler(lower(g))
    for _ in range(4):
        text = sampler.sample(random) or b""
        if random.random() < 0.3:
            text += random.choice([b"a", b"b", b"c", "é".encode()])
        if b"\xed" in text:
            continue  # a surrogate may be in it: no UTF-8, and left out
        walk = engine.begin(cold=False)
        took = all(walk.accept(byte) for byte in text)
        if took:
            took = walk.would_accept(256)
        assert took == accepts(g, text), (to_ebnf(g), to_lark(ours), text)
        CASES["instruments: texts through llguidance"] += 1


@pytest.mark.parametrize(
    ("text", "string"),
    [
        ('root ::= "a" [b-c]* | "ab" "d"', b"abc"),
        ('root ::= "a" [b-c]* | "ab" "d"', b"abd"),
        ('root ::= "ab"* "aba"', b"ababa"),
        ('root ::= word ("end" | " ") \nword ::= [a-z]+', b"spend"),
        ('root ::= "x" [xy]{2,3} "xyz"', b"xxyxyz"),
        ('root ::= ("a"*)* ("b"{0,0} | "c"){2}', b"aac"),
    ],
)
def test_no_lexeme_takes_what_another_needs(text, string):
    pytest.importorskip("llguidance")
    walk = LlguidanceEngine(grammar(text), byte_vocabulary()).begin(cold=True)
    assert all(walk.accept(byte) for byte in string)
    assert walk.would_accept(256)


def test_nesting_without_end_is_translated_without_recursion():
    deep = "(" * 3_000 + '"a"' + ' "b"?)' * 3_000
    limits = tokfold.Limits(max_nesting=10_000)
    read = tokfold.Grammar.from_ebnf(f"root ::= {deep}", limits=limits)
    lines = to_lark(read).splitlines()
    assert max(line.count("(") for line in lines) <= 40


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('root ::= TagDispatch(("<f>", inner))\ninner ::= "a"\n', "TagDispatch"),
        ('root ::= inner "b"\ninner ::= "a" (= "b")\n', "lookahead"),
        ('root ::= inner "b"\ninner[max_tokens=3] ::= "a"*\n', "options"),
    ],
)
def test_what_llguidance_cannot_express_is_refused_by_name(text, reason):
    with pytest.raises(EngineRefusedError, match=f"llguidance.*{reason}"):
        to_lark(grammar(text))


def test_an_engine_that_refuses_is_reported_and_the_others_run():
    pytest.importorskip("llguidance")
    found = profile(
        grammar('root ::= "x" TagDispatch(("<f>", inner))\ninner ::= "a"\n'),
        byte_vocabulary(),
        b"xyz",
        ["llguidance", "own"],
        repeats=1,
    )
    assert list(found.engines) == ["own"]
    assert "TagDispatch" in found.refused["llguidance"]


def go_on(walk, steps):
    for _ in range(steps):
        walk.fill()
        walk.check()
        walk.accept(0)


def test_llguidance_is_profiled_by_the_door_that_suits_it():
    """A JSON Schema without options it takes itself; anything else is translated."""
    pytest.importorskip("llguidance")
    words = tokfold.Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], [256])
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    text = b'{"a": 1}'
    of_schema = tokfold.Grammar.from_json_schema(schema)
    for source, said in (
        (of_schema, "the JSON Schema"),
        (tokfold.Grammar.from_json_schema(schema, whitespace="spaced"), "a translation"),
        (tokfold.Grammar.from_ebnf('root ::= "{" [^}]* "}"'), "a translation"),
    ):
        found = profile(source, words, text, ["llguidance", "own"], repeats=1)
        assert not found.refused
        assert found.engines["llguidance"].given.startswith(said)
        assert found.engines["own"].given == ""
        assert document(found)["engines"]["llguidance"]["given"].startswith(said)
        assert len(found.engines["llguidance"].allowed) == len(text)
    converted = make_engine("llguidance", of_schema, words)  # as maskdiff compares it
    assert converted.given.startswith("a translation")


def test_llguidance_at_its_bound_stops_by_name():
    pytest.importorskip("llguidance")
    ambiguous = grammar('root ::= s\ns ::= s s | "a" | "b"\n')
    words = tokfold.Vocabulary([b"a", b"b", *(b"ab" * n for n in range(1, 40)), b"</s>"], [41])
    engine = partial(LlguidanceEngine, max_items=300)
    found = profile(ambiguous, words, b"ab" * 60, {"llguidance": engine}, repeats=1)
    one = found.engines["llguidance"]
    assert "limit 300" in one.stopped
    assert len(one.allowed) < len(found.token_ids)
    walk = engine(ambiguous, words).begin(cold=True)
    with pytest.raises(EngineStoppedError, match="llguidance gave up"):
        go_on(walk, 50)


def test_a_pass_that_takes_too_long_ends_there():
    found = profile(grammar(), byte_vocabulary(), TEXT, repeats=3, seconds=0.0)
    one = found.engines["own"]
    assert one.stopped.startswith(f"out of time after 1 of {len(TEXT)} tokens: allow more than 0")
    assert len(one.allowed) == one.warm.total().size == 1
    assert one.cold.repeats == 1


def test_llguidance_wants_a_stop_token():
    pytest.importorskip("llguidance")
    with pytest.raises(InstrumentError, match="stop token"):
        LlguidanceEngine(grammar(), tokfold.Vocabulary([b"[", b"]"]))


def test_a_text_outside_the_language_is_refused_with_its_place():
    with pytest.raises(TextRefusedError, match="line 2, column 2") as caught:
        profile(grammar('root ::= "é\\né" "b"'), byte_vocabulary(), "é\néxb".encode())
    again = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, again):
        assert (error.offset, error.line, error.column) == (5, 2, 2)
    assert str(again) == str(caught.value)


@pytest.mark.parametrize("error", [EngineRefusedError("x", "why"), EngineStoppedError("x", "why")])
def test_errors_survive_pickling(error):
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.engine, again.reason) == (str(error), "x", "why")


def test_misuse_is_named():
    words = byte_vocabulary()
    with pytest.raises(InstrumentError, match=r"'nobody'.*own, xgrammar, llguidance"):
        profile(grammar(), words, TEXT, ["nobody"])
    with pytest.raises(ValueError, match="repeats"):
        profile(grammar(), words, TEXT, repeats=0)
    with pytest.raises(ValueError, match="engines is empty"):
        profile(grammar(), words, TEXT, [])
    with pytest.raises(ValueError, match="how must be"):
        profile(grammar(), words, b"[", repeats=1).engines["own"].cold.mask("mean")
    with pytest.raises(ValueError, match="classes"):
        OwnEngine(grammar(), words, classes="auto")
    with pytest.raises(EngineRefusedError, match="own does not take"):
        OwnEngine(grammar('root ::= "a" root'), words)


def test_counters_from_elsewhere_get_a_column():
    def lengths(of, pieces):
        assert of == grammar()
        return {"forest.nodes": [len(piece) for piece in pieces]}

    found = profile(grammar(), vocabulary(), TEXT, repeats=1, extra=[lengths])
    assert found.extra["forest.nodes"].tolist() == [len(t) for t in found.tokens()]
    assert document(found)["extra"]["forest.nodes"][0] == len(found.tokens()[0])
    with pytest.raises(InstrumentError, match="'n' has 1 counts"):
        profile(grammar(), vocabulary(), TEXT, repeats=1, extra=[lambda g, t: {"n": [1]}])


def test_a_profile_of_part_of_a_text():
    whole = profile(grammar(), byte_vocabulary(), TEXT, repeats=1)
    part = profile(grammar(), byte_vocabulary(), TEXT, repeats=1, max_tokens=3)
    assert whole.may_end
    assert not part.may_end
    assert len(part.token_ids) == 3
    counters = part.engines["own"].cold.counters
    assert counters["step.work"].tolist() == (
        whole.engines["own"].cold.counters["step.work"][:3].tolist()
    )
    empty = profile(grammar(), byte_vocabulary(), b"", repeats=1)
    assert len(empty.engines["own"].allowed) == 0


def test_rows_csv_and_json_say_the_same():
    found = profile(grammar(), vocabulary(), TEXT, ["own"], repeats=3)
    one = found.engines["own"]
    assert one.cold.repeats == 3
    assert (one.cold.mask("min") <= one.cold.mask("median")).all()
    assert (one.cold.total() <= one.cold.total("median")).all()
    stream = io.StringIO()
    write_csv(found, stream)
    read = list(csv.DictReader(io.StringIO(stream.getvalue())))
    assert len(read) == 2 * len(found.token_ids) == len(list(rows(found)))
    assert "".join(row["token"] for row in read if row["pass"] == "cold").encode() == TEXT
    said = json.loads(json.dumps(document(found)))["engines"]["own"]
    cold = [row for row in read if row["pass"] == "cold"]
    assert [float(row["mask_us_min"]) for row in cold] == said["cold"]["mask_us"]["min"]
    for counter in ("mask.sets_visited", "step.work", "state.items"):
        assert [int(row[counter]) for row in cold] == said["cold"]["counters"][counter]
    assert [int(row["offset"]) for row in cold] == np.cumsum(
        [0, *(len(t) for t in found.tokens()[:-1])]
    ).tolist()


def test_tokens_that_are_no_text_can_be_written():
    found = profile(grammar('root ::= "é"+'), byte_vocabulary(), "éé".encode(), repeats=1)
    stream = io.StringIO()
    write_csv(found, stream)
    read = list(csv.DictReader(io.StringIO(stream.getvalue())))
    assert read[0]["token"] == "\\xc3"


def test_a_plot_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    found = profile(
        grammar(), vocabulary(), TEXT, repeats=1, extra=[lambda g, t: {"n": [1] * len(t)}]
    )
    plot(found, tmp_path / "steps.svg")
    drawn = (tmp_path / "steps.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    with pytest.raises(ValueError, match=r"(?i)format"):
        plot(found, tmp_path / "steps.nothing")
