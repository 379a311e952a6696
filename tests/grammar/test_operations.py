"""Grammars made of grammars: what ``|``, ``+``, ``repeat`` and ``optional`` say of any operands."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Sequence
from itertools import product
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
import tokfold
from hypothesis import given, note
from hypothesis import strategies as st
from oracles import earley
from oracles.model import CharClass, Choice, Empty, Expr, Literal, Ref, Repeat, Seq, to_ebnf
from oracles.model import Grammar as Model
from strategies.engine import compiled_with
from strategies.grammars import build_grammar
from strategies.profiles import CASES, LONG, examples
from tokfold import Grammar, LimitExceededError, Limits, UnsupportedGrammarError, Vocabulary

LONGEST, STEPS = 5, 4
TEXTS = ["".join(text) for length in range(LONGEST + 1) for text in product("ab", repeat=length)]
TOKENS = [b"a", b"b", b"ab", b"ba", b"aa", b"bb", b"aba", b"abab", b"bbbb", b"c"]
WIDE = Limits(max_grammar_bytes=1 << 23)
VOCABULARY = Vocabulary([*TOKENS, b"</s>"], stop_token_ids=[len(TOKENS)])

A, B, AB = Literal(b"a"), Literal(b"b"), CharClass(((0x61, 0x62),))
PATTERNS: list[tuple[str, Expr]] = [
    ("[ab]*", Repeat(AB, 0, None)),
    ("a+", Repeat(A, 1, None)),
    ("(ab)?", Repeat(Literal(b"ab"), 0, 1)),
    ("a{0,20}", Repeat(A, 0, 20)),
    ("b|aa", Choice((B, Literal(b"aa")))),
    (".{2}b", Seq((Repeat(CharClass((), negated=True), 2, 2), B))),
]
LARKS: list[tuple[str, Expr]] = [
    ('start: "a" start "b" |', Choice((Seq((A, Ref("root"), B)), Empty()))),
    ("start: x~2..3\nx: /[ab]/", Repeat(AB, 2, 3)),
]
LISTS: list[list[str]] = [["a"], ["", "ab"], ["b", "bb", "b"], ["aab", "a", "aa"], [""]]
BOUNDS = [(0, 1), (0, 0), (1, 1), (0, None), (1, None), (2, 3), (3, None), (0, 30), (25, 4_000_000)]


class Case(NamedTuple):
    """A grammar, its texts up to a length, and it once more as the oracle reads it."""

    grammar: Grammar
    texts: frozenset[str]
    rules: dict[str, Expr]
    expr: Expr
    is_regular: bool


REGULAR = ["choices", "choices", "regex", "regex", "nothing"]


def leaf(random: Random, name: str, kinds: Sequence[str] = ("text", "lark", *REGULAR)) -> Case:
    kind = random.choice(kinds)
    if kind == "text":
        model = build_grammar(random, rules=random.randint(1, 3), texts=["a", "b", "ab"])
        grammar = Grammar.from_ebnf(to_ebnf(model), lookahead=random.choice(["exact", "implied"]))
    elif kind == "choices":
        texts = random.choice(LISTS)
        literals = [Literal(text.encode()) if text else Empty() for text in texts]
        model = Model({"root": Choice(tuple(literals)) if len(literals) > 1 else literals[0]})
        grammar = Grammar.choices(texts)
    elif kind == "regex":
        pattern, expr = random.choice(PATTERNS)
        model, grammar = Model({"root": expr}), Grammar.from_regex(pattern)
    elif kind == "lark":
        text, expr = random.choice(LARKS)
        model, grammar = Model({"root": expr}), Grammar.from_lark(text)
    else:
        model = Model({"root": CharClass(())})
        grammar = Grammar.choices(["a"]) & Grammar.choices(["b"])
    oracle = earley.Oracle(model)
    texts_of = frozenset(text for text in TEXTS if oracle.accepts(text.encode()))
    rules = {f"{name}_{rule}": renamed(body, name) for rule, body in model.rules.items()}
    regular = kind in ("choices", "regex", "nothing")
    return Case(grammar, texts_of, rules, Ref(f"{name}_root"), regular)


def renamed(expr: Expr, name: str) -> Expr:
    match expr:
        case Ref(rule):
            return Ref(f"{name}_{rule}")
        case Seq(items):
            return Seq(tuple(renamed(item, name) for item in items))
        case Choice(items):
            return Choice(tuple(renamed(item, name) for item in items))
        case Repeat(body, low, high):
            return Repeat(renamed(body, name), low, high)
    return expr


def rows(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    return frozenset(a + b for a in one for b in other if len(a) + len(b) <= LONGEST)


def repeated(one: frozenset[str], low: int, high: int | None) -> frozenset[str]:
    """More factors than characters have empty ones among them, and then may be any more."""
    most = LONGEST + 1
    powers = [frozenset({""})]
    for _ in range(most):
        powers.append(rows(powers[-1], one))
    last = most if high is None else min(high, most)
    return frozenset().union(*powers[min(low, most) : last + 1])


def joined(random: Random, cases: Sequence[Case], name: str) -> Case:
    """An operation on some of the cases, one may be there twice."""
    kind = random.choice(["or", "or", "then", "concat", "repeat", "optional"])
    one, other = random.choice(cases), random.choice(cases)
    regular = one.is_regular and other.is_regular
    rules = one.rules | other.rules
    if kind == "or":
        grammar, texts = one.grammar | other.grammar, one.texts | other.texts
        expr: Expr = Choice((one.expr, other.expr))
    elif kind == "then":
        grammar, texts = one.grammar + other.grammar, rows(one.texts, other.texts)
        expr = Seq((one.expr, other.expr))
    elif kind == "concat":
        grammar = Grammar.concat(one.grammar, other.grammar, one.grammar)
        texts = rows(rows(one.texts, other.texts), one.texts)
        expr = Seq((one.expr, other.expr, one.expr))
    else:
        low, high = random.choice(BOUNDS) if kind == "repeat" else (0, 1)
        grammar = one.grammar.repeat(low, high) if kind == "repeat" else one.grammar.optional()
        texts, rules, regular = repeated(one.texts, low, high), one.rules, one.is_regular
        # As many factors as a walk has characters, and one, are as good as any more.
        most = STEPS * max(map(len, TOKENS)) + 1
        high = None if high is None or high > most else high
        expr = Repeat(one.expr, min(low, most), high)
    return Case(grammar, texts, {**rules, name: expr}, Ref(name), regular)


def mask_of(matcher: tokfold.Matcher) -> list[int]:
    row = tokfold.allocate_bitmask(1, len(VOCABULARY))
    matcher.fill_bitmask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(200)
def test_texts_and_masks_are_those_of_the_parts(random):
    """Texts up to a length are what the operation says of the sets of its operands' texts, and
    masks along a walk are what the Earley recognizer makes of one grammar of all."""
    cases = [leaf(random, f"l{number}") for number in range(random.randint(1, 3))]
    for number in range(random.randint(1, 4)):
        cases.append(joined(random, cases, f"o{number}"))
    case = cases[-1]
    model = Model({"root": case.expr, **case.rules})
    note(f"{case.grammar._source}\n{model}")
    again = pickle.loads(pickle.dumps(case.grammar))
    assert again == case.grammar
    assert Grammar.from_ebnf(str(case.grammar)) == case.grammar
    oracle = earley.Oracle(model)
    if not oracle.productive:
        with pytest.raises(UnsupportedGrammarError, match="the language is empty"):
            tokfold.compile(case.grammar, VOCABULARY, classes="never")
        return
    for text in TEXTS:
        assert tokfold.recognize(case.grammar, text).accepted == (text in case.texts), text
    CASES["operations: texts"] += len(TEXTS)
    made = compiled_with(case.grammar, VOCABULARY, classes="never", pool=None)
    matcher, state = tokfold.Matcher(made), oracle.initial(prune=True)
    for _ in range(STEPS):
        allowed = [token for token, data in enumerate(TOKENS) if state.allowed(data)]
        right = allowed + [len(TOKENS)] * state.accepting
        assert mask_of(matcher) == right
        CASES["operations: masks"] += 1
        if not allowed:
            break
        token = random.choice(allowed)
        assert matcher.accept_token(token)
        state = state.feed(TOKENS[token])


@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(60)
def test_what_regular_grammars_make_is_regular(random):
    """``&`` and ``~`` take what operations make of regular grammars, and nothing else."""
    kinds = REGULAR if random.random() < 0.8 else ["text", *REGULAR]
    cases = [leaf(random, f"l{number}", kinds) for number in range(random.randint(1, 3))]
    for number in range(random.randint(1, 3)):
        cases.append(joined(random, cases, f"o{number}"))
    one, other = cases[-1], random.choice(cases)
    if not (one.is_regular and other.is_regular):
        with pytest.raises(UnsupportedGrammarError, match="takes regular grammars"):
            one.grammar & other.grammar
        return
    try:
        both = one.grammar & other.grammar & ~Grammar.choices(["ab"])
    except LimitExceededError:  # 4,000,000 copies are not written out
        return
    right = [text for text in TEXTS if text in one.texts & other.texts and text != "ab"]
    # A grammar without texts is refused.
    some = both | Grammar.choices(["c"])
    assert [text for text in TEXTS if tokfold.recognize(some, text).accepted] == right
    CASES["operations: intersections"] += 1


def accepted(grammar: Grammar, *texts: str) -> list[bool]:
    return [tokfold.recognize(grammar, text).accepted for text in texts]


INTEGER = Grammar.from_json_schema({"type": "integer"})
NONE = Grammar.choices(["N/A"])
ANY_ORDER = Grammar.from_json_schema(
    {
        "properties": {name: {"type": "integer"} for name in "ab"},
        "required": ["a", "b"],
        "additionalProperties": False,
        "type": "object",
    },
    key_order="any",
)
COUNTED = Grammar.from_json_schema({"type": "string", "pattern": "^(ab)*$", "maxLength": 100_000})
TAG = Grammar.from_structural_tag(
    {
        "format": {
            "type": "triggered_tags",
            "triggers": ["<f>"],
            "tags": [
                {
                    "begin": "<f>",
                    "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
                    "end": "</f>",
                }
            ],
        }
    }
)


def test_operands_of_every_origin():
    assert accepted(INTEGER | NONE, "12", "N/A", "N/", "12N/A") == [True, True, False, False]
    orders = ['{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{"a": 1}', '{"a": 1, "a": 1, "b": 2}']
    assert accepted(ANY_ORDER | NONE, *orders, "N/A") == [True, True, False, False, True]
    twice = (ANY_ORDER + Grammar.choices(["\n"])).repeat(2, 2)
    assert accepted(twice, f"{orders[0]}\n{orders[1]}\n", f"{orders[0]}\n") == [True, False]
    long = '"' + "ab" * 50_000 + '"'
    assert accepted(COUNTED | NONE, long, long.replace("ab", "aba", 1), "N/A") == [
        True,
        False,
        True,
    ]
    assert accepted(TAG + NONE, "so <f>1</f>N/A", "so <f>x</f>N/A", "N/A") == [True, False, True]
    macro = Grammar.from_ebnf('root ::= Regex("[a-z]+") x\nx ::= "!"')
    assert accepted(macro | INTEGER + macro, "ab!", "12ab!", "12") == [True, True, False]


def test_names_clash_without_harm():
    one = Grammar.from_ebnf('root ::= part_0 made_0\npart_0 ::= "a"\nmade_0 ::= "b"')
    two = Grammar.from_ebnf('start ::= root x\nroot ::= "c"\nx ::= "d"', "start")
    both = (one + two | two + one).repeat(1, 2)
    assert accepted(both, "abcd", "cdab", "abcdcdab", "abab") == [True, True, True, False]
    assert accepted(both | both.repeat(2) + one, "abcdabcdab") == [True]
    assert len(set(both.rule_names)) == both.num_rules


def test_tokens_are_taken_whole():
    vocabulary = Vocabulary([b"a", b"b", b"<t>", b"</s>"], stop_token_ids=[3])
    whole = Grammar.from_ebnf("root ::= Token(2)")
    matcher = tokfold.Matcher(tokfold.compile(Grammar.choices(["a"]) + whole, vocabulary))
    assert matcher.accept_tokens([0, 2]) == 2
    assert matcher.is_accepting
    # A structural tag without a vocabulary finds its special tokens where it is compiled.
    marked = Vocabulary([b"a", b"b", b"<t>", b"</s>"], stop_token_ids=[3], special_token_ids=[2, 3])
    tag = Grammar.from_structural_tag({"format": {"type": "const_string", "value": "<t>"}})
    for grammar in (tag, Grammar.choices(["a"]).optional() + tag):
        matcher = tokfold.Matcher(tokfold.compile(grammar, marked))
        assert matcher.accept_tokens([2]) == 1


def test_notes_are_carried_over():
    one = Grammar.from_json_schema({"type": "integer", "examples": [1]})
    two = Grammar.from_json_schema(
        {"prefixItems": [{"const": 1}], "items": {"type": "string"}, "uniqueItems": True},
        lossy={"uniqueItems"},
    )
    assert one.notes
    assert two.not_enforced
    made = (one | two + one).repeat(0, 2)
    for grammar in (made, copy.copy(made), pickle.loads(pickle.dumps(made))):
        assert grammar.notes == [*one.notes, *two.notes]
        assert grammar.not_enforced == two.not_enforced


def test_lookahead():
    narrow = 'root ::= a "c"?\na ::= "a" (= "b")'
    exact = Grammar.from_ebnf(narrow)
    implied = Grammar.from_ebnf(narrow, lookahead="implied")
    made = implied | NONE
    assert made.lookahead == "exact"
    assert "(=" not in str(made)
    assert accepted(made, "a", "N/A") == [True, True]
    with pytest.raises(UnsupportedGrammarError, match="lookahead"):
        tokfold.recognize(exact | NONE, "a")


def tag_of(content: dict[str, object]) -> Grammar:
    tag = {"type": "tag", "begin": "<a>", "content": content, "end": "</a>"}
    return Grammar.from_structural_tag({"type": "structural_tag", "format": tag})


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(Grammar.from_lark("start: /a*b/ & ~/ab/\n"), id="lark and"),
        pytest.param(Grammar.from_lark("start: x x\nx[lazy]: /a+b/\n"), id="lark lazy"),
        pytest.param(Grammar.from_lark('start: %json {"type": "integer"}\n'), id="lark json"),
        pytest.param(
            Grammar.from_lark('start: A\nA: %regex {"substring_words": "a b c"}\n'),
            id="lark substring",
        ),
        pytest.param(Grammar.from_ebnf('root ::= "a" | "b"', limits=WIDE), id="text"),
        pytest.param(Grammar.from_regex("a*b"), id="pattern"),
        pytest.param(
            tag_of({"type": "json_schema", "json_schema": {"type": "string", "maxLength": 40}}),
            id="tag",
        ),
    ],
)
def test_copies_of_a_process_are_equal(part: Grammar):
    # A part whose text has rules in place of automata is not read back from its text.
    for grammar in (part, NONE + part, (part | NONE).repeat(0, 3)):
        again = pickle.loads(pickle.dumps(grammar))
        assert again == grammar
        assert hash(again) == hash(grammar)
        assert again.fingerprint == grammar.fingerprint
        assert again._limits == grammar._limits


def test_values():
    made = INTEGER | NONE
    assert made == INTEGER | NONE
    assert hash(made) == hash(INTEGER | NONE)
    assert made.fingerprint == (INTEGER | NONE).fingerprint
    assert made != NONE | INTEGER
    assert Grammar.from_ebnf(str(made)) == made
    assert repr(made).startswith("Grammar(root='root', rules=")
    assert Grammar.concat(made) is made
    # Members in any order have no text; what is made of them is compared by what it is made of.
    ordered = ANY_ORDER | NONE
    assert ordered == pickle.loads(pickle.dumps(ordered))
    assert ordered != ANY_ORDER + NONE
    limits = Limits(max_rules=77)
    of_limits = NONE | Grammar.choices(["a"], limits=limits)
    assert pickle.loads(pickle.dumps(of_limits))._limits == limits


def test_compilers_keep_them():
    compiler = tokfold.GrammarCompiler(VOCABULARY)
    first = compiler.compile_grammar(Grammar.choices(["a"]) | INTEGER)
    assert compiler.compile_grammar(Grammar.choices(["a"]) | INTEGER) is first


LENGTH = 10_000 if LONG else 3_000
"""Of a chain: more than Python's calls, or a stack of the core, could be deep."""


