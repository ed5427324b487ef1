"""`viewkeep view`: the views of a lake."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeep.cli.command import Command, group
from viewkeep.cli.lake.functions import Functions, load_functions
from viewkeep.cli.lake.names import complete_view
from viewkeep.cli.lake.open_lake import (
    AsJson,
    AsOf,
    EngineName,
    LakePath,
    open_keeper,
    print_answer,
    print_confirmation,
)
from viewkeep.cli.options import Shares, read_shares
from viewkeep.cli.source import read_argument

if TYPE_CHECKING:
    from viewkeep.keeper import Keeper

app = group(help="Make, list, show, repair and drop the views of a lake.")

Name = Annotated[
    str,
    typer.Argument(
        help="Name of the view.",
        autocompletion=complete_view,
        show_default=False,
    ),
]


@app.command("create", cls=Command)
def create_view(
    name: Name,
    sql: Annotated[
        str,
        typer.Argument(help="SQL, a file with it, or - for standard input.", show_default=False),
    ],
    strategy: Annotated[
        str,
        typer.Option(
            help="auto, id, tuple, viewtree, recursive, recursive-fixed, recursive-streams, "
            "epsilon or recompute.",
            metavar="NAME",
        ),
    ] = "auto",
    policy: Annotated[
        str, typer.Option(help="auto, incremental, strict or full.", metavar="NAME")
    ] = "auto",
    layout: Annotated[
        str, typer.Option(help="auto, copy-on-write or merge-on-read.", metavar="NAME")
    ] = "auto",
    replace: Annotated[
        bool, typer.Option("--replace", metavar="", help="Change the definition of a view.")
    ] = False,
    feed: Annotated[
        bool,
        typer.Option(
            "--feed/--no-feed", help="Keep a change data feed for other engines.", metavar=""
        ),
    ] = True,
    lag: Annotated[
        str,
        typer.Option(
            help="How far `viewkeep watch` lets it fall behind, as 10s or 1m; downstream: until a "
            "view that reads it is refreshed.",
            metavar="TIME",
            show_default=False,
        ),
    ] = "",
    share: Shares = None,
    lake: LakePath = None,
    as_json: AsJson = False,
    backend: EngineName = "auto",
    as_of: AsOf = None,
    functions: Functions = None,
) -> None:
    """Define a view over tables and other views, and compute it once.

    Policies: auto brings changes in where that is possible and less work than computing the view
    anew; incremental wherever it is possible; strict refuses views where it is not; full always
    computes anew.

    Layouts: copy-on-write, which auto means, writes files that hold changed rows anew;
    merge-on-read marks these rows in deletion vectors, which readers of the view must know.

    Of the strategies, auto takes the one that is expected to be the fastest for the changes that
    --share tells, or for a thousandth of each table.

    **Examples**

    ```text
    viewkeep view create cost cost.sql

    viewkeep view create cheap "SELECT pid, price FROM parts WHERE price < 10" \\
      --policy strict

    viewkeep view create sales sales.sql --share orders=0.01 --share parts=0

    viewkeep view create clean clean.sql --functions my_functions:FUNCTIONS
    ```
    """
    from viewkeep.report.lake.freshness import created_text
    from viewkeep.report.lake.refreshes import refresh_json

    source, user_functions, shares = (
        read_argument(sql),
        load_functions(functions),
        read_shares(share),
    )
    keeper_block = open_keeper(
        lake, f"computing {name} ...", backend=backend, functions=user_functions
    )
    with keeper_block as keeper, source.named_in_errors():
        from viewkeep.keeper import function_kinds  # of libraries that not everyone has

        scalar_functions, aggregate_functions = function_kinds(user_functions)
        report = keeper.create_view(
            *(name, source.text, strategy, policy, replace),
            functions=scalar_functions,
            aggregates=aggregate_functions,
            as_of=as_of,
            feed=feed,
            lag=lag,
            layout=layout,
            shares=shares,
        )
        [status] = keeper.status(name)
    print_answer(as_json, lambda: refresh_json([report]), lambda: created_text(report, status))


@app.command("list", cls=Command)
def list_views(lake: LakePath = None, as_json: AsJson = False) -> None:
    """List the views; `viewkeep status` tells how fresh they are.

    **Example**

    ```text
    viewkeep view list --lake /data/lake
    ```
    """
    from viewkeep.report.lake.definitions import views_json, views_page

    with open_keeper(lake, "reading ...") as keeper:
        views = keeper.describe_views()
    print_answer(as_json, lambda: views_json(views), lambda: views_page(views))


@app.command("show", cls=Command)
def show_view(
    name: Name,
    rows: Annotated[int, typer.Option(help="Also show so many rows.", metavar="N", min=0)] = 0,
    lake: LakePath = None,
    as_json: AsJson = False,
) -> None:
    """Show a view: its SQL, its columns, how fresh it is, and some of its rows.

    **Examples**

    ```text
    viewkeep view show cost

    viewkeep view show cost --rows 10
    ```
    """
    from viewkeep.report.lake.definitions import view_json, view_page
    from viewkeep.report.lake.freshness import status_json

    with open_keeper(lake, "reading ...") as keeper:
        [view], [status] = keeper.describe_views(name), keeper.status(name)
        first = _first_rows(keeper, name, rows) if rows else None
    print_answer(
        as_json,
        lambda: view_json(view, status_json([status]), first),
        lambda: view_page(view, status, first),
    )


@app.command(cls=Command)
def repair(
    name: Name, lake: LakePath = None, as_json: AsJson = False, functions: Functions = None
) -> None:
    """Compute a view anew, whatever happened to its table.

    A view whose strategy and policy are auto takes a strategy that is expected to be much faster,
    if there is one; `viewkeep status` and `viewkeep explain` tell.

    **Example**

    ```text
    viewkeep view repair cost
    ```
    """
    from viewkeep.report.lake.refreshes import refresh_json, refresh_page

    user_functions = load_functions(functions)
    with open_keeper(lake, f"computing {name} ...", functions=user_functions) as keeper:
        report = keeper.repair(name)
    print_answer(as_json, lambda: refresh_json([report]), lambda: refresh_page([report]))


@app.command("drop", cls=Command)
def drop_view(name: Name, lake: LakePath = None, as_json: AsJson = False) -> None:
    """Drop a view and remove its files.

    **Example**

    ```text
    viewkeep view drop cost
    ```
    """
    with open_keeper(lake, "dropping ...") as keeper:
        keeper.drop_view(name)
    print_confirmation(as_json, {"dropped": name}, f"dropped {name}")


def _first_rows(keeper: "Keeper", name: str, count: int) -> list[tuple[Any, ...]]:
    table = keeper.read(name, backend="duckdb").slice(0, count)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
