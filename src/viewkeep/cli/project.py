"""`viewkeep new`, `plan`, `up` and `test`: projects of files, and what they make of a lake."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from viewkeep.cli.lake.open_lake import (
    FAILED,
    AsJson,
    LakePath,
    open_keeper,
    print_answer,
    print_confirmation,
)
from viewkeep.cli.screen import show
from viewkeep.errors import ViewkeepError

if TYPE_CHECKING:
    from viewkeep.keeper import Keeper
    from viewkeep.project.checks import CheckResult
    from viewkeep.project.model import Project
    from viewkeep.project.plan import ProjectPlan

Folder = Annotated[
    str,
    typer.Option("--project", help="Folder of the project; by default the current one."),
]


def new(
    path: Annotated[str, typer.Argument(help="Folder of the new project.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Make a project that works: tables, views and tests in files.

    **Example**

    ```text
    viewkeep new shop && cd shop && viewkeep up
    ```
    """
    from viewkeep.project.new import new_project

    files = new_project(Path(path))
    text = f"{path}: {len(files)} files; next: cd {path} && viewkeep up"
    print_confirmation(as_json, {"project": path, "files": files}, text)


def plan(
    project: Folder = ".",
    is_check: Annotated[
        bool,
        typer.Option("--check", metavar="", help="Exit with 1 if the lake is to be changed."),
    ] = False,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Compare a project with its lake: what would be made, replaced, left and dropped, and why.

    A project is a folder with viewkeep.toml and SQL files, or a pipeline of Spark
    (spark-pipeline.yml) as it is. A view whose text alone has changed is left: queries are compared
    as algebra. Nothing is run.

    **Examples**

    ```text
    viewkeep plan

    viewkeep plan --project shop --json

    viewkeep plan --check || viewkeep up
    ```
    """
    from viewkeep.report.project.plan import project_plan_json, project_plan_page

    with _planned(project, lake, create=False) as (found, _):
        print_answer(as_json, lambda: project_plan_json(found), lambda: project_plan_page(found))
    if found.problems or (is_check and found.changes):
        raise typer.Exit(FAILED)


def up(
    project: Folder = ".",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", metavar="", help="Do not ask before something is lost.")
    ] = False,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Bring a lake to what a project says: make and replace tables and views, then refresh.

    Asks before anything is lost (a view that is dropped, columns that go). A run that was cut short
    is finished by the next one. Exit code 1 if a view could not be refreshed.

    **Examples**

    ```text
    viewkeep up

    viewkeep up --yes --json
    ```
    """
    from viewkeep.report.project.plan import project_plan_page, run_json, run_page

    with _planned(project, lake, create=False) as (found, _):
        if not as_json:
            show(project_plan_page(found, ""))
    if found.problems:
        first = found.problems[0]
        raise ViewkeepError(f'{first.kind} "{first.name}": {first.reason}')
    if found.destroying and not yes:
        _ask(found, as_json)
    with _planned(project, lake, create=True) as (now, keeper):
        if [s.name for s in now.destroying if s not in found.destroying] and not yes:
            raise ViewkeepError("the lake has changed meanwhile: look at the plan again")
        from viewkeep.project.run import run_plan

        run = run_plan(now, keeper)
    print_answer(as_json, lambda: run_json(run), lambda: run_page(run))
    if run.failed:
        raise typer.Exit(FAILED)


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of tests or files; by default all.", show_default=False),
    ] = None,
    project: Folder = ".",
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Run the tests of a project: queries that must give no rows, and unit tests of views.

    tests/*.sql are run over the lake; tests/*.yml have rows of tables, and the rows that a view of
    them must have, in a lake of their own. Exit code 1 if one fails.

    **Examples**

    ```text
    viewkeep test

    viewkeep test tests/sales.yml --json
    ```
    """
    from viewkeep.report.project.checks import checks_json, checks_page

    found = _project(project, lake)
    wanted = set(names or ())
    _check_test_names(found, wanted)
    results = list(_results(found, wanted))
    print_answer(as_json, lambda: checks_json(results), lambda: checks_page(results))
    if not all(each.passed for each in results):
        raise typer.Exit(FAILED)


def _results(project: "Project", wanted: set[str]) -> Iterator["CheckResult"]:
    from viewkeep.keeper import local_session
    from viewkeep.project.checks import run_assertion, run_unit_test

    spark = local_session if find_spec("pyspark") is not None else None
    for test in project.unit_tests:
        if not wanted or {test.name, test.file} & wanted:
            yield run_unit_test(test, project, spark)
    assertions = [a for a in project.assertions if not wanted or {a.name, a.file} & wanted]
    if assertions:
        with open_keeper(project.lake, "testing ...") as keeper:
            yield from [run_assertion(each, keeper) for each in assertions]


def _check_test_names(project: "Project", wanted: set[str]) -> None:
    pairs = [(each.name, each.file) for each in project.unit_tests]
    pairs += [(each.name, each.file) for each in project.assertions]
    known = {name for pair in pairs for name in pair}
    for name in sorted(wanted - known):
        raise ViewkeepError(f'there is no test "{name}" ({", ".join(sorted(known)) or "none yet"})')


def _ask(found: "ProjectPlan", as_json: bool) -> None:
    lost = "; ".join(f"{each.name}: {each.destroys}" for each in found.destroying)
    if as_json or not sys.stdin.isatty():
        raise ViewkeepError(f"this would be lost: {lost}. --yes goes on without asking")
    typer.confirm("Go on?", abort=True)


def _project(folder: str, lake: str | None) -> "Project":
    from viewkeep.project.read import read_project

    return read_project(Path(folder), lake)


@contextmanager
def _planned(
    folder: str, lake: str | None, create: bool
) -> Iterator[tuple["ProjectPlan", "Keeper"]]:
    """The plan of a project, and the keeper of its lake. A lake that is not there is made if
    `create` is true; else the plan is made beside an empty one."""
    found = _project(folder, lake)
    with TemporaryDirectory(prefix="viewkeep-plan-") as empty:
        is_new = "://" not in found.lake and not (Path(found.lake) / "_viewkeep").is_dir()
        place = empty if is_new and not create else found.lake
        doing = "working ..." if create else "planning ..."
        with open_keeper(place, doing, create=is_new) as keeper:
            from viewkeep.project.plan import plan_project

            yield plan_project(found, keeper, is_new), keeper
