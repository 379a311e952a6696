"""The kernels in CUDA on a CPU: the same source, compiled by g++ against a little of CUDA."""

from __future__ import annotations

import ctypes
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokfold
import torch
from support import processes
from tokfold.chart_gpu import Charts, cuda

SOURCE = Path(tokfold.__file__).parent / "chart_gpu" / "chart.cu"
SHIM = Path(__file__).parent / "cuda_on_cpu" / "cuda.cpp"
GXX = shutil.which("g++")

needs_compiler = pytest.mark.skipif(GXX is None, reason="there is no g++")


def build(to: Path, *options: str, source: Path = SOURCE) -> Path:
    """The kernels and what runs them, as a library or with ``options`` otherwise."""
    assert GXX is not None
    command = [GXX, "-std=c++20", "-O1", "-fno-strict-aliasing", "-Wall", "-Wextra"]
    command += ["-Wno-unknown-pragmas", f'-DSOURCE="{source}"', *options, str(SHIM), "-o", str(to)]
    result = processes.run(command)
    assert result.returncode == 0, result.stderr
    assert not result.stderr, result.stderr
    return to


@functools.cache
def _library(source: Path) -> ctypes.CDLL:
    folder = tempfile.mkdtemp(prefix="tokfold-cuda-")
    try:
        return ctypes.CDLL(str(build(Path(folder, "cuda.so"), "-fPIC", "-shared", source=source)))
    finally:
        shutil.rmtree(folder)


class CpuModule:
    """What :class:`tokfold.chart_gpu.cuda.Module` is, on a CPU.

    Attributes:
        launched: names of the kernels that were launched, and how many blocks.
    """

    multiprocessors = 3

    def __init__(
        self, max_shared: int = 227 << 10, threads: int = 64, seed: int = 0, source: Path = SOURCE
    ) -> None:
        self.max_shared, self._threads, self._seed = max_shared, threads, seed
        self._library = _library(source)
        self.launched: list[tuple[str, int]] = []

    def launch(
        self, kernel: str, blocks: int, threads: int, shared: int, arguments: list[Any]
    ) -> None:
        del threads  # as many as on a GPU would take long
        self._seed += 1
        self.launched.append((kernel, blocks))
        places = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        launch, number = self._library.launch, ctypes.c_size_t(shared)
        launch(kernel.encode(), blocks, self._threads, number, places, self._seed)


class SanitizedModule(CpuModule):
    """The same with threads of the system, under a sanitizer, in a process for each launch.

    Attributes:
        charts: the charts that are read.
    """

    charts: Charts
    multiprocessors = 1

    def __init__(self, sanitizer: str, folder: Path, max_shared: int = 227 << 10) -> None:
        self.max_shared = max_shared
        options = (f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-g", "-pthread")
        self._program = build(folder / "cuda", "-DTHREADS", *options)
        self.launched = []

    def launch(
        self, kernel: str, blocks: int, threads: int, shared: int, arguments: list[Any]
    ) -> None:
        """Send all arrays there, and take them back."""
        chart, *rest = arguments
        self.launched.append((kernel, blocks))
        tensors = []
        for name, kind in chart._fields_:
            if kind is ctypes.c_void_p:
                found = getattr(self.charts, name, None)
                tensors.append(getattr(self.charts.tables, name) if found is None else found)
                assert tensors[-1].data_ptr() == getattr(chart, name)
        numbers = [argument.value for argument in rest]
        letters = b"none"
        if len(numbers) == 3:
            place, *numbers = numbers
            letters = ctypes.string_at(place, 4 * self.charts.rows * numbers[0])
        arrays = [tensor.numpy().tobytes() for tensor in tensors]
        first, second = (*numbers, 0)[:2]
        sent = f"{kernel} {blocks} 64 {shared} {first} {second}\n".encode() + bytes(chart)
        for array in (*arrays, letters):
            sent += len(array).to_bytes(8, "little") + array
        done = processes.run([self._program], input=sent, text=False)
        assert done.returncode == 0, done.stderr.decode()
        at = 0
        for tensor, array in zip(tensors, arrays, strict=True):
            new = np.frombuffer(done.stdout[at : at + len(array)], dtype=tensor.numpy().dtype)
            tensor.copy_(torch.from_numpy(new.reshape(tensor.shape).copy()))
            at += len(array)
        assert done.stdout[at:] == letters


def on_cpu(
    monkeypatch: pytest.MonkeyPatch, module: CpuModule | None = None, **options: Any
) -> CpuModule:
    """Let charts on the CPU be read by the kernels in CUDA."""
    found = CpuModule(**options) if module is None else module
    monkeypatch.setattr(cuda, "module_of", lambda _device: found)
    return found
