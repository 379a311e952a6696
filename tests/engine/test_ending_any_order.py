"""Objects whose members come in any order, ended in time.

A completion writes the required members that are left in the order of the schema, and no others,
unless a comma demands one. The oracle spells these texts out and cuts each into the fewest tokens.
"""

from __future__ import annotations

from random import Random

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from strategies.engine import allowed_tokens, compiled_with, mask_of, read_row
from strategies.profiles import CASES, examples
from tokfold import Grammar, Matcher

# More names than automata have states for, so that states are sets.
MEMBERS: dict[str, list[str]] = {
    "a": ["1"],
    "ab": ["1", "22"],
    "b": ['"x"'],
    "c": ["1", '"x"'],
    "d": ['{"a":1}'],
    "e": ["[]", "[1]", "[1,1]"],
    "f": ["22"],
    "g": ["null"],
    "h": ["1"],
    "i": ["[]", "[1]", "[1,1]"],
    "j": ["null"],
}
LETTERS = sorted({letter for letter in '{}[]":,' + "".join(MEMBERS) + "12xnul"})


def schema_of(required: list[str], members: dict[str, list[str]]) -> dict[str, object]:
    values = {
        '"x"': {"const": "x"},
        '{"a":1}': {
            "type": "object",
            "properties": {"a": {"const": 1}},
            "required": ["a"],
        },
        "null": {"type": "null"},
    }

    def value(texts: list[str]) -> object:
        if texts[0] == "[]":
            return {"type": "array", "items": {"const": 1}, "maxItems": 2}
        kinds = [
            values.get(text, {"const": int(text)} if text.isdigit() else None) for text in texts
        ]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}

    properties = {name: value(texts) for name, texts in members.items()}
    return {"type": "object", "properties": properties, "required": required}


def completions(
    prefix: str, required: list[str], members: dict[str, list[str]], most: int
) -> list[str]:
    """What a completion may write behind a prefix of a text of so many members at most."""

    def ends_of(behind: list[str], at_name: bool) -> list[str]:
        """All texts that follow a member, or come in the place of one."""
        left = [name for name in members if name in required and name not in behind]
        if not left and at_name:
            return [
                f'{name}":{value}}}'
                for name in members
                if name not in behind
                for value in members[name]
            ]
        texts = [""]
        for place, name in enumerate(left):
            comma = "" if at_name and place == 0 else ',"'
            texts = [f'{text}{comma}{name}":{value}' for text in texts for value in members[name]]
        return [text + "}" for text in texts]

    out: list[str] = []

    def read(rest: str, behind: list[str], place: str) -> None:
        """All ways to read what is left of the prefix."""
        if place == "start":
            for opened, after in (("{}", "end"), ('{"', "name")):
                if opened == "{}" and required:
                    continue
                go_on(rest, opened, behind, after)
        elif place == "behind":
            if len(behind) < most:
                go_on(rest, ',"', behind, "name")
            if all(name in behind for name in required):
                go_on(rest, "}", behind, "end")
        elif place == "name":
            for name in members:
                for value in members[name] if name not in behind else ():
                    go_on(rest, f'{name}":{value}', [*behind, name], "behind")

    def go_on(rest: str, text: str, behind: list[str], place: str) -> None:
        if text.startswith(rest):
            tails = [""] if place == "end" else ends_of(behind, place == "name")
            out.extend(text[len(rest) :] + tail for tail in tails)
        elif rest.startswith(text):
            read(rest[len(text) :], behind, place)

    read(prefix, [], "start")
    return out


