"""Kernels without numba: the machine code that numba has made and kept, called by a process that never imports the compiler.

Importing numba and asking it for kept code takes half a second, which is most of what a short command line waits for. ``keep``
writes down, in a process with numba, the machine code of each kernel for the types that it was called with; ``kernel`` calls that
code. Code and wrappers are numba's own and the same bytes, so answers are identical. A kernel that was not kept for some types raises
``NotReady``, and the process starts anew with the compiler (``analysis.__main__``).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import json
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

_INDEX: Final = "ready.json"
_ENTRY_PARTS: Final = ("object", "wrapper", "environment")
_INT64: Final = np.iinfo(np.int64)


class NotReady(BaseException):
    """No kept code for this kernel and these types; no Exception, so that nobody takes it for a fault of a capture."""


def _numba() -> Path:
    """Where numba is installed, found without importing it."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        raise NotReady("numba is not installed")
    return Path(found.origin).parent


def _made_for(sources: str) -> str:
    """Names what machine code depends on: the kernels' sources, numba's version, this interpreter and this processor."""
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    digest = hashlib.sha256(f"{sources} {sys.version} {platform.machine()}".encode())
    for package in (_numba(), Path(llvm.__file__).parents[1]):
        digest.update((package / "_version.py").read_bytes())
    digest.update(np.__version__.encode())
    digest.update(f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}".encode())
    return digest.hexdigest()


# Types, named alike from values and from numba's types


@functools.cache
def _layout(dtype: np.dtype[Any], aligned: bool) -> str:
    """A name for elements of an array, with every field and its place."""
    if dtype.names is None:
        return dtype.str
    fields = ",".join(
        f"{name}@{offset}:{_layout(inner, inner.isalignedstruct)}"
        for name, (inner, offset, *_) in sorted((dtype.fields or {}).items())
    )
    return f"({fields};{dtype.itemsize};{aligned})"


