"""`viewkeep explain` for a view of a lake: how it is kept, and its delta script."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from viewkeep.cli.lake import find_lake, opened
from viewkeep.cli.screen import show, write
from viewkeep.cli.source import is_path
from viewkeep.errors import ViewkeepError

if TYPE_CHECKING:
    from viewkeep.reading import Node
    from viewkeep.report.delta_script import ScriptOptions

_NAME = re.compile(r"[A-Za-z]\w*")


def view_of_lake(query: str, lake: str | None) -> str | None:
    """The lake whose view an argument names: a name alone is no query."""
    return find_lake(lake) if _NAME.fullmatch(query) and not is_path(query) else None


def explain_view(
    name: str,
    lake: str,
    changes: Sequence[str],
    tuple_based: bool,
    full: bool,
    svg: str | None,
    as_json: bool,
) -> None:
    """Say how a view is kept; the script is that of its own strategy unless another is wanted."""
    from viewkeep.report.delta_script import ScriptOptions

    with opened(lake, "reading ...") as keeper:
        head, tree = keeper.explain(name, script=False), keeper.operators(name)
        [status] = keeper.status(name)
    is_tuple = tuple_based or status.strategy == "tuple"
    options = ScriptOptions(tuple(changes), is_tuple, full)
    if svg is not None:
        draw(name, tree, options, svg)
    if as_json:
        write(json.dumps(_document(name, status.strategy, head, tree, options), indent=2) + "\n")
        return
    _show(head, tree, options, status.strategy == "recompute")


def _show(head: str, tree: "Node", options: "ScriptOptions", is_anew: bool) -> None:
    from rich.console import Group
    from rich.text import Text

    from viewkeep.report.delta_script import script_sections

    sections = () if is_anew and not options.changes else script_sections(tree, options)
    show(Group(Text(f"{head}\n"), *sections))


def draw(name: str, tree: "Node", options: "ScriptOptions", file: str) -> None:
    """Write a picture of the plan of a script."""
    from viewkeep.report.delta_script import delta_script
    from viewkeep.report.plan_picture import plan_picture

    picture = plan_picture(delta_script(tree, options), name)
    try:
        Path(file).write_text(picture, encoding="utf-8")
    except OSError as error:
        raise ViewkeepError(f'cannot write "{file}": {error.strerror}') from None


def _document(
    name: str, strategy: str, head: str, tree: "Node", options: "ScriptOptions"
) -> dict[str, object]:
    from viewkeep.report.delta_script import script_json
    from viewkeep.report.refreshes import FORMAT

    known = {"format": FORMAT, "view": name, "strategy": strategy, "explanation": head}
    return {**known, **script_json(tree, options)}
