"""What every logits processor for one sequence must do, whatever library calls it.

A test file derives from :class:`Contract` and says in the fixture ``drive`` how its library calls a
processor: ``drive(compiled)`` gives a :class:`Driver`. One for batches derives from
:class:`EndingContract` alone, with one row.
"""

from __future__ import annotations

import json
import random
import warnings
from typing import Protocol

import numpy as np
import pytest
import tokfold
from tokfold.errors import MatcherStateError, VocabularyError

TEXTS = [bytes([byte]) for byte in range(32, 127)]
MERGED = [b'{"', b'":', b'", "', b'"}', b"name", b"age", b"na", b"36", b"[1", b", ", b"true", b"  "]
VOCABULARY = tokfold.Vocabulary([*TEXTS, *MERGED, b"<pad>", b"</s>"], [108], [107])
STOP, SIZE = 108, len(VOCABULARY)

RECORD = r"""
root   ::= "{" "\"name\": " string ", \"age\": " [0-9]{1,3} (", \"likes\": " list)? "}"
list   ::= "[" (item (", " item)*)? "]"
item   ::= string | list | "true"
string ::= "\"" [a-z]* "\""
"""
GRAMMARS = {
    "a record": RECORD,
    "anything at all": r"root ::= [ -~]*",
    "ambiguous": 'root ::= root root | "a" | "[" root "]" | "true"',
    "one text": 'root ::= "name"',
}


class Driver(Protocol):
    """One processor and its library."""

    processor: object

    def __call__(self, tokens: list[int], width: int = SIZE, dtype: str = "float32") -> list[float]:
        """The scores that a call of the processor makes of all zeros."""


def compiled(grammar: str = RECORD) -> tokfold.CompiledGrammar:
    return tokfold.compile(tokfold.Grammar.from_ebnf(grammar), VOCABULARY, classes="never")


def ids(text: str) -> list[int]:
    return VOCABULARY.encode_greedy(text.encode())


def bits(matcher: tokfold.Matcher) -> list[bool]:
    bitmask = tokfold.allocate_bitmask(1, SIZE)
    matcher.fill_bitmask(bitmask)
    return np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:SIZE].astype(bool).tolist()


def allowed(grammar: str, tokens: list[int]) -> list[bool]:
    """The mask of a fresh matcher after these tokens; all where the text has ended."""
    matcher = tokfold.Matcher(compiled(grammar))
    for token in tokens:
        assert matcher.accept_token(token)
    return [True] * SIZE if matcher.is_terminated else bits(matcher)


def taken(scores: list[float]) -> list[bool]:
    assert set(scores) <= {0, -np.inf}
    return [score == 0 for score in scores]


def by_itself(
    grammar: str = RECORD, vocabulary: tokfold.Vocabulary = VOCABULARY
) -> tokfold.CompiledGrammar:
    """Its texts end as soon as they are complete, without a stop token."""
    options = tokfold.CompileOptions(terminate_without_stop_token=True)
    return tokfold.compile(
        tokfold.Grammar.from_ebnf(grammar), vocabulary, classes="never", options=options
    )


def only(*tokens: int, width: int = SIZE) -> list[bool]:
    return [token in tokens for token in range(width)]


