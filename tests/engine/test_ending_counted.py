"""Texts that end in time where automata count: characters of rules and of patterns, and tokens.

The oracle searches: from each place it looks at all places that tokens lead to, level by level,
with masks that know no budget. Bounds are large beside the tokens, so that token classes, tables
and countdowns are those of automata that were cut, and small enough for a walk to reach them.
"""

from __future__ import annotations

from random import Random

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from strategies.engine import allowed_tokens, compiled_with, mask_of
from strategies.profiles import CASES, examples
from tokfold import Grammar, Matcher

TEXTS = [
    "a",
    "b",
    "c",
    "-",
    "(",
    ")",
    ",",
    '"',
    "é",
    "aa",
    "ab",
    "bc",
    "a-",
    "c-c",
    "bb",
    "(a",
    ")a",
    ',"',
    "aba",
    'c"',
]
CUT = ["é".encode()[:1], "é".encode()[1:], b"a" + "é".encode()[:1], "é".encode()[1:] + b"b"]
TOKENS = [*(text.encode() for text in TEXTS), *CUT]
STOP = len(TOKENS)
SIZE = STOP + 1
VOCABULARY = tokfold.Vocabulary([*TOKENS, b"</s>"], stop_token_ids=[STOP])

BODIES = [
    "[abc]*",
    "[abcé]+",
    '("a" | "bc")*',
    '("aa")*',
    '"a"+ ("-" "a"+)*',
    '[ab]* "-" [a-c]* | "c"',
    '("ab" | "é"){2,9} "c"',
    'TagDispatch(loop_after_dispatch=false, excludes=("ab"))',
    '"a" t | "-"',
    '[^"é]* "-"',
]
FRAMES = [
    "root ::= t",
    'root ::= "(" t ")"',
    'root ::= t "," t',
    'root ::= ("(" t ")")* ","',
    'root ::= "(" (t ",")* ")" | "c"',
    'root ::= "b" t | "c" u\nu[max_chars={more}] ::= {body}',
    'root ::= "(" root ")" | t',
]
LETTERS = 'abc-é"]'.encode()
PATTERNS = ["^[abc]*$", "^(a|bc)*$", "^(aa)*$", "^(ab|c){2,}$", "^[ab]+(-[ab]+)*$", "^(é|a)*-?$"]


@st.composite
def grammars(draw: st.DrawFn) -> Grammar:
    most = draw(st.integers(6, 40))
    if draw(st.booleans()):
        body, frame = draw(st.sampled_from(BODIES)), draw(st.sampled_from(FRAMES))
        frame = frame.replace("{more}", str(most + draw(st.integers(0, 3)))).replace("{body}", body)
        return Grammar.from_ebnf(f"{frame}\nt[max_chars={most}] ::= {body}")
    schema = {"type": "string", "pattern": draw(st.sampled_from(PATTERNS)), "maxLength": most + 6}
    least = draw(st.sampled_from([0, 1, 2, 3, 10]))
    if least:
        schema["minLength"] = least
    return Grammar.from_json_schema(schema)


