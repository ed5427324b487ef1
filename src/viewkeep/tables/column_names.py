"""Names and types of columns that all engines read: others are refused before anything is written,
or stored under another name where only Viewkeep reads them."""

from collections.abc import Iterable

from viewkeep.errors import SchemaError
from viewkeep.query.tables import HIDDEN
from viewkeep.query.types.data_types import Field

NOT_IN_DELTA = frozenset(" ,;{}()\n\t=")
"""Characters that no column of a Delta table may have in its name."""


def check_name(place: str, name: str) -> None:
    """Refuse a column that SQL could not name, or whose name nobody could see."""
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(f"{place}: a column has no name ({name!r}); give it one")
    if HIDDEN in name:
        raise SchemaError(
            f'{place}, column "{name}": names with {HIDDEN} are Viewkeep\'s own; rename it'
        )
    if not name.isprintable() or name != name.strip():
        raise SchemaError(
            f"{place}, column {name!a}: the name has characters that cannot be seen; rename it"
        )


def check_own_names(place: str, names: Iterable[str]) -> None:
    """Refuse columns that a new Delta table cannot have; Delta takes `a` and `A` for the same."""
    by_lower_case: dict[str, str] = {}
    for name in names:
        check_name(place, name)
        bad = sorted(set(name) & NOT_IN_DELTA)
        if bad:
            raise SchemaError(
                f'{place}, column "{name}": Delta tables allow no '
                f"{' '.join(map(repr, bad))} in names; give it another name, in a view with AS"
            )
        other = by_lower_case.get(name.lower())
        by_lower_case[name.lower()] = name
        if other is not None:
            raise SchemaError(
                f'{place}, column "{name}": there is "{other}" already; Delta tables do not tell '
                "upper from lower case; give it another name, in a view with AS"
            )


def check_own_types(place: str, fields: Iterable[Field]) -> None:
    """Refuse columns of bare NULLs, whose type nobody could tell."""
    for each in fields:
        if each.type.has_void:
            raise SchemaError(
                f'{place}, column "{each.name}" is {each.type}: NULL has no type that Delta tables '
                "store; give it one, as in CAST(NULL AS string)"
            )


def storable_name(name: str) -> str:
    """A name that Delta tables allow for a column that only Viewkeep reads; another one for every
    name.

    >>> [storable_name(each) for each in ("o.cid", "the day.a", "100%.a")]
    ['o.cid', 'the%20day.a', '100%25.a']
    """
    return "".join(
        f"%{ord(each):02X}" if each in NOT_IN_DELTA or each == "%" else each for each in name
    )
