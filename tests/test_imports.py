"""Every import of the package against the table of who may import whom."""

import ast
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from docs.make_files import PAGE, page

PACKAGE = Path(__file__).parent.parent / "src" / "viewkeep"
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "arguments": set(),
    "display": set(),
    "rings": set(),
    "query": set(),
    "sql": {"query"},
    "analysis": {"query", "display"},
    "plan": {"analysis", "query", "rings"},
    "diffs": {"analysis", "plan", "query", "display"},
    "changes": {"query", "rings"},
    "tables": {"changes", "query"},
    "lake": {"tables", "changes", "diffs", "sql", "query", "display"},
    "execute": {"diffs", "tables", "changes", "sql", "query"},
    "refresh": {"lake", "execute", "tables", "diffs", "changes", "query", "display"},
    "engine": {"plan", "query", "rings"},
    "reading": {"sql", "query"},
    "explain": {"reading", "analysis", "query"},
    "csv_input": {"changes", "query"},
    "sources": {"lake", "tables", "changes", "csv_input", "query"},
    "live_view": {
        *("maintainer", "refresh", "lake", "tables", "analysis", "sql", "query", "display"),
    },
    "lake_reader": {"refresh", "execute", "lake", "diffs", "query", "arguments", "display"},
    "keeper": {
        *("lake_reader", "live_view", "sources", "refresh", "execute", "lake"),
        *("query", "arguments"),
    },
    "options": {"engine", "plan", "rings"},
    "maintainer": {"options", "engine", "plan", "analysis", "query", "rings", "arguments"},
    "network": {
        *("maintainer", "options", "engine", "tables", "changes"),
        *("sql", "query", "rings", "arguments"),
    },
    "workload": {"maintainer", "options", "analysis", "query", "engine"},
    "stream": {"maintainer", "csv_input", "query"},
    "graph": {"maintainer"},
    "streaming": {"maintainer", "options", "plan", "query", "arguments"},
    "project": {
        *("keeper", "lake_reader", "explain", "csv_input"),
        *("refresh", "lake", "sql", "query"),
    },
    "report": {"analysis", "plan", "diffs", "lake", "refresh", "query", "project"},
    "page": {"lake_reader", "explain", "reading", "report", "query"},
    "cli": {
        *("keeper", "maintainer", "stream", "csv_input", "explain", "reading"),
        *("report", "project", "page"),
    },
    "__main__": {"cli"},
}
"""Besides these, a part may import itself and `errors`. Imports for type checkers count too."""

EXCEPTIONS = {
    ("maintainer.py", "viewkeep.workload.Workload"),
    ("maintainer.py", "viewkeep.network.sql_maintainer.SqlMaintainer"),
    ("maintainer.py", "viewkeep.network.sql_maintainer.maintain_sql"),
}
"""`maintain` makes a workload of several queries and a network of SQL, and these are made of
maintainers."""

RINGS_OF_THEIR_ELEMENTS = {"Multisets"}
"""A ring is named in the plural, and may have a class for its elements."""

LIBRARY_FENCES = {
    "sqlglot": ("sql/*",),
    "pyspark": ("execute/spark/*",),
    "deltalake": ("tables/*",),
    "pyiceberg": ("tables/iceberg/*",),
    "duckdb": ("execute/duckdb/*",),
    "openlineage": ("refresh/lineage.py",),
    "psycopg": ("sources/postgres/*",),
    "llvmlite": ("engine/compiled/llvm/*",),
    "numba": (),
    "rich": ("report/*", "cli/*"),
    "starlette": ("page/*",),
    "uvicorn": ("page/*",),
    "yaml": ("project/*",),
    "typer": ("cli/*",),
}
"""The only files that may import a library."""


def imported_names(source: str, module: str) -> Iterator[str]:
    """The dotted names a module imports anywhere in its text, relative ones made absolute."""
    package = ("viewkeep", *Path(module).parts[:-1])
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                parents = package[: len(package) - node.level + 1] if node.level else ()
                origin = ".".join((*parents, *filter(None, [node.module])))
                # `from viewkeep import x` may mean the part x, so the name is part of the import.
                yield from (f"{origin}.{alias.name}" for alias in node.names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str() as name), *_],
            ):
                yield name


def violations(source: str, module: str) -> list[str]:
    """The imports of a module that the tables above do not allow."""
    part = Path(module).parts[0].removesuffix(".py")
    allowed = {part, "errors"} | MAY_IMPORT.get(part, set())
    found: list[str] = []
    for name in imported_names(source, module):
        library, _, rest = name.partition(".")
        if (module, name) in EXCEPTIONS:
            continue
        if library == "viewkeep" and rest.split(".")[0] not in allowed:
            found.append(f"{module} imports {name}, but {part} may not")
        fences = LIBRARY_FENCES.get(library)
        if fences is not None and not any(fnmatch(module, fence) for fence in fences):
            found.append(f"{module} imports {name}, which only {', '.join(fences)} may")
    return found


@pytest.mark.parametrize("module", [m for m in MODULES if m != "__init__.py"])
def test_a_module_imports_only_what_its_part_may(module: str) -> None:
    assert Path(module).parts[0].removesuffix(".py") in MAY_IMPORT, "a part without a row above"
    assert violations((PACKAGE / module).read_text(encoding="utf-8"), module) == []