class Search:
    """The fewest tokens to the end of the text, the stop token, the last one, not counted."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.known: dict[tokfold.MatcherState, int | None] = {}

    def fewest(self, matcher: Matcher) -> int | None:
        stand = matcher.state
        if stand not in self.known:
            self.known[stand] = self._search(matcher)
        return self.known[stand]

    def _search(self, matcher: Matcher) -> int | None:
        level, seen = [matcher.fork()], {matcher.state}
        for depth in range(60):
            if any(one.is_accepting for one in level):
                return depth
            following = []
            for one in level:
                for token in allowed_tokens(mask_of(one, self.size)[0][:-1]):
                    after = one.fork()
                    assert after.accept_token(token)
                    if after.state not in seen:
                        seen.add(after.state)
                        following.append(after)
            level = following
        return None


@examples(90)
@given(grammars(), st.sampled_from(["never", "now"]), st.randoms(use_true_random=False))
def test_masks_near_the_end(grammar, classes, random: Random):
    check(grammar, classes, random)


# The nearest end, of two letters, takes two tokens; one of three letters takes one.
WAYS = '("-" "(" | "c-c")'
IN_TOKENS = ['"(" [ab]* ")" | "c"', f"[ab]+ {WAYS}", f"([ab] [ab])+ {WAYS}", f"[ab]* {WAYS}?"]
# Tokens of one class may begin in the rule and before it: "bb" and "ab".
BEGUN_BEFORE = ['root ::= "a"? t ","', 'root ::= ("(" "a"* t ")")+']


@st.composite
def in_tokens(draw: st.DrawFn) -> Grammar:
    frames = [*BEGUN_BEFORE, *(frame for frame in FRAMES if "more" not in frame)]
    most = draw(st.one_of(st.integers(0, 5), st.integers(6, 30)))
    body = draw(st.sampled_from([*BODIES, *IN_TOKENS, *IN_TOKENS]))
    body = body if most or body != '"a" t | "-"' else "[ab]*"
    return Grammar.from_ebnf(f"{draw(st.sampled_from(frames))}\nt[max_tokens={most}] ::= {body}")


@examples(150)
@given(in_tokens(), st.sampled_from(["never", "now"]), st.randoms(use_true_random=False))
def test_masks_near_the_end_of_a_text_with_a_rule_in_tokens(grammar, classes, random: Random):
    check(grammar, classes, random)


@pytest.mark.parametrize("frame", BEGUN_BEFORE)
@pytest.mark.parametrize("body", IN_TOKENS[1:3])
@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize("classes", ["never", "now"])
def test_tokens_of_one_class_that_begin_in_the_rule_and_before_it(frame, body, most, classes):
    grammar = Grammar.from_ebnf(f"{frame}\nt[max_tokens={most}] ::= {body}")
    for more in range(3 + most):
        check(grammar, classes, Random(more), more)


def allowed_in_time(plain: Matcher, search: Search, left: int) -> list[bool]:
    """The tokens behind which the text can end in time, with so many left, by search."""
    expected = []
    for token, is_allowed in enumerate(mask_of(plain, search.size)[0][:-1]):
        after = plain.fork()
        if is_allowed:
            assert after.accept_token(token)
            found = search.fewest(after)
            is_allowed = found is not None and found + 1 <= left - 1
        expected.append(is_allowed)
    return expected


def check(
    grammar: Grammar,
    classes: str,
    random: Random,
    more: int | None = None,
    vocabulary: tokfold.Vocabulary = VOCABULARY,
) -> None:
    compiled = compiled_with(grammar, vocabulary, classes=classes)
    plain = Matcher(compiled_with(grammar, vocabulary, classes="never"))
    search = Search(len(vocabulary))
    fewest = search.fewest(plain)
    assert fewest is not None
    with pytest.raises(tokfold.TokenBudgetError) as caught:
        Matcher(compiled, max_tokens=fewest)
    assert caught.value.needed == fewest + 1
    assert compiled.shortest().tokens == fewest
    # The longest budgets begin far from the end: a countdown says when masks must look for it.
    if more is None:
        more = random.choice([0, 1, 2, 5, 12, 30, 45])
    budget = fewest + 1 + more
    matcher = Matcher(compiled, max_tokens=budget)
    for left in range(budget, 0, -1):
        expected = allowed_in_time(plain, search, left)
        found = mask_of(matcher, search.size)[0]
        assert found == [*expected, plain.is_accepting], (str(grammar), matcher.text, left)
        CASES["counted: masks that end in time"] += 1
        allowed = allowed_tokens(expected)
        if not allowed:
            assert plain.is_accepting
            return
        token = random.choice(allowed)
        assert plain.accept_token(token)
        assert matcher.accept_token(token)


# The bytes of the ids of the special tokens are tokens, so letters bound tokens here too.
SPECIAL = len(TOKENS) + 3
WITH_SPECIAL = tokfold.Vocabulary(
    [*TOKENS, b"\0", bytes([SPECIAL]), bytes([SPECIAL + 1]), b"<x>", b"<y>", b"</s>"],
    stop_token_ids=[SPECIAL + 2],
    special_token_ids=[SPECIAL, SPECIAL + 1],
)
X, Y = f"Token({SPECIAL})", f"Token({SPECIAL + 1})"
WHOLE_FRAMES = [
    f"root ::= t {X}",
    f"root ::= {X} t {Y}",
    f'root ::= ({X} t)* ","',
    f'root ::= t ({X} | ",,,,,,,") t',
    f'root ::= "(" root ")" {Y} | t',
    f'root ::= "a"? t {X} ("," {Y}){{2,9}}',
]
WHOLE_BODIES = [
    "[abc]*",
    '("a" | "bc")*',
    f"[ab]* ({Y} [ab]+)*",
    f'"aaa" {Y} "c" | {X} {X} {X}',
    f"({X} | {Y}){{0,7}} {WAYS}?",
]


@st.composite
def with_whole_tokens(draw: st.DrawFn) -> Grammar:
    most = draw(st.one_of(st.integers(1, 5), st.integers(6, 30)))
    bound = draw(st.sampled_from([f"[max_tokens={most}]", f"[max_tokens={most}]", ""]))
    # A rule that counts tokens has no whole ones.
    frame = draw(st.sampled_from(WHOLE_FRAMES))
    body = draw(st.sampled_from([*BODIES[:5], *IN_TOKENS] if bound else WHOLE_BODIES))
    return Grammar.from_ebnf(f"{frame}\nt{bound} ::= {body}")


@examples(150)
@given(with_whole_tokens(), st.sampled_from(["never", "now"]), st.randoms(use_true_random=False))
def test_masks_near_the_end_where_tokens_are_taken_whole(grammar, classes, random: Random):
    plain = Matcher(compiled_with(grammar, WITH_SPECIAL, classes="never"))
    if Search(len(WITH_SPECIAL)).fewest(plain) is None:
        with pytest.raises(tokfold.TokenBudgetError):
            Matcher(compiled_with(grammar, WITH_SPECIAL, classes=classes), max_tokens=99)
        return
    check(grammar, classes, random, vocabulary=WITH_SPECIAL)


def test_masks_far_from_the_end_ask_for_no_end_where_a_whole_token_ends_a_rule_in_tokens():
    """Reasoning that a marker ends: what the end takes is found out when it is asked for."""
    grammar = Grammar.from_ebnf(f'root ::= "(" t {X} "c"\nt[max_tokens=900] ::= [abc]*')
    compiled = compiled_with(grammar, WITH_SPECIAL, classes="never")
    matcher, plain = Matcher(compiled, max_tokens=100_000), Matcher(compiled)
    for token in [TEXTS.index("("), *[TEXTS.index("ab")] * 20]:
        assert mask_of(matcher, len(WITH_SPECIAL)) == mask_of(plain, len(WITH_SPECIAL))
        assert matcher.accept_token(token)
        assert plain.accept_token(token)
    far = compiled.cost().bytes
    assert matcher.shortest().tokens == 2
    assert compiled.cost().bytes > far + 1_000


@pytest.mark.parametrize("body", ['"a"+ ("-" "a"+)*', '("aa" | "b" "c"{6})* "b"', '"a" t | "-"'])
@pytest.mark.parametrize("seed", range(6))
def test_the_countdown_ends_where_the_budget_may_forbid_a_token(body, seed):
    """Tokens of all letters, so letters bound tokens, and budgets from far to near."""
    random = Random(seed)
    grammar = Grammar.from_ebnf(f'root ::= "(" t ("," t)* ")"\nt[max_chars=30] ::= {body}')
    compiled = compiled_with(grammar, VOCABULARY, classes="never")
    plain, search = Matcher(compiled), Search()
    matcher = Matcher(compiled, max_tokens=90)
    for left in range(90, 0, -1):
        expected = allowed_in_time(plain, search, left)
        assert mask_of(matcher, SIZE)[0][:STOP] == expected, (matcher.text, left)
        allowed = allowed_tokens(expected)
        if not allowed:
            assert plain.is_accepting
            return
        # A text that goes on as long as it can.
        token = max(random.sample(allowed, min(4, len(allowed))), key=lambda t: TOKENS[t] != b")")
        assert plain.accept_token(token)
        assert matcher.accept_token(token)


@examples(60)
@given(grammars(), st.randoms(use_true_random=False))
def test_classes_of_automata_that_were_cut(grammar, random: Random):
    """Masks with token classes are those without, along walks to the bound."""
    ways = [
        Matcher(compiled_with(grammar, VOCABULARY, classes=classes)) for classes in ("never", "now")
    ]
    for _ in range(50):
        found = [mask_of(matcher, SIZE)[0] for matcher in ways]
        assert found[0] == found[1], (str(grammar), ways[0].text)
        CASES["counted: masks with classes"] += 1
        allowed = allowed_tokens(found[0][:STOP])
        if not allowed:
            return
        token = random.choice(allowed)
        for matcher in ways:
            assert matcher.accept_token(token)


def test_tokens_of_a_class_lead_to_the_same_place():
    """Classes cut two large bounds to one size; what leads to the two stays in two classes."""
    grammar = Grammar.from_ebnf(
        'root ::= "b" t | "c" u\nt[max_chars=30] ::= "a"+ ("-" "a"+)*\n'
        'u[max_chars=31] ::= "a"+ ("-" "a"+)*'
    )
    classes = compiled_with(grammar, VOCABULARY, classes="now").classes
    assert classes is not None
    plain = Matcher(compiled_with(grammar, VOCABULARY, classes="never"))
    places = {}
    for token in allowed_tokens(mask_of(plain, SIZE)[0][:STOP]):
        after = plain.fork()
        assert after.accept_token(token)
        places.setdefault(int(classes.class_of[token]), set()).add(after.state)
    assert len(places) == 2  # of the tokens b and c, with which a text begins
    assert all(len(found) == 1 for found in places.values())


def test_a_format_with_a_length_costs_what_the_format_costs():
    """Token classes are made of an automaton that was cut, whatever its bound."""
    sizes = []
    for most in (100, 2_083, 1_000_000):
        schema = {"type": "string", "format": "uri", "minLength": 1, "maxLength": most}
        compiled = compiled_with(Grammar.from_json_schema(schema), WIDE, classes="now")
        assert compiled.classes is not None
        sizes.append(len(compiled.classes.representatives))
        assert compiled.shortest().tokens <= 5
    assert sizes[1] == sizes[2]


WIDE = tokfold.Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=[256])


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        ("^(aaaaa|aaaaaa)*$", 9, 17),
        ("^(aaaaa|aaaaaa)*$", 9, 4000),
        ("^(é|aa)*$", 5, 300),
        ("^é*a?$", 40, 300),
        ("^(ab|cab){2,}b?$", 7, 300),
        ("^(aab)*(é-)?$", 17, 300),
        ("^[abc]+$", 0, 300),
    ],
)
def test_the_fewest_bytes_of_what_characters_are_counted_of(pattern: str, least: int, most: int):
    schema = {"type": "string", "pattern": pattern, "minLength": least, "maxLength": most}
    grammar = Grammar.from_json_schema({"type": "array", "items": schema, "minItems": 1})
    compiled = compiled_with(grammar, VOCABULARY, classes="never", check_tokens=False)

    def after(text: bytes) -> Matcher:
        matcher = Matcher(compiled)
        assert matcher.accept_bytes(text)
        return matcher

    whole = b'["' + after(b'["').closing_bytes()
    for length in range(2, len(whole) + 1):
        text = whole[:length]
        # The first of a level that has an end has the fewest bytes.
        level, fewest = [text], 0
        while not any(after(longer).is_accepting for longer in level):
            letters = [(longer, byte) for longer in level for byte in after(longer).expected_bytes]
            level = [longer + bytes([byte]) for longer, byte in letters if byte in LETTERS]
            fewest += 1
        matcher = after(text)
        closing = matcher.closing_bytes()
        assert matcher.shortest().bytes == len(closing) == fewest, text
        assert after(text + closing).is_accepting
