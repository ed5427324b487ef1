"""What Delta tables may use, and what of it cannot be read correctly here."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from deltalake import DeltaTable

from viewkeep.tables.log.column_mapping import column_mapping
from viewkeep.tables.log.deltalake_commits import FEED

VECTORS = "deletionVectors"
"""The feature of tables whose files may have deleted rows."""
WIDENING = "typeWidening"
"""The feature of tables whose files may have columns of narrower types."""
READABLE_FEATURES = frozenset(
    {
        VECTORS,
        WIDENING,
        f"{WIDENING}-preview",
        "columnMapping",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        # They matter where a column has the type (`_has_variant`).
        "variantType",
        "variantType-preview",
    }
)
"""Features of readers that are understood, or change nothing for readers."""
COLLATION = "__COLLATIONS"
"""In the metadata of a column of texts that are not compared by their characters."""


_UNKNOWN_FEATURE = re.compile(r"Feature '([^']+)' is not supported")
_MANAGED = "catalog-managed table"
"""In deltalake's error for a table whose newest version only its catalog knows."""


def refused_feature(error: str) -> str:
    """What deltalake's refusal to open a table means, and what to do; empty for other errors.

    >>> print(refused_feature("Kernel error: Unsupported: Feature 'tomorrow' is not supported"))
    the table uses tomorrow, which cannot be read here; copy it into a table without, or switch it off
    """  # noqa: E501  # the line of a doctest
    if _MANAGED in error:
        return (
            "the table uses catalogManaged: only its catalog knows the newest version, so that it "
            "cannot be read here; copy it into a table that no catalog manages"
        )
    unknown = _UNKNOWN_FEATURE.findall(error)
    return _refusal(unknown) if unknown else ""


def _refusal(features: Iterable[str]) -> str:
    return (
        f"the table uses {', '.join(features)}, which cannot be read here; "
        "copy it into a table without, or switch it off"
    )


def unreadable(table: DeltaTable) -> str:
    """Why a version cannot be read correctly, and what to do; empty if it can."""
    unknown = sorted(set(table.protocol().reader_features or ()) - READABLE_FEATURES)
    if any(COLLATION in each.metadata for each in table.schema().fields):
        unknown.append("collations")
    variants = [
        e["name"] for e in json.loads(table.schema().to_json())["fields"] if _has_variant(e)
    ]
    if variants:
        return f'column "{variants[0]}" has the type variant, which cannot be read here; drop it'
    return _refusal(unknown) if unknown else ""


def _has_variant(kind: Any) -> bool:
    """Whether a type, as the log writes it, has values of which each has a type of its own."""
    if isinstance(kind, Mapping):
        return any(_has_variant(kind.get(part)) for part in _PARTS)
    return any(map(_has_variant, kind)) if isinstance(kind, list) else kind == "variant"


_PARTS = ("type", "elementType", "keyType", "valueType", "fields")


def has_plain_feed(table: DeltaTable) -> bool:
    """Whether an open version has a change data feed that deltalake reads right: it knows no
    deletion vectors, and takes names and types of files for those of the table."""
    features = set(table.protocol().reader_features or ())
    return (
        table.metadata().configuration.get(FEED) == "true"
        and column_mapping(table) is None
        and not features & {VECTORS, WIDENING, f"{WIDENING}-preview"}
    )


def may_have_vectors(table: DeltaTable) -> bool:
    """Whether files of an open version may have deletion vectors."""
    return VECTORS in (table.protocol().reader_features or ())