@pytest.mark.parametrize("is_left", [True, False])
def test_long_chains(is_left):
    for operation in (operator.or_, operator.add):
        grammar = Grammar.choices(["w0"])
        for number in range(1, LENGTH):
            word = Grammar.choices([f"w{number}"])
            grammar = operation(grammar, word) if is_left else operation(word, grammar)
        assert grammar.num_rules < 2 * LENGTH + 10
        again = pickle.loads(pickle.dumps(grammar))
        if operation is operator.add:
            words = [f"w{number}" for number in range(LENGTH)]
            row = words if is_left else words[::-1]
            swapped = [*row[:10], row[11], row[10], *row[12:]]
            assert accepted(again, "".join(row), "".join(swapped)) == [True, False]
        if operation is operator.or_:
            assert accepted(again, "w1", f"w{LENGTH - 1}", f"w{LENGTH}") == [True, True, False]
            less = grammar & ~Grammar.choices(["w1"])
            assert accepted(less, "w1", f"w{LENGTH - 1}") == [False, True]
    deep = grammar
    for number in range(LENGTH):
        deep = (deep | INTEGER) + NONE if number % 2 else (NONE + deep).optional()
    assert deep.num_rules > LENGTH
    assert pickle.loads(pickle.dumps(deep)).num_rules == deep.num_rules


