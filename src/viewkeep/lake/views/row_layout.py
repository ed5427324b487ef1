"""How the rows of a view that change are stored: in files written anew, or marked in old ones.

copy-on-write   files that hold changed rows are written anew; every reader of Delta reads them
merge-on-read   changed rows are marked in deletion vectors and written to small files; what a
                refresh writes grows with the changes, and not with the view

Deletion vectors are a feature that readers must know, so nothing but asking for them turns them on.
"""

from collections.abc import Iterable

from viewkeep.errors import ArgumentError, did_you_mean
from viewkeep.lake.views.reports import RefreshReport

COPY_ON_WRITE, MERGE_ON_READ = "copy-on-write", "merge-on-read"
LAYOUTS = ("auto", COPY_ON_WRITE, MERGE_ON_READ)

ADVISED_ROWS = 1_000_000
"""Smaller views are written anew as fast as they are marked."""
ADVISED_SHARE = 0.01
"""Refreshes that change a larger share of the view gain little."""
ADVISED_REFRESHES = 3


def check_layout(layout: str, is_local: bool) -> None:
    """Refuse what is no layout, and deletion vectors where nothing writes them."""
    if layout not in LAYOUTS:
        hint = did_you_mean(str(layout), LAYOUTS)
        raise ArgumentError(f'layout="{layout}": expected one of {", ".join(LAYOUTS)}{hint}')
    if layout == MERGE_ON_READ and not is_local:
        raise ArgumentError(
            f'layout="{layout}": deletion vectors are written on local disks only; '
            f'use "{COPY_ON_WRITE}", or a lake on a disk'
        )


def advice(history: Iterable[RefreshReport]) -> str:
    """Why a view that is written anew should be marked instead; empty if it should not."""
    recent = [each for each in history if not each.from_scratch and each.rows_changed]
    recent = recent[:ADVISED_REFRESHES]
    if len(recent) < ADVISED_REFRESHES:
        return ""
    rows, changed = min(e.rows for e in recent), max(e.rows_changed for e in recent)
    write_seconds = [each.phases.get("write", 0.0) for each in recent]
    is_slow = 2 * sum(write_seconds) > sum(each.seconds for each in recent)
    if rows < ADVISED_ROWS or changed > ADVISED_SHARE * rows or not is_slow:
        return ""
    return (
        f"the last {len(recent)} refreshes changed at most {changed:,} of {rows:,} rows, and took "
        f'most of their time to write files anew: layout="{MERGE_ON_READ}" would mark the rows'
    )