def _type_name(value: Any) -> str:
    """Of an argument. Raises NotReady for what no kernel is called with."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        layout = _layout(value.dtype, value.dtype.isalignedstruct)
        return f"{layout}[{value.ndim}{order}{flags.writeable:d}{flags.aligned:d}]"
    if isinstance(value, bool | np.bool_):
        return "|b1"
    if isinstance(value, int) and _INT64.min <= value <= _INT64.max:
        return "<i8"
    if isinstance(value, float):
        return "<f8"
    if isinstance(value, np.number):
        return value.dtype.str
    raise NotReady(f"an argument of type {type(value).__name__}")


def _numba_layout(kind: Any) -> str:
    from numba import types
    from numba.np.numpy_support import as_dtype

    if not isinstance(kind, types.Record):
        return str(as_dtype(kind).str)
    fields = ",".join(
        f"{name}@{field.offset}:{_numba_layout(field.type)}" for name, field in sorted(kind.fields.items())
    )
    return f"({fields};{kind.size};{kind.aligned})"


def _numba_type_name(kind: Any) -> str | None:
    """Of a type of numba; None for one that ``_type_name`` does not know."""
    from numba import types

    if isinstance(kind, types.Array):
        return f"{_numba_layout(kind.dtype)}[{kind.ndim}{kind.layout}{kind.mutable:d}{kind.aligned:d}]"
    return _numba_layout(kind) if isinstance(kind, types.Number | types.Boolean) else None


def _simple(kind: Any) -> bool:
    """Whether a returned value is made without asking numba: no array, no record."""
    from numba import types

    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return all(map(_simple, parts))
    return isinstance(kind, types.Number | types.Boolean | types.NoneType)


# Keeping


def _entry(dispatcher: Any, signature: Any, result: Any, place: Path) -> tuple[str, dict[str, str]] | None:
    """Write the code of one kernel for one signature; its name and what the index says of it, None where it cannot be kept."""
    cache = dispatcher._cache
    names = [_numba_type_name(kind) for kind in signature]
    if None in names or not _simple(result.signature.return_type):
        return None
    kept = cache._cache_file.load(cache._index_key(signature, result.library.codegen))
    if kept is None:
        return None
    (_, form, code), description, environment = kept[:3]
    if form != "object" or environment.consts:
        return None
    machine_code: bytes = code[0]
    file = f"ready-{hashlib.sha256(machine_code).hexdigest()[:24]}.o"
    _write(place / file, machine_code)
    function = dispatcher.py_func
    parts = (file, description.llvm_cpython_wrapper_name, description.env_name)
    return f"{function.__module__}.{function.__qualname__}({' '.join(map(str, names))})", dict(
        zip(_ENTRY_PARTS, parts, strict=True)
    )


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, whoever else writes the same."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    Path(file.name).replace(path)


def _index(place: Path, made_for: str) -> dict[str, dict[str, str]]:
    """What was kept for this state of things; empty where that is nothing."""
    try:
        index = json.loads((place / _INDEX).read_bytes())
        kept = index["kernels"] if index["made_for"] == made_for else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return kept if isinstance(kept, dict) else {}


def keep(dispatchers: Iterable[Any], place: Path, sources: str) -> None:
    """Write the code of everything that ``dispatchers`` (numba's) have run in this process to ``place``.

    What was kept before for the same ``sources`` stays. Nothing happens where ``place`` cannot be written.
    """
    made_for = _made_for(sources)
    kernels = _index(place, made_for)
    with contextlib.suppress(OSError):
        for dispatcher in dispatchers:
            for signature, result in list(dispatcher.overloads.items()):
                entry = _entry(dispatcher, signature, result, place)
                kernels |= [entry] if entry else []
        _write(place / _INDEX, json.dumps({"made_for": made_for, "kernels": kernels}).encode())


# Running


def _extension(name: str, folder: Path) -> ModuleType:
    """One of numba's modules in C, without the package around it."""
    path = next(folder.glob(f"{name}.*.so"), None)
    if path is None:
        raise NotReady(f"numba has no {name}")
    loader = ExtensionFileLoader(name, str(path))
    module = importlib.util.module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    loader.exec_module(module)
    return module


class Ready:
    """The kernels that were kept in ``place`` for ``sources``; NotReady where there are none."""

    def __init__(self, place: Path, sources: str) -> None:
        import llvmlite.binding as llvm

        self._llvm = llvm
        self._place = place
        self._kernels = _index(place, _made_for(sources))
        if not self._kernels:
            raise NotReady("no kernel was kept")
        numba = _numba()
        self._functions = _extension("_dynfunc", numba)
        runtime = _extension("_nrt_python", numba / "core" / "runtime")
        self._name_helpers(_extension("_helperlib", numba), runtime)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()

    def _name_helpers(self, helpers: ModuleType, runtime: ModuleType) -> None:
        """Tell LLVM the addresses of what machine code calls, as numba does when it starts."""
        add = self._llvm.add_symbol
        add("_Py_NoneStruct", id(None))
        for module in (helpers, self._functions):
            for name, address in module.c_helpers.items():
                add(f"numba_{name}", address)
        for name, address in runtime.c_helpers.items():
            add(name if name.startswith("_") else f"NRT_{name}", address)
        for fault in (RuntimeError, StopIteration, SystemError, TypeError, ValueError, OverflowError, MemoryError):
            add(f"PyExc_{fault.__name__}", id(fault))

    def kernel(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` as it was compiled, for every kind of arguments that was kept."""
        name = f"{function.__module__}.{function.__qualname__}"
        loaded: dict[str, Callable[..., Any]] = {}

        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            types = " ".join(map(_type_name, arguments))
            try:
                code = loaded[types]
            except KeyError:
                code = loaded[types] = self._load(f"{name}({types})")
            return code(*arguments)

        return call

    def _load(self, name: str) -> Callable[..., Any]:
        entry = self._kernels.get(name)
        if entry is None:
            raise NotReady(name)
        file, wrapper, environment_name = (entry[part] for part in _ENTRY_PARTS)
        try:
            machine_code = (self._place / file).read_bytes()
        except OSError:
            raise NotReady(name) from None
        llvm = self._llvm
        target = llvm.Target.from_triple(llvm.get_process_triple())
        machine = target.create_target_machine(reloc="static", codemodel="jitdefault")
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)  # of its own: names of helpers repeat
        engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
        engine.finalize_object()
        environment = self._functions.Environment({})
        pointer = ctypes.c_void_p.from_address(engine.get_global_value_address(environment_name))
        pointer.value = id(environment)
        address = engine.get_function_address(wrapper)
        made: Callable[..., Any] = self._functions.make_function(
            sys.modules[__name__], name.partition("(")[0], name, address, environment, (engine, environment)
        )
        return made
