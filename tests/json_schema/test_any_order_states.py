"""Members in any order: states as values, and the limit on the bytes of sets."""

from __future__ import annotations

import itertools
import json
import pickle
import sys
from collections import Counter
from random import Random

import numpy as np
import pytest
import tokfold
from hypothesis import given
from json_schema.any_order import (
    ANY,
    NAMES,
    NUMBERS,
    SPANNING,
    STOP,
    Schema,
    at,
    check_ahead,
    compiled_numbers,
    compiled_of,
    numbers,
    row_of,
    taken_by,
    vocabulary_of,
    wide,
)
from json_schema.languages import BYTES
from strategies.profiles import CASES, examples
from strategies.wide_objects import WideBuilder, wide_builders
from support import processes
from tokfold import (
    Grammar,
    LimitExceededError,
    Limits,
    Matcher,
    MatcherState,
    MatcherStateError,
)


@examples(12)
@given(builder=wide_builders())
def test_states_go_on(builder: WideBuilder) -> None:
    """A state goes on as the matcher does, also in an equal grammar that was compiled anew."""
    made = wide(builder)
    if made is None:
        return
    schema, _, compiled = made
    random = builder.random
    again = compiled_of(Grammar.from_json_schema(schema, **ANY), compiled.vocabulary)
    matcher = Matcher(compiled)
    for _ in range(6):
        row = row_of(matcher)
        state = MatcherState.from_bytes(matcher.state.to_bytes())
        assert state == matcher.state
        for to in (compiled, again):
            restored = Matcher.from_state(to, state)
            assert restored.state == state
            assert row_of(restored) == row
            self_taken = taken_by(restored) if random.random() < 0.3 else row
            assert self_taken == row
            check_ahead(random, matcher.fork(), restored)
        choices = [token for token in range(1, len(row)) if row[token]]
        long = [token for token in choices if token > 256]
        if not choices:
            break
        assert matcher.accept_token(random.choice(long or choices))
    CASES["any order: walks with states"] += 1


def test_orders_of_the_same_names_are_one_state() -> None:
    compiled = compiled_numbers()
    for end in ("", ", ", ', "k', "}"):
        states = {
            at(compiled, json.dumps(dict.fromkeys(chosen, 1))[:-1] + end).state
            for chosen in itertools.permutations(NAMES[:4])
        }
        assert len(states) == 1, end
    sets = [
        at(compiled, json.dumps(dict.fromkeys(chosen, 1))[:-1]).state
        for count in range(1, 5)
        for chosen in itertools.combinations(NAMES, count)
    ]
    assert len(set(sets)) == len(sets), "each set is another state"


BRANCHES: Schema = {
    "oneOf": [
        {"properties": {"h": {"pattern": "^[uv]*$"}, "e": {"type": "string"}}, "required": ["l"]},
        {"properties": {"b": {}, "e": {"type": "boolean"}}, "required": ["kind", "e", "c"]},
    ]
}


def test_a_restored_matcher_stands_at_the_same_states() -> None:
    """One that read the text and one that went on from a state, where sets are several."""
    compiled = compiled_of(Grammar.from_json_schema(BRANCHES, **ANY), BYTES)
    one = at(compiled, '{"l": false, "h')
    two = Matcher.from_state(compiled, one.state)
    for matcher in (one, two):
        assert matcher.accept_string('": "u"')
    assert row_of(one) == row_of(two)
    assert one.state == two.state


PROGRAM = """
import json, sys
import tokfold
given = json.load(sys.stdin)
tokens = [bytes.fromhex(token) for token in given["tokens"]]
vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[0])
grammar = tokfold.Grammar.from_json_schema(given["schema"], **given["options"])
options = tokfold.CompileOptions(pool=None)
compiled = tokfold.compile(grammar, vocabulary, classes="never", options=options)
found = []
for place in given["places"]:
    state = tokfold.MatcherState.from_bytes(bytes.fromhex(place["state"]))
    matcher = tokfold.Matcher.from_state(compiled, state)
    mask = tokfold.allocate_bitmask(1, len(tokens))
    matcher.fill_bitmask(mask)
    ends = [matcher.fork().accept_string(end) for end in place["ends"]]
    found.append([mask.tobytes().hex(), ends, matcher.state.to_bytes().hex()])
print(json.dumps([grammar.fingerprint, found]))
"""


