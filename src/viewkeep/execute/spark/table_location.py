"""Where the tables of Spark's catalogs are."""

from pyspark.errors import PySparkException

from viewkeep.errors import ArgumentError, cause
from viewkeep.execute.spark.session import Session, quiet_errors
from viewkeep.query.expressions import back_quote


def table_location(spark: Session, name: str) -> str:
    """The folder or URI of a table by its name in a catalog of the user's session."""
    user = spark() if callable(spark) else spark
    quoted = ".".join(back_quote(part.strip("`")) for part in name.split("."))
    try:
        with quiet_errors():
            rows = user.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
    except PySparkException as error:
        raise ArgumentError(
            f'"{name}" is no folder here, and no table of a catalog of Spark: {cause(error)}'
        ) from error
    places = [row[1] for row in rows if row[0] == "Location" and row[1]]
    if not places:
        raise ArgumentError(
            f'"{name}" is no folder here, and Spark\'s catalog tells no location of it: a view?'
        )
    place = str(places[-1])  # a column may have that name; what is told of the table comes last
    return "/" + place.removeprefix("file:").lstrip("/") if place.startswith("file:") else place
