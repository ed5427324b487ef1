"""Where tables and views are: below the lake by their names, elsewhere by absolute paths.

The catalog keeps what is in the lake relative to it, so that a lake can be moved, and a copy of it
never reaches into the original.
"""

import os
from collections.abc import Iterable

from viewkeep.tables.failures import StorageError
from viewkeep.tables.log.durable import local_path


def stored_location(lake: str, location: str) -> str:
    """A location as the catalog keeps it.

    >>> stored_location("/data/lake", "/data/lake/parts"), stored_location("s3://a/b", "s3://a/c")
    ('parts', 's3://a/c')
    """
    if location.startswith(f"{lake}/"):
        return location.removeprefix(f"{lake}/")
    root, path = local_path(lake), local_path(location)
    if root is None or path is None:
        return location
    real_root, real_path = os.path.realpath(root), os.path.realpath(path)
    if real_path.startswith(f"{real_root}/"):
        return real_path.removeprefix(f"{real_root}/")
    return location


def absolute_location(lake: str, location: str) -> str:
    """The absolute path of a location of the catalog.

    >>> absolute_location("/data/copy", "parts"), absolute_location("/data/copy", "/data/other")
    ('/data/copy/parts', '/data/other')
    """
    return location if is_absolute(location) else f"{lake}/{location}"


def is_absolute(location: str) -> bool:
    """Whether a location is an absolute path or a URI."""
    return "://" in location or location.startswith("/") or os.path.isabs(location)


def former_lake(owned: Iterable[tuple[str, str]]) -> str | None:
    """Where a lake was whose catalog still has absolute locations, from the names and locations of
    what it owns: earlier releases wrote them.

    >>> former_lake([("parts", "/data/lake/parts")])
    '/data/lake'
    """
    for name, location in owned:
        if is_absolute(location) and location.endswith(f"/{name}"):
            return location.removesuffix(f"/{name}")
    return None


def _has_links(root: str, below: str) -> bool:
    """Whether a part of a path below a folder is a link, or leads upwards."""
    names = [name for name in below.split("/") if name not in ("", ".")]
    places = ("/".join([root, *names[: n + 1]]) for n in range(len(names)))
    return ".." in names or any(map(os.path.islink, places))


def check_inside(lake: str, uri: str) -> None:
    """Refuse a folder that lies in the lake by its name, but elsewhere through a link."""
    root, path = local_path(lake), local_path(uri)
    if root is None or path is None or not path.startswith(f"{root}/"):
        return
    if not _has_links(root, path.removeprefix(f"{root}/")):
        return
    real = os.path.realpath(path)
    if not real.startswith(f"{os.path.realpath(root)}/"):
        raise StorageError(
            f"{path} is a link out of the lake, to {real}; put the folder into the lake, or "
            "register the table at the place that the link leads to"
        )