def test_states_in_another_process() -> None:
    compiled = compiled_numbers()
    ends = ["}", ', "k3": 1}', ', "k1": 1}', ', "k2": 1, "k7": 3}']
    orders = [*itertools.permutations(NAMES[:3], 2), ("k7", "k0", "k2", "k1")]
    texts = [json.dumps(dict.fromkeys(chosen, 1))[:-1] for chosen in orders]
    matchers = [at(compiled, text) for text in texts]
    given = {
        "tokens": [STOP.hex(), *(f"{byte:02x}" for byte in range(256))]
        + [token.hex() for token in SPANNING],
        "schema": NUMBERS,
        "options": ANY,
        "places": [{"state": m.state.to_bytes().hex(), "ends": ends} for m in matchers],
    }
    done = processes.run([sys.executable, "-c", PROGRAM], input=json.dumps(given), check=True)
    fingerprint, found = json.loads(done.stdout)
    assert fingerprint == numbers().fingerprint
    for matcher, (mask, can, state) in zip(matchers, found, strict=True):
        row = tokfold.allocate_bitmask(1, len(compiled.vocabulary))
        matcher.fill_bitmask(row)
        assert row.tobytes().hex() == mask
        assert [matcher.fork().accept_string(end) for end in ends] == can
        assert matcher.state.to_bytes().hex() == state
    assert any(any(can) for _, can, _ in found)


def test_states_of_other_grammars_are_refused() -> None:
    """Other names, other values, other required names: another grammar."""
    state = at(compiled_numbers(), '{"k0": 1').state
    vocabulary = compiled_numbers().vocabulary
    for change in (
        {"required": NAMES[:2]},
        {"properties": {name: {"type": "integer"} for name in NAMES[:7]}},
        {"properties": {name: {"type": "integer"} for name in reversed(NAMES)}},
    ):
        other = compiled_of(Grammar.from_json_schema({**NUMBERS, **change}, **ANY), vocabulary)
        with pytest.raises(MatcherStateError):
            Matcher.from_state(other, state)


def test_states_that_are_forged_do_no_harm() -> None:
    """A state with numbers of nothing is refused, or leads to masks that mean nothing."""
    compiled = compiled_numbers()
    state = at(compiled, '{"k0": 1, "k3": 2').state
    engine, data = pickle.loads(pickle.dumps(state)).__reduce__()[1][:2]
    random = Random(7)
    for _ in range(400):
        words = np.frombuffer(data, dtype=np.uint32).copy()
        place = random.randrange(len(words))
        words[place] = random.choice((0, 1, 0xFFFFFFFF, 1 << 31, random.randrange(1 << 32),
                                      int(words[place]) ^ 1 << random.randrange(32)))  # fmt: skip
        try:
            matcher = Matcher.from_state(compiled, MatcherState(engine, words.tobytes()))
            row_of(matcher)
            taken_by(matcher)
        except (MatcherStateError, LimitExceededError):
            continue
    assert row_of(at(compiled, "{")) == taken_by(at(compiled_numbers(), "{"))


# -- limits


MANY = [f"k{i}" for i in range(300)]
LONG: Schema = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in MANY},
    "required": MANY[:2],
    "additionalProperties": False,
}
SMALL = Limits(max_set_bytes=1_000_000)


def test_too_many_sets() -> None:
    """Accepting names the limit; the matcher is as before, others of the grammar go on."""
    grammar = Grammar.from_json_schema(LONG, **ANY)
    compiled = compiled_of(grammar, vocabulary_of([b'": 1, "k']), limits=SMALL)
    matcher, other = at(compiled, '{"k7": 1'), at(compiled, '{"k5": 1')
    row = row_of(other)
    members = [f", {json.dumps(name)}: 1" for name in MANY if name != "k7"]
    before = matcher.text, matcher.num_steps, matcher.state
    for _ in range(2):
        caught = error_of(matcher, "".join(members))
        assert caught is not None, "the limit was never reached"
        assert (caught.limit, caught.value) == ("max_set_bytes", SMALL.max_set_bytes)
        assert (matcher.text, matcher.num_steps, matcher.state) == before
    # One by one: sets that no step stands at give way to others.
    assert all(error_of(matcher, text) is None for text in members)
    assert matcher.accept_string("}")
    assert matcher.is_accepting
    assert row_of(other) == row
    assert other.accept_string(', "k0": 1, "k1": 1}')
    assert other.is_accepting
    assert at(compiled, '{"k1": 1, "k0": 2}').is_accepting


