"""Builds the source distribution and the wheel, and tries the wheel as its users have it.

    python scripts/test_wheel.py                all extras, with the versions of requirements.lock
    python scripts/test_wheel.py lake page      some of them ("core" is viewkeep without extras)
    python scripts/test_wheel.py --newest       with the newest versions that pip finds

The wheel is made from the source distribution, so that both are known to be whole. Each extra has
a new environment with nothing else in it, in which the examples of the README, the commands and
what the extra is for are run. What needs Java is left out, with a word, where there is none.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
IN_SOURCES = (
    *("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile"),
    *("requirements.lock", "mkdocs.yml", "conftest.py", "src/viewkeep/py.typed"),
    *("tests/conftest.py", "tests/golden/", "docs/architecture.md", "docs/make_examples.py"),
    *("bench/keeper.py", "bench/tpcds/", "examples/demo.py", "scripts/site_hooks.py"),
)
"""Files and folders that whoever packages or tests Viewkeep needs."""
IN_WHEEL = ("viewkeep/__init__.py", "viewkeep/py.typed", "viewkeep/page/assets/page.html")
_EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class WheelError(Exception):
    """Something is missing, or does not work."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and an empty folder to work in."""

    folder: Path
    work: Path

    def python(self, code: str) -> str:
        """What code prints."""
        return self.run("python", "-c", textwrap.dedent(code))

    def run(self, program: str, *arguments: str) -> str:
        """What a program of the environment prints; an error if it fails."""
        return _run(str(self.folder / "bin" / program), *arguments, cwd=self.work)


def main() -> None:
    """Build, look into both files, and try each extra."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=f"of {', '.join(SMOKES)}")
    parser.add_argument("--newest", action="store_true", help="versions: not those of the lock")
    options = parser.parse_args()
    unknown = set(options.extras) - set(SMOKES)
    if unknown:
        parser.error(f"no such extra: {', '.join(sorted(unknown))}")
    try:
        with TemporaryDirectory(prefix="viewkeep-dist-") as folder:
            wheel = build_distributions(Path(folder))
            for extra in options.extras or SMOKES:
                try_extra(extra, wheel, options.newest)
    except WheelError as error:
        sys.exit(f"error: {error}")
    print("the wheel works")


def build_distributions(folder: Path) -> Path:
    """Both distributions, complete; the wheel."""
    print("building ...", flush=True)
    _run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT), cwd=ROOT)
    [sources], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    with tarfile.open(sources) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    _check_contents(sources, names, IN_SOURCES)
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    _check_contents(wheel, names, IN_WHEEL)
    strangers = {name.partition("/")[0] for name in names if not name.startswith("viewkeep")}
    if strangers:
        raise WheelError(f"{wheel.name} would install {', '.join(sorted(strangers))}")
    return wheel


def _check_contents(file: Path, names: list[str], needed: tuple[str, ...]) -> None:
    missing = [each for each in needed if not any(name.startswith(each) for name in names)]
    if missing:
        raise WheelError(f"{file.name} lacks {', '.join(missing)}")
    print(f"  {file.name}: {len(names):,} files, {file.stat().st_size / 1e6:.1f} MB", flush=True)


def try_extra(extra: str, wheel: Path, newest: bool) -> None:
    """Install the wheel with an extra into a new environment, and run what it is for."""
    with _environment() as environment:
        requirement = str(wheel) if extra == "core" else f"{wheel}[{extra}]"
        versions = () if newest else ("--constraint", str(ROOT / "requirements.lock"))
        print(f"viewkeep[{extra}]" if extra != "core" else "viewkeep", flush=True)
        quiet = ("--quiet", "--disable-pip-version-check")
        environment.run("python", "-m", "pip", "install", *quiet, *versions, requirement)
        environment.run("python", "-m", "pip", "check")
        for smoke in SMOKES[extra]:
            print(f"  {smoke.__doc__}", end=" ... ", flush=True)
            print(smoke(environment) or "ok", flush=True)


@contextmanager
def _environment() -> Iterator[Environment]:
    with TemporaryDirectory(prefix="viewkeep-wheel-") as name:
        folder, work = Path(name) / "venv", Path(name) / "work"
        venv.create(folder, with_pip=True)
        work.mkdir()
        yield Environment(folder, work)


def _run(*command: str, cwd: Path) -> str:
    run = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if run.returncode:
        words = " ".join(command)[:300]
        raise WheelError(f"{words}\n{run.stdout[-2000:]}{run.stderr[-4000:]}")
    return run.stdout


def _expect(found: str, expected: str) -> None:
    if found != expected:
        raise WheelError(f"expected\n{expected}\nfound\n{found}")


def _readme_example(number: int) -> tuple[str, str]:
    """An example of the README, and what it prints."""
    code, output = _EXAMPLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))[number]
    return code, output


# --- what is tried --------------------------------------------------------------------------------


def _try_command(environment: Environment) -> None:
    """viewkeep --version, viewkeep explain"""
    version = environment.python("import viewkeep; print(viewkeep.__version__)").strip()
    if version not in environment.run("viewkeep", "--version"):
        raise WheelError("the command and the library have different versions")
    explained = environment.run("viewkeep", "explain", "Q(a, b) = R(a) * S(a, b)")
    if "q-hierarchical" not in explained:
        raise WheelError(explained)


def _try_query(environment: Environment) -> None:
    """the README's query in one process"""
    code, output = _readme_example(1)
    _expect(environment.python(code), output)