def test_the_package_itself_imports_no_part_when_it_is_loaded() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for_type_checkers = [node for node in tree.body if isinstance(node, ast.If)]
    assert [ast.unparse(node.test) for node in for_type_checkers] == ["TYPE_CHECKING"]
    tree.body.remove(for_type_checkers[0])
    loaded = {name.partition(".")[0] for name in imported_names(ast.unparse(tree), "__init__.py")}
    assert loaded == {"importlib", "typing"}


def test_modules_are_at_most_three_folders_deep() -> None:
    """A part, a family within it, and once a family within that: `engine/compiled/emit/`."""
    assert [module for module in MODULES if module.count("/") > 3] == []


def test_the_table_in_the_documentation_is_the_one_checked_here() -> None:
    page = PACKAGE.parent.parent / "docs" / "architecture.md"
    rows = re.findall(
        r"^\| `(\w+)(?:/|\.py)`(?: \(planned\))? \|.*\| (.*) \|$",
        page.read_text("utf-8"),
        re.MULTILINE,
    )
    assert {part: set(re.findall(r"\w+", imports)) for part, imports in rows} == MAY_IMPORT


def test_the_page_of_files_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`, and read what changed"


def test_every_file_says_what_it_holds() -> None:
    lines = [each for each in page().splitlines() if each.startswith("- **")]
    assert len(lines) == len([each for each in MODULES if not each.endswith("__init__.py")])
    assert [each for each in lines if re.match(r"- \*\*`\w+\.py`\*\* [A-Z`]", each) is None] == []


def test_the_table_of_imports_has_no_cycle_and_no_unknown_part() -> None:
    assert set(TopologicalSorter(MAY_IMPORT).static_order()) == set(MAY_IMPORT)


@pytest.mark.parametrize("part", sorted(MAY_IMPORT))
def test_every_grant_is_used(part: str) -> None:
    modules = [m for m in MODULES if Path(m).parts[0].removesuffix(".py") == part]
    imports = [
        name
        for module in modules
        for name in imported_names((PACKAGE / module).read_text(encoding="utf-8"), module)
    ]
    assert MAY_IMPORT[part] - {name.split(".")[1] for name in imports if "." in name} == set()


def public_names(source: str) -> set[str]:
    """The classes and functions that a module defines for others."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    defined = [node.name for node in ast.parse(source).body if isinstance(node, kinds)]
    return {name for name in defined if not name.startswith("_")}


def doubles(sources: Mapping[str, str]) -> list[str]:
    """Public names that two modules of a part define, and classes that differ in a plural s."""
    homes: dict[str, set[str]] = {}
    for module, source in sources.items():
        for name in public_names(source):
            homes.setdefault(name, set()).add(module)
    repeated = [name for name, modules in homes.items() if len(modules) > 1]
    plurals = [f"{name}s" for name in homes if name[0].isupper() and f"{name}s" in homes]
    return sorted({*repeated, *plurals} - RINGS_OF_THEIR_ELEMENTS)


@pytest.mark.parametrize("part", sorted({Path(m).parts[0] for m in MODULES}))
def test_no_two_public_names_of_a_part_are_alike(part: str) -> None:
    modules = [m for m in MODULES if Path(m).parts[0] == part]
    assert doubles({m: (PACKAGE / m).read_text(encoding="utf-8") for m in modules}) == []


def test_names_that_are_alike_are_found() -> None:
    assert doubles({"a": "class Keys: ...", "b": "class Keys: ..."}) == ["Keys"]
    assert doubles({"a": "class Round: ...\nclass Rounds: ..."}) == ["Rounds"]
    assert doubles({"a": "def find_rows(): ...", "b": "async def find_rows(): ..."}) == [
        "find_rows"
    ]
    assert doubles({"a": "class Key: ...\ndef _run(): ...", "b": "def keys(): ...\n_run = 1"}) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("analysis/widths.py", "from viewkeep.sql import from_sql"),
        ("analysis/widths.py", "import viewkeep.sql.parse"),
        ("analysis/widths.py", "from viewkeep import sql"),
        ("analysis/widths.py", "from ..sql import from_sql"),
        ("analysis/widths.py", "from .. import sql"),
        ("analysis/widths.py", "def late():\n    from viewkeep.sql import from_sql"),
        ("analysis/widths.py", "if TYPE_CHECKING:\n    from viewkeep.sql import from_sql"),
        ("analysis/widths.py", "import importlib\nimportlib.import_module('viewkeep.sql')"),
        ("query/notation/parse.py", "from viewkeep import parse"),
        ("query/notation/parse.py", "import viewkeep"),
        ("query/notation/parse.py", "import sqlglot.expressions"),
        ("engine/compiled/emit/maps.py", "import llvmlite.binding"),
        ("maintainer.py", "from viewkeep.execute import run"),
        ("cli/main.py", "from viewkeep.analysis import analyze"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("analysis/widths.py", "from viewkeep.query.conjunctive import Atom"),
        ("analysis/widths.py", "from viewkeep.errors import QueryError"),
        ("analysis/widths.py", "from . import bounds"),
        ("analysis/widths.py", "from .bounds import Bounds"),
        ("sql/parse.py", "import sqlglot"),
        ("engine/compiled/llvm/machine.py", "import llvmlite.binding"),
        ("cli/main.py", "from viewkeep.explain import explain"),
    ],
)
def test_an_allowed_import_is_not_reported(module: str, source: str) -> None:
    assert violations(source, module) == []
