"""The kernels compile for GPUs, where there is none: what Triton's interpreter does not see."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("triton")

from tokfold.torch import kernels  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource, compile  # noqa: E402

pytestmark = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") == "1", reason="nothing is compiled there"
)

LOGITS = {"row_stride": "i64", "num_rows": "i32", "width": "i32"}
TYPES = {
    "_apply_classes": LOGITS
    | {"masks": "*i32", "mask_stride": "i32", "rows": "*i64", "class_of": "*i16"},
    "_apply_tokens": LOGITS
    | {"masks": "*u8", "mask_stride": "i32", "numbers": "*i32", "rows": "*i64"},
    "_unfold": {"table": "*i32", "num_words": "i32", "masks": "*i32", "mask_stride": "i32"}
    | {"numbers": "*i32", "class_of": "*i16"},
}
ALIGNED = {"logits", "row_stride", "width", "class_of", "num_tokens", "table"}


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("kind", ["i16", "i32"])
@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("name", ["_apply_classes", "_apply_tokens"])
def test_they_compile_for_gpus(capability, kind, distinct, name, tmp_path, monkeypatch) -> None:
    constants = {
        "MASKED": -0x80 if kind == "i16" else -0x0080_0000,
        "HAS_ROWS": True,
        "DISTINCT": distinct,
        "BLOCK": kernels.BLOCK,
        "GROUP": 8 if kind == "i16" else 4,
    }
    if name == "_apply_tokens":
        constants["HAS_NUMBERS"] = distinct
    types = {"logits": f"*{kind}"} | TYPES[name] | {"num_tokens": "i32"}
    made = compiled(name, types, constants, capability, tmp_path, monkeypatch)
    # Where no row has two masks, whole vectors are written.
    assert ("st.global.v4.b32" in made.asm["ptx"]) == distinct
    # A thread reads the bits of its logits as one byte, not bit by bit.
    if name == "_apply_tokens":
        groups = kernels.BLOCK * (2 if kind == "i16" else 4) // 16
        assert made.asm["ptx"].count("ld.global.b8") == groups // (32 * kernels.WARPS)


@pytest.mark.parametrize("capability", [80, 90])
def test_unfolding_compiles_for_gpus(capability, tmp_path, monkeypatch) -> None:
    types = TYPES["_unfold"] | {"num_tokens": "i32"}
    compiled("_unfold", types, {"WORDS": kernels.WORDS}, capability, tmp_path, monkeypatch)


def compiled(name, types, constants, capability, folder, monkeypatch):
    """A kernel for a GPU, as it is launched."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    signature = types | dict.fromkeys(constants, "constexpr")
    aligned = {
        (place,): [["tt.divisibility", 16]] for place, key in enumerate(types) if key in ALIGNED
    }
    options = {"num_warps": kernels.WARPS}
    source = ASTSource(getattr(kernels, name), signature, constants, aligned)
    made = compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    assert len(made.asm["cubin"]) > 1_000
    return made
