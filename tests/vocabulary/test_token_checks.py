"""What `compile` says of a vocabulary whose tokens cannot begin, write or end a text."""

from __future__ import annotations

import random
import warnings
from itertools import product

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from oracles.model import Grammar, to_ebnf
from strategies.grammars import grammars
from strategies.profiles import CASES, examples
from tokfold.errors import StopTokenWarning, UnwritableTextError, VocabularyWarning

BYTES = [bytes([byte]) for byte in range(256)]
WITHOUT_STOP = tokfold.Vocabulary(BYTES)
AGE = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


def silent(*arguments, **options) -> tokfold.CompiledGrammar:
    """What is compiled where nothing is to be said."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gathered = tokfold.CompileOptions(**options)
        return tokfold.compile(*arguments, classes="never", options=gathered)


def warned(kind: type[Warning], *arguments, **options) -> str:
    gathered = tokfold.CompileOptions(**options)
    with pytest.warns(kind) as said:
        tokfold.compile(*arguments, classes="never", options=gathered)
    assert len(said) == 1
    assert said[0].filename == __file__
    return str(said[0].message)


def refused(*arguments, **options) -> str:
    with pytest.raises(UnwritableTextError) as caught:
        tokfold.compile(*arguments, classes="never", **options)
    assert isinstance(caught.value, tokfold.VocabularyError)
    return str(caught.value)


# ------------------------------------------------------------------------- ends of texts


@pytest.mark.parametrize(
    ("grammar", "is_finite"),
    [
        ('root ::= "ab"', True),
        (["a", "b"], True),
        (bool, True),
        ('root ::= "a"+', False),
        ('root ::= "(" root ")" | "x"', False),
        (AGE, False),
    ],
)
def test_a_vocabulary_without_stop_tokens(grammar, is_finite) -> None:
    if is_finite:
        said = refused(grammar, WITHOUT_STOP)
        assert said.startswith(
            "the vocabulary 'vocabulary' has no stop token, and the grammar has finitely many texts"
        )
        assert said.endswith("; options=CompileOptions(check_tokens=False) leaves it to the masks")
    else:
        said = warned(StopTokenWarning, grammar, WITHOUT_STOP)
        assert said.startswith("the vocabulary 'vocabulary' has no stop token, so nothing ends")
    assert "vocabulary.replace(stop_token_ids=[...])" in said
    assert "terminate_without_stop_token=True" in said
    silent(grammar, WITHOUT_STOP, check_tokens=False)
    silent(grammar, WITHOUT_STOP.replace(stop_token_ids=[0]))
    compiled = silent(grammar, WITHOUT_STOP, terminate_without_stop_token=True)
    assert compiled.terminate_without_stop_token


def test_texts_end_by_themselves_where_compile_is_told_so() -> None:
    compiled = silent('root ::= "a" | "ab"', WITHOUT_STOP, terminate_without_stop_token=True)
    matcher = tokfold.Matcher(compiled)
    assert matcher.accept_string("a")
    assert matcher.is_terminated
    goes_on = tokfold.Matcher(compiled, terminate_without_stop_token=False, stop_token_ids=[0])
    assert goes_on.accept_string("a")
    assert not goes_on.is_terminated
    assert goes_on.accept_string("b")
    row = tokfold.allocate_bitmask(1, 256)
    assert goes_on.fill_bitmask(row)
    assert row[0, 0] == 1


def test_a_compiler_without_stop_tokens() -> None:
    compiler = tokfold.GrammarCompiler(WITHOUT_STOP, classes="never")
    with pytest.warns(StopTokenWarning):
        compiler.compile_json_schema(AGE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = tokfold.GrammarCompiler(WITHOUT_STOP, check_tokens=False, classes="never")
        quiet.compile_json_schema(AGE)
        ends = tokfold.GrammarCompiler(
            WITHOUT_STOP, terminate_without_stop_token=True, classes="never"
        )
        matcher = tokfold.Matcher(ends.compile_json_schema(AGE))
    assert matcher.accept_string('{"age": 1}')
    assert matcher.is_terminated


# -------------------------------------------------------------------- beginnings of texts


def without(*texts: bytes, **options) -> tokfold.Vocabulary:
    """The bytes but for some, and a stop token."""
    kept = [byte for byte in BYTES if byte not in texts]
    extra = options.pop("extra", [])
    special = [len(kept) + 1 + i for i in range(len(extra))]
    return tokfold.Vocabulary([*kept, b"</s>", *extra], [len(kept)], special, **options)


def test_no_token_begins_a_text() -> None:
    said = refused(AGE, without(b"{", name="small"))
    assert said == (
        "no token of the vocabulary 'small' begins a text of the grammar; no token of 'small' has "
        "'{', which every text needs. A text begins with '{'; "
        "options=CompileOptions(check_tokens=False) leaves it to the masks"
    )
    compiled = silent(AGE, without(b"{"), check_tokens=False)
    row = tokfold.allocate_bitmask(1, len(compiled.vocabulary))
    assert tokfold.Matcher(compiled).fill_bitmask(row)
    assert not row.any()


def test_a_token_has_the_byte_and_none_begins_with_it() -> None:
    tokens = tokfold.Vocabulary([b"a{", b"}", b"</s>"], [2])
    said = refused('root ::= "{" "}"', tokens)
    assert "begins a text of the grammar. A text begins with '{';" in said
    silent('root ::= "{" "}"', tokfold.Vocabulary([b"a{", b"{", b"}", b"</s>"], [3]))
    silent('root ::= "{" "}" | ""', tokens)


def test_only_a_special_token_spells_what_a_text_begins_with() -> None:
    tokens = without(b"<", extra=[b"<tool>"])
    said = refused('root ::= "<tool>" [a-z]+', tokens)
    assert "The special token 256 has the bytes b'<tool>', with which a text begins;" in said
    assert "name it in the grammar, <[256]>" in said
    assert "vocabulary.replace(special_token_ids=[...])" in said
    silent("root ::= <[256]> [a-z]+", tokens)
    silent('root ::= "<tool>" [a-z]+', tokens.replace(special_token_ids=()))


def test_only_a_stop_token_spells_what_a_text_begins_with() -> None:
    tokens = tokfold.Vocabulary([b"a", b"<end>"], [1])
    said = refused('root ::= "<end>" "a"', tokens)
    assert "The stop token 1 has the bytes b'<end>', with which a text begins;" in said
    advice = "vocabulary.replace(stop_token_ids=[...], special_token_ids=[...])"
    assert advice in said
    text = eval(advice.replace("...", ""), {"vocabulary": tokens})
    options = tokfold.CompileOptions(terminate_without_stop_token=True)
    assert tokfold.compile('root ::= "<end>" "a"', text, options=options)


# ------------------------------------------------------------------ bytes that no token has


def test_a_vocabulary_without_a_brace() -> None:
    said = warned(VocabularyWarning, AGE, without(b"}", name="small"))
    assert said.startswith(
        "no text can be completed: no token of 'small' has '}', which every text needs."
    )
    silent(AGE, without(b"}"), check_tokens=False)
    silent(AGE, without(b"]"))
    silent({"type": ["object", "array"]}, without(b"}"))


@pytest.mark.parametrize(
    ("grammar", "missing", "said"),
    [
        ('root ::= "[" [0-9]+ "]"', b"]", "']'"),
        ('root ::= "x" [0-9]+', b"0123456789", "one of '0' to '9'"),
        ('root ::= "a" ("{" root "}" | "(" root ")" | "x")', b"x})", "'x'"),
        ('root ::= "a" ("}" | ")")', b"})", "one of ')', '}'"),
        ('root ::= "a" "}" ")"', b"})", "')', and '}'"),
        ('root ::= "a" [\\x01-\\x03] " "', b" \x01\x02\x03", "one of 0x01 to 0x03, and 0x20"),
        ('root ::= "a" x{3,300}\nx ::= "," [a-z]', b",", "','"),
        ('root ::= root "+" x | x\nx ::= "1" ")"', b")", "')'"),
    ],
)
def test_what_every_text_needs_is_named(grammar, missing, said) -> None:
    tokens = without(*(bytes([byte]) for byte in missing), name="it")
    told = warned(VocabularyWarning, grammar, tokens)
    assert f"no token of 'it' has {said}, which every text needs." in told


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "a" ("}" | "b")',
        'root ::= "a" "}"*',
        'root ::= "a" "}"{0,300}',
        'root ::= "a" | root "}"',
    ],
)
def test_what_some_texts_need_is_not(grammar) -> None:
    silent(grammar, without(b"}"))


def test_tokens_that_are_taken_whole_need_no_bytes() -> None:
    tokens = tokfold.Vocabulary([b"a", b"</s>", b"<tool>"], [1], [2])
    silent('root ::= "a" <[2]>', tokens)
    silent("root ::= <[2]>+", tokens)
    assert "'b'" in warned(VocabularyWarning, 'root ::= <[2]> "b" <[2]>', tokens)


def test_members_in_any_order() -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in ("a", "b", "c")},
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    }
    grammar = tokfold.Grammar.from_json_schema(schema, key_order="any")
    silent(grammar, without(b"d"))
    assert "'b'" in warned(VocabularyWarning, grammar, without(b"b"))


# ------------------------------------------------------------------------ finitely many texts


@examples(400)
@given(grammars(), st.integers(0, 1 << 16))
def test_texts_that_are_finitely_many_come_to_their_end(model: Grammar, seed: int) -> None:
    """What is refused for its finite texts has no long one."""
    try:
        grammar = tokfold.Grammar.from_ebnf(to_ebnf(model), root=model.root)
        unchecked = tokfold.CompileOptions(check_tokens=False)
        compiled = tokfold.compile(grammar, WITHOUT_STOP, classes="never", options=unchecked)
    except tokfold.UnsupportedGrammarError:
        return  # it has no text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tokfold.compile(grammar, WITHOUT_STOP, classes="never")
            CASES["finitely many texts: not known"] += 1
            return
        except UnwritableTextError:
            CASES["finitely many texts: known"] += 1
    chance = random.Random(seed)
    for _ in range(3):
        matcher = tokfold.Matcher(compiled)
        while expected := matcher.expected_bytes:
            assert matcher.accept_token(chance.choice(expected))
            assert matcher.num_steps < 5_000
        assert matcher.is_accepting


# ----------------------------------------------------------------------------- all of them

LETTERS = "abc"


@given(
    tokens=st.lists(st.sampled_from(["a", "b", "c", "ab", "ba", "cc", "abc"]), min_size=1),
    texts=st.lists(st.text(LETTERS, max_size=3), min_size=1, max_size=3),
)
def test_what_is_said_is_what_texts_say(tokens: list[str], texts: list[str]) -> None:
    vocabulary = tokfold.Vocabulary([*(one.encode() for one in tokens), b"</s>"], [len(tokens)])
    grammar = tokfold.Grammar.choices(texts)
    begins = "" in texts or any(t.startswith(one) for t, one in product(texts, tokens))
    has = set("".join(tokens))
    written = any(set(text) <= has for text in texts)
    if not begins:
        assert refused(grammar, vocabulary).startswith("no token of the vocabulary")
    elif written:
        silent(grammar, vocabulary)
    else:
        assert warned(VocabularyWarning, grammar, vocabulary).startswith("no text")
