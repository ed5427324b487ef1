"""Makes docs/files.md: every file of the code, what it holds, and the names that it defines."""

import ast
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "files.md"
PACKAGE = PAGE.parent.parent / "src" / "viewkeep"

HEAD = """\
# Files

Every file of `src/viewkeep/`: what it holds, in the first words of the file itself, and the classes
and functions that it defines for others; `make docs` makes this page.
[Architecture](architecture.md)
tells which part may import which, and the order in which they work.
"""


def page() -> str:
    """The whole page: a section for each folder, that of the package itself first."""
    files = sorted(PACKAGE.rglob("*.py"), key=lambda f: (f.parent, f.stem != "__init__", f.stem))
    sections: dict[str, list[str]] = {}
    for file in files:
        folder = file.parent.relative_to(PACKAGE).as_posix()
        sections.setdefault("viewkeep/" if folder == "." else f"{folder}/", []).append(_line(file))
    return "\n".join([HEAD, *(_section(*each) for each in sections.items())])


def _section(folder: str, lines: list[str]) -> str:
    return "\n".join([f"## `{folder}`\n", *filter(None, lines), ""])


def _line(file: Path) -> str:
    """What a file holds; of a folder's `__init__`, what the folder holds."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    about = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
    if file.stem == "__init__":
        return f"{about}\n" if about else ""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    defined = dict.fromkeys(each.name for each in tree.body if isinstance(each, kinds))
    names = ", ".join(f"`{each}`" for each in defined if not each.startswith("_"))
    return f"- **`{file.name}`** {about}" + (f" Defines {names}." if names else "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
