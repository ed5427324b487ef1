"""Files of an object store as Arrow reaches them, through deltalake."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from deltalake.fs import DeltaStorageHandler


class StoreFiles(DeltaStorageHandler):
    """The objects below a URI, as files of Arrow."""

    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> Any:
        """A new object, which is there when the stream is closed."""
        return pa.PythonFile(_BytesSink(self._handler.open_output_stream(path, metadata)), "w")


class _BytesSink:
    """A stream of deltalake, which takes bytes: Arrow passes on buffers that it is given."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        """Write bytes, or a buffer of Arrow."""
        return int(self._stream.write(bytes(data)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
