"""A maintainer's state in a file: there as a whole or not at all."""

import os
import pickle
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from viewkeep.errors import ViewkeepError

MAGIC = b"viewkeep state 1\n"
"""How every saved file begins; the number rises when the layout changes."""

State = Mapping[str, Any]


def write_state(path: str | os.PathLike[str], state: State) -> None:
    """Write the state; a file that was there is replaced only when all is written."""
    try:
        _replace_file(Path(path), MAGIC + pickle.dumps(state, protocol=5))
    except Exception as error:  # values of the user's own classes may refuse in any way
        raise ViewkeepError(f"cannot save to {path}: {error}") from error


def read_state(path: str | os.PathLike[str]) -> State:
    """Read what `write_state` wrote. The file holds pickled values: read only what you trust."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ViewkeepError(f"cannot restore {path}: {error}") from error
    if not content.startswith(MAGIC):
        raise ViewkeepError(f"cannot restore {path}: it was not written by Maintainer.save")
    try:
        state: State = pickle.loads(content[len(MAGIC) :])
    except Exception as error:  # a damaged pickle may raise anything
        raise damaged(path, error) from error
    return state


def damaged(path: str | os.PathLike[str], error: Exception) -> ViewkeepError:
    """The error for a file that cannot be what was written."""
    return ViewkeepError(f"cannot restore {path}: the file is damaged ({error})")


def _replace_file(target: Path, content: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