def _try_sql(environment: Environment) -> None:
    """the same from SQL, in pure Python"""
    code = """
        import viewkeep as vk
        tables = {"r": vk.Table({"a": "int", "b": "int"}, key=["a"])}
        print(vk.from_sql("SELECT b, count(*) AS n FROM r GROUP BY b", tables))
        counted = vk.maintain("Q(b; count()) = R(a, b)", engine="reference")
        counted.update_batch("R", [(1, 7), (2, 7)])
        print(dict(counted.enumerate()))
    """
    if "{(7,): (2,)}" not in environment.python(code):
        raise WheelError(environment.python(code))


def _try_missing_lake(environment: Environment) -> None:
    """a lake says what is missing"""
    code = """
        import viewkeep as vk
        try:
            vk.Keeper
        except vk.MissingLibraryError as error:
            print(error)
    """
    if "pip install 'viewkeep[lake]'" not in environment.python(code):
        raise WheelError("vk.Keeper without its libraries does not say what to install")


def _try_lake(environment: Environment) -> None:
    """the README's lake"""
    code, output = _readme_example(0)
    _expect(environment.python(code), output)


def _try_project(environment: Environment) -> None:
    """a new project: up, test, verify, report"""
    environment.run("viewkeep", "new", "shop")
    for command in ("up", "test"):
        environment.run("viewkeep", command, "--project", "shop")
    for command in ("verify", "report"):
        environment.run("viewkeep", command, "--lake", "shop/lake")


def _try_page(environment: Environment) -> None:
    """viewkeep serve answers"""
    environment.run("viewkeep", "init", "served")
    code = """
        import subprocess, sys, urllib.request
        from pathlib import Path
        command = [Path(sys.executable).with_name("viewkeep"), "serve", "--port", "0"]
        server = subprocess.Popen([*command, "--lake", "served"], stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip()
            page = urllib.request.urlopen(address, timeout=30).read().decode()
            request = urllib.request.Request(address + "api/lake", headers={"X-Viewkeep": "1"})
            lake = urllib.request.urlopen(request, timeout=30).read().decode()
            print("<html" in page, '"views"' in lake)
        finally:
            server.terminate()
            server.wait(30)
    """
    _expect(environment.python(code), "True True\n")


def _try_compiled(environment: Environment) -> None:
    """a query in machine code"""
    code = """
        import viewkeep as vk
        triangles = vk.maintain("Q() = R(a, b) * S(b, c) * T(c, a)", engine="compiled")
        for name, row in (("R", (1, 2)), ("S", (2, 3)), ("T", (3, 1))):
            triangles.update(name, row)
        print(triangles.value())
    """
    _expect(environment.python(code), "1\n")


def _try_spark(environment: Environment) -> str | None:
    """a view computed and refreshed by Spark"""
    if shutil.which("java") is None:
        return "left out: there is no Java"
    code = """
        from pyspark.sql import SparkSession
        import viewkeep as vk
        spark = SparkSession.builder.master("local[1]").getOrCreate()
        keeper = vk.Keeper("lake_of_spark", spark, backend="spark")
        keeper.create_table("t", {"k": "int", "v": "int"}, key=["k"], rows=[(1, 2), (2, 3)])
        keeper.create_view("s", "SELECT v % 2 AS odd, sum(v) AS total FROM t GROUP BY v % 2")
        keeper.apply("t", updates=[{"k": 1, "v": 4}])
        keeper.refresh()
        print(sorted(map(tuple, keeper.read("s").collect())))
        spark.stop()
    """
    _expect(environment.python(code), "[(0, 4), (1, 3)]\n")
    return None


def _try_capture(environment: Environment) -> None:
    """psycopg is there for viewkeep capture"""
    environment.python("import psycopg, viewkeep.sources.postgres.capture")


Smoke = Callable[[Environment], str | None]
_CORE: tuple[Smoke, ...] = (_try_command, _try_query, _try_sql)
_LAKE: tuple[Smoke, ...] = (*_CORE, _try_lake, _try_project)
SMOKES: dict[str, tuple[Smoke, ...]] = {
    "core": (*_CORE, _try_missing_lake),
    "lake": _LAKE,
    "compiled": (*_CORE, _try_compiled, _try_missing_lake),
    "page": (*_LAKE, _try_page),
    "postgres": (*_LAKE, _try_capture),
    "spark": (*_LAKE, _try_spark),
    "all": (*_LAKE, _try_page, _try_compiled, _try_spark),
}
"""What is run for each extra."""

if __name__ == "__main__":
    main()
