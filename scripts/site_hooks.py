"""Hooks of `mkdocs build`: the README is the first page, and links to files of the repository that
are no pages are their text alone."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File  # type: ignore[import-not-found, unused-ignore]

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<!\!)\[([^\]]+)\]\(([^)\s]+)\)")
_IMAGE = re.compile(r"(!\[[^\]]*\]\()docs/")


def on_files(files: Any, config: Any) -> Any:
    """Add the README as the first page."""
    text = _IMAGE.sub(r"\1", (ROOT / "README.md").read_text(encoding="utf-8"))
    files.append(File.generated(config, "index.md", content=_LINK.sub(_link_of_readme, text)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Leave links to other files of the repository out."""
    depth = page.file.src_uri.count("/")
    return _LINK.sub(lambda link: _link_of_page(link, "../" * depth), markdown)


def _link_of_readme(link: re.Match[str]) -> str:
    target = link[2]
    if target.startswith("docs/"):
        return f"[{link[1]}]({target.removeprefix('docs/')})"
    return link[0] if target.startswith(("http", "#")) else link[1]


def _link_of_page(link: re.Match[str], up: str) -> str:
    """The link of a page that is `up` below the first one."""
    if link[2] in (f"{up}../README.md", "README.md"):
        return f"[{link[1]}]({up}index.md)"
    return link[1] if link[2].startswith(f"{up}../") else link[0]
