"""Token masks by the levels of a token tree: those of the engine on the CPU, bit for bit."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("triton")

import tokfold  # noqa: E402
from chart_gpu import device_samples  # noqa: E402
from chart_gpu.cuda_samples import SanitizedModule, needs_compiler, on_cpu  # noqa: E402
from chart_gpu.device_samples import (  # noqa: E402
    DEVICE,
    INTERPRETED,
    binary_of,
    bits,
    charts_of,
    letters_on_device,
    littered,
    needs_device,
    some_grammar,
    times,
)
from oracles.binary_chart import BinaryChart  # noqa: E402
from strategies.engine import compiled_with  # noqa: E402
from strategies.profiles import CASES, LONG  # noqa: E402
from tokfold.chart_gpu import BinaryGrammar, TokenMasks, TokenTree, idle, launches  # noqa: E402
from tokfold.torch import Fold, apply_class_bitmask_  # noqa: E402

pytestmark = needs_device


def vocabulary_of(random: Random, size: int = 40) -> tokfold.Vocabulary:
    tokens = [
        b"a",
        b"b",
        b"c",
        b"ab",
        b"abc",
        b"x",
        b"",
        "é".encode(),
        b"(",
        b"()",
        b"</s>",
        b"<s>",
    ]
    while len(tokens) < size:
        tokens.append(bytes(random.choice(b"abc") for _ in range(random.randint(1, 6))))
    return tokfold.Vocabulary(tokens, stop_token_ids=[10], special_token_ids=[11])


TANGLED = (
    'root ::= x root | root y | y z | "a"\nx ::= y y | "b" | z "c"\ny ::= root z x | "c" | z\n'
    'z ::= x x x | "a" | "ab" z?'
)


def token_masks(masks: TokenMasks) -> np.ndarray:
    count = len(masks.tree.class_of)
    rows = torch.full(
        (masks.charts.rows, -(-count // 32)), 0x5A5A5A5A, dtype=torch.int32, device=DEVICE
    )
    masks.fill_()
    masks.check()
    return masks.unfold_(rows).cpu().numpy()


def read_all(masks: TokenMasks, texts: list[list[int]]) -> None:
    for place in range(max(map(len, texts))):
        letters = [text[place] if place < len(text) else idle for text in texts]
        masks.charts.step_(letters_on_device(letters))
        assert not (masks.charts.status == 1).any()


@pytest.mark.parametrize("with_classes", [False, True])
@pytest.mark.parametrize("part", range(2))
def test_masks_are_those_of_the_engine(part, with_classes):
    for seed in range(part, times(8), 2):
        random = Random(seed)
        grammar, vocabulary = some_grammar(random), vocabulary_of(random)
        mode = "now" if with_classes else "never"
        compiled = compiled_with(
            grammar, vocabulary, classes=mode, engine="stack", check_tokens=False
        )
        binary = BinaryGrammar.of(grammar)
        tree = TokenTree.of(binary, vocabulary, compiled.classes)
        rows = random.randint(1, 3)
        found = charts_of(binary, rows, 40, ahead=max(1, tree.depth), nodes=len(tree) * rows)
        littered(found)
        masks = TokenMasks(found, tree)
        matchers = [tokfold.Matcher(compiled) for _ in range(rows)]
        for _ in range(3):
            expected = tokfold.allocate_bitmask(rows, len(vocabulary))
            tokfold.fill_bitmask_batch(matchers, expected)
            assert np.array_equal(token_masks(masks), expected)
            CASES["chart-gpu: token masks of rows"] += rows
            texts = []
            for matcher, row in zip(matchers, expected, strict=True):
                allowed = [t for t in bits(row, len(vocabulary)) if t != 10]
                token = random.choice(allowed) if allowed else None
                texts.append([] if token is None else binary.encode(vocabulary[token]))
                if token is not None:
                    assert matcher.accept_token(token)
            read_all(masks, texts)


@pytest.mark.skipif(not INTERPRETED, reason="sizes for the interpreter")
def test_few_programs_and_small_blocks(monkeypatch):
    from tokfold.chart_gpu import masks as module

    monkeypatch.setattr(launches, "PROGRAMS", 2)
    monkeypatch.setattr(launches, "BLOCK", 16)
    monkeypatch.setattr(module, "NODES", 4)
    monkeypatch.setattr(module, "WORDS", 1)
    test_masks_are_those_of_the_engine(1, False)


def test_look_ahead_over_the_end_of_a_word():
    """Places of the text and of the tokens that look ahead of it stand in several words."""
    grammar = tokfold.Grammar.from_ebnf('root ::= root root | "a" | "b" root "c"')
    tokens = [b"a", b"aa", b"aaaaa", b"a" * 9, b"c", b"bac", b"ac", b"bbbac"]
    tokens += [b"a" * n + end for n in (3, 4, 5) for end in (b"c", b"cc", b"cac")]
    vocabulary = tokfold.Vocabulary(tokens)
    compiled = compiled_with(grammar, vocabulary, classes="never", engine="chart")
    binary, matcher = BinaryGrammar.of(grammar), tokfold.Matcher(compiled)
    tree = TokenTree.of(binary, vocabulary)
    found = littered(charts_of(binary, 1, 40, ahead=tree.depth, nodes=len(tree)))
    masks = TokenMasks(found, tree)
    for text in (b"b" * 28, b"aa"):
        assert matcher.accept_bytes(text)
        read_all(masks, [binary.encode(text)])
        expected = tokfold.allocate_bitmask(1, len(vocabulary))
        matcher.fill_bitmask(expected)
        assert np.array_equal(token_masks(masks), expected)


def test_what_ends_inside_a_token_is_seen_by_its_children():
    """A left child that begins and ends inside a token stands in the column of a node."""
    grammar = tokfold.Grammar.from_ebnf(
        'root ::= x "e" | "a" root\nx ::= y "d"\ny ::= z "c" | y y\nz ::= "a" "b"'
    )
    texts = [b"abcde"[:n] for n in range(1, 6)] + [b"abce", b"abd", b"bcde", b"abcabcd", b"aabcde"]
    vocabulary = tokfold.Vocabulary([*texts, *(b"a" + text for text in texts), b"abcabcabcde"])
    compiled = compiled_with(grammar, vocabulary, classes="never", engine="stack")
    binary, matcher = BinaryGrammar.of(grammar), tokfold.Matcher(compiled)
    tree = TokenTree.of(binary, vocabulary)
    masks = TokenMasks(charts_of(binary, 1, 20, ahead=tree.depth, nodes=len(tree)), tree)
    for text in (b"", b"aaabc"):
        assert matcher.accept_bytes(text)
        read_all(masks, [binary.encode(text)])
        expected = tokfold.allocate_bitmask(1, len(vocabulary))
        matcher.fill_bitmask(expected)
        assert np.array_equal(token_masks(masks), expected)


@needs_compiler
@pytest.mark.skipif(not INTERPRETED, reason="the kernels in CUDA on a CPU")
@pytest.mark.parametrize("max_shared", [227 << 10, 0])
def test_masks_by_kernels_in_cuda(monkeypatch, max_shared):
    module = on_cpu(monkeypatch, max_shared=max_shared)
    monkeypatch.setattr(device_samples, "kernel", "cuda")
    monkeypatch.setattr(launches, "PROGRAMS", 5)
    test_masks_are_those_of_the_engine(0, max_shared > 0)
    test_look_ahead_over_the_end_of_a_word()
    test_what_ends_inside_a_token_is_seen_by_its_children()
    test_tokens_that_are_read_on_the_device(True)
    test_tokens_without_room_are_taken_back()
    kind = "near" if max_shared else "far"
    assert {kernel for kernel, _ in module.launched} == {f"read_rows_{kind}", f"read_level_{kind}"}


@needs_compiler
@pytest.mark.skipif(not INTERPRETED, reason="the kernels in CUDA on a CPU")
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"] if LONG else ["thread"])
def test_masks_by_threads_that_run_at_once(monkeypatch, tmp_path, sanitizer):
    module = SanitizedModule(sanitizer, tmp_path)
    on_cpu(monkeypatch, module)
    grammar, vocabulary = tokfold.Grammar.from_ebnf(TANGLED), vocabulary_of(Random(8), 18)
    binary = BinaryGrammar.of(grammar)
    tree = TokenTree.of(binary, vocabulary)
    size = {"ahead": tree.depth, "nodes": 2 * len(tree), "kernel": "cuda"}
    module.charts = found = charts_of(binary, 2, 40, **size)
    masks = TokenMasks(found, tree)
    matcher = tokfold.Matcher(tokfold.compile(grammar, vocabulary, classes="never"))
    assert matcher.accept_bytes(b"abbab")
    found.read_(torch.tensor([binary.encode(b"abbab")] * 2, dtype=torch.int32))
    expected = tokfold.allocate_bitmask(1, len(vocabulary))
    matcher.fill_bitmask(expected)
    assert np.array_equal(token_masks(masks), np.repeat(expected, 2, axis=0))
    assert {kernel for kernel, _ in module.launched} == {"read_rows_near", "read_level_near"}


def test_masks_meet_the_gather_on_the_device():
    grammar, vocabulary = tokfold.Grammar.from_ebnf('root ::= "ab"* "c"'), vocabulary_of(Random(1))
    binary = BinaryGrammar.of(grammar)
    tree = TokenTree.of(binary, vocabulary)
    masks = TokenMasks(charts_of(binary, 2, 9, ahead=tree.depth, nodes=len(tree) * 2), tree)
    read_all(masks, [binary.encode(b"a"), binary.encode(b"abc")])
    rows = token_masks(masks)
    logits = torch.zeros((2, len(vocabulary) + 3), device=DEVICE)
    apply_class_bitmask_(logits, masks.class_masks, Fold(tree, DEVICE), backend="torch")
    allowed = [bits(row, len(vocabulary)) for row in rows]
    assert allowed[1] == [10]
    for row in range(2):
        assert torch.nonzero(logits[row] == 0)[:, 0].tolist() == allowed[row]


@pytest.mark.parametrize("with_classes", [False, True])
def test_tokens_that_are_read_on_the_device(with_classes):
    """Those that may not come change nothing; classes stand for their tokens."""
    for seed in range(times(2)):
        random = Random(100 + seed)
        grammar, vocabulary = some_grammar(random), vocabulary_of(random)
        mode = "now" if with_classes else "never"
        compiled = compiled_with(
            grammar, vocabulary, classes=mode, engine="stack", check_tokens=False
        )
        tree = TokenTree.of(BinaryGrammar.of(grammar), vocabulary, compiled.classes)
        found = charts_of(BinaryGrammar.of(grammar), 3, 14, ahead=max(1, tree.depth), nodes=200)
        masks = TokenMasks(found, tree)
        matchers = [tokfold.Matcher(compiled) for _ in range(3)]
        for _ in range(5):
            expected = tokfold.allocate_bitmask(3, len(vocabulary))
            tokfold.fill_bitmask_batch(matchers, expected)
            assert np.array_equal(token_masks(masks), expected)
            tokens, status = [], []
            for matcher, row in zip(matchers, expected, strict=True):
                kind = random.random()
                allowed = [t for t in bits(row, len(vocabulary)) if t != 10] or [10]
                token = random.choice(allowed) if kind < 0.7 else random.randrange(len(vocabulary))
                token = -1 if kind > 0.9 else token
                tokens.append(token)
                if token == -1:
                    status.append(3)
                elif token == 10:
                    status.append(0 if matcher.is_accepting else 1)
                elif token not in bits(row, len(vocabulary)):
                    status.append(1)
                elif len(matcher.text) + len(vocabulary[token]) > 14:
                    status.append(2)
                else:
                    assert matcher.accept_token(token)
                    status.append(0)
            given = torch.tensor(tokens, device=DEVICE)
            # A representative may be shorter than its token, so that there is room.
            found_room = masks.accept_(given)
            if 2 in status:
                break
            assert found.status.tolist() == status
            assert found_room.tolist() == [one == 0 for one in status]
    for bad in (given[:2], given.float()):
        with pytest.raises(ValueError, match=r"tokens must be int32 or int64 of the shape \(3,\)"):
            masks.accept_(bad)


def test_tokens_without_room_are_taken_back():
    grammar = tokfold.Grammar.from_ebnf('root ::= "a" root | "b"')
    vocabulary = tokfold.Vocabulary([b"a", b"aaa", b"aab", b"</s>"], stop_token_ids=[3])
    binary = BinaryGrammar.of(grammar)
    tree = TokenTree.of(binary, vocabulary)
    masks = TokenMasks(charts_of(binary, 2, 4, ahead=3, nodes=20), tree)
    steps = [([1, 0], [0, 0]), ([1, 3], [2, 1]), ([0, 2], [0, 0]), ([0, 3], [2, 0])]
    for tokens, status in [*steps, ([4, -1], [1, 3])]:
        masks.accept_(torch.tensor(tokens, dtype=torch.int32, device=DEVICE))
        assert masks.charts.status.tolist() == status
    assert masks.charts.lengths.tolist() == [4, 4]
    assert masks.charts.accepting().tolist() == [False, True]


def test_tokens_of_terminals():
    """Tokens that may be several sequences: one that may come is enough."""
    grammar = tokfold.Grammar.from_ebnf(
        'root ::= np "VB" np? | root "CC" root\nnp ::= "DT" n | n\nn ::= "NN" | "JJ" n | n "IN" n'
    )
    binary = BinaryGrammar.of(grammar, "words")
    random = Random(3)
    words = range(binary.num_letters)
    tokens = [
        [
            tuple(random.choice(words) for _ in range(random.randint(1, 3)))
            for _ in range(random.randint(0, 3))
        ]
        for _ in range(50)
    ]
    tree = TokenTree.of_letters(binary, tokens)
    masks = TokenMasks(charts_of(binary, 1, 30, ahead=tree.depth, nodes=len(tree)), tree)
    oracle = BinaryChart(binary)

    def may_come(way) -> bool:
        after = oracle
        for letter in way:
            if letter not in after.next_letters():
                return False
            after = after.step(letter)
        return True

    with pytest.raises(ValueError, match="may be several sequences"):
        masks.accept_(letters_on_device([0]))
    for _ in range(8):
        expected = [i for i, ways in enumerate(tokens) if any(map(may_come, ways))]
        assert bits(token_masks(masks)[0], 50) == expected
        letter = random.choice(oracle.next_letters())
        oracle = oracle.step(letter)
        read_all(masks, [[letter]])


def test_nodes_that_find_no_room():
    grammar, vocabulary = tokfold.Grammar.from_ebnf("root ::= [abc]*"), vocabulary_of(Random(2))
    binary = BinaryGrammar.of(grammar)
    tree = TokenTree.of(binary, vocabulary)
    masks = TokenMasks(charts_of(binary, 2, 5, ahead=tree.depth, nodes=3), tree)
    masks.fill_()
    with pytest.raises(tokfold.LimitExceededError, match="found no room") as caught:
        masks.check()
    assert (caught.value.limit, caught.value.value) == ("max_tree_nodes", 3)


def test_misuse():
    binary = binary_of('root ::= "ab"*')
    tree = TokenTree.of(binary, tokfold.Vocabulary([b"a", b"ba"]))
    with pytest.raises(ValueError, match="make them with ahead=2"):
        TokenMasks(charts_of(binary, 1, 5, ahead=1, nodes=4), tree)
    masks = TokenMasks(charts_of(binary, 1, 5, ahead=2, nodes=4), tree)
    for bad in (torch.zeros(1, 1), torch.zeros(2, 1).int(), torch.zeros(1).int()):
        with pytest.raises(ValueError, match="bitmask must be contiguous int32"):
            masks.unfold_(bad.to(DEVICE))
    assert "2 tokens in" in repr(masks)


@pytest.mark.skipif(INTERPRETED, reason="the interpreter has no graphs")
def test_a_step_and_its_mask_that_are_captured():
    grammar = tokfold.Grammar.from_ebnf('root ::= root root | "a" | "b" root "c"')
    vocabulary = vocabulary_of(Random(5))
    binary = BinaryGrammar.of(grammar)
    tree = TokenTree.of(binary, vocabulary)
    masks = TokenMasks(charts_of(binary, 2, 40, ahead=tree.depth, nodes=len(tree) * 2), tree)
    letters = letters_on_device([idle] * 2)
    masks.charts.step_(letters)
    masks.fill_()  # compiled once before
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        masks.charts.step_(letters)
        masks.fill_()
    compiled = tokfold.compile(grammar, vocabulary, classes="never")
    matchers = [tokfold.Matcher(compiled) for _ in range(2)]
    for letter in b"abacb":
        letters.copy_(torch.tensor(binary.encode(bytes([letter]) * 2)))
        graph.replay()
        assert all(matcher.accept_bytes(bytes([letter])) for matcher in matchers)
        found = torch.zeros((2, 2), dtype=torch.int32, device=DEVICE)
        expected = tokfold.allocate_bitmask(2, len(vocabulary))
        tokfold.fill_bitmask_batch(matchers, expected)
        assert np.array_equal(masks.unfold_(found).cpu().numpy(), expected)
