"""What `import viewkeep` gives and costs: all public names, none of the heavy libraries."""

import ast
import re
import resource
import statistics
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import viewkeep as vk

HEAVY = ("pyspark", "llvmlite", "numpy", "pandas", "pyarrow", "deltalake", "duckdb", "sqlglot")
ONLY_FOR_THE_COMMAND = ("rich", "typer")


def python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout


def loaded_by(code: str) -> set[str]:
    return set(python(f"{code}\nimport sys; print(*sys.modules)").split())


def cpu_seconds(code: str) -> float:
    """Processor time of a new Python, which other work on the machine hardly changes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    python(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def test_importing_viewkeep_loads_no_heavy_library() -> None:
    assert loaded_by("import viewkeep").isdisjoint(HEAVY + ONLY_FOR_THE_COMMAND)


def test_reading_a_query_loads_no_heavy_library() -> None:
    loaded = loaded_by("import viewkeep as vk; vk.parse('Q(a) = R(a, b)')")
    assert "viewkeep.query.notation.parse" in loaded
    assert loaded.isdisjoint(HEAVY + ONLY_FOR_THE_COMMAND)


def test_importing_viewkeep_costs_little() -> None:
    extra = [cpu_seconds("import viewkeep") - cpu_seconds("pass") for _ in range(7)]
    assert statistics.median(extra) < 0.3


@pytest.mark.parametrize("name", vk.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(vk, name) is not None
    assert name in dir(vk)


def test_type_checkers_see_the_names_that_exist_at_run_time() -> None:
    tree = ast.parse(Path(vk.__file__).read_text(encoding="utf-8"))
    (for_type_checkers,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in for_type_checkers.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == vk._MODULES


def test_the_version_is_that_of_the_installed_package() -> None:
    assert vk.__version__ == version("viewkeep")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        vk.analyse  # noqa: B018 - reading it is the test


@pytest.mark.parametrize(
    ("library", "name", "extra"),
    [("pyarrow", "Keeper", "lake"), ("deltalake", "Keeper", "lake")],
)
def test_a_missing_library_names_its_extra(library: str, name: str, extra: str) -> None:
    code = f"""
import sys
import tomllib
sys.modules[{library!r}] = None
import viewkeep as vk
try:
    vk.{name}
except vk.ViewkeepError as error:
    assert isinstance(error, ImportError)
    print(error)
"""
    told = f"viewkeep.{name} needs {library}, which is not installed: "
    assert python(code) == f"{told}pip install 'viewkeep[{extra}]'\n"


def test_every_optional_library_has_an_extra() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for library, extra in vk._EXTRAS.items():
        brought = [re.split(r"[<>=[]", each)[0] for each in extras[extra]]
        names = {"py4j": "pyspark", "yaml": "pyyaml"}  # who brings it, where that is not its name
        assert names.get(library, library) in brought