def test_shared_operands_are_there_once():
    union = row = Grammar.choices(["a", "ab"])
    for _ in range(60):
        union, row = union | union, row + row
    assert accepted(union, "a", "ab", "aa") == [True, True, False]
    assert union.num_rules < 70 > row.num_rules
    matcher = tokfold.Matcher(tokfold.compile(row, VOCABULARY, classes="never"))
    assert matcher.accept_string("aabaaba")
    assert not matcher.is_accepting
    with pytest.raises(LimitExceededError, match="max_automaton_states") as caught:
        row & union
    assert caught.value.limit == "max_automaton_states"


def test_repetitions_are_counted():
    grammar = (INTEGER + Grammar.choices([","])).repeat(3, 1_000_000_000)
    assert accepted(grammar, "1,2,", "1,2,3,", "1," * 2_000) == [False, True, True]
    assert grammar.num_rules < 20
    row = Grammar.choices(["ab"]).repeat(2, 1_000_000) + Grammar.choices([","])
    nested = row.repeat(1_000, 1_000_000)
    assert accepted(nested, "abab," * 1_000, "abab," * 999, "ab," * 1_000) == [True, False, False]


@pytest.mark.parametrize(
    ("bounds", "error", "words"),
    [
        ((-1,), ValueError, "repeat: min must be from 0 to 4294967295, not -1"),
        ((2, 1), ValueError, r"max \(1\) is less than min \(2\); write repeat\(1, 2\)"),
        (
            (0, 1 << 32),
            ValueError,
            "max must be from 0 to 4294967295, not 4294967296; leave max out",
        ),
        ((0, -1), ValueError, "max must be from 0 to 4294967295, not -1"),
        ((1.0,), TypeError, "min must be an int, not float"),
        ((True,), TypeError, "min must be an int, not bool"),
        ((None,), TypeError, "min must be an int, not NoneType"),
        ((0, "3"), TypeError, "max must be an int, not str"),
    ],
)
def test_wrong_bounds(bounds, error, words):
    with pytest.raises(error, match=words):
        NONE.repeat(*bounds)


