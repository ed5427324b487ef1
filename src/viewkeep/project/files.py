"""Files of a project: SQL, TOML and YAML, with errors that name them."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from viewkeep.errors import ViewkeepError
from viewkeep.project.model import ProjectError


def read_text(path: Path, folder: Path) -> str:
    """The text of a file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text in UTF-8"
        raise ProjectError(f"{relative_name(path, folder)}: {reason}") from None


def read_toml(path: Path, folder: Path) -> dict[str, Any]:
    """The settings of a TOML file."""
    try:
        return tomllib.loads(read_text(path, folder))
    except tomllib.TOMLDecodeError as error:
        raise ProjectError(f"{relative_name(path, folder)}: {error}") from None


def read_yaml(path: Path, folder: Path) -> Any:
    """The values of a YAML file; nothing in it is run."""
    try:
        yaml = import_module("yaml")
    except ModuleNotFoundError:
        raise ProjectError(
            f"{relative_name(path, folder)}: YAML files need the library pyyaml: "
            "pip install 'viewkeep[lake]' installs it"
        ) from None
    try:
        return yaml.safe_load(read_text(path, folder))
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ProjectError(f"{relative_name(path, folder)}: {problem}") from None


def relative_name(path: Path, folder: Path) -> str:
    """A file as people of the project call it."""
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


@contextmanager
def file_errors(file: str) -> Iterator[None]:
    """Errors from reading a text say which file they are about."""
    try:
        yield
    except ProjectError:
        raise
    except ViewkeepError as error:
        raise ProjectError(f"{file}: {error}") from error


def checked_mapping(value: Any, place: str) -> dict[str, Any]:
    """A mapping from names."""
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value):
        raise ProjectError(f"{place}: expected names with values, not {value!r}")
    return value


def checked_names(value: dict[str, Any], names: tuple[str, ...], place: str) -> None:
    """Refuse names that mean nothing."""
    unknown = [each for each in value if each not in names]
    if unknown:
        raise ProjectError(f'{place}: "{unknown[0]}" means nothing here ({", ".join(names)})')
