"""What tells a file on a local disk from another one under the same name."""

import os

FileMark = tuple[int, int, int]
"""The inode, the size and the time of the last change."""


def file_mark(path: str) -> FileMark | None:
    """The mark of a file as it is now; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