def fewest(texts: list[str], tokens: list[str]) -> int | None:
    """The fewest tokens that spell one of some texts."""
    best: int | None = None
    for text in texts:
        needed: list[int | None] = [0]
        for end in range(1, len(text) + 1):
            ways = [
                before + 1
                for token in tokens
                if token
                and text.endswith(token, 0, end)
                and (before := needed[end - len(token)]) is not None
            ]
            needed.append(min(ways, default=None))
        last = needed[-1]
        if last is not None and (best is None or last < best):
            best = last
    return best


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, list[str]], list[str], int, list[str]]:
    names = draw(st.permutations(list(MEMBERS)))
    members = {name: MEMBERS[name] for name in names}
    required = draw(st.lists(st.sampled_from(names), unique=True, max_size=5))
    # Members are counted where none is required.
    most = draw(st.integers(1, 5)) if not required else len(names)
    random = Random(draw(st.integers(0, 2**32)))
    tokens = set(LETTERS)
    for _ in range(draw(st.integers(0, 40))):
        parts = [f'"{name}":{random.choice(members[name])}' for name in names]
        random.shuffle(parts)
        text = "{" + ",".join(parts) + "}"
        start = random.randrange(len(text))
        tokens.add(text[start : start + random.randint(2, 9)])
    if draw(st.integers(0, 3)) == 0:
        tokens.discard(draw(st.sampled_from(LETTERS)))
    return members, required, most, sorted(tokens)


@given(cases(), st.integers(0, 2**32), st.sampled_from(["never", "auto"]))
@examples(150)
def test_members_in_any_order_end_in_time(
    case: tuple[dict[str, list[str]], list[str], int, list[str]], seed: int, classes: str
) -> None:
    members, required, most, tokens = case
    vocabulary = tokfold.Vocabulary(
        [*(token.encode() for token in tokens), b"</s>"], stop_token_ids=[len(tokens)]
    )
    schema = schema_of(required, members)
    if most < len(members):
        schema["maxProperties"] = most
        CASES["ends: members in any order that are counted"] += 1
    grammar = Grammar.from_json_schema(schema, key_order="any", separators=(",", ":"))
    compiled = compiled_with(grammar, vocabulary, classes=classes, check_tokens=False)
    random = Random(seed)
    matcher = Matcher(compiled)
    text = ""
    for _ in range(random.randint(1, 12)):
        ends = completions(text, required, members, most)
        needed = fewest(ends, tokens)
        shortest = matcher.shortest()
        assert shortest.tokens == needed, text
        assert shortest.bytes == min(len(end) for end in ends), text
        fork = matcher.fork()
        closing_bytes = matcher.closing_bytes()
        assert len(closing_bytes) == shortest.bytes
        assert fork.accept_bytes(closing_bytes)
        assert fork.is_accepting
        if needed is not None:
            closing = matcher.closing_tokens()
            fork = matcher.fork()
            assert len(closing) <= needed
            assert all(fork.accept_token(token) for token in closing)
            assert fork.is_accepting
        plain = allowed_tokens(mask_of(matcher, len(vocabulary))[0])
        behind = {
            token: fewest(completions(text + tokens[token], required, members, most), tokens)
            for token in plain
            if token != len(tokens)
        }
        for more in (1, 2, 3, 7, 15, 30):
            left = (needed or 0) + more
            expected = {
                token for token, more in behind.items() if more is not None and more + 2 <= left
            }
            if needed == 0:
                expected.add(len(tokens))
            if needed is None:
                continue
            row = tokfold.allocate_bitmask(1, len(vocabulary))
            matcher.fill_bitmask(row, tokens_left=left)
            allowed = allowed_tokens(read_row(row[0], len(vocabulary)))
            assert set(allowed) == expected, (text, left)
        choices = sorted(behind)
        if not choices:
            break
        token = random.choice(choices)
        assert matcher.accept_token(token)
        text += tokens[token]


@pytest.mark.parametrize(
    "more",
    [
        {"dependentRequired": {"a": ["b"]}},
        {"minProperties": 3},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
    ],
)
def test_what_is_required_may_not_change(more: dict[str, object]) -> None:
    schema = {**schema_of([], MEMBERS), **more}
    compiled = compiled_with(Grammar.from_json_schema(schema, key_order="any"), WALKED)
    with pytest.raises(tokfold.UnsupportedGrammarError, match="what is required of an object"):
        compiled.shortest()
    with pytest.raises(tokfold.UnsupportedGrammarError, match="max_tokens"):
        Matcher(compiled, max_tokens=100)


