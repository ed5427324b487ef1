"""Machine code from generated text, kept on disk between processes."""

import ctypes
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # has no stubs
import llvmlite.binding as llvm  # type: ignore[import-untyped]

from viewkeep.engine.compiled.function import Module
from viewkeep.engine.compiled.llvm.translate import translate

CACHE_VARIABLE = "VIEWKEEP_CACHE"
"""The environment variable with the folder for machine code; empty keeps none."""

OPTIMIZE_VARIABLE = "VIEWKEEP_OPTIMIZE"
"""The environment variable with how much LLVM optimizes: 0 compiles ten times faster, for tests."""

_FASTCALL, _KEYWORDS = 0x80, 0x02
_FORMAT = "3"
"""Part of every file's name: rises when what is kept changes."""


class MachineCode:
    """Loaded machine code: functions by name, alive as long as this object."""

    def __init__(self, objects: bytes) -> None:
        module = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(module, _target_machine(_optimization_level()))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(objects))
        self._engine.finalize_object()
        self._definitions: list[Any] = []

    def function(self, name: str, arity: int) -> Callable[..., int]:
        """A function of integers, for rare calls."""
        return self.typed(name, [ctypes.c_int64] * (arity - 1))

    def typed(self, name: str, types: Sequence[Any]) -> Callable[..., int]:
        """A function of the state and of arguments of these types."""
        kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *types)
        return kind(self._engine.get_function_address(name))

    def address(self, name: str) -> int:
        """Where a function is, for other machine code."""
        return int(self._engine.get_function_address(name))

    def builtin(
        self, name: str, bound: object = None, keywords: bool = False
    ) -> Callable[..., Any]:
        """A function that takes Python objects by itself, for calls that must be fast."""
        address = self._engine.get_function_address(name)
        flags = _FASTCALL | _KEYWORDS if keywords else _FASTCALL
        definition = _Method(name.encode(), address, flags, None)
        self._definitions.append(definition)
        return _new_builtin(ctypes.byref(definition), bound, None)  # type: ignore[no-any-return]


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new_builtin = ctypes.pythonapi.PyCFunction_NewEx
_new_builtin.restype = ctypes.py_object
_new_builtin.argtypes = [ctypes.POINTER(_Method), ctypes.py_object, ctypes.c_void_p]


def load(module: Module, extra: str = "") -> MachineCode:
    """The code of a module, from disk where it was compiled before; `extra` is LLVM of its own."""
    identity = _code_identity(module, extra)
    if (loaded := _LOADED.get(identity)) is not None:
        return loaded
    place = _code_file(identity)
    objects = _read_code(place)
    if objects is None:
        level = min(_optimization_level(), 1) if module.is_large else _optimization_level()
        objects = _compile_llvm(translate(module) + "\n" + extra, level)
        _write_code(place, objects)
    _LOADED[identity] = code = MachineCode(objects)
    return code


_LOADED: dict[str, MachineCode] = {}
"""Code of this process by identity: equal programs share it, since state is passed to it."""


def _code_identity(*parts: object) -> str:
    machine = (
        llvmlite.__version__,
        llvm.get_host_cpu_name(),
        _processor_features(),
        sys.version_info[:2],
    )
    parts = (*parts, _optimization_level())
    return hashlib.sha256(repr((_FORMAT, machine, parts)).encode()).hexdigest()


def _compile_llvm(module_text: str, level: int) -> bytes:
    module = llvm.parse_assembly(module_text)
    module.verify()
    target = _target_machine(level)
    if level:
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_unrolling = False
        options.loop_vectorization = False
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
    return bytes(target.emit_object(module))


def _optimization_level() -> int:
    return int(os.environ.get(OPTIMIZE_VARIABLE, "2"))


@cache
def _target_machine(level: int) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_processor_features(), opt=level, jit=True
    )


@cache
def _processor_features() -> str:
    return str(llvm.get_host_cpu_features().flatten())


# --- on disk --------------------------------------------------------------------------------------


def _code_file(identity: str) -> Path | None:
    """The file of a program's code; None where nothing is to be kept."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen is not None:
        return Path(chosen) / f"{identity}.o" if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base else Path.home() / ".cache"
    return folder / "viewkeep" / f"{identity}.o"


def _read_code(place: Path | None) -> bytes | None:
    """The code with its own digest checked: a file that was cut short is compiled anew."""
    if place is None:
        return None
    try:
        content = place.read_bytes()
    except OSError:
        return None
    digest, objects = content[:32], content[32:]
    return objects if hashlib.sha256(objects).digest() == digest else None


def _write_code(place: Path | None, objects: bytes) -> None:
    """Put the file in place as a whole, so that several processes may do so at once."""
    if place is None:
        return
    # A full or read-only disk costs the next process its compilation, and nothing else.
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
            file.write(hashlib.sha256(objects).digest() + objects)
        Path(file.name).replace(place)
