"""CREATE TABLE statements."""

import contextlib

import pytest

from viewkeep.errors import ParseError, ViewkeepError
from viewkeep.query.tables import Reference
from viewkeep.sql.schema import read_schema

SHOP = """
CREATE TABLE parts (
  pid INT PRIMARY KEY COMMENT 'the part',
  price DECIMAL(10, 2) NOT NULL DEFAULT 0
) USING delta COMMENT 'what is sold';

CREATE TABLE IF NOT EXISTS devices_parts (
  did INT,
  pid INT NOT NULL REFERENCES parts (pid),
  note VARCHAR(20),
  PRIMARY KEY (did, pid),
  CONSTRAINT again FOREIGN KEY (pid) REFERENCES parts (pid)
) PARTITIONED BY (did) TBLPROPERTIES ('a' = 'b');
"""


def test_columns_keys_and_foreign_keys() -> None:
    tables = read_schema(SHOP)
    assert list(tables) == ["parts", "devices_parts"]
    parts, uses = tables.values()
    assert [str(c) for c in parts.columns] == ["pid int not null", "price decimal(10, 2) not null"]
    assert parts.key == ("pid",)
    assert [str(c) for c in uses.columns] == ["did int not null", "pid int not null", "note string"]
    assert uses.key == ("did", "pid")
    assert uses.foreign_keys == (Reference(("pid",), "parts", ("pid",)),)


def test_names_in_keys_may_differ_in_case() -> None:
    assert read_schema("create table a (Pid int, primary key (PID))")["a"].key == ("Pid",)


def test_a_foreign_key_without_columns_means_the_primary_key() -> None:
    tables = read_schema(
        "create table staff (id int primary key, boss int references Staff, "
        "foreign key (Boss) references staff (ID))"
    )
    assert [str(key) for key in tables["staff"].foreign_keys] == ["boss -> staff.id"]


def test_nothing_is_an_empty_schema() -> None:
    assert read_schema("") == {}


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("create table a (x ^itn)", 'unknown type "itn"; did you mean "int"?'),
        ("create table a (x ^variant)", 'unknown type "variant"'),
        ("create table a (x int, ^x int)", 'column "x" is declared twice'),
        ("create table a (^x)", 'column "x" has no type'),
        ("create table ^a (pid int, primary key (pdi))", 'did you mean "pid"?'),
        ("create table ^a (x int primary key, y int primary key)", "one primary key"),
        ("create table ^a (x int references prts)", 'unknown table "prts"'),
        (
            "create table ^a (x int references b (y)); create table b (z int)",
            'foreign key to "b.y", which is not there',
        ),
        (
            "create table ^a (x int references b); create table b (z int)",
            "key has 0 columns, not 1",
        ),
        ("create table a (x int, foreign key (^x), y int)", "a foreign key needs REFERENCES"),
        ("^create table a (x int) default using delta", "does not read as SQL"),
        ("create table a (x int); create table ^a (y int)", 'table "a" is declared twice'),
        ("^select 1", "expected CREATE TABLE"),
        ("^create table a as select 1", "expected CREATE TABLE"),
        ("^create view v as select 1", "expected CREATE TABLE"),
        ("create table a (x int);\n^select x from a", "expected CREATE TABLE"),
    ],
)
def test_bad_schemas(marked: str, message: str) -> None:
    position = marked.index("^")
    with pytest.raises(ParseError) as error:
        read_schema(marked.replace("^", ""))
    assert message in error.value.problem
    assert error.value.position == position


def test_truncated_schemas_never_crash() -> None:
    for end in range(len(SHOP)):
        with contextlib.suppress(ViewkeepError):
            read_schema(SHOP[:end])