def test_unique_items_beside_members_in_any_order_have_their_own_reason() -> None:
    schema = schema_of([], MEMBERS)
    members = {"list": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}}
    schema = {**schema, "properties": {**schema["properties"], **members}}
    compiled = compiled_with(Grammar.from_json_schema(schema, key_order="any"), WALKED)
    with pytest.raises(tokfold.UnsupportedGrammarError, match="uniqueItems, and objects whose"):
        Matcher(compiled, max_tokens=100)


def test_counted_members_take_no_more_work_than_they_have_states() -> None:
    """2,500 states for 12 names of which 6 may come; each looked at for each was 80,000,000."""
    names = {f"n{number}": ["1"] for number in range(12)}
    schema = {**schema_of([], names), "maxProperties": 6}
    compiled = compiled_with(Grammar.from_json_schema(schema, key_order="any"), WALKED)
    assert Matcher(compiled, max_tokens=3).shortest().tokens == 2
    limits = tokfold.Limits(max_mask_work=100_000)
    compiled = compiled_with(compiled.grammar, WALKED, limits=limits)
    assert Matcher(compiled, max_tokens=3).shortest().tokens == 2


def test_sets_have_a_bound_of_bytes() -> None:
    names = {f"name{number}": ["1"] for number in range(200)}
    grammar = Grammar.from_json_schema(schema_of(list(names), names), key_order="any")
    limits = tokfold.Limits(max_set_bytes=4_000)
    compiled = compiled_with(grammar, WALKED, limits=limits)
    with pytest.raises(tokfold.LimitExceededError, match="max_set_bytes"):
        compiled.shortest()


LEAVES: list[object] = [
    {"type": "integer"},
    {"type": "string", "maxLength": 5},
    {"enum": ["x", None, 12]},
    {"type": "array", "items": {"type": "boolean"}},
    {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 4},
]


