"""A small local Spark session, for tests and demos."""

from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(cores: int = 2, name: str = "viewkeep", **settings: str) -> SparkSession:
    """A session on this machine: few shuffle partitions, no pages, errors only in the log.

    A name of a setting is written with `__` for every dot: `spark__sql__codegen__wholeStage`.
    """
    builder = SparkSession.Builder().master(f"local[{cores}]").appName(name)
    chosen = _SETTINGS | {"spark.sql.shuffle.partitions": str(cores)}
    for key, value in (chosen | {k.replace("__", "."): v for k, v in settings.items()}).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
