"""Kernels in CUDA, compiled at run time by NVRTC, which comes with torch, and run by the driver.

``chart.cu`` is compiled once for a process and a device, and loaded into the context that torch
uses there. Nothing else is needed: no toolkit, no host compiler, no further package.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from importlib import resources, util
from pathlib import Path
from typing import Any

import torch

from tokfold.errors import DeviceError

__all__ = ["Module", "compiled_for", "module_of"]

SOURCE = "chart.cu"
KERNELS = tuple(
    f"read_{what}_{where}" for what in ("rows", "level") for where in ("near", "half", "far")
)

_lock = threading.Lock()
_modules: dict[int, Module | DeviceError] = {}


def module_of(device: torch.device) -> Module:
    """The kernels on a device; compiled when they are first asked for.

    Raises:
        DeviceError: ``reason`` ``"compiler"``: there is no compiler for CUDA, or it or the driver
            refuses the kernels; ``"missing"``: the device is none of NVIDIA's.
    """
    if device.type != "cuda" or torch.version.hip:
        raise DeviceError(f"kernels in CUDA run on GPUs of NVIDIA, not on {device}", "missing")
    index = torch.cuda.current_device() if device.index is None else device.index
    with _lock:
        found = _modules.get(index)
        if found is None:
            try:
                found = Module(index, compiled_for(*torch.cuda.get_device_capability(index)))
            except DeviceError as error:
                if error.reason == "memory":
                    raise  # there may be some next time
                found = error
            _modules[index] = found
    if isinstance(found, DeviceError):
        raise found
    return found


# ------------------------------------------------------------------------------- compiling


def compiled_for(major: int, minor: int) -> bytes:
    """The kernels for GPUs of a compute capability. Needs no GPU.

    For those that the compiler does not know it is a program that the driver compiles further.

    Raises:
        DeviceError: ``reason`` ``"compiler"``: there is no compiler, or it refuses the kernels.
    """
    nvrtc = _nvrtc()
    wanted = 10 * major + minor
    known = _architectures(nvrtc)
    older = [number for number in known if number <= wanted]
    if not older:
        raise DeviceError(
            f"NVRTC compiles for compute capabilities from {min(known)} on, not for {wanted}",
            "compiler",
        )
    is_known = older[-1] == wanted
    target = f"sm_{wanted}" if is_known else f"compute_{older[-1]}"
    options = [f"--gpu-architecture={target}", "--std=c++17"]
    source = (resources.files(__package__) / SOURCE).read_bytes()
    program = ctypes.c_void_p()
    name = SOURCE.encode()
    _check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name, 0, None, None))
    try:
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if nvrtc.nvrtcCompileProgram(program, len(options), given):
            log = _fetched(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            raise DeviceError(f"NVRTC refuses {SOURCE} for {target}: {log.strip()}", "compiler")
        return _fetched(nvrtc, program, "CUBIN" if is_known else "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _architectures(nvrtc: ctypes.CDLL) -> list[int]:
    """The compute capabilities that the compiler knows, ascending: 90 for 9.0."""
    count = ctypes.c_int()
    _check(nvrtc, nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    known = (ctypes.c_int * count.value)()
    _check(nvrtc, nvrtc.nvrtcGetSupportedArchs(known))
    return sorted(known)


def _fetched(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _check(nvrtc: ctypes.CDLL, result: int) -> None:
    if result:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise DeviceError(f"NVRTC: {nvrtc.nvrtcGetErrorString(result).decode()}", "compiler")


def _nvrtc() -> ctypes.CDLL:
    tried = []
    for name in _libraries():
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            tried.append(str(error))
    raise DeviceError(
        "there is no compiler for CUDA: NVRTC is not found, which comes with torch for CUDA "
        f"(nvidia-cuda-nvrtc); {'; '.join(tried[:2])}",
        "compiler",
    )


def _libraries() -> Iterator[str]:
    """Where NVRTC may be: loaded already or installed, by torch's version first; then in wheels."""
    versions = [int(torch.version.cuda.split(".")[0])] if torch.version.cuda else []
    versions += [version for version in (13, 12) if version not in versions]
    if sys.platform == "win32":
        yield from (f"nvrtc64_{version}0_0.dll" for version in versions)
        return
    names = [f"libnvrtc.so.{version}" for version in versions]
    yield from names
    found = util.find_spec("nvidia")
    for folder in found.submodule_search_locations or () if found else ():
        for name in names:
            yield from map(str, sorted(Path(folder).glob(f"*/lib/{name}")))


# --------------------------------------------------------------------------------- running

_OUT_OF_MEMORY = 2
_OF_KERNELS = ("cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute")
_MULTIPROCESSORS, _MOST_SHARED = 16, 97  # of a device
_DYNAMIC_SHARED = 8  # of a kernel


class Module:
    """The kernels, loaded into the context of a device. Immutable.

    Attributes:
        multiprocessors: of the device.
        max_shared: bytes of shared memory that a block may have.
    """

    def __init__(self, index: int, image: bytes) -> None:
        """Load what :func:`compiled_for` returned."""
        name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        try:
            self._driver = ctypes.CDLL(name)
        except OSError as error:
            raise DeviceError(f"there is no driver for CUDA: {error}", "missing") from error
        self._index = index
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), index)
        # The context of torch: what torch allocated lies there, and so do its streams.
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._context = context
        self.multiprocessors = self._attribute(_MULTIPROCESSORS, device)
        self.max_shared = self._attribute(_MOST_SHARED, device)
        self._functions: dict[str, ctypes.c_void_p] = {}
        module = ctypes.c_void_p()
        self._call("cuCtxPushCurrent_v2", context)
        try:
            self._call("cuModuleLoadData", ctypes.byref(module), image)
            for kernel in KERNELS:
                function = ctypes.c_void_p()
                self._call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
                self._call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, self.max_shared)
                self._functions[kernel] = function
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def launch(
        self, kernel: str, blocks: int, threads: int, shared: int, arguments: list[Any]
    ) -> None:
        """Launch a kernel on the current stream of torch; it may be one that is captured.

        ``shared`` is in bytes for a block; the arguments are ctypes objects, which are copied.
        """
        places = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        stream = ctypes.c_void_p(torch.cuda.current_stream(self._index).cuda_stream)
        # A thread of the caller's may have no context, or that of another device.
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            self._call(
                "cuLaunchKernel",
                self._functions[kernel],
                *(blocks, 1, 1),
                *(threads, 1, 1),
                shared,
                stream,
                places,
                None,
            )
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def _attribute(self, number: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self._driver, name)(*arguments)
        if result:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(result, ctypes.byref(text))
            said = text.value.decode() if text.value else f"error {result}"
            reason = "compiler" if name in _OF_KERNELS else "missing"
            reason = "memory" if result == _OUT_OF_MEMORY else reason
            raise DeviceError(f"the driver of cuda:{self._index} refuses {name}: {said}", reason)
