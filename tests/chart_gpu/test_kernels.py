"""The kernels are compiled for GPUs, where there is none: what the interpreter does not see."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("triton")

from tokfold.chart_gpu import kernels, tree_kernels  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource, compile  # noqa: E402

HALF = ("lefts", "rights", "left_symbols", "leaf_symbols")
BYTES = ("complete", "viable", "inner")
WORDS = (
    *("leaf_starts", "corners", "ended", "predicted", "following", "lengths", "status", "counts"),
    *("node_rows", "node_letters", "node_parents", "paths", "scratch", "slots", "overflow"),
    *("ends", "masks", "class_of", "rows", "missing", "keep", "stop_bits", "told"),
)
ONES = (
    *("num_rules", "num_lefts", "num_rights", "num_symbols", "num_letters", "symbol_words"),
    *("start", "columns", "width", "capacity", "depth", "tail", "list_words"),
)


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="nothing is compiled there")
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("advance", {"TREE": False, "LEVELS": 32, "BLOCK": 512}),
        ("advance", {"TREE": True, "LEVELS": 32, "BLOCK": 512}),
        ("plant", {"BLOCK": 512}),
        ("spread", {"LEVELS": 32, "BLOCK": 256}),
        ("pack", {"WAYS": 2, "BLOCK": 16}),
        ("unfold", {"BLOCK": 16}),
        ("settle", {"BLOCK": 16, "MAY_END": True}),
        # Triton takes whole numbers that are 1 for constants.
        ("advance", {"TREE": False, "LEVELS": 2, "BLOCK": 512, **dict.fromkeys(ONES, 1)}),
        ("advance", {"TREE": True, "LEVELS": 2, "BLOCK": 512, **dict.fromkeys(ONES, 1)}),
        ("plant", {"BLOCK": 512, **dict.fromkeys(("columns", "width", "num_symbols"), 1)}),
        ("spread", {"LEVELS": 2, "BLOCK": 256, "num_nodes": 1, "columns": 1, "follow_words": 1}),
        ("pack", {"WAYS": 1, "BLOCK": 16, "num_nodes": 1, "columns": 1, "num_classes": 1}),
        ("unfold", {"BLOCK": 16, "num_tokens": 1, "num_words": 1}),
        ("settle", {"BLOCK": 16, "MAY_END": False, "follow_words": 1}),
    ],
)
def test_it_compiles_for_gpus(capability, name, constants, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = getattr(kernels if name == "advance" else tree_kernels, name)
    kinds = dict.fromkeys(HALF, "*i16") | dict.fromkeys(BYTES, "*i8")
    kinds |= dict.fromkeys(WORDS, "*i32") | dict.fromkeys(constants, "constexpr")
    # Of rules and letters in one kernel, of nodes and letters in the other.
    kinds["parents"] = "*i16" if name == "advance" else "*i32"
    kinds["letters"] = "*i32" if name == "advance" else "*i16"
    signature = {argument: kinds.get(argument, "i32") for argument in kernel.arg_names}
    source = ASTSource(kernel, signature, constants)
    made = compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 8})
    assert len(made.asm["cubin"]) > 1_000
