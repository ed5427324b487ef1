"""`viewkeep refresh`, `status`, `history`, `verify` and `vacuum`: views kept fresh and right."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeep.cli.lake.functions import Functions, load_functions
from viewkeep.cli.lake.names import complete_view
from viewkeep.cli.lake.open_lake import (
    FAILED,
    AsJson,
    AsOf,
    EngineName,
    LakePath,
    open_keeper,
    print_answer,
)

if TYPE_CHECKING:
    from viewkeep.keeper import Keeper

Views = Annotated[
    list[str] | None,
    typer.Argument(
        help="Names of views; by default all.", autocompletion=complete_view, show_default=False
    ),
]


def refresh(
    views: Views = None,
    plan: Annotated[
        bool,
        typer.Option("--plan", metavar="", help="Tell what would be done, and why; do nothing."),
    ] = False,
    as_of: AsOf = None,
    backend: EngineName = "auto",
    lake: LakePath = None,
    as_json: AsJson = False,
    functions: Functions = None,
) -> None:
    """Bring views up to date with their tables.

    All views of one refresh reflect the same versions of the tables; views that others read come
    first. A view that fails leaves the others fresh. Exit code 1 if one failed.

    **Examples**

    ```text
    viewkeep refresh

    viewkeep refresh cost --json

    viewkeep refresh --plan

    viewkeep refresh --as-of 2026-05-01
    ```
    """
    from viewkeep.report.lake.refreshes import refresh_json, refresh_page
    from viewkeep.report.lake.stages import stages_json, stages_page

    user_functions = load_functions(functions)
    if plan:
        with open_keeper(lake, "planning ...", backend=backend, functions=user_functions) as keeper:
            stages = keeper.plan(*(views or ()), as_of=as_of)
        print_answer(as_json, lambda: stages_json(stages), lambda: stages_page(stages))
        return
    with open_keeper(lake, "refreshing ...", backend=backend, functions=user_functions) as keeper:
        reports = _refresh_reports(keeper, views or (), as_of)
    print_answer(as_json, lambda: refresh_json(reports), lambda: refresh_page(reports))
    if any(each.error for each in reports):
        raise typer.Exit(FAILED)


def status(
    views: Views = None,
    check: Annotated[
        bool, typer.Option("--check", metavar="", help="Exit with 1 unless all views are fresh.")
    ] = False,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Tell how fresh views are: changes they have not seen, and what the last refresh took.

    The speed-up is the time of the last refresh that computed the view anew over that of the last
    one that brought changes in, where there was one of each. Below the table stand what is wrong,
    which strategy would have been much faster for views whose refreshes take long, and the heavy
    values of views in heavy and light parts. Exit code 1 if a view is broken.

    **Examples**

    ```text
    viewkeep status --lake /data/lake

    viewkeep status --check || viewkeep refresh
    ```
    """
    from viewkeep.report.lake.freshness import status_json, status_page

    with open_keeper(lake, "reading ...") as keeper:
        statuses = keeper.status(*(views or ()))
    print_answer(as_json, lambda: status_json(statuses), lambda: status_page(statuses))
    if any(each.problem or (check and not each.is_fresh) for each in statuses):
        raise typer.Exit(FAILED)


def history(
    view: Annotated[
        str,
        typer.Argument(
            help="Name of a view.",
            autocompletion=complete_view,
            show_default=False,
        ),
    ],
    limit: Annotated[
        int, typer.Option(help="So many refreshes; 0 is all.", metavar="N", min=0)
    ] = 20,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """List the refreshes of a view, newest first.

    **Example**

    ```text
    viewkeep history cost --limit 5
    ```
    """
    from viewkeep.report.lake.refreshes import history_json, history_page

    with open_keeper(lake, "reading ...") as keeper:
        reports = keeper.history(view)
    recent = reports[:limit] if limit else reports
    print_answer(
        as_json,
        lambda: history_json(view, recent),
        lambda: history_page(view, recent, len(reports) - len(recent)),
    )


def verify(
    views: Views = None,
    lake: LakePath = None,
    as_json: AsJson = False,
    functions: Functions = None,
) -> None:
    """Compare views with their queries, computed anew at the versions that the views reflect.

    Exit code 1 if one differs; the rows that do are listed.

    **Examples**

    ```text
    viewkeep verify

    viewkeep verify cost --json
    ```
    """
    from viewkeep.report.lake.verification import verification_json, verification_page

    user_functions = load_functions(functions)
    with open_keeper(lake, "comparing ...", functions=user_functions) as keeper:
        verifications = [keeper.verify(name) for name in views or keeper.views]
    print_answer(
        as_json, lambda: verification_json(verifications), lambda: verification_page(verifications)
    )
    if not all(each.ok for each in verifications):
        raise typer.Exit(FAILED)


def vacuum(
    hours: Annotated[
        float,
        typer.Option(help="Keep what was current in the last N hours.", metavar="N", min=0),
    ] = 168,
    force: Annotated[
        bool,
        typer.Option("--force", metavar="", help="Allow fewer than 24 hours."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Only tell what would be removed.")
    ] = False,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Remove files that no version of the last hours needs, nor any view that is behind.

    Older versions can then no longer be read. Files that a writer may be about to commit stay.

    **Examples**

    ```text
    viewkeep vacuum --dry-run

    viewkeep vacuum --hours 24
    ```
    """
    from viewkeep.report.lake.definitions import vacuum_json, vacuum_page

    with open_keeper(lake, "removing ...") as keeper:
        files = keeper.vacuum(hours, dry_run, force)
    print_answer(as_json, lambda: vacuum_json(files, dry_run), lambda: vacuum_page(files, dry_run))


def _refresh_reports(keeper: "Keeper", views: Sequence[str], as_of: str | None) -> Sequence[Any]:
    """The reports of all views, also of those that failed."""
    from viewkeep.keeper import RefreshError

    try:
        return keeper.refresh(*views, as_of=as_of)
    except RefreshError as error:
        return error.reports
