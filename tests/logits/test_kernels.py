"""The kernel is compiled for GPUs, where there is none: what Triton's interpreter does not see."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("triton")

from tokfold.torch import kernels  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource, compile  # noqa: E402

NUMBERS = ("logits", "row_stride", "num_rows", "width", "masks", "mask_stride")
NUMBERS = (*NUMBERS, "numbers", "rows", "class_of", "num_tokens")
ALIGNED = ("logits", "row_stride", "width", "masks", "class_of", "num_tokens")


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="nothing is compiled there")
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("kind", ["i16", "i32"])
@pytest.mark.parametrize("distinct", [False, True])
def test_it_compiles_for_gpus(capability, kind, distinct, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    constants = {
        "MASKED": -0x80 if kind == "i16" else -0x0080_0000,
        "HAS_NUMBERS": distinct,
        "HAS_ROWS": True,
        "HAS_CLASSES": True,
        "DISTINCT": distinct,
        "BLOCK": kernels.BLOCK,
        "GROUP": 8 if kind == "i16" else 4,
    }
    types = [f"*{kind}", "i64", "i32", "i32", "*i32", "i32", "*i32", "*i64", "*i16", "i32"]
    signature = dict(zip(NUMBERS, types, strict=True)) | dict.fromkeys(constants, "constexpr")
    aligned = {(NUMBERS.index(name),): [["tt.divisibility", 16]] for name in ALIGNED}
    source = ASTSource(kernels._apply, signature, constants, aligned)
    target = GPUTarget("cuda", capability, 32)
    made = compile(source, target=target, options={"num_warps": kernels.WARPS})
    # Where no row has two masks, whole vectors are written.
    assert ("st.global.v4.b32" in made.asm["ptx"]) == distinct
    assert len(made.asm["cubin"]) > 1_000
