"""Folders of a lake are in it, whatever links there are."""

from pathlib import Path

import pytest

from viewkeep.tables.log.delta import StorageError
from viewkeep.tables.places import check_inside


def test_links_out_of_the_lake_are_refused_at_any_level(tmp_path: Path) -> None:
    lake, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    (lake / "a" / "b").mkdir(parents=True)
    (elsewhere / "c").mkdir(parents=True)
    (lake / "a" / "out").symlink_to(elsewhere)
    (lake / "within").symlink_to(lake / "a")
    (tmp_path / "alias").symlink_to(lake)
    (lake / "away").symlink_to(elsewhere / "c")
    root = str(lake)
    for inside in ("a", "a/b", "a/none/yet", "within/b", "a/../a", "a/out/../lake/a"):
        check_inside(root, f"{root}/{inside}")
        check_inside(f"{tmp_path}/alias", f"{tmp_path}/alias/{inside}")
    check_inside(root, f"{elsewhere}/c")
    for outside in ("a/out", "a/out/c", "within/out", "away", "away/d", "../elsewhere"):
        with pytest.raises(StorageError, match="is a link out of the lake"):
            check_inside(root, f"{root}/{outside}")
