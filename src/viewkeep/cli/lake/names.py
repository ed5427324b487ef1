"""Names of tables and views, for shells that complete them."""

import os
from collections.abc import Iterable
from typing import Any

from viewkeep.cli.lake.open_lake import VARIABLE, find_lake


def complete_name(ctx: Any, incomplete: str) -> list[str]:
    """The tables and views of the lake whose names begin so."""
    return _complete(ctx, incomplete, ("tables", "views"))


def complete_view(ctx: Any, incomplete: str) -> list[str]:
    """The views of the lake whose names begin so."""
    return _complete(ctx, incomplete, ("views",))


def complete_table(ctx: Any, incomplete: str) -> list[str]:
    """The tables of the lake whose names begin so."""
    return _complete(ctx, incomplete, ("tables",))


def _complete(ctx: Any, incomplete: str, kinds: Iterable[str]) -> list[str]:
    """A shell shows no errors: where there is no lake, there are no names."""
    try:
        from viewkeep.keeper import Keeper

        place = find_lake(ctx.params.get("lake") or os.environ.get(VARIABLE))
        keeper = Keeper(place, create=False) if place is not None else None
        names = [name for kind in kinds for name in getattr(keeper, kind, {})]
    except Exception:
        return []
    return sorted(name for name in names if name.startswith(incomplete))
