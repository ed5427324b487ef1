"""Functions that translations of SQL call, and that SQL itself cannot name or writes otherwise."""

COMPARABLE = "#comparable"
"""What is equal where two values of a type that views only carry are; SQL cannot name it."""

SINGLE = "#single"
"""The value of a subquery, and an error if the subquery has more rows than one."""

FIELD = "#field"
"""A part of a struct, by its name and its place."""

ITEM = "#item"
"""An element of an array, by its place; an error where there is none."""

ENTRY = "#entry"
"""The value of a map for a key; NULL where there is none."""

PARTS = (FIELD, ITEM, ENTRY)
"""The functions that take nested values apart."""

TRY_CAST = "try_cast"
"""A value in another type, by its name; NULL where CAST would fail."""

TRIED = {
    "try_add": "+",
    "try_subtract": "-",
    "try_multiply": "*",
    "try_divide": "/",
    "try_mod": "%",
}
"""The functions that are NULL where an operator would fail, whatever their arguments do."""
