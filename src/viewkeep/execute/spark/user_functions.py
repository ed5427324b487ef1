"""User-defined functions by name, registered with a session that Viewkeep starts itself."""

import sys
from collections.abc import Mapping
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from viewkeep.errors import ViewkeepError
from viewkeep.execute.spark.versions import aggregate_kinds

_AGGREGATES = aggregate_kinds()


class UserFunctionError(ViewkeepError):
    """A user-defined function that cannot be registered."""


def function_kinds(functions: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of functions of rows, and of those of groups."""
    for name, function in functions.items():
        if not _is_pair(function) and not isinstance(function, str) and not _eval_type(function):
            raise UserFunctionError(
                f'function "{name}" is {type(function).__name__}, and has no type: give a pair of '
                "a Python function and its type, as (f, 'int'), what udf() or pandas_udf() "
                "returns, or the text of a CREATE TEMPORARY FUNCTION statement"
            )
    grouped = [name for name, each in functions.items() if _eval_type(each) in _AGGREGATES]
    return tuple(name for name in functions if name not in grouped), tuple(grouped)


def register_functions(spark: SparkSession, functions: Mapping[str, Any]) -> None:
    """Make functions known to a session; workers need not find the modules that define them."""
    for name, function in functions.items():
        if isinstance(function, str):
            spark.sql(function)
            continue
        plain, *type_ = function if _is_pair(function) else (function,)
        module = sys.modules.get(getattr(plain, "__module__", ""))
        if module is not None:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        spark.udf.register(name, plain, *type_)


def _is_pair(function: object) -> bool:
    return isinstance(function, tuple) and len(function) == 2 and callable(function[0])


def _eval_type(function: object) -> int | None:
    """The kind that Spark gives to what udf() and pandas_udf() return; None for all else."""
    return getattr(function, "evalType", None)
