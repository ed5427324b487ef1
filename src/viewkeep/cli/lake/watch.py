"""`viewkeep watch`: views kept fresh until the command is stopped."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Annotated, Any

import typer

from viewkeep.cli.lake.functions import Functions, load_functions
from viewkeep.cli.lake.open_lake import AsJson, EngineName, LakePath, open_keeper
from viewkeep.cli.screen import write
from viewkeep.errors import ViewkeepError

PLACE = "127.0.0.1"


def watch(
    lag: Annotated[
        str,
        typer.Option(
            help="How far views may fall behind that have no lag of their own.", metavar="TIME"
        ),
    ] = "1s",
    serve: Annotated[
        int | None,
        typer.Option(
            help="Serve figures for Prometheus at this port of this machine, under /metrics.",
            metavar="PORT",
            show_default=False,
        ),
    ] = None,
    ingest: Annotated[
        list[str] | None,
        typer.Option(
            help="Take in files of changes of a folder (see `viewkeep ingest`).",
            metavar="TABLE=FOLDER",
        ),
    ] = None,
    debezium: Annotated[
        list[str] | None,
        typer.Option(help="The same with Debezium's envelopes.", metavar="TABLE=FOLDER"),
    ] = None,
    backend: EngineName = "auto",
    lake: LakePath = None,
    as_json: AsJson = False,
    functions: Functions = None,
) -> None:
    """Keep views fresh: refresh those that have fallen behind, until Ctrl-C or SIGTERM.

    A line for every refresh and every failure. A view that fails is tried again after a while,
    and the others stay fresh. Of several watchers of a lake one works; when it is gone, the next
    takes over.

    **Examples**

    ```text
    viewkeep watch --lag 10s

    viewkeep watch --json --serve 9100

    viewkeep watch --ingest orders=/data/incoming/orders
    ```
    """
    folders = {"ingest": _folders_by_table(ingest), "debezium": _folders_by_table(debezium)}
    stop, figures = Event(), dict[str, Any]()
    print_report = _print_report_json if as_json else _print_report
    server = _metrics_server(serve, figures)
    user_functions = load_functions(functions)
    keeper_block = open_keeper(lake, "watching ...", backend=backend, functions=user_functions)
    with keeper_block as keeper, stopped_by_signals(stop), server:
        keeper.watch(lag, stop, print_report, figures, **folders)


def _folders_by_table(options: list[str] | None) -> dict[str, str]:
    """Folders by table."""
    pairs = [each.partition("=") for each in options or ()]
    for table, _, folder in pairs:
        if not table or not folder:
            raise ViewkeepError(f'"{table}" is no source; name a table and a folder: orders=/in')
    tables = [table for table, _, _ in pairs]
    twice = next((table for table in tables if tables.count(table) > 1), None)
    if twice is not None:
        raise ViewkeepError(f'table "{twice}" has two folders; one watcher follows one of them')
    return {table: folder for table, _, folder in pairs}


def _print_report(report: Any) -> None:
    from viewkeep.report.amounts import duration
    from viewkeep.report.lake.intake import ingest_text
    from viewkeep.report.live.maintenance import count_text

    is_intake = hasattr(report, "waiting")
    if report.error:
        name = report.table if is_intake else report.view
        place = f"{name}: " if name else ""
        write(f"{place}{report.error}\n", stderr=True)
        return
    if is_intake:
        write(f"{ingest_text(report)}\n")
        return
    outcome = f"{count_text(report.rows_changed, 'row')} changed"
    what = "computed anew" if report.from_scratch else outcome
    write(f"{report.view}: version {report.version}, {what}, {duration(report.seconds)}\n")


def _print_report_json(report: Any) -> None:
    from viewkeep.report.lake.intake import ingest_json
    from viewkeep.report.lake.refreshes import report_json

    document = ingest_json(report) if hasattr(report, "waiting") else report_json(report)
    write(json.dumps(document, default=str) + "\n")


@contextmanager
def stopped_by_signals(stop: Event) -> Iterator[None]:
    """A block in which Ctrl-C and SIGTERM end the work after the refresh that runs."""
    kinds = (signal.SIGINT, signal.SIGTERM)
    earlier = {kind: signal.signal(kind, lambda *_: stop.set()) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in earlier.items():
            signal.signal(kind, handler)


@contextmanager
def _metrics_server(port: int | None, figures: dict[str, Any]) -> Iterator[None]:
    if port is None:
        yield
        return
    from viewkeep.report.lake.metrics import metrics_text

    handler = _metrics_handler(lambda: metrics_text(dict(figures)))
    try:
        server = ThreadingHTTPServer((PLACE, port), handler)
    except (OSError, OverflowError) as error:
        problem = getattr(error, "strerror", None) or "a port is a number up to 65535"
        raise ViewkeepError(f"cannot serve figures at port {port}: {problem}") from None
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _metrics_handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_metrics = self.path.partition("?")[0] == "/metrics"
            body = (text() if is_metrics else "see /metrics\n").encode()
            self.send_response(200 if is_metrics else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Nothing is told of requests."""

    return Handler
