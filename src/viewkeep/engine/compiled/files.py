"""The memory of a compiled engine in an Arrow file, which is mapped when it is restored.

Every block of memory is one record batch with one column of 64-bit words; the first holds the
state. What is no number (query, options, values behind codes) is pickled into the metadata. A
restored engine reads the mapped pages as they are and copies those that it changes.
"""

import mmap
import os
import pickle
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.engine.compiled.memory import Words, blocks, words_at
from viewkeep.engine.compiled.values import Coder
from viewkeep.engine.save import damaged_file_error, put_in_place
from viewkeep.errors import ViewkeepError

_KEY, _COLUMN = b"viewkeep", "words"

Header = Mapping[str, Any]
Make = Callable[[Header, Coder], CompiledEngine]


def write_engine(path: str | os.PathLike[str], engine: CompiledEngine, header: Header) -> None:
    """Write all memory and the header; a file is replaced only when all is written."""
    own = {"coder": engine.coder, "layout": _memory_layout(engine)}
    try:
        pickled = pickle.dumps({**header, **own}, protocol=5)
        put_in_place(Path(path), lambda place: _write_memory(place, engine, pickled))
    except Exception as error:  # values of the user's own classes may refuse in any way
        raise ViewkeepError(f"cannot save to {path}: {error}") from error


def _write_memory(place: Path, engine: CompiledEngine, pickled: bytes) -> None:
    schema = pa.schema([(_COLUMN, pa.int64())], metadata={_KEY: pickled})
    words = engine.state.words
    content = [
        words,
        *(words_at(int(words[at]), n) for at, _, n in blocks(engine.state.memory, words)),
    ]
    with pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for block in content:
            writer.write_batch(pa.record_batch([pa.array(block)], schema=schema))


def read_engine(path: str | os.PathLike[str], make: Make) -> tuple[CompiledEngine, Header]:
    """Map what `write_engine` wrote. The header is pickled: read only what you trust."""
    try:
        with Path(path).open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        reader = pa.ipc.open_file(pa.py_buffer(mapped))
        header: Header = pickle.loads(reader.schema.metadata[_KEY])
        coder, layout = header["coder"], header["layout"]
    except Exception as error:  # a damaged file may raise anything
        raise damaged_file_error(path, error) from error
    try:
        engine = make(header, coder)
    except Exception as error:
        problem = f"the compiled engine cannot be made here ({type(error).__name__}: {error})"
        raise ViewkeepError(f"cannot restore {path}: {problem}") from error
    if layout != _memory_layout(engine):
        raise ViewkeepError(f"cannot restore {path}: it was written by another version of Viewkeep")
    columns = [reader.get_batch(i).column(0) for i in range(reader.num_record_batches)]
    _map_memory(engine, [np.asarray(column.to_numpy()) for column in columns])
    engine.state.borrowed = mapped
    engine.connect_texts()
    return engine, header


def _map_memory(engine: CompiledEngine, content: list[Words]) -> None:
    """Point to the mapped blocks, whose own memory is not to be freed."""
    engine.state.release()
    words = engine.state.words
    words[:] = content[0]
    for block, (at, borrowed, _) in zip(
        content[1:], list(blocks(engine.state.memory, words)), strict=True
    ):
        words[at] = block.ctypes.data
        words[borrowed] = 1


def _memory_layout(engine: CompiledEngine) -> str:
    text = "\n".join(function.text for function in engine.source.main.functions)
    return sha256(text.encode()).hexdigest()
