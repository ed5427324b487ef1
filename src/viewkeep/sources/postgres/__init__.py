"""Tables of PostgreSQL, followed by a log of changed keys that triggers write.

server     a connection: settings, errors without secrets
source     a table of PostgreSQL: columns, key, what they are in a lake
log        the log and its triggers: installed, read up to positions, pruned, removed
rows       rows as PostgreSQL writes them, in the types of a lake
capture    rounds: what changed since a position, in one transaction of the lake
"""

from importlib.util import find_spec

from viewkeep.errors import MissingLibraryError

if find_spec("psycopg") is None:
    raise MissingLibraryError(
        "capturing tables of PostgreSQL needs psycopg, which is not installed: "
        "pip install 'viewkeep[postgres]'"
    )
