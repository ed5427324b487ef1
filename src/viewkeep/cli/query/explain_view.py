"""`viewkeep explain` for a view of a lake: how it is kept, and its delta script."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from viewkeep.cli.lake.open_lake import find_lake, open_keeper
from viewkeep.cli.screen import show, write
from viewkeep.errors import ViewkeepError

if TYPE_CHECKING:
    from viewkeep.reading import Node
    from viewkeep.report.script.page import ScriptOptions

STRATEGIES_WITH_SECTIONS = ("id", "tuple")
"""Strategies whose scripts have a page of their own."""

_NAME = re.compile(r"[A-Za-z]\w*")


def view_of_lake(query: str, lake: str | None) -> str | None:
    """The lake whose view an argument names, else None.

    A plain name is never a query; in the folder of a lake it is also a folder, that of the view.
    """
    is_name = _NAME.fullmatch(query) is not None and not Path(query).is_file()
    return find_lake(lake) if is_name else None


def explain_view(
    name: str,
    lake: str,
    changes: Sequence[str],
    tuple_based: bool,
    full: bool,
    svg: str | None,
    as_json: bool,
) -> None:
    """Say how a view is kept; the script is that of its strategy unless options name another."""
    from viewkeep.report.script.page import ScriptOptions

    with open_keeper(lake, "reading ...") as keeper:
        [view] = keeper.status(name)
        has_options = bool(changes) or tuple_based or full
        in_sections = has_options or view.strategy in STRATEGIES_WITH_SECTIONS
        head = keeper.explain(name, script=not in_sections)
        is_recomputed = view.strategy == "recompute" and not has_options and svg is None
        tree = None if is_recomputed else keeper.operators(name)
    options = ScriptOptions(tuple(changes), tuple_based or view.strategy == "tuple", full)
    if svg is not None and tree is not None:
        draw(name, tree, options, svg)
    if as_json:
        write(json.dumps(_view_document(name, view.strategy, head, tree, options), indent=2) + "\n")
    else:
        _show_sections(head, tree, options if in_sections else None)


def _show_sections(head: str, tree: "Node | None", options: "ScriptOptions | None") -> None:
    from rich.console import Group
    from rich.text import Text

    from viewkeep.report.script.page import script_sections

    sections = () if options is None or tree is None else script_sections(tree, options)
    show(Group(Text(f"{head}\n"), *sections))


def draw(name: str, tree: "Node", options: "ScriptOptions", file: str) -> None:
    """Write a picture of the plan of a script."""
    from viewkeep.report.script.page import delta_script
    from viewkeep.report.script.picture import plan_picture

    picture = plan_picture(delta_script(tree, options), name)
    try:
        Path(file).write_text(picture, encoding="utf-8")
    except OSError as error:
        raise ViewkeepError(f'cannot write "{file}": {error.strerror}') from None


def _view_document(
    name: str, strategy: str, head: str, tree: "Node | None", options: "ScriptOptions"
) -> dict[str, object]:
    from viewkeep.report.lake.refreshes import FORMAT
    from viewkeep.report.script.page import script_json

    about = {"format": FORMAT, "view": name, "strategy": strategy, "explanation": head}
    return {**about, **(script_json(tree, options) if tree is not None else {})}
