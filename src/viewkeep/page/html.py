"""The one file that draws documents: markup, style and script together, nothing from elsewhere."""

import json
import re
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

_PLACE = re.compile(r"\{(policy|style|data|script)\}")


def page_html(document: Any = None) -> str:
    """The page with a document in it, or one that asks its server for documents.

    >>> "</script><b>" in page_html({"name": "</script><b>"})
    False
    """
    parts = {
        "policy": content_policy(),
        "style": _asset("page.css"),
        "data": _json_in_markup(document),
        "script": _asset("page.js"),
    }
    return _PLACE.sub(lambda place: parts[place[1]], _asset("page.html"))


@lru_cache(maxsize=1)
def content_policy() -> str:
    """What the page may do: run its own script, show its own style and pictures in it, and ask the
    server that it came from."""
    style, script = map(_hash_source, (_asset("page.css"), _asset("page.js")))
    rules = (
        "default-src 'none'",
        f"style-src {style}",
        f"script-src {script}",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _hash_source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _json_in_markup(value: Any) -> str:
    """JSON in which nothing ends the element around it."""
    text = json.dumps(value, default=str, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return (files("viewkeep.page") / "assets" / name).read_text(encoding="utf-8")
