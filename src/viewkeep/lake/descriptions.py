"""What is defined in a lake, as values for people and programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeep.display import facts_html, rows_html, text_html
from viewkeep.errors import ViewkeepError
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition, typed_columns
from viewkeep.lake.intake import count_quarantined
from viewkeep.lake.lake import Lake
from viewkeep.lake.transactions import Transactions


@dataclass(frozen=True)
class TableDescription:
    """A base table: how it is declared, where it is, and what its newest version holds.

    `owned` tables are changed by Viewkeep, the others by their own writers. `rows` is None where
    the log does not tell, and `problem` says why a table cannot be read. `quarantined` counts the
    records of sources that did not fit.
    """

    name: str
    owned: bool
    location: str
    columns: Mapping[str, str]
    key: tuple[str, ...] = ()
    foreign_keys: tuple[str, ...] = ()
    fds: tuple[str, ...] = ()
    static: bool = False
    readers: tuple[str, ...] = ()
    version: int | None = None
    rows: int | None = None
    size: int | None = None
    problem: str = ""
    quarantined: int = 0


@dataclass(frozen=True)
class ViewDescription:
    """A view: its SQL, what it reads and what reads it, and how it is asked to be kept.

    A view that is not `ready` was never finished.
    """

    name: str
    sql: str
    location: str
    reads: tuple[str, ...]
    readers: tuple[str, ...]
    columns: Mapping[str, str]
    key: tuple[str, ...]
    strategy: str
    policy: str
    ready: bool
    layout: str = "auto"
    lag: str = ""
    project: str = ""

    def _repr_html_(self) -> str:
        about = [
            ("reads", ", ".join(self.reads)),
            ("read by", ", ".join(self.readers)),
            ("key", ", ".join(self.key)),
            ("strategy", f"{self.strategy}, policy {self.policy}"),
            ("lag", self.lag),
        ]
        columns = rows_html(("column", "type"), list(self.columns.items()))
        return facts_html(f"View {self.name}", about) + text_html("SQL", self.sql) + columns


def describe_tables(lake: Lake) -> list[TableDescription]:
    """All base tables."""
    catalog = lake.catalog.read()
    return [_describe_table(lake, catalog, each) for each in catalog.tables.values()]


def describe_views(lake: Lake, names: Sequence[str]) -> list[ViewDescription]:
    """The views that are named, or all of them."""
    catalog = lake.catalog.read()
    return [_describe_view(catalog, catalog.view(name)) for name in names or catalog.views]


def _describe_table(lake: Lake, catalog: Catalog, definition: TableDefinition) -> TableDescription:
    """A table with what its log tells; what is wrong with it is told, not raised."""
    table = definition.table
    declared = TableDescription(
        definition.name,
        definition.owned,
        definition.location,
        typed_columns(table),
        table.key,
        tuple(map(str, table.foreign_keys)),
        tuple(map(str, table.fds)),
        table.static,
        tuple(catalog.readers(definition.name)),
    )
    try:
        version = Transactions(lake).visible_version(definition)
        snapshot = lake.at(definition.location).snapshot(version)
    except ViewkeepError as error:
        return replace(declared, problem=str(error))
    has_counts = all(each.rows >= 0 for each in snapshot.files)
    rows = snapshot.rows if has_counts else None
    declared = replace(declared, quarantined=count_quarantined(lake, definition))
    return replace(declared, version=snapshot.version, rows=rows, size=snapshot.size)


def _describe_view(catalog: Catalog, definition: ViewDefinition) -> ViewDescription:
    """A view as it is defined; what only Viewkeep sees is left out."""
    visible = {field.name for field in definition.table.visible}
    return ViewDescription(
        definition.name,
        definition.newest_sql,
        definition.location,
        definition.inputs,
        tuple(catalog.readers(definition.name)),
        {n: kind for n, kind in typed_columns(definition.table).items() if n in visible},
        definition.table.key if visible.issuperset(definition.table.key) else (),
        definition.strategy,
        definition.policy,
        definition.ready,
        definition.layout,
        definition.lag,
        definition.project,
    )
