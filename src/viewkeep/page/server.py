"""The page, served: documents on demand, to browsers of this machine, or to those with a token.

    a request is answered if its Host is one of ours (a page elsewhere cannot make its name ours),
    it does not come from another site, and it has the token, where there is one

What reads the lake runs one request at a time; nothing that the page does changes the lake.
"""

import hmac
import json
import socket
from collections.abc import Callable, Collection
from ipaddress import ip_address
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import uvicorn  # type: ignore[import-not-found, unused-ignore]  # of the extra viewkeep[page]
from starlette.applications import (  # type: ignore[import-not-found, unused-ignore]
    Starlette,
)
from starlette.concurrency import (  # type: ignore[import-not-found, unused-ignore]
    run_in_threadpool,
)
from starlette.requests import Request  # type: ignore[import-not-found, unused-ignore]
from starlette.responses import (  # type: ignore[import-not-found, unused-ignore]
    JSONResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route  # type: ignore[import-not-found, unused-ignore]

from viewkeep.errors import ViewkeepError, problem_of
from viewkeep.lake_reader import LakeReader
from viewkeep.page.documents import (
    answer_document,
    explanation_document,
    lake_document,
    table_document,
    view_document,
)
from viewkeep.page.html import content_policy, page_html

COOKIE = "viewkeep_token"
LONGEST = 100_000
"""The most bytes of a request's body."""
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_app(
    keeper: LakeReader,
    place: str,
    token: str = "",
    hosts: Collection[str] = LOCAL,
    playground: LakeReader | None = None,
    query_seconds: float | None = None,
) -> Starlette:
    """The page of a lake. `hosts` are the names that it answers to, all of them if it has a
    `token`, which browsers then have to bring. Queries that take long hold up nothing else if the
    `playground` has a reader of its own, and are ended after `query_seconds`."""
    lock = Lock()
    typed, typed_lock = (playground, Lock()) if playground is not None else (keeper, lock)

    def told(make: Callable[[], Any], lock: Lock = lock) -> Response:
        """A document, or what is wrong, in words."""
        try:
            with lock:
                return _safe(_json_response(make()))
        except ViewkeepError as error:
            return _problem(str(error), 400)
        except Exception as error:  # whatever a lake does, the page goes on
            return _problem(problem_of(error), 500)

    def guarded(handle: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            refusal = _refusal(request, token, hosts)
            return refusal if refusal is not None else await handle(request)

        return answer

    async def page(request: Request) -> Response:
        if token and request.query_params.get("token"):
            return _with_cookie(request, token)
        html = Response(page_html(), media_type="text/html")
        html.headers["Content-Security-Policy"] = f"{content_policy()}; frame-ancestors 'none'"
        return _safe(html)

    async def lake(request: Request) -> Response:
        return await run_in_threadpool(told, lambda: lake_document(keeper, place))

    async def view(request: Request) -> Response:
        name = request.path_params["name"]
        return await run_in_threadpool(told, lambda: view_document(keeper, name))

    async def table(request: Request) -> Response:
        name = request.path_params["name"]
        return await run_in_threadpool(told, lambda: table_document(keeper, name))

    async def explained(request: Request) -> Response:
        return await posted(request, explanation_document)

    async def answered(request: Request) -> Response:
        return await posted(
            request, lambda reader, sql: answer_document(reader, sql, query_seconds)
        )

    async def posted(request: Request, make: Callable[[LakeReader, str], Any]) -> Response:
        try:
            text = await _posted_text(request)
        except ViewkeepError as error:
            return _problem(str(error), 400)
        return await run_in_threadpool(told, lambda: make(typed, text), typed_lock)

    return Starlette(
        routes=[
            Route("/", guarded(page)),
            Route("/api/lake", guarded(lake)),
            Route("/api/view/{name:path}", guarded(view)),
            Route("/api/table/{name:path}", guarded(table)),
            Route("/api/explain", guarded(explained), methods=["POST"]),
            Route("/api/query", guarded(answered), methods=["POST"]),
        ]
    )


def serve(app: Starlette, host: str, port: int, started: Callable[[int], None]) -> None:
    """Serve the page until Ctrl-C; `started` is called with the port once it answers."""
    with _open_socket(host, port) as listening:
        config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False)
        _Server(config, lambda: started(listening.getsockname()[1])).run(sockets=[listening])


def _open_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        problem = f"cannot listen on {host}, port {port}: {error.strerror}"
        raise ViewkeepError(f"{problem}; --port 0 takes a free one") from None


class _Server(uvicorn.Server):  # type: ignore[misc, unused-ignore]  # Any, where it is missing
    def __init__(self, config: Any, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._started()


# --- who may ask ----------------------------------------------------------------------------------


def _refusal(request: Request, token: str, hosts: Collection[str]) -> Response | None:
    """Why a request is not answered; None if it is."""
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    if not token and host not in hosts:
        return _problem(f'this page is not called "{host[:100]}"', 421)
    if _is_from_elsewhere(request):
        return _problem("requests of other sites are not answered", 403)
    if token and not _has_token(request, token):
        return _problem("the token is missing: open the address that `viewkeep serve` printed", 401)
    return None


def _is_from_elsewhere(request: Request) -> bool:
    """Whether another site asks. Going to the page by a link is allowed; documents are asked for by
    its own script, which says so in a header that others cannot set."""
    is_page = request.url.path == "/" and request.method in ("GET", "HEAD")
    if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not is_page:
        return True
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host", ""):
        return True
    return not is_page and request.headers.get("x-viewkeep") != "1"


def _has_token(request: Request, token: str) -> bool:
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    given = [request.cookies.get(COOKIE, ""), bearer if scheme.lower() == "bearer" else ""]
    if request.url.path == "/":
        given.append(request.query_params.get("token", ""))
    return any(hmac.compare_digest(each.encode(), token.encode()) for each in given)


def _with_cookie(request: Request, token: str) -> Response:
    """Remember the token, and take it out of the address."""
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
    return _safe(response)


async def _posted_text(request: Request) -> str:
    """The SQL of a request's body."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ViewkeepError('expected JSON, as {"sql": "SELECT ..."}')
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST:
            raise ViewkeepError(f"more than {LONGEST:,} bytes of SQL")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise ViewkeepError("the body is not JSON") from None
    text = document.get("sql") if isinstance(document, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise ViewkeepError("type a query first")
    return text


# --- answers --------------------------------------------------------------------------------------


def _json_response(document: Any) -> Response:
    return Response(json.dumps(document, default=str), media_type="application/json")


def _problem(text: str, status: int) -> Response:
    return _safe(JSONResponse({"error": text}, status_code=status))


def _safe(response: Response) -> Response:
    """Headers that keep answers out of caches, frames and wrong hands."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return response
