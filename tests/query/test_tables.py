"""Declared tables: types, keys, foreign keys, dependencies, and what is refused."""

import pytest

from viewkeep.errors import SchemaError
from viewkeep.query.constraints import FunctionalDependency
from viewkeep.query.tables import Reference, Table
from viewkeep.query.types.data_types import DECIMAL, INT, STRING, Field, parse_type


def test_columns_take_types_as_text_or_values() -> None:
    table = Table({"a": "int", "b": STRING, "c": "decimal(10, 2) NOT NULL", "d": Field("x", INT)})
    assert table.columns == (
        Field("a", INT),
        Field("b", STRING),
        Field("c", DECIMAL(10, 2), nullable=False),
        Field("d", INT),
    )
    assert table.names == ("a", "b", "c", "d")


def test_key_columns_are_not_nullable() -> None:
    table = Table({"a": "int null", "b": "int null"}, key=["a"])
    assert [column.nullable for column in table.columns] == [False, True]


def test_foreign_keys_and_dependencies_are_read() -> None:
    table = Table(
        {"a": "int", "b": "int", "zip": "int", "locn": "int"},
        foreign_keys=["a, b -> PS.x, PS.y", Reference(("zip",), "Z", ("zip",))],
        fds=["zip -> locn"],
    )
    assert table.foreign_keys[0] == Reference(("a", "b"), "PS", ("x", "y"))
    assert table.foreign_keys[1].table == "Z"
    assert table.fds == (FunctionalDependency(("zip",), ("locn",)),)


def test_tables_are_values() -> None:
    first, second = (Table({"a": "int"}, key=["a"]) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"columns": {"pid": "int"}, "key": ["pdi"]},
            'key: no column "pdi" (pid); did you mean "pid"?',
        ),
        ({"columns": {"a": "itn"}}, 'column "a": unknown type "itn"; did you mean "int"?'),
        ({"columns": {"a": "int(3)"}}, "int takes no length"),
        ({"columns": {"a": "decimal(39, 2)"}}, "the precision must be between 1 and 38"),
        ({"columns": {"a": "decimal(4, 5)"}}, "the scale at most the precision"),
        ({"columns": {"a": 3}}, "3 is not a type"),
        ({"columns": {"a": "int", "A": "int"}}, 'columns "a" and "A" have the same name in SQL'),
        ({"columns": {}}, "a table needs at least one column"),
        ({"columns": {"a": "int"}, "key": ["a", "a"]}, "a column stands twice"),
        ({"columns": {"a": "int"}, "key": "a"}, 'key="a": give a list'),
        ({"columns": {"a": "int"}, "foreign_keys": ["b -> C.x"]}, 'no column "b" (a)'),
        ({"columns": {"a": "int"}, "foreign_keys": ["a -> C"]}, "a foreign key is written"),
        ({"columns": {"a": "int"}, "foreign_keys": ["a -> C.x, C.y"]}, "a foreign key is written"),
        ({"columns": {"a": "int"}, "fds": ["a"]}, "a functional dependency is written"),
        ({"columns": {"a": "int"}, "fds": ["a -> b"]}, 'no column "b" (a)'),
    ],
)
def test_bad_tables_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError) as error:
        Table(**arguments)  # type: ignore[arg-type]
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BIGINT", "bigint"),
        ("long", "bigint"),
        (" double precision ", "double"),
        ("decimal", "decimal(10, 0)"),
        ("numeric(7)", "decimal(7, 0)"),
        ("varchar(20)", "string"),
        ("timestamp", "timestamp"),
    ],
)
def test_type_names(text: str, expected: str) -> None:
    assert str(parse_type(text)) == expected
