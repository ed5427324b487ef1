"""DataFrames of users as files of new tables, in the types that are declared."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.execute.spark.exact_cast import exact_columns, refuse_misfit
from viewkeep.execute.spark.files import WRITE_SETTINGS, write_frame
from viewkeep.execute.spark.report import SPARK_ERRORS, name_in_errors
from viewkeep.query.expressions import back_quote
from viewkeep.query.tables import Table
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.user_rows import check_columns


def write_user_frame(
    name: str, declared: Table, data: DataFrame, table: LakeTable
) -> list[DataFile]:
    """In the order of the key, so that changes of neighbouring keys touch few files."""
    check_columns(f'table "{name}", rows', data.columns, declared, declared.names)
    rows = data.selectExpr(*(column.sql for column in exact_columns(data, declared)))
    with name_in_errors(f'table "{name}"'), _misfits_named(name, declared, data):
        ordered = rows.repartitionByRange(*(F.col(back_quote(each)) for each in declared.key))
        with _write_settings(data.sparkSession):
            return write_frame(ordered, table, declared.key)


@contextmanager
def _write_settings(session: SparkSession) -> Iterator[None]:
    """A DataFrame is written under the settings of its own session, which is the user's."""
    before = {name: session.conf.get(name) or "" for name in WRITE_SETTINGS}
    try:
        for name, value in WRITE_SETTINGS.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


@contextmanager
def _misfits_named(name: str, declared: Table, data: DataFrame) -> Iterator[None]:
    """After a failure, look for a value that does not fit: its name says more than the job's."""
    try:
        yield
    except SPARK_ERRORS:
        refuse_misfit(name, declared, data)
        raise