def error_of(matcher: Matcher, text: str) -> LimitExceededError | None:
    """What stands against a text that the grammar takes."""
    try:
        taken = matcher.accept_string(text)
    except LimitExceededError as error:
        return error
    assert taken, text
    return None


def test_too_many_sets_for_a_mask() -> None:
    """A mask whose tokens meet more sets than there is room for: an error, then the same again."""
    grammar = Grammar.from_json_schema(LONG, **ANY)
    tokens = [b"".join(b', "k%d": 1' % (i + j) for j in range(6)) for i in range(270)]
    vocabulary = vocabulary_of(tokens)
    full = compiled_of(grammar, vocabulary)
    small = compiled_of(grammar, vocabulary, limits=SMALL)
    text = '{"k299": 1'
    matcher = at(small, text)
    mask = tokfold.allocate_bitmask(1, len(vocabulary))
    for _ in range(2):
        with pytest.raises(LimitExceededError) as caught:
            matcher.fill_bitmask(mask)
        assert caught.value.limit == "max_set_bytes"
        assert matcher.text == text.encode()
        assert matcher.num_steps == 1
    assert row_of(at(full, text)) == taken_by(at(full, text))
    assert at(small, text).accept_string(', "k0": 1, "k1": 1}')


def test_what_was_cut_is_not_remembered() -> None:
    """After masks that found no room, those of other texts are whole."""
    random = Random(1)
    names = MANY[:40]
    schema = {**LONG, "properties": {name: {"type": "integer"} for name in names}}
    grammar = Grammar.from_json_schema(schema, **ANY)
    tokens = []
    for _ in range(60):
        members = "".join(
            f', "{name}": 1' for name in random.choices(names, k=random.randint(1, 3))
        )
        tokens += [(members + random.choice(("", "}", ', "'))).encode(), f"1{members}".encode()]
    vocabulary = vocabulary_of(tokens)
    texts = ("{", '{"k5": 1', '{"k5": 1, "k6": 2', '{"k5": 1, "k0": 2')
    full = compiled_of(grammar, vocabulary)
    rows = {text: taken_by(at(full, text)) for text in texts}
    seen: Counter[str] = Counter()
    for limit in (30_000, 60_000, 100_000, 150_000, 200_000, 300_000):
        small = compiled_of(grammar, vocabulary, limits=Limits(max_set_bytes=limit))
        for members in (1, 4, 9, 16):
            begun = json.dumps(dict.fromkeys(names[3 : 3 + members], 1))[:-1]
            for text in (begun, *texts):
                matcher = Matcher(small)
                try:
                    assert matcher.accept_string(text)
                    row = row_of(matcher)
                except LimitExceededError as error:
                    seen[error.limit] += 1
                    continue
                seen["made"] += 1
                assert row == (rows.get(text) or row_of(at(full, text))), (limit, members, text)
    assert min(seen["max_set_bytes"], seen["made"]) > 20, seen
    assert len(seen) == 2


@pytest.mark.parametrize("way", ["fork", "reset", "rollback"])
def test_one_matcher_reads_many_texts(way: str) -> None:
    """A matcher that is forked, reset or rolled back for each text: each text is short."""
    compiled = compiled_of(Grammar.from_json_schema(LONG, **ANY), BYTES, limits=SMALL)
    root, random = Matcher(compiled), Random(3)
    for _ in range(300):
        chosen = [*random.sample(MANY[2:], 2), *MANY[:2]]
        random.shuffle(chosen)
        matcher = root.fork() if way == "fork" else root
        assert matcher.accept_string(json.dumps(dict.fromkeys(chosen, 1)))
        assert matcher.is_accepting
        if way == "reset":
            root.reset()
        elif way == "rollback":
            root.rollback()


def test_many_texts_share_no_room() -> None:
    """Sets go with the text for which they were made: a thousand texts take no more than one."""
    grammar = Grammar.from_json_schema(LONG, **ANY)
    compiled = compiled_of(grammar, BYTES, limits=SMALL)
    random = Random(3)
    for _ in range(300):
        chosen = [*random.sample(MANY[2:], 2), *MANY[:2]]
        random.shuffle(chosen)
        assert at(compiled, json.dumps(dict.fromkeys(chosen, 1))).is_accepting
