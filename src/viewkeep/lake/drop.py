"""Tables and views that a lake forgets."""

from viewkeep.lake.catalog import Catalog
from viewkeep.lake.lake import Lake
from viewkeep.lake.views.cache_users import remove_unused_caches, used_caches
from viewkeep.lake.views.problems import forget_problem


def drop_view(lake: Lake, name: str) -> None:
    """Forget a view, and remove its files; views that read it are in the way."""

    def without_view(catalog: Catalog) -> Catalog:
        catalog.view(name)
        return _catalog_without(catalog, name)

    location = lake.catalog.read().view(name).location
    table = lake.at(location)  # a link out of the lake is refused before anything is forgotten
    caches = used_caches(name, table)
    lake.catalog.change(f"drop_view {name}", without_view)
    lake.remove_view(name, location)
    remove_unused_caches(lake, lake.catalog.read(), caches)
    forget_problem(lake, name)


def drop_table(lake: Lake, name: str) -> None:
    """Forget a table, whose folder stays; views that read it are in the way."""

    def without_table(catalog: Catalog) -> Catalog:
        catalog.table(name)
        return _catalog_without(catalog, name)

    lake.catalog.change(f"drop_table {name}", without_table)


def _catalog_without(catalog: Catalog, name: str) -> Catalog:
    catalog.check_unread(name)
    return catalog.excluding(name)
