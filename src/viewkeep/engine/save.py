"""A maintainer's state in a file: there as a whole or not at all."""

import os
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from viewkeep.errors import ViewkeepError

_TITLE, _FORMAT = b"viewkeep state ", 2
MAGIC = b"%b%d\n" % (_TITLE, _FORMAT)
"""How every saved file begins; the number rises when the layout or a class in it moves."""

ARROW_MAGIC = b"ARROW1"
"""How every Arrow file begins, such as those of compiled engines."""

State = Mapping[str, Any]


def is_arrow_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an Arrow file."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(ARROW_MAGIC)) == ARROW_MAGIC
    except OSError:
        return False


def write_state(path: str | os.PathLike[str], state: State) -> None:
    """Write the state; a file that was there is replaced only when all is written."""
    try:
        content = MAGIC + pickle.dumps(state, protocol=5)
        put_in_place(Path(path), lambda place: _write_content(place, content))
    except Exception as error:  # values of the user's own classes may refuse in any way
        raise ViewkeepError(f"cannot save to {path}: {error}") from error


def _write_content(place: Path, content: bytes) -> None:
    place.write_bytes(content)


def read_state(path: str | os.PathLike[str]) -> State:
    """Read what `write_state` wrote. The file holds pickled values: read only what you trust."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ViewkeepError(f"cannot restore {path}: {error}") from error
    if content.startswith(_TITLE) and not content.startswith(MAGIC):
        problem = "it was written by another version of Viewkeep; load the data and save it anew"
        raise ViewkeepError(f"cannot restore {path}: {problem}")
    if not content.startswith(MAGIC):
        raise ViewkeepError(f"cannot restore {path}: it was not written by Maintainer.save")
    try:
        state: State = pickle.loads(content[len(MAGIC) :])
    except Exception as error:  # a damaged pickle may raise anything
        raise damaged_file_error(path, error) from error
    return state


def damaged_file_error(path: str | os.PathLike[str], error: Exception) -> ViewkeepError:
    """The error for a file that cannot be what was written."""
    return ViewkeepError(f"cannot restore {path}: the file is damaged ({error})")


def put_in_place(target: Path, write: Callable[[Path], None]) -> None:
    """Write a file beside the target, then put it in its place as a whole."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
