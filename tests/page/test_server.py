"""The server of the page: who is answered, and that nothing else gets through."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

import viewkeep as vk
from tests.cli.lakes import viewkeep
from tests.page.lakes import hostile_lake

pytest.importorskip("starlette", reason="starlette is not installed: make setup")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: make setup")

OWN = {"X-Viewkeep": "1"}


@contextmanager
def served(keeper: vk.Keeper, token: str = "", query_seconds: float | None = None) -> Iterator[int]:
    """The port of a page, in a thread of its own."""
    import uvicorn

    from viewkeep.page.server import make_app

    app = make_app(keeper, "/data/shop", token, query_seconds=query_seconds)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> vk.Keeper:
    return hostile_lake(tmp_path_factory.mktemp("lake") / "shop")


@pytest.fixture(scope="module")
def port(keeper: vk.Keeper) -> Iterator[int]:
    with served(keeper) as port:
        yield port


def ask(
    port: int, path: str, method: str = "GET", body: Any = None, **headers: str
) -> tuple[HTTPResponse, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(method, path, skip_host="Host" in named)
    text = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    if body is not None:
        named = {"Content-Length": str(len(text)), "Content-Type": "application/json", **named}
    for name, value in named.items():
        connection.putheader(name, value)
    connection.endheaders(text)
    response = connection.getresponse()
    answer = response.read().decode()
    connection.close()
    return response, answer


def test_documents_are_told_to_the_page(port: int) -> None:
    response, _ = ask(port, "/")
    assert response.status == 200
    assert "frame-ancestors 'none'" in str(response.getheader("Content-Security-Policy"))
    for path in ("/api/lake", "/api/view/cost", "/api/table/parts"):
        response, answer = ask(port, path, **OWN)
        assert (response.status, response.getheader("Content-Type")) == (200, "application/json")
        assert response.getheader("X-Content-Type-Options") == "nosniff"
        assert response.getheader("Access-Control-Allow-Origin") is None
        json.loads(answer)
    response, answer = ask(port, "/api/explain", "POST", {"sql": "SELECT did FROM dear"}, **OWN)
    assert json.loads(answer)["analysis"]["status"] == "analyzed"
    response, answer = ask(port, "/api/query", "POST", {"sql": "SELECT did FROM dear"}, **OWN)
    assert len(json.loads(answer)["rows"]) == 2


def test_a_query_of_the_playground_is_ended_when_its_time_is_over(keeper: vk.Keeper) -> None:
    tables = ", ".join(f"parts p{i}" for i in range(30))
    endless = f"SELECT sum({' + '.join(f'p{i}.price' for i in range(30))}) AS s FROM {tables}"
    with served(keeper, query_seconds=0.5) as port:
        response, answer = ask(port, "/api/query", "POST", {"sql": endless}, **OWN)
        assert (response.status, "longer than 0.5 s" in answer) == (400, True), answer
        response, _ = ask(port, "/api/query", "POST", {"sql": "SELECT 1 AS one"}, **OWN)
        assert response.status == 200


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/lake", {}),  # an <img> or a form of another site
        ("/api/lake", {**OWN, "Host": "evil.example"}),  # a name that now leads here
        ("/", {"Host": "evil.example"}),
        ("/api/lake", {**OWN, "Origin": "https://evil.example"}),
        ("/api/lake", {**OWN, "Origin": "null"}),
        ("/api/lake", {**OWN, "Sec_Fetch_Site": "cross-site"}),
        ("/api/lake", {**OWN, "Sec_Fetch_Site": "same-site"}),
    ],
)
def test_other_sites_are_refused(port: int, path: str, headers: dict[str, str]) -> None:
    response, answer = ask(port, path, **headers)
    assert response.status in (403, 421)
    assert "cost" not in answer


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Type": "application/json"},
        {**OWN, "Content_Type": "text/plain"},
        {**OWN, "Content_Type": "application/x-www-form-urlencoded"},
        {**OWN, "Origin": "https://evil.example"},
    ],
)
def test_forms_of_other_sites_run_nothing(port: int, headers: dict[str, str]) -> None:
    response, answer = ask(port, "/api/query", "POST", {"sql": "SELECT did FROM dear"}, **headers)
    assert response.status in (400, 403)
    assert "rows" not in answer


@pytest.mark.parametrize(
    "path",
    [
        "/api/view/../../../etc/passwd",
        "/api/view/..%2f..%2f..%2fetc%2fpasswd",
        "/api/table/%2fetc%2fpasswd",
        "/api/table/parts%00",
        "/api/table/parts%60%20UNION%20SELECT%201",
        "/api/view/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/assets/../server.py",
        "/..%2f..%2fpyproject.toml",
        "/_viewkeep",
    ],
)
def test_paths_lead_nowhere_else(port: int, path: str) -> None:
    response, answer = ask(port, path, **OWN)
    assert response.status in (400, 404)
    assert "root:" not in answer
    assert str(response.getheader("Content-Type")).startswith(("application/json", "text/plain"))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"sql": 3}', b'{"sql": "  "}', b"[" * 50_000, b"x" * 200_000]
    + [json.dumps({"sql": each}).encode() for each in ("DROP TABLE t", "SELECT no FROM uses")],
)  # fmt: skip
def test_bodies_that_are_not_right_are_refused(port: int, keeper: vk.Keeper, body: bytes) -> None:
    before = keeper.version("parts")
    for path in ("/api/explain", "/api/query"):
        response, answer = ask(port, path, "POST", body, **OWN)
        assert (response.status, "error" in json.loads(answer)) == (400, True)
    assert keeper.version("parts") == before


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_but_reading_is_served(port: int, method: str) -> None:
    assert ask(port, "/api/lake", method, {}, **OWN)[0].status == 405
    assert ask(port, "/api/query", "GET", **OWN)[0].status == 405


def test_a_token_is_asked_for(keeper: vk.Keeper) -> None:
    with served(keeper, "secret") as port:
        for headers in ({}, {"Cookie": "viewkeep_token=secre"}, {"Authorization": "Bearer x"}):
            assert ask(port, "/api/lake", **OWN, **headers)[0].status == 401
            assert ask(port, "/", **headers)[0].status == 401
        assert ask(port, "/api/lake?token=secret", **OWN)[0].status == 401
        response, _ = ask(port, "/?token=secret", Host="lake.example:8585")
        cookie = str(response.getheader("Set-Cookie"))
        assert (response.status, response.getheader("Location")) == (303, "/")
        assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
        own = {**OWN, "Cookie": cookie.partition(";")[0]}
        assert ask(port, "/api/lake", **own)[0].status == 200
        assert ask(port, "/api/lake", **own, Origin="https://evil.example")[0].status == 403
        assert ask(port, "/api/lake", **OWN, Authorization="Bearer secret")[0].status == 200


def test_a_lake_that_breaks_is_told(tmp_path: Path) -> None:
    keeper = hostile_lake(tmp_path / "lake")
    for path in (tmp_path / "lake" / "parts").rglob("*.parquet"):
        path.unlink()
    with served(keeper) as port:
        assert ask(port, "/api/lake", **OWN)[0].status == 200
        response, answer = ask(port, "/api/table/parts", **OWN)
        assert response.status == 200
        assert "error" in json.loads(answer)["rows"]


# --- the command ----------------------------------------------------------------------------------


@contextmanager
def served_by_command(lake: Path, *options: str) -> Iterator[str]:
    """The address that the command prints once it answers."""
    command = [
        sys.executable,
        "-m",
        "viewkeep",
        "serve",
        "--port",
        "0",
        "--lake",
        str(lake),
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=60)


def place_of(keeper: vk.Keeper) -> Path:
    return Path(keeper.describe_views("cost")[0].location).parent


def test_the_command_serves_this_machine(keeper: vk.Keeper) -> None:
    with served_by_command(place_of(keeper)) as address:
        assert address.startswith("http://127.0.0.1:")
        port = int(address.rstrip("/").rpartition(":")[2])
        assert ask(port, "/api/view/cost", **OWN)[0].status == 200


def test_the_command_makes_a_token_for_other_machines(keeper: vk.Keeper) -> None:
    with served_by_command(place_of(keeper), "--host", "0.0.0.0") as address:
        start, _, token = address.partition("/?token=")
        assert len(token) >= 32
        port = int(start.rpartition(":")[2])
        assert ask(port, "/", Host="lake.example")[0].status == 401
        assert ask(port, f"/?token={token}", Host="lake.example")[0].status == 303
    answer = viewkeep("serve", "--host", "0.0.0.0", "--token", "", "--lake", place_of(keeper))
    assert (answer.code, "would let everybody in" in answer.err) == (2, True)
    answer = viewkeep("serve", "--lake", place_of(keeper) / "nothing")
    assert (answer.code, "there is no lake" in answer.err) == (2, True)


def test_a_port_that_is_taken_is_told(keeper: vk.Keeper, port: int) -> None:
    answer = viewkeep("serve", "--port", str(port), "--lake", place_of(keeper))
    assert (answer.code, f"cannot listen on 127.0.0.1, port {port}" in answer.err) == (2, True)
