"""Pipelines of Spark, as they are: their YAML file and the SQL files that it names."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewkeep.project.files import checked_mapping, read_yaml, relative_name
from viewkeep.project.model import ProjectError

NAMES = ("spark-pipeline.yaml", "spark-pipeline.yml", "pipeline.yml", "pipeline.yaml")


@dataclass(frozen=True)
class Pipeline:
    """The name, the SQL files, and the catalog and database that names in them may begin with."""

    name: str
    sql_files: tuple[Path, ...] = ()
    catalog: str = ""
    database: str = ""
    notes: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    """Other beginnings of names that mean the pipeline itself."""

    def own_name(self, name: str) -> str:
        """A name without the catalog and the database of the pipeline.

        >>> Pipeline("p", catalog="main", database="shop").own_name("main.shop.cost")
        'cost'
        """
        for prefix in self._prefixes:
            if name.lower().startswith(prefix.lower()):
                return name[len(prefix) :]
        return name

    def without_prefixes(self, sql: str) -> str:
        """A query in which names are those of the lake.

        >>> Pipeline("p", database="shop").without_prefixes("SELECT 'shop.x' FROM shop.parts")
        "SELECT 'shop.x' FROM parts"
        """
        for prefix in self._prefixes:
            names = r"\s*\.\s*".join(f"`?{re.escape(each)}`?" for each in prefix.split(".")[:-1])
            pattern = (
                rf"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|--[^\n]*)|(?<![\w.`]){names}\s*\.\s*"""
            )
            sql = re.sub(pattern, lambda match: match[1] or "", sql, flags=re.IGNORECASE)
        return sql

    @property
    def _prefixes(self) -> list[str]:
        parts = [each for each in (self.catalog, self.database) if each]
        longest = [".".join(parts) + "."] if parts else []
        database = [f"{self.database}."] if self.catalog and self.database else []
        return [*longest, *database, *self.schemas]


def find_pipeline(folder: Path) -> Pipeline | None:
    """The pipeline of a folder, if there is one."""
    path = next((folder / name for name in NAMES if (folder / name).is_file()), None)
    if path is None:
        return None
    file = relative_name(path, folder)
    spec = checked_mapping(read_yaml(path, folder), file)
    libraries = spec.get("libraries", spec.get("definitions", []))
    if not isinstance(libraries, list):
        raise ProjectError(f"{file}: libraries is a list, as - glob: {{include: views/**}}")
    files = sorted({found for each in libraries for found in _library_files(each, folder, file)})
    others = [relative_name(each, folder) for each in files if each.suffix.lower() != ".sql"]
    return Pipeline(
        str(spec.get("name", folder.name)),
        tuple(each for each in files if each.suffix.lower() == ".sql"),
        str(spec.get("catalog") or ""),
        str(spec.get("database") or spec.get("schema") or ""),
        tuple(f"{each} is not SQL, and left out" for each in others),
        ("live.",),
    )


def _library_files(library: Any, folder: Path, file: str) -> list[Path]:
    match library:
        case {"glob": {"include": str() as pattern}}:
            pass
        case {"file": {"path": str() as pattern}} | {"file": str() as pattern}:
            pass
        case _:
            raise ProjectError(f"{file}: {library!r}: expected glob: {{include: views/**}}")
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise ProjectError(f'{file}: "{pattern}" leads out of the project')
    pattern = f"{pattern}/*" if pattern.endswith("**") else pattern
    return [path for path in folder.glob(pattern) if path.is_file()]