@pytest.mark.filterwarnings("ignore:all texts have ended, with one of:tokfold.StopTokenWarning")
class EndingContract:
    """Where texts end: those that end by themselves, and those of matchers with a budget.

    Behind a text that ended by itself come stop tokens alone, until there is one.
    """

    @pytest.mark.parametrize("seed", range(4))
    def test_ended_by_itself(self, drive, seed) -> None:
        """Token by token, with drafts that are taken back, over the end and the stop token too."""
        rng, grammar = random.Random(seed), by_itself()
        call, prompt = drive(grammar), [5, 9, *ids("{")][: 1 + seed % 3]
        text: list[int] = []
        for _ in range(80):
            matcher = tokfold.Matcher(grammar)
            read = matcher.accept_tokens(text)
            width = rng.choice([SIZE, SIZE + 13])
            with warnings.catch_warnings():
                warnings.simplefilter("error" if STOP not in text else "ignore")
                found = taken(call([*prompt, *text], width))
            if STOP in text:
                assert all(found)
                text = text[: rng.randrange(len(text))]
            elif matcher.is_terminated:
                assert found == only(STOP, width=width)
                text.append(STOP if rng.random() < 0.5 else rng.randrange(SIZE))
            else:
                assert read == len(text)
                assert found == [*bits(matcher), *[False] * 13][:width]
                text.append(rng.choice([at for at, may in enumerate(found) if may]))
            if text and rng.random() < 0.1:
                text = text[: rng.randrange(len(text))]

    def test_ended_before_the_first_token(self, drive) -> None:
        """By the beginning of the text that the prompt has, or since there is no other text."""
        whole = '{"name": "a", "age": 1}'
        call = drive(by_itself(f"root ::= {json.dumps(whole)}"), prefix=whole)
        assert taken(call([5])) == only(STOP)
        assert all(taken(call([5, STOP])))
        assert taken(drive(by_itself('root ::= ""'))([5])) == only(STOP)

    def test_a_prefix_that_is_no_text(self, drive) -> None:
        with pytest.raises(
            tokfold.MatcherStateError, match=r"prefix 'a.ud800': character 2 is a lone surrogate"
        ):
            drive(compiled('root ::= "a"+'), prefix="a\ud800")

    def test_ended_by_itself_from_a_matcher(self, drive) -> None:
        """Its own stop tokens stand for those of the vocabulary."""
        begun = tokfold.Matcher(
            compiled('root ::= "ab"'), stop_token_ids=[3], terminate_without_stop_token=True
        )
        assert begun.accept_bytes(b"a")
        call = drive(begun)
        assert taken(call([5])) == only(*ids("b"))
        assert taken(call([5, *ids("b")])) == only(3)
        assert all(taken(call([5, *ids("b"), 3])))

    def test_ended_by_itself_within_max_tokens(self, drive) -> None:
        """No stop token is counted, so one comes behind the budget."""
        call = drive(by_itself('root ::= "a"+ | "b"'), max_tokens=1)
        assert taken(call([5])) == only(*ids("a"), *ids("b"))
        assert taken(call([5, *ids("a")])) == only(STOP)

    def test_ended_by_itself_where_nothing_stops(self, drive) -> None:
        """There is no token to allow alone: it is said, once."""
        endless = VOCABULARY.replace(stop_token_ids=())
        call = drive(by_itself('root ::= "ab"', endless), on_error="raise")
        text = ids("ab")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for end in range(len(text)):
                assert not all(taken(call([5, *text[:end]])))
        with pytest.warns(tokfold.StopTokenWarning, match="ended by itself .* no stop token can"):
            assert all(taken(call([5, *text])))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert all(taken(call([5, *text, 3])))

    @pytest.mark.parametrize("on_error", ["raise", "end", "unconstrained"])
    def test_a_row_that_allows_nothing(self, drive, on_error) -> None:
        """No token has the bytes that must come next: the text fails, with scores that are left."""
        call, text = drive(compiled('root ::= "a" ("b" | "c\u00e9")'), on_error=on_error), ids("ac")
        for end in range(2):
            assert not all(taken(call([5, *text[:end]])))
        if on_error == "raise":
            with pytest.raises(
                tokfold.UnwritableTextError, match=r"no token .* spells what must come next, 0xC3"
            ):
                call([5, *text])
            return
        if on_error == "end":
            assert taken(call([5, *text])) == only(STOP)
        else:
            with pytest.warns(tokfold.FallbackWarning, match="goes on without its grammar"):
                assert all(taken(call([5, *text])))
        (failure,) = call.processor.failures.values()
        assert isinstance(failure, tokfold.UnwritableTextError)
        assert taken(call([5, *text[:1]])) == only(*ids("b"), *ids("c"))
        assert call.processor.failures == {}

    def test_a_budget_for_a_matcher(self, drive) -> None:
        """It keeps its own, or has none: which of the two it is, the error does not guess."""
        for options, most in (({}, 12), ({"max_tokens": 9}, 8)):
            begun = tokfold.Matcher(compiled('root ::= "a"+'), **options)
            for prefix in ("", "a"):
                with pytest.raises(
                    tokfold.UnsupportedGrammarError,
                    match=r"has the budget that it was begun with, if any: pass Matcher\(compiled,",
                ):
                    drive(begun, max_tokens=10, prefix=prefix)
            call, one = drive(begun), begun.fork()
            for count in range(most + 1):
                assert taken(call([5, *ids("a") * count])) == bits(one)
                one.accept_tokens(ids("a"))
            assert one.num_steps == min(most + 1, options.get("max_tokens", 99) - 1)


