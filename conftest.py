"""Which modules pytest looks into: those of libraries that are not installed are left out."""

from importlib.util import find_spec

collect_ignore_glob = [
    *([] if find_spec("psycopg") else ["src/viewkeep/sources/postgres/*"]),
    *([] if find_spec("pyiceberg") else ["src/viewkeep/tables/iceberg/[cht]*.py"]),
]