def test_wrong_operands():
    for operation in (operator.or_, operator.add, operator.and_):
        with pytest.raises(tokfold.ArgumentTypeError, match=r"not a str; write Grammar\.choices"):
            operation(NONE, "x")
        with pytest.raises(TypeError, match="unsupported operand"):
            operation(NONE, 5)
    with pytest.raises(ValueError, match="at least one grammar"):
        Grammar.concat()
    with pytest.raises(tokfold.ArgumentTypeError, match=r"must be a tokfold\.Grammar, not str"):
        Grammar.concat(NONE, "x")


@pytest.mark.parametrize("operation", ["&", "~"])
def test_why_others_are_refused(operation):
    for grammar in (INTEGER, INTEGER | NONE, Grammar.from_ebnf('root ::= "a"')):
        with pytest.raises(
            UnsupportedGrammarError,
            match=f"{operation} takes regular grammars: those made by Grammar.from_regex and",
        ) as caught:
            operator.inv(grammar) if operation == "~" else operator.and_(NONE, grammar)
        assert caught.value.construct == operation
        assert "need not be a context-free language" in str(caught.value)


def test_limits():
    small = Limits(max_rules=100)
    words = [Grammar.choices([str(number)], limits=small) for number in range(60)]
    union = words[0]
    for word in words[1:]:
        union |= word
    with pytest.raises(LimitExceededError, match="max_rules"):
        tokfold.recognize(union, "1")


def test_the_order_of_rows_whichever_way_they_are_built():
    def rows_of(letters: str) -> list[Grammar]:
        if len(letters) == 1:
            return [Grammar.choices([letters])]
        return [
            left + right
            for cut in range(1, len(letters))
            for left in rows_of(letters[:cut])
            for right in rows_of(letters[cut:])
        ]

    rows = rows_of("abcdef")
    assert len(rows) == 42
    for row in rows:
        assert accepted(row, "abcdef") == [True]
        assert row.num_rules == 13
