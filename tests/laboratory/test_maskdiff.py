"""Comparing masks: every lie is found where it is told, and laid at the right door."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial

import pytest
import tokfold
import typer
import typer.testing as typer_testing
from hypothesis import given
from hypothesis import strategies as st
from strategies.engine import plain_matcher, settings_of_matchers
from strategies.profiles import CASES, examples
from tokfold.laboratory.commands.maskdiff import maskdiff
from tokfold.laboratory.commands.profile import profile
from tokfold.laboratory.instruments import (
    EngineRefusedError,
    EngineStoppedError,
    InstrumentError,
    OwnEngine,
    TextRefusedError,
)
from tokfold.laboratory.instruments.maskdiff import Fault, mask_diff

GRAMMAR = 'root ::= [a-z]+ ("," [a-z]+)*\n'
TOKENS = [b"a", b"b", b"ab", b",", b"a,", b",,", b"</s>"]
TEXT = b"ab,b,a"
OWN = partial(OwnEngine, classes="never")


def vocabulary() -> tokfold.Vocabulary:
    return tokfold.Vocabulary(TOKENS, [6])


@dataclass
class Lie:
    """At a step, a token of which an engine says the opposite: in its mask, or when offered."""

    step: int
    token_id: int
    in_mask: bool = True
    when_offered: bool = False


class LyingEngine(OwnEngine):
    """Ours, with a lie told now and then."""

    def __init__(self, grammar, vocabulary, lies=(), fails_at=None):
        super().__init__(grammar, vocabulary, classes="never")
        self.name, self.lies, self.fails_at = "liar", lies, fails_at

    def begin(self, *, cold, counting=False):
        return LyingWalk(self, super().begin(cold=cold, counting=counting))


class LyingWalk:
    def __init__(self, engine, walk):
        self._engine, self._walk, self._steps = engine, walk, 0
        self.row, self.counters = walk.row, walk.counters

    def _told(self, how):
        here = [lie for lie in self._engine.lies if lie.step == self._steps]
        return [lie.token_id for lie in here if getattr(lie, how)]

    def fill(self):
        self._walk.fill()
        for token_id in self._told("in_mask"):
            self.row[0, token_id >> 5] ^= 1 << (token_id & 31)

    def accept(self, token_id):
        if token_id in self._told("when_offered"):
            return False
        self._steps += 1
        return self._walk.accept(token_id)

    def would_accept(self, token_id):
        return self._walk.would_accept(token_id) != (token_id in self._told("when_offered"))

    def check(self):
        if self._engine.fails_at == self._steps:
            raise EngineStoppedError("liar", "tired")


def diff(*lies, first=OWN, places=1, fails_at=None, **options):
    second = partial(LyingEngine, lies=lies, fails_at=fails_at)
    grammar = tokfold.Grammar.from_ebnf(GRAMMAR)
    return mask_diff(grammar, vocabulary(), TEXT, (first, second), places=places, **options)


def test_an_engine_agrees_with_itself():
    found = diff()
    assert found.same
    assert found.engines == ("own", "liar")
    assert found.masks == found.tokens + 1 == 6


@pytest.mark.parametrize("token_id", range(7))
@pytest.mark.parametrize("step", range(6))
def test_a_lie_in_a_mask_is_found_at_its_place(step, token_id):
    found = diff(Lie(step, token_id))
    assert not found.same
    [place] = found.differences
    offset = sum(len(TOKENS[t]) for t in vocabulary().encode_greedy(TEXT)[:step])
    assert (place.index, place.offset, place.total) == (step, offset, 1)
    [verdict] = place.verdicts
    assert (verdict.token_id, verdict.token) == (token_id, TOKENS[token_id])
    assert verdict.fault is Fault.SECOND
    assert verdict.contradicts == (False, True)
    assert verdict.allowed[0] == verdict.taken[0] == verdict.taken[1] == verdict.possible
    assert verdict.allowed[1] != verdict.possible
    reversed_order = mask_diff(
        tokfold.Grammar.from_ebnf(GRAMMAR),
        vocabulary(),
        TEXT,
        (partial(LyingEngine, lies=[Lie(step, token_id)]), OWN),
    )
    assert reversed_order.differences[0].verdicts[0].fault is Fault.FIRST


def test_a_lie_told_twice_is_another_understanding():
    [place] = diff(Lie(2, 5, in_mask=True, when_offered=True)).differences
    [verdict] = place.verdicts
    assert verdict.fault is Fault.NEITHER
    assert verdict.possible is False


def test_who_refuses_the_token_of_the_text_is_found_though_masks_agree():
    lie = Lie(1, vocabulary().encode_greedy(TEXT)[1], in_mask=False, when_offered=True)
    found = diff(lie, places=None)
    [place] = found.differences
    assert (place.index, place.total) == (1, 0)
    assert place.verdicts[0].fault is Fault.SECOND
    assert place.verdicts[0].possible
    token = TOKENS[vocabulary().encode_greedy(TEXT)[1]]
    assert found.ended == f"at token 2: liar does not take {token!r}"


def test_both_may_contradict_themselves():
    lies = [Lie(0, 3)]
    first = partial(LyingEngine, lies=[Lie(0, 3, in_mask=False, when_offered=True)])
    [place] = diff(*lies, first=first).differences
    assert place.verdicts[0].fault is Fault.BOTH


def test_all_places_or_the_first():
    lies = [Lie(0, 0), Lie(3, 1), Lie(3, 2), Lie(5, 6)]
    assert [p.index for p in diff(*lies).differences] == [0]
    found = diff(*lies, places=None)
    assert [(p.index, p.total) for p in found.differences] == [(0, 1), (3, 2), (5, 1)]
    assert found.masks == 6
    [_, place, _] = diff(*lies, places=None, max_tried=1).differences
    assert (place.total, len(place.verdicts)) == (2, 1)


def test_the_token_of_the_text_is_tried_first():
    wanted = vocabulary().encode_greedy(TEXT)[3]
    others = [t for t in range(6) if t != wanted]
    [place] = diff(*(Lie(3, t) for t in [*others, wanted]), max_tried=3).differences
    assert [v.token_id for v in place.verdicts] == [wanted, *others[:2]]


def test_an_engine_that_gives_up_ends_the_comparison():
    found = diff(fails_at=2)
    assert not found.same
    assert not found.differences
    assert found.ended == "at token 3: liar gave up: tired"
    assert found.masks == 2


def test_misuse_is_named():
    grammar = tokfold.Grammar.from_ebnf(GRAMMAR)
    with pytest.raises(TextRefusedError, match="column 3"):
        mask_diff(grammar, vocabulary(), b"ab;", (OWN, OWN))
    with pytest.raises(InstrumentError, match="not those of the text"):
        mask_diff(grammar, vocabulary(), b"ab", (OWN, OWN), token_ids=[0])
    with pytest.raises(InstrumentError, match="no engine is named"):
        mask_diff(grammar, vocabulary(), b"ab", ("own", "nobody"))
    assert mask_diff(grammar, vocabulary(), b"ab", (OWN, OWN), token_ids=[0, 1]).engines == (
        "own (first)",
        "own (second)",
    )


def test_tokens_may_be_given_where_the_longest_lead_nowhere():
    """After the longest, `aa`, no token begins with the bracket."""
    grammar = tokfold.Grammar.from_ebnf('root ::= "aa("')
    words = tokfold.Vocabulary([b"a", b"aa", b"a(", b"</s>"], [3])
    assert mask_diff(grammar, words, b"aa(", (OWN, OWN), token_ids=[0, 2]).same
    with pytest.raises(tokfold.VocabularyError, match="byte 2"):
        mask_diff(grammar, words, b"aa(", (OWN, OWN))


def test_the_recursive_root_of_xgrammar():
    pytest.importorskip("xgrammar")
    grammar = tokfold.Grammar.from_ebnf('root ::= root "d" | "c"')
    words = tokfold.Vocabulary([b"c", b"d", b"dd", b"</s>"], [3])
    found = mask_diff(grammar, words, b"cdd", ("own", "xgrammar"), token_ids=[0, 1, 1])
    [place] = found.differences
    assert (place.index, place.offset) == (1, 1)
    [verdict] = place.verdicts
    assert (verdict.token, verdict.allowed, verdict.taken) == (b"dd", (True, False), (True, True))
    assert verdict.fault is Fault.SECOND


def test_a_rule_without_end_is_another_understanding():
    pytest.importorskip("xgrammar")
    grammar = tokfold.Grammar.from_ebnf('root ::= "a" loop | "ab"\nloop ::= "b" loop')
    words = tokfold.Vocabulary([b"a", b"b", b"abb", b"</s>"], [3])
    [place] = mask_diff(grammar, words, b"ab", ("own", "xgrammar"), token_ids=[0, 1]).differences
    [verdict] = place.verdicts
    assert (place.index, verdict.token) == (0, b"abb")
    assert verdict.fault is Fault.NEITHER
    assert verdict.taken == (False, True)
    assert verdict.possible is False


def test_a_text_that_is_forced_in_llguidance():
    pytest.importorskip("llguidance")
    grammar = tokfold.Grammar.from_ebnf('root ::= "begin" [0-9]')
    words = tokfold.Vocabulary([*(bytes((b,)) for b in range(128)), b"begin", b"</s>"], [129])
    [place] = mask_diff(grammar, words, b"begin1", ("own", "llguidance")).differences
    [verdict] = place.verdicts
    assert (verdict.token, verdict.fault) == (b"b", Fault.SECOND)
    assert verdict.taken == (True, True)


@given(settings_of_matchers(), st.randoms(use_true_random=False))
@examples(40)
def test_verdicts_are_those_of_the_oracle(setting, random):
    """Any mask, with bits turned: exactly those are reported, with the truth about each."""
    if not any(setting.tokens) or not setting.oracle.productive:
        return
    words = setting.our_vocabulary()
    plain = plain_matcher(setting)
    plain.setting = type(setting)(setting.grammar, setting.tokens, setting.stops, setting.specials)
    text, steps = b"", []
    for _ in range(4):
        allowed = [t for t, ok in enumerate(plain.mask()) if ok and t not in setting.stops]
        if not allowed:
            break
        steps.append(random.choice(allowed))
        plain.accept_token(steps[-1])
        text += setting.tokens[steps[-1]]
    step = random.randint(0, len(steps))
    turned = random.sample(range(len(setting.tokens)), random.randint(1, len(setting.tokens)))
    liar = partial(LyingEngine, lies=[Lie(step, token) for token in turned])
    found = mask_diff(setting.our_grammar(), words, text, (OWN, liar), token_ids=steps)
    [place] = found.differences
    assert place.index == step
    assert sorted(v.token_id for v in place.verdicts) == sorted(turned)
    oracle = plain_matcher(plain.setting)
    for token in steps[:step]:
        oracle.accept_token(token)
    for verdict in place.verdicts:
        truth = oracle.takes(verdict.token_id)
        assert verdict.fault is Fault.SECOND
        assert verdict.taken == (truth, truth)
        assert verdict.allowed == (truth, not truth)
        special = verdict.token_id in words.special_token_ids  # a stop token is none
        assert verdict.possible == (None if special else truth)
    CASES["maskdiff: verdicts against the oracle"] += len(turned)


app = typer.Typer()
app.command()(maskdiff)
app.command()(profile)


def run(*arguments, code=0):
    result = typer_testing.CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


@pytest.fixture
def files(tmp_path):
    (tmp_path / "g.gbnf").write_text(
        'root ::= list\nlist ::= "a" | "(" list ")"\n', encoding="utf-8"
    )
    (tmp_path / "loop.gbnf").write_text('root ::= "a" x | "ab"\nx ::= "b" x\n', encoding="utf-8")
    (tmp_path / "t.txt").write_bytes(b"((a))")
    (tmp_path / "ab.txt").write_bytes(b"ab\n")
    return tmp_path


def test_the_command_compares(files):
    pytest.importorskip("xgrammar")
    result = run("maskdiff", files / "g.gbnf", "--text", files / "t.txt")
    assert "no difference between own and xgrammar: 6 masks along 5 tokens" in result.stdout
    result = run("maskdiff", files / "loop.gbnf", "--text", files / "ab.txt", "--chomp", code=1)
    assert "token 3, byte 2, line 1: the masks differ on 1 tokens" in result.stdout
    assert "they read the grammar differently" in result.stdout
    said = json.loads(
        run(
            *("maskdiff", files / "loop.gbnf", "--text", files / "ab.txt", "--chomp", "--json"),
            code=1,
        ).stdout
    )
    [place] = said["differences"]
    assert (said["same"], place["token"], place["offset"]) == (False, 2, 2)
    [tried] = place["tried"]
    assert tried["allowed"] == tried["taken"] == {"own": False, "xgrammar": True}
    assert (tried["text"], tried["possible"], tried["contradicts_itself"]) == ("b", False, [])


def test_the_command_profiles(files):
    csv, svg = files / "steps.csv", files / "steps.svg"
    pytest.importorskip("matplotlib")
    result = run(
        *("profile", files / "g.gbnf", "--text", files / "t.txt", "--repeats", 2, "--csv", csv),
        *("--plot", svg, "--model-ms", 10, "--batch", 8, "--threads", 2),
    )
    assert "own: the costliest masks and steps" in result.stdout
    assert "waits for the model" in result.stdout
    assert len(csv.read_text(encoding="utf-8").splitlines()) == 11
    assert svg.exists()
    said = json.loads(
        run(
            *("profile", files / "g.gbnf", "--text", files / "t.txt", "--json", "--repeats", 1),
            *("--model-ms", 1),
        ).stdout
    )
    assert said["tokens"] == 5
    assert said["complete"]
    cold = said["engines"]["own"]["cold"]
    assert cold["counters"]["step.bytes"] == [1] * 5
    assert len(cold["mask_us"]["median"]) == 5
    assert said["visible"]["own"]["warm"]["visible_us"] == 1e3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["profile", "g.gbnf", "--text", "ab.txt"], TextRefusedError, "line 1, column 2"),
        (["profile", "g.gbnf", "--text", "t.txt", "--engines", "x"], InstrumentError, '"x"'),
        (
            ["profile", "g.gbnf", "--text", "t.txt", "--engines", "own,own"],
            InstrumentError,
            "twice",
        ),
        (["profile", "g.gbnf", "--text", "t.txt", "--plot", "x.gif"], tokfold.TokfoldError, ".png"),
        (
            ["maskdiff", "g.gbnf", "--text", "t.txt", "--engines", "own"],
            InstrumentError,
            "name two",
        ),
        (
            ["profile", "g.gbnf", "--text", "t.txt", "--batch", 8],
            tokfold.TokfoldError,
            "--batch and --threads are for --model-ms",
        ),
        (
            ["profile", "g.gbnf", "--text", "t.txt", "--threads", 2],
            tokfold.TokfoldError,
            "--batch and --threads are for --model-ms",
        ),
        (["profile", "-", "--text", "-"], tokfold.TokfoldError, "cannot both come from"),
        (["maskdiff", "-", "--text", "-"], tokfold.TokfoldError, "cannot both come from"),
        (["maskdiff", "g.gbnf", "--text", "ab.txt"], TextRefusedError, "column 2"),
    ],
)
def test_commands_name_what_is_wrong(files, arguments, error, message):
    named = [files / a if (files / a).exists() else a for a in map(str, arguments)]
    result = typer_testing.CliRunner().invoke(app, [str(a) for a in named])
    assert isinstance(result.exception, error)
    assert message in str(result.exception)


def test_an_engine_that_does_not_take_the_grammar_fails_the_comparison():
    pytest.importorskip("llguidance")
    grammar = tokfold.Grammar.from_ebnf('root ::= TagDispatch(("<f>", x))\nx ::= "a"\n')
    with pytest.raises(EngineRefusedError, match="llguidance does not take this grammar"):
        mask_diff(grammar, vocabulary(), b"a", ("own", "llguidance"))
