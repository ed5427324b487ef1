"""How the places of Iceberg tables are written, which tells them from those of Delta tables."""

import os

from viewkeep.tables.log.durable import local_path

SCHEME = "iceberg://"


def iceberg_place(location: str) -> str:
    """The place of a table that lies in a folder or is named by its metadata; others as they are.

    >>> iceberg_place("/data/shop/metadata/00002-ab.metadata.json")
    'iceberg:///data/shop/metadata/00002-ab.metadata.json'
    >>> iceberg_place("/data/parts"), iceberg_place("iceberg://prod/shop.orders")
    ('/data/parts', 'iceberg://prod/shop.orders')
    """
    path = None if location.startswith(SCHEME) else local_path(location)
    if path is None:
        return location
    has_hint = os.path.exists(f"{path}/metadata/version-hint.text")
    is_delta = os.path.exists(f"{path}/_delta_log")
    is_iceberg = path.endswith(".metadata.json") or (has_hint and not is_delta)
    return f"{SCHEME}{path}" if is_iceberg else location