class Contract(EndingContract):
    """The tests; ``dtypes`` are those of the scores that the library knows."""

    dtypes = ("float32",)

    @pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=GRAMMARS)
    @pytest.mark.parametrize("seed", range(4))
    def test_masks_are_those_of_a_matcher(self, drive, grammar, seed) -> None:
        """Token by token, with drafts that are taken back, over the stop token too."""
        rng = random.Random(seed)
        call, prompt = drive(compiled(grammar)), [5, 9, *ids("{")][: 1 + seed % 3]
        text: list[int] = []
        for _ in range(60):
            expected = allowed(grammar, text)
            width, dtype = rng.choice([SIZE, SIZE + 13]), rng.choice(self.dtypes)
            found = taken(call([*prompt, *text], width, dtype))
            if STOP in text:
                assert all(found)
                text = text[: rng.randrange(len(text))]
                continue
            assert found == [*expected, *[False] * 13][:width]
            choices = [token for token, may in enumerate(expected) if may]
            text.append(rng.choice(choices))
            if rng.random() < 0.2:
                text = text[: rng.randrange(len(text) + 1)]

    def test_too_few_columns(self, drive) -> None:
        """Three of the tokens have no score: they are of another model."""
        with pytest.raises(VocabularyError, match=rf"{SIZE - 3} columns, .* {SIZE} tokens"):
            drive(compiled())([5], SIZE - 3)

    def test_the_end(self, drive) -> None:
        call = drive(compiled('root ::= "a"'))
        last = [5, *ids("a")]
        call([5])
        assert taken(call(last)) == [token == STOP for token in range(SIZE)]
        assert all(taken(call([*last, STOP])))
        assert all(taken(call([*last, STOP], SIZE + 7)))
        assert all(taken(call([*last, STOP, 3])))  # looked ahead, and dropped
        assert taken(call(last)) == [token == STOP for token in range(SIZE)]

    def test_one_generation_after_another(self, drive) -> None:
        call, text = drive(compiled()), ids('{"name')
        for prompt in ([7], [7, 8, 9], [9], [7], [7]):
            for end in range(len(text) + 1):
                assert taken(call([*prompt, *text[:end]])) == allowed(RECORD, text[:end])

    def test_a_prompt_that_goes_on_by_a_token(self, drive) -> None:
        """The one case that looks like the generation before."""
        call, start = drive(compiled()), allowed(RECORD, [])
        call([5])
        with pytest.raises(MatcherStateError, match=r"token 6, generated at place 0.*reset\(\)"):
            call([5, 6])
        call.processor.reset()
        assert taken(call([5, 6])) == start

    @pytest.mark.parametrize("token", [*ids("x"), STOP, SIZE, SIZE + 5])
    def test_a_token_that_was_masked(self, drive, token) -> None:
        call, brace = drive(compiled()), ids("{")
        call([5])
        call([5, *brace])
        for _ in range(2):
            with pytest.raises(
                MatcherStateError, match=rf"^token {token}, generated at place 1, h"
            ):
                call([5, *brace, token])
        assert taken(call([5, *brace])) == allowed(RECORD, brace)  # it was taken back

    def test_sequences_that_take_turns(self, drive) -> None:
        brace = ids("{")
        for prompts in ([[5, 6], [7, 8]], [[5], [6], [7, 8, 9]], [[5, 6], [5, 7]]):
            call = drive(compiled())
            for prompt in prompts:
                call(prompt)
            with pytest.raises(MatcherStateError, match="each sequence needs a processor of its"):
                call([*prompts[0], *brace])
        call, wide = drive(compiled("root ::= [a-z]*")), ids("abc")
        call([5])
        call([5])  # two of one prompt
        call([5, wide[0]])
        call([5, wide[1]])
        with pytest.raises(MatcherStateError, match="each sequence needs a processor of its own"):
            call([5, wide[0], wide[2]])
        assert taken(call([5, wide[1], wide[2]])) == allowed("root ::= [a-z]*", wide[1:])

    @pytest.mark.parametrize("method", ["accept_token", "fill_bitmask"])
    @pytest.mark.parametrize("on_error", ["raise", "end", "unconstrained"])
    def test_a_limit_that_is_passed(self, drive, monkeypatch, on_error, method) -> None:
        """What comes of it is the caller's choice; going back before it takes it back."""
        call, text = drive(compiled(), on_error=on_error), ids('{"name": "')
        stops = [token == STOP for token in range(SIZE)]
        original = getattr(tokfold.Matcher, method)
        at = 2 if method == "accept_token" else 3

        def limited(matcher: tokfold.Matcher, *arguments: object) -> object:
            if matcher.num_steps == at:
                raise tokfold.LimitExceededError("too much", "max_mask_work", 1)
            return original(matcher, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(tokfold.Matcher, method, limited)
            for end in range(3):
                call([5, *text[:end]])
            assert call.processor.failures == {}
            if on_error == "raise":
                with pytest.raises(tokfold.LimitExceededError):
                    call([5, *text[:3]])
            elif on_error == "end":
                for end in (3, 3, 4):
                    assert taken(call([5, *text[:end]], SIZE + 3)) == [*stops, *[False] * 3]
                assert all(taken(call([5, *text[:4], STOP])))
            else:
                with pytest.warns(tokfold.FallbackWarning, match="goes on without its grammar"):
                    assert all(taken(call([5, *text[:3]])))
                assert all(taken(call([5, *text[:3], *ids("x")])))
            if on_error != "raise":
                assert [str(error) for error in call.processor.failures.values()] == ["too much"]
        assert taken(call([5, *text[:1]])) == allowed(RECORD, text[:1])
        assert call.processor.failures == {}
        assert taken(call([5, *text[:2]])) == allowed(RECORD, text[:2])
        call([9])
        assert call.processor.failures == {}

    def test_what_cannot_be_kept(self, drive) -> None:
        with pytest.raises(ValueError, match="on_error must be 'raise', 'end' or 'uncon"):
            drive(compiled(), on_error="stop")
        endless = tokfold.Vocabulary([b"a", b"b"])
        grammar = tokfold.compile(
            tokfold.Grammar.from_ebnf('root ::= "a"'),
            endless,
            classes="never",
            options=tokfold.CompileOptions(check_tokens=False),
        )
        with pytest.raises(ValueError, match="needs a stop token"):
            drive(grammar)
        drive(grammar, on_error="raise")

    def test_grammars_of_the_wrapped_xgrammar(self, drive) -> None:
        xgr = pytest.importorskip("xgrammar")
        from tokfold import xgrammar as txgr

        tokens = list(VOCABULARY)
        info = xgr.TokenizerInfo(tokens, xgr.VocabType.RAW, vocab_size=SIZE, stop_token_ids=[STOP])
        call = drive(txgr.GrammarCompiler(info).compile_grammar(RECORD))
        text = [*ids('{"name": "ab", "age": 36}'), STOP]
        for end in range(len(text)):
            expected = allowed(RECORD, text[:end])
            expected[VOCABULARY.special_token_ids[0]] = False
            assert taken(call([5, *text[:end]])) == expected
        assert all(taken(call([5, *text])))
        call([5, *text[:2]])
        with pytest.raises(MatcherStateError, match="had been masked"):
            call([5, *text[:2], STOP])

    def test_what_is_no_compiled_grammar(self, drive) -> None:
        for wrong in (None, "root", tokfold.Grammar.from_ebnf('root ::= "a"')):
            with pytest.raises(TypeError, match=r"tokfold\.CompiledGrammar or a tokfold\.xgrammar"):
                drive(wrong)
