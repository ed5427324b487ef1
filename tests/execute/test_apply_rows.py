"""Diffs in rows and diffs in Arrow tables set the same values."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema
from viewkeep.diffs.script import Materialized
from viewkeep.execute.apply_rows import keys_and_values, keys_and_values_of_rows
from viewkeep.query.algebra import Stored
from viewkeep.query.types.data_types import Field, parse_type
from viewkeep.tables.arrow_rows import to_arrow

VALUES: dict[str, list[Any]] = {
    "tinyint": [-128, 127, None],
    "bigint": [-(2**63), 2**63 - 1, None],
    "boolean": [True, False, None],
    "string": ["", "ä\0", None],
    "date": [date(1, 1, 1), date(9999, 12, 31), None],
    "double": [-0.0, float("inf"), 1e-300, None],
    "float": [0.5, -0.0, None],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-0.01"), None],
    "timestamp": [datetime(2026, 1, 2, 3, 4, 5, 6), None],
    "array<int>": [(1, None), (), None],
}


@pytest.mark.parametrize("type_", VALUES)
@pytest.mark.parametrize("kind", [INSERT, UPDATE, DELETE])
def test_rows_set_what_their_table_sets(type_: str, kind: str) -> None:
    key, value = Field("k", parse_type("int")), Field("x", parse_type(type_))
    schema = DiffSchema(kind, ("k",), ("x",), ("x",), ("x",))
    columns = (key, Field("x__pre", value.type), Field(schema.value_after("x"), value.type))
    rows = [(n, None, each) for n, each in enumerate(VALUES[type_])]
    kept = Materialized("v", Stored("v", (value, key)), ("k",))
    expected = keys_and_values(kept, schema, to_arrow(columns, rows))
    assert keys_and_values_of_rows(kept, schema, columns, rows) == expected
    assert len(expected) == len(rows)


def test_rows_of_another_type_are_cast_or_refused() -> None:
    columns = (Field("k", parse_type("bigint")),)
    kept = Materialized("v", Stored("v", (Field("k", parse_type("int")),)), ("k",))
    schema = DiffSchema(DELETE, ("k",))
    assert keys_and_values_of_rows(kept, schema, columns, [(7,)]) == [((7,), ())]
    with pytest.raises(ValueError, match="not in range"):
        keys_and_values_of_rows(kept, schema, columns, [(2**40,)])
