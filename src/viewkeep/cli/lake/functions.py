"""`--functions MODULE:NAME`: user-defined functions that views may use."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeep.errors import ViewkeepError

_VARIABLE = "VIEWKEEP_FUNCTIONS"

Functions = Annotated[
    str | None,
    typer.Option(
        "--functions",
        envvar=_VARIABLE,
        help="User-defined functions, all of them deterministic: a dict in a Python module, from "
        "their names in SQL to (function, 'type'), udf(...), pandas_udf(...) or a CREATE TEMPORARY "
        "FUNCTION text.",
        metavar="MODULE:NAME",
        show_default=False,
    ),
]


def load_functions(reference: str | None) -> Mapping[str, Any]:
    """The functions that a reference names; modules are looked for in the current folder too."""
    if reference is None:
        return {}
    if find_spec("pyspark") is None:
        way_out = "only Spark computes them: pip install 'viewkeep[spark]'"
        raise _functions_refusal(reference, way_out)
    module_name, colon, name = reference.partition(":")
    if not (module_name and colon and name):
        raise _functions_refusal(
            reference, "give a module and a name in it, as my_functions:FUNCTIONS"
        )
    functions = getattr(_functions_module(reference, module_name), name, None)
    if functions is None:
        raise _functions_refusal(reference, f'module "{module_name}" has no "{name}"')
    if not isinstance(functions, Mapping) or not all(isinstance(each, str) for each in functions):
        kind = type(functions).__name__
        raise _functions_refusal(
            reference, f'"{name}" is {kind}, not a dict from names in SQL to functions'
        )
    return functions


def _functions_module(reference: str, name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except Exception as error:  # whatever the user's own module raises
        raise _functions_refusal(
            reference, f'module "{name}" cannot be imported ({error})'
        ) from error


def _functions_refusal(reference: str, problem: str) -> ViewkeepError:
    return ViewkeepError(f"--functions {reference}: {problem}")
