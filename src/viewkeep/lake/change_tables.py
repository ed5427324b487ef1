"""Changes of users to one table, or to several at once."""

from collections.abc import Mapping
from typing import Any

from viewkeep.lake.apply import apply_changes, changeable_table, kinds_of_changes
from viewkeep.lake.lake import Lake
from viewkeep.lake.transactions import Transactions


def change_table(lake: Lake, name: str, rows: Mapping[str, Any]) -> int:
    """Change a table in one commit, by `inserts`, `updates` and `deletes`; the new version."""
    definition = changeable_table(lake.catalog.read(), name)
    changes = kinds_of_changes(name, definition.table, rows)
    table = lake.at(definition.location)
    settle = Transactions(lake).settled(definition, table)
    version, _ = apply_changes(lake.scans, definition, table, changes, lake.driver_bytes, settle)
    return version


def change_tables(lake: Lake, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Change several tables in one transaction, each by its own rows; the new versions."""
    catalog, changes = lake.catalog.read(), []
    for name, kinds in sorted(rows.items()):
        definition = changeable_table(catalog, name)
        changes.append((definition, kinds_of_changes(name, definition.table, kinds)))
    with lake.marked():
        return Transactions(lake).run(changes)
