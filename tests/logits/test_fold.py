"""Folds: from all that has classes, on any device, and from nothing else."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import tokfold  # noqa: E402
from oracles.logits import unfolded  # noqa: E402
from strategies.logits import BACKENDS, random_masks, synthetic_classes  # noqa: E402
from support.processes import DEADLINE_S  # noqa: E402
from tokfold.torch import Fold, apply_class_bitmask_  # noqa: E402

TOKENS = [bytes([b]) for b in b"[]ab,1 "] + [b"[[", b"]]", b"ab", b"a,", b"<pad>", b"</s>", b"!"]
PAD, STOP = TOKENS.index(b"<pad>"), TOKENS.index(b"</s>")
SIZE = 40
TEXT = 'root ::= list\nlist ::= "[" (item ("," item)*)? "]"\nitem ::= list | "a" "b"* | "1"'


@pytest.fixture(scope="module")
def vocabulary() -> tokfold.Vocabulary:
    return tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP], special_token_ids=[PAD], size=SIZE)


@pytest.fixture(scope="module")
def compiled(vocabulary) -> tokfold.CompiledGrammar:
    return tokfold.compile(tokfold.Grammar.from_ebnf(TEXT), vocabulary, classes="now")


def test_from_classes_and_from_what_was_compiled(compiled, tmp_path) -> None:
    compiled.classes.save(tmp_path / "classes")
    loaded = tokfold.TokenClasses.load(tmp_path / "classes")
    for source in (compiled, compiled.classes, loaded):
        fold = Fold(source)
        assert fold.num_tokens == SIZE
        assert fold.num_classes == len(compiled.classes)
        assert fold.num_words == -(-fold.num_classes // 32)
        assert fold.device == torch.device("cpu")
        assert fold.class_of.tolist() == compiled.classes.class_of.tolist()
        assert fold.class_of.dtype == torch.int16
        assert repr(fold) == f"<Fold of 40 tokens into {fold.num_classes} classes on cpu>"
    fold.class_of[0] = 7  # its own: what it was made of is as it was
    assert compiled.classes.class_of[0] != 7


def test_classes_that_are_not_there_yet(vocabulary) -> None:
    grammar = tokfold.Grammar.from_ebnf(TEXT)
    never = tokfold.compile(grammar, vocabulary, classes="never")
    with pytest.raises(ValueError, match='no classes: compile it with classes="now", or call wait'):
        Fold(never)
    later = tokfold.compile(grammar, vocabulary, classes="auto")
    assert later.wait(DEADLINE_S)
    assert Fold(later).num_tokens == SIZE


@pytest.mark.parametrize("wrong", [None, "classes", np.zeros(3, dtype=np.int32), [0, 1], 7])
def test_what_has_no_classes(wrong) -> None:
    with pytest.raises(TypeError, match=r"made of TokenClasses or a compiled grammar, not "):
        Fold(wrong)


def test_a_grammar_and_a_vocabulary_have_no_classes(compiled, vocabulary) -> None:
    for wrong in (compiled.grammar, vocabulary, tokfold.Matcher(compiled), Fold(compiled)):
        with pytest.raises(TypeError, match="not tokfold"):
            Fold(wrong)


def test_devices(compiled) -> None:
    fold = Fold(compiled, device="meta")
    assert fold.device == torch.device("meta")
    assert fold.class_of.device == fold.device
    with pytest.raises(RuntimeError):
        Fold(compiled, device="nowhere")
    here = Fold(compiled)
    with pytest.raises(RuntimeError):
        here.to("nowhere")
    there, again = here.to("meta"), here.to("cpu")
    assert there.device == torch.device("meta")
    assert here.device == again.device == torch.device("cpu")
    assert (there.num_tokens, there.num_classes, there.num_words) == (
        here.num_tokens,
        here.num_classes,
        here.num_words,
    )
    masks = random_masks(2, here.num_words)
    first, second = (
        apply_class_bitmask_(torch.zeros(2, SIZE), masks, fold) for fold in (here, again)
    )
    assert torch.equal(first, second)
    assert (first == 0).tolist() == [
        unfolded(mask, compiled.classes.class_of).tolist() for mask in masks
    ]


NO_DEVICES = [
    None,
    True,
    1.0,
    b"cpu",
    ["cpu"],
    torch.float16,
    torch.zeros(2),
    torch.tensor(0),
    np.zeros(1, dtype=np.int64),
    np.True_,
]


@pytest.mark.parametrize("wrong", NO_DEVICES, ids=repr)
def test_what_is_no_device(compiled, wrong) -> None:
    here = Fold(compiled)
    for call in (here.to, lambda device: Fold(compiled, device=device)):
        with pytest.raises(tokfold.ArgumentTypeError) as caught:
            call(wrong)
        said = f"device must be a torch.device, a str or an int, not {type(wrong).__name__}"
        hint = ": pass its device, tensor.device" if isinstance(wrong, torch.Tensor) else ""
        assert str(caught.value) == said + hint


@pytest.mark.parametrize("number", [-1, 1 << 8, 1 << 40, 1 << 70, np.int64(-1)])
def test_numbers_of_no_device(compiled, number) -> None:
    """Torch has 256 as another name of 0, on a GPU in silence."""
    with pytest.raises(tokfold.DeviceError, match=f"torch has no device {number} here") as caught:
        Fold(compiled).to(number)
    assert caught.value.reason == "missing"


@pytest.mark.parametrize("wrong", [5, None, "root", [0]])
def test_a_fold_is_of_compiled_grammars(compiled, wrong) -> None:
    with pytest.raises(
        tokfold.ArgumentTypeError, match=r"compiled must be a tokfold\.CompiledGrammar, not "
    ):
        Fold(compiled).is_of(wrong)


@pytest.mark.parametrize("wrong", ["x", None, 1.0, True, [2], np.zeros((2, 2), dtype=np.int64)])
def test_numbers_of_a_fold(compiled, wrong) -> None:
    with pytest.raises(tokfold.ArgumentTypeError, match="rows must be a whole number, not "):
        Fold(compiled).allocate(wrong)
    with pytest.raises(tokfold.ArgumentTypeError, match="max_row_bytes must be a whole number"):
        Fold(compiled, max_row_bytes=wrong)


def test_bytes_of_rows(compiled) -> None:
    with pytest.raises(ValueError, match="max_row_bytes must be 0 or more, not -1"):
        Fold(compiled, max_row_bytes=-1)
    fold = Fold(compiled, max_row_bytes=1 << 70)
    assert fold.to("cpu").num_tokens == SIZE


@pytest.mark.parametrize("rows", [1 << 50, 1 << 62, 1 << 70])
def test_more_rows_than_memory_holds(compiled, rows) -> None:
    with pytest.raises(tokfold.DeviceError, match=f"no room for {rows} rows of 4 bytes") as caught:
        Fold(compiled).allocate(rows)
    assert caught.value.reason == "memory"
    assert "allocate fewer" in str(caught.value)


@pytest.mark.parametrize("num_classes", [1, 31, 32, 33, 100])
def test_allocated_masks_allow_every_class(num_classes) -> None:
    fold = Fold(synthetic_classes(np.arange(num_classes), num_classes))
    masks = fold.allocate(3)
    assert masks.dtype == np.int32
    assert masks.shape == (3, -(-num_classes // 32))
    assert masks.flags.c_contiguous
    assert masks.flags.writeable
    logits = torch.ones(3, num_classes + 2)
    apply_class_bitmask_(logits, masks, fold)
    assert (logits == 1).all(dim=0).tolist() == [True] * num_classes + [False] * 2
    assert fold.allocate(0).shape == (0, -(-num_classes // 32))
    with pytest.raises(ValueError, match="rows must be 0 or more, not -1"):
        fold.allocate(-1)


def test_classes_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match="token 1 has class 2; there are 2 classes"):
        Fold(synthetic_classes(np.array([0, 2]), 2))


@pytest.mark.parametrize("max_row_bytes", [0, 1, 32 << 20])
def test_remembered_rows(max_row_bytes) -> None:
    """However few rows are remembered, and in whatever order they come: the same logits."""
    class_of = np.arange(3_000) % 90
    fold = Fold(synthetic_classes(class_of, 90), max_row_bytes=max_row_bytes)
    masks, draw = random_masks(12, 3), Random(1)
    for _ in range(60):
        rows = [draw.randrange(12) for _ in range(3)]
        logits = torch.zeros(3, 3_000)
        apply_class_bitmask_(logits, masks[rows], fold)
        assert np.array_equal(logits.numpy() == 0, [unfolded(masks[r], class_of) for r in rows])


# --------------------------------------------------------- XGrammar over classes


@pytest.fixture(scope="module")
def pair():
    """A grammar compiled by XGrammar, and by it over classes."""
    xgr = pytest.importorskip("xgrammar")
    from tokfold import xgrammar as txgr

    info = xgr.TokenizerInfo(TOKENS, xgr.VocabType.RAW, vocab_size=SIZE, stop_token_ids=[STOP])
    plain = xgr.GrammarCompiler(info).compile_grammar(TEXT)
    return plain, txgr.GrammarCompiler(info).compile_grammar(TEXT)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_class_masks_of_xgrammar_over_classes(pair, backend, dtype) -> None:
    import xgrammar as xgr
    from tokfold import xgrammar as txgr

    plain, folded = pair
    fold = Fold(folded)
    masks = txgr.allocate_class_bitmask(1, folded)
    assert (fold.num_tokens, fold.num_words) == (SIZE, masks.shape[1])
    assert fold.num_classes == folded.num_class_bits
    rows = xgr.allocate_token_bitmask(1, SIZE)
    generator = torch.Generator().manual_seed(2)
    steps = 0
    for seed in range(8):
        draw = Random(seed)
        theirs, ours = xgr.GrammarMatcher(plain), txgr.GrammarMatcher(folded)
        while not theirs.is_terminated():
            logits = torch.randn(1, SIZE + 3, generator=generator).to(dtype)
            expected = logits.clone()
            theirs.fill_next_token_bitmask(rows)
            xgr.apply_token_bitmask_inplace(expected, rows, vocab_size=SIZE)
            ours.fill_next_class_bitmask(masks)
            assert apply_class_bitmask_(logits, masks, fold, backend=backend) is logits
            assert torch.equal(logits[:, :SIZE], expected[:, :SIZE])
            assert logits[:, SIZE:].eq(-torch.inf).all()
            allowed = (logits[0] > -torch.inf).nonzero()[:, 0].tolist()
            token = STOP if STOP in allowed else draw.choice(allowed)
            assert theirs.accept_token(token)
            assert ours.accept_token(token)
            steps += 1
    assert steps > 30


def test_xgrammars_own_has_no_classes(pair) -> None:
    with pytest.raises(TypeError, match=r"not xgrammar\..*CompiledGrammar"):
        Fold(pair[0])
