"""The shop that generated views read: keys of one and two columns or none, references that may be
NULL, arrays and structs.

Columns that refer to each other have the same name, so that people would join them by USING.
"""

from viewkeep.query.tables import Table

TABLES = {
    "regions": Table({"region": "string", "tax": "int", "head": "int"}, key=["region"]),
    "customers": Table(
        {
            "cid": "int",
            "region": "string",
            "tier": "int",
            "credit": "decimal(8, 2)",
            "since": "timestamp_ntz",
            "place": "struct<x:int,y:string>",
        },
        key=["cid"],
        foreign_keys=["region -> regions.region"],
    ),
    "orders": Table(
        {
            "oid": "int",
            "cid": "int",
            "status": "string not null",
            "amount": "int",
            "placed": "date",
        },
        key=["oid"],
        foreign_keys=["cid -> customers.cid"],
    ),
    "lines": Table(
        {"oid": "int", "line": "int", "item": "int", "qty": "int not null", "price": "double"},
        key=["oid", "line"],
        foreign_keys=["oid -> orders.oid", "item -> items.item"],
    ),
    "items": Table({"item": "int", "kind": "string", "cost": "int"}, key=["item"]),
    "visits": Table(
        {
            "vid": "int",
            "cid": "int",
            "kind": "string",
            "tags": "array<int>",
            "place": "struct<x:int,y:string>",
        },
        key=["vid"],
        foreign_keys=["cid -> customers.cid"],
    ),
}
KEYLESS = {"visits": "vid"}
"""Tables that are bags in lakes, with the column that tells their rows apart here alone."""

WHOLE, NUMBER, TEXT, DATE = "whole", "number", "text", "date"
ARRAY, STRUCT = "array", "struct"
KINDS = {
    "int": WHOLE,
    "bigint": WHOLE,
    "decimal": NUMBER,
    "double": NUMBER,
    "string": TEXT,
    "date": DATE,
    "timestamp_ntz": DATE,
    "array": ARRAY,
    "struct": STRUCT,
}
"""What can be done with values of a type; numbers with a fraction are not compared for equality."""
