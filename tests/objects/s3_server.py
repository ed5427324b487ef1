"""An S3 server for tests: moto's, with conditional writes that happen one at a time, and failures.

    python tests/objects/s3_server.py PORT

It is run by the Python of an environment that has moto, which may be another one than that of the
tests. A PUT to `/_control` sets the failures (JSON):

    denied        all requests are refused, with the text of S3
    lost_answers  so many log entries are written, and answered as if they were not
    latency       seconds that every request takes longer

The answer, and that of a GET, has the number of requests so far.
"""

import json
import sys
import time
from threading import Lock
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple

DENIED = """<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SignatureDoesNotMatch</Code><Message>The request signature we calculated does not match
</Message><AWSAccessKeyId>{key}</AWSAccessKeyId><StringToSign>AWS4-HMAC-SHA256 {key}</StringToSign>
<SignatureProvided>{signature}</SignatureProvided></Error>"""


class Server:
    """moto with failures."""

    def __init__(self) -> None:
        self._store = DomainDispatcherApplication(create_backend_app)
        self._failures: dict[str, Any] = {}
        self._requests = 0
        self._writes = Lock()

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        """Answer a request."""
        if environ["PATH_INFO"] == "/_control":
            return self._controlled(environ, start)
        self._requests += 1
        time.sleep(self._failures.get("latency", 0))
        if self._failures.get("denied"):
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [_denied_text(environ.get("HTTP_AUTHORIZATION", "")).encode()]
        if environ["REQUEST_METHOD"] == "PUT":
            with self._writes:  # moto looks whether an object is there, and writes it later
                answer = list(self._store(environ, start))
                return self._lost_answer(environ, start) or answer
        return self._store(environ, start)

    def _lost_answer(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        is_entry = "_delta_log/" in environ["PATH_INFO"] and "HTTP_IF_NONE_MATCH" in environ
        if not is_entry or not self._failures.get("lost_answers"):
            return []
        self._failures["lost_answers"] -= 1
        start("500 Internal Server Error", [("Content-Type", "text/plain")])
        return [b"the answer is lost"]

    def _controlled(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        if environ["REQUEST_METHOD"] == "PUT":
            length = int(environ.get("CONTENT_LENGTH") or 0)
            self._failures = json.loads(environ["wsgi.input"].read(length) or b"{}")
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"requests": self._requests, **self._failures}).encode()]


def _denied_text(authorization: str) -> str:
    parts = dict(e.split("=", 1) for e in authorization.replace(",", " ").split() if "=" in e)
    key = parts.get("Credential", "").partition("/")[0]
    return DENIED.format(key=key, signature=parts.get("Signature", ""))


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_: Any) -> None:
        """Requests are counted, not told."""


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), Server(), threaded=True, request_handler=_Quiet)
