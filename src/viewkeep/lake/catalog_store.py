"""Where the catalog of a lake is stored: a Delta table of definitions.

Every change of the definitions is one commit, so the catalog has a history, and two processes
never both define something. `_viewkeep/catalog.json` is a copy for people to read.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from viewkeep.lake.catalog import Catalog, Definition, TableDefinition, ViewDefinition
from viewkeep.query.types.data_types import STRING, Field
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.file_marks import file_mark
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import ConflictError, LakeTable, Snapshot, StorageError
from viewkeep.tables.log.memory import remembered_logs
from viewkeep.tables.places import absolute_location, former_lake, stored_location

TRIES = 20
DEFINITIONS = 4096
"""So many definitions are remembered by their texts, which rarely change."""
_FIELDS = tuple(Field(name, STRING, nullable=False) for name in ("kind", "name", "definition"))
_RECENT: dict[str, tuple[tuple[Any, ...], Catalog]] = {}
"""The catalogs that this process has read last, each with the version, the files and their marks on
the disk: as long as these are the same, definitions are not read again."""
LAKES = 16
"""So many of them are kept."""


class CatalogStore:
    """The catalog of a lake, where it is kept."""

    def __init__(self, table: LakeTable, lake: str) -> None:
        self._table, self._lake = table, lake
        self._copy = LakeTable(table.uri.rpartition("/")[0], table.options)

    def exists(self) -> bool:
        """Whether the lake has a catalog."""
        return self._table.exists()

    def create(self) -> None:
        """An empty catalog, unless there is one."""
        try:
            self._table.create(_FIELDS, [], {"change": "init"}, "The definitions of this lake")
        except ConflictError:
            return

    def read(self) -> Catalog:
        """The newest definitions, also where other logs are remembered."""
        with remembered_logs():
            snapshot = self._table.snapshot()
        marks = [file_mark(each.location(self._table.uri)) for each in snapshot.files]
        form = self._lake, snapshot.version, snapshot.identity, snapshot.identities, marks
        recent = _RECENT.get(self._table.uri)
        if recent is not None and recent[0] == form and None not in marks:
            return recent[1]
        catalog = self._catalog_of_snapshot(snapshot)
        if len(_RECENT) >= LAKES:
            _RECENT.clear()
        _RECENT[self._table.uri] = form, catalog
        return catalog

    def _catalog_of_snapshot(self, snapshot: Snapshot) -> Catalog:
        rows = to_rows(ParquetFolder(self._table).read(snapshot.files, _FIELDS))
        try:
            definitions = self._with_absolute_locations([_catalog_entry(*row) for row in rows])
        except (KeyError, ValueError, TypeError) as error:
            raise StorageError(f"{self._table.uri}: the catalog is damaged: {error!r}") from error
        return Catalog(snapshot.version, {each.name: each for each in definitions})

    def _with_absolute_locations(self, definitions: Sequence[Definition]) -> list[Definition]:
        """Definitions with the locations that they have now."""
        own = [e for e in definitions if isinstance(e, ViewDefinition) or e.owned]
        former = former_lake((each.name, each.location) for each in own)

        def place(each: Definition) -> str:
            if former is not None and each in own:
                return f"{self._lake}/{each.name}"
            if former is not None and each.location.startswith(f"{former}/"):
                return f"{self._lake}/{each.location.removeprefix(f'{former}/')}"
            return absolute_location(self._lake, each.location)

        return [replace(each, location=place(each)) for each in definitions]

    def _with_relative_locations(self, catalog: Catalog) -> Catalog:
        """The catalog as it is kept."""
        entries = {
            name: replace(each, location=stored_location(self._lake, each.location))
            for name, each in catalog.entries.items()
        }
        return replace(catalog, entries=entries)

    def change(self, what: str, changed: Callable[[Catalog], Catalog]) -> Catalog:
        """Commit what a function makes of the newest catalog; after a conflict, ask it again."""
        for _ in range(TRIES):
            catalog = changed(self.read())
            try:
                return self._write_catalog(catalog, what)
            except ConflictError:
                continue
        raise ConflictError(f"{self._table.uri}: too many processes define things; try again")

    def _write_catalog(self, catalog: Catalog, what: str) -> Catalog:
        relative = self._with_relative_locations(catalog)
        rows = [
            (
                "table" if isinstance(each, TableDefinition) else "view",
                each.name,
                json.dumps(each.as_json()),
            )
            for each in relative.entries.values()
        ]
        for row in rows:
            _catalog_entry(*row)  # A definition that nobody could read would close the whole lake.
        if self._table.version() != catalog.version:  # which may be gone from the log by now
            raise ConflictError(f"{self._table.uri}: another process defined something first")
        old = self._table.snapshot(catalog.version).files
        new = ParquetFolder(self._table).write(to_arrow(_FIELDS, rows))
        version = self._table.commit(catalog.version, [new], old, {"change": what})
        # The copy is not worth a failure: the change has happened.
        with suppress(StorageError):
            ParquetFolder(self._copy).write_text("catalog.json", _catalog_text(rows))
        return replace(catalog, version=version)


def _catalog_text(rows: Iterable[tuple[str, str, str]]) -> str:
    """The definitions by kind, as indented JSON."""
    parts: dict[str, list[str]] = {"table": [], "view": []}
    for kind, name, definition in rows:
        parts[kind].append(f"    {json.dumps(name)}: {_definition_text(definition)}")
    return (
        "{\n"
        + ",\n".join(f'  "{kind}s": {_json_block(lines)}' for kind, lines in parts.items())
        + "\n}\n"
    )


def _json_block(lines: Sequence[str]) -> str:
    return "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"


@lru_cache(DEFINITIONS)
def _definition_text(definition: str) -> str:
    return json.dumps(json.loads(definition), indent=2).replace("\n", "\n    ")


@lru_cache(DEFINITIONS)
def _catalog_entry(kind: str, name: str, definition: str) -> Definition:
    values = json.loads(definition)
    if kind == "table":
        return TableDefinition.from_json(name, values)
    return ViewDefinition.from_json(name, values)
