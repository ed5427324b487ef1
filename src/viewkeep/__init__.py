"""Viewkeep keeps the results of queries fresh while the data under them changes.

The public names are loaded when they are first used, so that `import viewkeep` is quick and needs
none of the optional libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewkeep import graph as graph
    from viewkeep import streaming as streaming
    from viewkeep.analysis import Analysis as Analysis
    from viewkeep.analysis import analyze as analyze
    from viewkeep.errors import ConstraintError as ConstraintError
    from viewkeep.errors import MissingLibraryError as MissingLibraryError
    from viewkeep.errors import ParseError as ParseError
    from viewkeep.errors import QueryError as QueryError
    from viewkeep.errors import RingError as RingError
    from viewkeep.errors import SchemaError as SchemaError
    from viewkeep.errors import UnsupportedError as UnsupportedError
    from viewkeep.errors import ViewkeepError as ViewkeepError
    from viewkeep.keeper import Keeper as Keeper
    from viewkeep.keeper import RefreshError as RefreshError
    from viewkeep.maintainer import Maintainer as Maintainer
    from viewkeep.maintainer import OutputChange as OutputChange
    from viewkeep.maintainer import maintain as maintain
    from viewkeep.network.sql_maintainer import SqlMaintainer as SqlMaintainer
    from viewkeep.query.aggregates import Aggregate as Aggregate
    from viewkeep.query.conjunctive import Atom as Atom
    from viewkeep.query.conjunctive import ConjunctiveQuery as ConjunctiveQuery
    from viewkeep.query.constraints import Constraints as Constraints
    from viewkeep.query.notation.parse import parse as parse
    from viewkeep.query.notation.parse import parse_many as parse_many
    from viewkeep.query.tables import Table as Table
    from viewkeep.rings import Relation as Relation
    from viewkeep.rings import Ring as Ring
    from viewkeep.sql import from_sql as from_sql
    from viewkeep.workload import Workload as Workload

    __version__: str

_MODULES = {
    "Aggregate": "viewkeep.query.aggregates",
    "Analysis": "viewkeep.analysis",
    "Atom": "viewkeep.query.conjunctive",
    "ConjunctiveQuery": "viewkeep.query.conjunctive",
    "ConstraintError": "viewkeep.errors",
    "Constraints": "viewkeep.query.constraints",
    "Keeper": "viewkeep.keeper",
    "Maintainer": "viewkeep.maintainer",
    "MissingLibraryError": "viewkeep.errors",
    "OutputChange": "viewkeep.maintainer",
    "ParseError": "viewkeep.errors",
    "QueryError": "viewkeep.errors",
    "RefreshError": "viewkeep.keeper",
    "Relation": "viewkeep.rings",
    "Ring": "viewkeep.rings",
    "RingError": "viewkeep.errors",
    "SchemaError": "viewkeep.errors",
    "SqlMaintainer": "viewkeep.network.sql_maintainer",
    "Table": "viewkeep.query.tables",
    "UnsupportedError": "viewkeep.errors",
    "ViewkeepError": "viewkeep.errors",
    "Workload": "viewkeep.workload",
    "analyze": "viewkeep.analysis",
    "from_sql": "viewkeep.sql",
    "graph": "viewkeep",
    "maintain": "viewkeep.maintainer",
    "parse": "viewkeep.query.notation.parse",
    "parse_many": "viewkeep.query.notation.parse",
    "streaming": "viewkeep",
}
"""Where each public name lives; the imports above repeat it for type checkers."""

_EXTRAS = {
    "deltalake": "lake",
    "duckdb": "lake",
    "llvmlite": "compiled",
    "numpy": "lake",
    "pandas": "spark",
    "psycopg": "postgres",
    "py4j": "spark",
    "pyarrow": "lake",
    "pyspark": "spark",
    "starlette": "page",
    "uvicorn": "page",
    "yaml": "lake",
}
"""The extra that brings a library which not everyone needs."""

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module("importlib.metadata").version("viewkeep")
    elif name in _MODULES:
        value = _load(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # so that the next look-up does not come here
    return value


def _load(name: str) -> object:
    """A public name from its module, or an error that tells which extra it needs."""
    home = _MODULES[name]
    is_module = home == __name__  # asking the package for it would come back here
    try:
        return import_module(f"{home}.{name}") if is_module else getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRAS:
            raise
        problem = f"viewkeep.{name} needs {library}, which is not installed"
        missing: Any = _load("MissingLibraryError")
        raise missing(f"{problem}: pip install 'viewkeep[{_EXTRAS[library]}]'") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
