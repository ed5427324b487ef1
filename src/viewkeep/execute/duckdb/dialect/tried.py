"""TRY_CAST and the arithmetic of try_add and its kin, in DuckDB's text.

DuckDB has TRY(...) around any expression, but an optimizer that computes what two expressions
share before either takes it out of there, and then it fails. So nothing in these texts fails.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from viewkeep.execute.duckdb.dialect.arithmetic import arithmetic
from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.python_functions import TRIED_FUNCTIONS
from viewkeep.execute.duckdb.dialect.text import Text
from viewkeep.query.types.data_types import Type, parse_type
from viewkeep.query.types.internal_functions import TRIED, TRY_CAST

_FAILING = re.compile(rf"error\('[^']*'\)|\bCAST\(|\bviewkeep_({'|'.join(TRIED_FUNCTIONS)})\(")
_HOLE = re.compile("\0([0-9])\0")


def tried(name: str, arguments: list[Text], result: Type) -> Text:
    """A call of which only the operation, and no argument, is NULL instead of an error."""
    if name == TRY_CAST:
        target = parse_type(str(arguments[1].value))
        return _without_failure(arguments[:1], lambda holes: cast(holes[0], target))
    return _without_failure(
        arguments, lambda holes: arithmetic(TRIED[name], holes, result, total=True)
    )


def _without_failure(arguments: list[Text], build: Callable[[list[Text]], Text]) -> Text:
    """The text of an operation around arguments that are left as they are."""
    holes = [replace(each, sql=f"\0{i}\0") for i, each in enumerate(arguments)]
    text = build(holes)
    sql = _FAILING.sub(_null_in_place, text.sql)
    sql = _HOLE.sub(lambda hole: arguments[int(hole[1])].sql, sql)
    return Text(sql, text.type, True, any(each.fails for each in arguments))


def _null_in_place(failing: re.Match[str]) -> str:
    if failing[1]:
        return f"viewkeep_try_{failing[1]}("
    return "TRY_CAST(" if failing[0] == "CAST(" else "NULL"
