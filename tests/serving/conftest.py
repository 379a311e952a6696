"""The servers themselves where they are installed, stand-ins where they are not."""

from __future__ import annotations

import pytest
from serving import server_fakes

for package, install in (
    ("vllm", server_fakes.install_vllm),
    ("sglang", server_fakes.install_sglang),
):
    if not server_fakes.is_installed(package):
        install()


VARIABLES = (
    "TOKFOLD_VLLM",
    "TOKFOLD_CACHE_DIR",
    "TOKFOLD_LIMITS",
    "VLLM_PLUGINS",
)


@pytest.fixture(autouse=True, scope="session")
def no_classes():
    """No thread beside the tests, and no clock that decides one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKFOLD_CLASSES", "never")
        for name in ("COMPILE", "MASK", "ACCEPT"):
            patch.setenv(f"TOKFOLD_{name}_MILLISECONDS", "0")
        yield


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in VARIABLES:
        # setenv first: what a test writes is then taken back, too
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
