"""Where a text comes from: the argument itself, a file or standard input."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from viewkeep.errors import ViewkeepError

SUFFIXES = (".cq", ".sql", ".txt")
"""An argument that ends like this and has no blanks is meant as a file."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text and, unless it is the argument itself, the name of its origin."""

    text: str
    name: str = ""

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Errors from reading the text say which file they are about."""
        try:
            yield
        except ViewkeepError as error:
            if self.name:
                error.add_note(self.name)
            raise


def read_argument(argument: str) -> Source:
    """The text that an argument stands for: `-` is standard input."""
    if argument == "-":
        return Source(sys.stdin.read(), "standard input")
    return read_file(argument) if is_path(argument) else Source(argument)


def is_path(argument: str) -> bool:
    """Whether an argument names a file or folder rather than being a query."""
    looks_like_one = argument.lower().endswith(SUFFIXES) and "=" not in argument
    return looks_like_one or (0 < len(argument) < 1000 and _exists(argument))


def read_file(name: str) -> Source:
    """The text of a file, or an error that says why it cannot be read."""
    try:
        return Source(Path(name).read_text(encoding="utf-8-sig"), name)
    except FileNotFoundError:
        raise ViewkeepError(f'there is no file "{name}"') from None
    except IsADirectoryError:
        raise ViewkeepError(f'"{name}" is a folder: name a file in it') from None
    except UnicodeDecodeError:
        raise ViewkeepError(f'"{name}" is not a text file in UTF-8') from None
    except OSError as error:
        raise ViewkeepError(f'cannot read "{name}": {error.strerror}') from None


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False