def objects() -> st.SearchStrategy[dict[str, object]]:
    def of(value: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
        @st.composite
        def build(draw: st.DrawFn) -> dict[str, object]:
            names = [f"{letter}{number}" for number in range(2) for letter in "abcde"]
            names = draw(st.permutations(names))[: draw(st.integers(1, 10))]
            schema: dict[str, object] = {
                "type": "object",
                "properties": {name: draw(value) for name in names},
                "required": draw(st.lists(st.sampled_from(names), unique=True)),
            }
            if draw(st.booleans()):
                schema["additionalProperties"] = draw(st.sampled_from([False, {"type": "null"}]))
            if draw(st.integers(0, 3)) == 0:
                schema["patternProperties"] = {"^z": {"type": "integer"}}
            return schema

        return build()

    leaf = st.sampled_from(LEAVES)
    return of(st.one_of(leaf, of(st.one_of(leaf, of(leaf)))))


WALKED = tokfold.Vocabulary(
    [
        *(bytes([byte]) for byte in range(0x20, 0x7F)),
        *(b'","', b'":', b'": ', b'"}', b"},", b'{"', b'"a', b'",', b"]}", b'[],"', b'":"', b"}}"),
        *(b"1,", b'0":', b'1":', b'","b', b"true", b"null", b'"x","', b'{"z', b"[true,", b"\n"),
        b"</s>",
    ],
    stop_token_ids=[117],
)


@given(objects(), st.booleans(), st.integers(0, 2**32))
@examples(100)
def test_texts_with_members_in_any_order_are_never_cut(
    schema: dict[str, object], is_open: bool, seed: int
) -> None:
    grammar = Grammar.from_json_schema(schema, key_order="any", additional_properties=is_open)
    compiled = compiled_with(grammar, WALKED)
    random = Random(seed)
    row = tokfold.allocate_bitmask(1, len(WALKED))
    least = Matcher(compiled).shortest().tokens
    assert least is not None
    for more in (0, 1, 3, 40):
        matcher = Matcher(compiled, max_tokens=least + 1 + more)
        taken = 0
        while not matcher.is_terminated:
            matcher.fill_bitmask(row)
            allowed = allowed_tokens(read_row(row[0], len(WALKED)))
            assert allowed, matcher.text
            assert matcher.accept_token(random.choice(allowed))
            taken += 1
        assert taken <= least + 1 + more


def test_closing_tokens_lead_nearer_to_the_end() -> None:
    """What is needed is a bound here. `prefer_end` allows the tokens that close a text."""
    names = ["a", "b", "ab", "ba", "aa", "bb", "e", "f"]
    grammar = Grammar.from_json_schema(
        {
            "type": "object",
            "properties": {name: {"enum": [0, "a"]} for name in names},
            "required": ["a", "ba", "e"],
        },
        key_order="any",
        whitespace="compact",
    )
    tokens = [b',"a":', b"{", b'"', b"e", b"}", b"b", b"0", b"a", b",", b":"]
    vocabulary = tokfold.Vocabulary(tokens)
    compiled = compiled_with(grammar, vocabulary, classes="never", check_tokens=False)
    for beginning in ('{"', "{", '{"f":"', '{"ab":0,"'):
        matcher = Matcher(compiled, max_tokens=40, prefer_end=40)
        assert matcher.accept_string(beginning)
        closing = matcher.closing_tokens()
        needed = matcher.shortest().tokens
        assert needed is not None
        assert len(closing) <= needed
        for token in closing:
            before = matcher.shortest().tokens
            assert matcher.accept_token(token)
            after = matcher.shortest().tokens
            assert after is not None
            assert before is not None
            assert after < before
        assert matcher.is_accepting


# Objects of this many names have states that are sets.
NAMES = ["a", "b", "c", "d", "e", "f"]
# A token of the second list ends an object and begins the next one. It leaves the same stack as the
# token of the first list, which goes on in the same object.
GOES_ON = [',"', '1,"', 'x","']
ENDS = ['},{"', '1},{"', 'x"},{"']
BETWEEN = ['[{"', "}]", "{}", "},{", "},{}", '}},{"', '"}', ':{"', ":1", "],["]


@st.composite
def objects_beside_each_other(draw: st.DrawFn) -> tuple[object, list[str]]:
    """Objects in arrays and in each other, and tokens that end one and begin another."""
    schema: object = None
    for _ in range(draw(st.integers(1, 2))):
        values = [{"const": 1}, {"const": "x"}, *([] if schema is None else [schema])]
        properties = {name: draw(st.sampled_from(values)) for name in NAMES}
        required = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
        item = {"type": "object", "properties": properties, "required": required}
        schema = {"type": "array", "items": item}
    which = draw(st.integers(0, len(ENDS) - 1))
    pair = {GOES_ON[which], ENDS[which]}
    return schema, sorted({*LETTERS, *pair, *draw(st.sets(st.sampled_from(BETWEEN), max_size=6))})


@given(objects_beside_each_other(), st.integers(0, 2**32))
@examples(150)
def test_tokens_that_end_one_object_and_begin_another(
    case: tuple[object, list[str]], seed: int
) -> None:
    schema, tokens = case
    stop = len(tokens)
    vocabulary = tokfold.Vocabulary(
        [*(token.encode() for token in tokens), b"</s>"], stop_token_ids=[stop]
    )
    grammar = Grammar.from_json_schema(schema, key_order="any", whitespace="compact")
    compiled = compiled_with(grammar, vocabulary, classes="auto")
    random = Random(seed)
    matcher = Matcher(compiled)
    for _ in range(random.randint(1, 30)):
        needed = matcher.shortest().tokens
        assert needed is not None
        plain = allowed_tokens(mask_of(matcher, len(vocabulary))[0])
        behind = {}
        for token in set(plain) - {stop}:
            fork = matcher.fork()
            assert fork.accept_token(token)
            behind[token] = fork.shortest().tokens
        for left in (needed + 1, needed + 2, needed + 5, needed + 60):
            row = tokfold.allocate_bitmask(1, len(vocabulary))
            matcher.fill_bitmask(row, tokens_left=left)
            expected = {token for token, more in behind.items() if more + 2 <= left}
            allowed = set(allowed_tokens(read_row(row[0], len(vocabulary))))
            assert allowed - {stop} == expected, (matcher.text, left)
        if not behind:
            break
        matcher.accept_token(random.choice(sorted(behind)))
