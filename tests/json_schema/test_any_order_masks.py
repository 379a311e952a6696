"""Members in any order: masks are what is accepted, in forks, drafts, batches and threads."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tokfold
from hypothesis import given
from json_schema.any_order import (
    ANY,
    NAMES,
    NUMBERS,
    SPANNING,
    Mask,
    Schema,
    at,
    bits,
    check_ahead,
    check_batch,
    check_draft,
    check_place,
    compiled_numbers,
    compiled_of,
    numbers,
    row_of,
    taken_by,
    vocabulary_of,
    wide,
)
from strategies.engine import compiled_with
from strategies.profiles import CASES, examples
from strategies.wide_objects import NAMES as LETTERS
from strategies.wide_objects import WideBuilder, wide_builders
from tokfold import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    Matcher,
)


@examples(16)
@given(builder=wide_builders())
def test_masks_are_what_is_accepted(builder: WideBuilder) -> None:
    """Along walks with forks, rollbacks and resets, in drafts and batches."""
    made = wide(builder)
    if made is None:
        return
    _, grammar, compiled = made
    random = builder.random
    matcher, seen = Matcher(compiled), []
    other = compiled_of(grammar, compiled.vocabulary, _count_repetitions=False)
    for _ in range(8):
        check_place(matcher, _again(other, matcher))
        seen.append(matcher.fork())
        if random.random() < 0.2 and matcher.num_steps:
            before = seen[-random.randint(1, len(seen))]
            if matcher.num_steps >= 2 and random.random() < 0.5:
                fork = matcher.fork()
                matcher.rollback(2)
                check_place(matcher, _again(other, matcher))
                matcher = fork
            else:
                matcher = before.fork()
        row = row_of(matcher)
        choices = [token for token in range(1, len(row)) if row[token]]
        long = [token for token in choices if token > 256]
        if not choices:
            break
        chosen = random.choice(long if long and random.random() < 0.8 else choices)
        draft = [chosen, *random.choices(long or choices, k=2)]
        check_draft(matcher, draft)
        assert matcher.accept_token(chosen)
        forced = matcher.forced_bytes()
        if forced and random.random() < 0.7:
            assert matcher.accept_bytes(forced)
    check_batch(seen)
    CASES["any order: walks"] += 1
    matcher.reset()
    assert matcher.state == Matcher(compiled).state
    check_place(matcher, Matcher(other))


def _again(compiled: CompiledGrammar, matcher: Matcher) -> Matcher:
    found = Matcher(compiled)
    assert found.accept_bytes(matcher.text)
    return found


def test_tokens_over_several_members() -> None:
    """Each token where it should be allowed, by the sets that a reader would keep."""
    compiled = compiled_numbers()
    for text, allowed in (
        ("", [b'{"k0": 1, "k1": 1, "k2": 1}']),
        ('{"', [b'k1": 1, "k2']),
        ('{"k0', [b'": 1, "k3": ']),
        ('{"k3', []),
        ('{"k0": 1', [b', "k1": 2, "k2": 3}', b', "k', b"1, "]),
        ('{"k1": 1', [b', "k', b"1, "]),
        ('{"k0": 1, "k1": 1, "k2": 1', [b', "k', b"}", b"1, "]),
        ('{"k0": 1, "k1": 1, "k2": 1, ', [b'"k7": 1, "k6": 2']),
        ('{"k0": 1, "k7": 1, "k2": 1, ', []),
        ("{", [b'"k7": 1, "k6": 2']),
    ):
        found = row_of(at(compiled, text))
        names = [token for token, is_in in zip(SPANNING, found[257:], strict=True) if is_in]
        assert sorted(names) == sorted(allowed), text


def test_masks_shared_by_sets() -> None:
    """What one place remembers is not what another gets: all orders of four names, twice."""
    tokens = [*SPANNING, *(b', "k%d": 1' % i for i in range(len(NAMES)))]
    compiled = compiled_of(numbers(), vocabulary_of(tokens))
    fresh: dict[frozenset[str], list[bool]] = {}
    for count in range(4):
        for chosen in itertools.permutations(NAMES[:4], count):
            text = json.dumps(dict.fromkeys(chosen, 1))[:-1]
            row = row_of(at(compiled, text))
            key = frozenset(chosen)
            assert fresh.setdefault(key, row) == row, text
            assert row == taken_by(at(compiled, text)), text
    assert len({tuple(row) for row in fresh.values()}) == len(fresh), "each set has its own mask"


def test_threads_agree_with_one() -> None:
    """Threads that fill masks and accept in one compiled grammar, and forks of one matcher."""
    texts = [
        json.dumps(dict.fromkeys(chosen, 1))[:-1]
        for chosen in Random(5).sample(list(itertools.permutations(NAMES, 4)), 40)
    ]
    alone = [row_of(at(compiled_numbers(), text)) for text in texts]
    for shared in (False, True):
        compiled = compiled_of(numbers(), compiled_numbers().vocabulary)
        root = Matcher(compiled)
        assert root.accept_string("{")
        found: dict[tuple[int, int], list[bool]] = {}

        def work(
            thread: int,
            *,
            root: Matcher = root,
            compiled: CompiledGrammar = compiled,
            shared: bool = shared,
            found: dict[tuple[int, int], list[bool]] = found,
        ) -> None:
            order = list(range(len(texts)))
            Random(thread).shuffle(order)
            for index in order:
                matcher = root.fork() if shared else Matcher(compiled)
                assert matcher.accept_string(texts[index][1 if shared else 0 :])
                found[thread, index] = row_of(matcher)

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4 * len(texts)
        assert all(row == alone[index] for (_, index), row in found.items())


def test_batches_with_threads() -> None:
    compiled = compiled_of(numbers(), compiled_numbers().vocabulary)
    matchers = [
        at(compiled, json.dumps(dict.fromkeys(chosen, 1))[:-1])
        for chosen in itertools.permutations(NAMES[:5], 3)
    ]
    size = len(compiled.vocabulary)
    mask = tokfold.allocate_bitmask(len(matchers), size)
    tokfold.fill_bitmask_batch(matchers, mask, threads=2)
    assert [bits(row, size) for row in mask] == [
        row_of(at(compiled_numbers(), matcher.text.decode())) for matcher in matchers
    ]


def varied(builder: WideBuilder, schema: Schema) -> Schema:
    """Nearly the same schema: another name is required, or names stand in another order."""
    random = builder.random
    properties = dict(schema.get("properties", {}))
    change = random.randrange(3)
    if change == 0 or not properties:
        return {**schema, "required": builder.some(properties or LETTERS, 3)}
    if change == 1:
        items = list(properties.items())
        random.shuffle(items)
        return {**schema, "properties": dict(items)}
    return {**schema, "properties": {**properties, random.choice(list(properties)): builder.leaf()}}


@examples(10)
@given(builder=wide_builders())
def test_pools_between_grammars(builder: WideBuilder) -> None:
    """What one grammar put into a pool, or was warmed, changes no mask of another that is alike."""
    made = wide(builder)
    if made is None:
        return
    schema, grammar, alone = made
    random, vocabulary = builder.random, alone.vocabulary
    pool = tokfold.MaskPool(vocabulary)
    pairs = [(alone, compiled_with(grammar, vocabulary, classes="never", pool=pool))]
    for _ in range(3):
        try:
            other = Grammar.from_json_schema(varied(builder, schema), **ANY)
        except tokfold.TokfoldError:
            continue
        shared = compiled_with(other, vocabulary, classes="never", pool=pool)
        if random.random() < 0.3:
            shared.warm()
        pairs.append((compiled_of(other, vocabulary), shared))
    walks = [(Matcher(one), Matcher(two)) for one, two in pairs]
    for _ in range(8 * len(walks)):
        one, two = random.choice(walks)
        row = row_of(one)
        assert row_of(two) == row, one.text
        choices = [token for token in range(1, len(row)) if row[token]]
        if not choices:
            one.reset()
            two.reset()
            continue
        token = random.choice([t for t in choices if t > 256] or choices)
        assert one.accept_token(token)
        assert two.accept_token(token)
    CASES["any order: walks with a pool"] += len(walks)


def test_pools_that_were_saved(tmp_path: Path) -> None:
    """A pool that another compiler wrote, for a schema that differs in what it requires."""
    vocabulary = compiled_numbers().vocabulary
    schemas = [{**NUMBERS, "required": NAMES[:count]} for count in (3, 2, 4)]
    texts = ["{", '{"k1": 1', '{"k1": 1, "k0": 2', '{"k3": 1, "k0": 1, "k2": 1']
    for schema in schemas:
        with GrammarCompiler(vocabulary, cache_dir=tmp_path) as compiler:
            compiled = compiler.compile_json_schema(schema, **ANY)
            for text in texts:
                alone = compiled_of(Grammar.from_json_schema(schema, **ANY), vocabulary)
                assert row_of(at(compiled, text)) == row_of(at(alone, text)), text


# -- these tests see what is wrong


def test_a_wrong_mask_is_seen() -> None:
    """Of a grammar that requires another name, or of a place where another name was read."""
    vocabulary = compiled_numbers().vocabulary
    schema = {**NUMBERS, "required": NAMES[:2]}
    other = compiled_of(Grammar.from_json_schema(schema, **ANY), vocabulary)
    text = '{"k0": 1, "k1": 2'
    check_place(at(compiled_numbers(), text), at(compiled_numbers(), text))
    with pytest.raises(AssertionError):
        check_place(at(compiled_numbers(), text), at(other, text))
    with pytest.raises(AssertionError):
        check_ahead(Random(1), at(compiled_numbers(), text), at(other, text))
    read = at(compiled_numbers(), '{"k0": 1, "k3": 2')
    with pytest.raises(AssertionError):
        check_place(at(compiled_numbers(), text), read)


def test_a_wrong_draft_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stands a step behind."""
    matcher = at(compiled_numbers(), '{"k0": 1')
    tokens = [SPANNING.index(b', "k1": 2, "k2": 3}') + 257, SPANNING.index(b"1, ") + 257]
    check_draft(matcher, tokens)
    draft = Matcher.fill_bitmask_draft

    def behind(self: Matcher, ids: list[int], mask: Mask, **options: Any) -> Any:
        return draft(self, [*ids[:-1], 0], mask, **options)

    monkeypatch.setattr(Matcher, "fill_bitmask_draft", behind)
    with pytest.raises(AssertionError):
        check_draft(at(compiled_numbers(), '{"k0": '), [tokens[1], tokens[1]][:1])
