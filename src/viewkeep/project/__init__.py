"""Projects: tables, views and tests in files, compared with a lake, planned, then run.

new      a folder with a project that works
read     `viewkeep.toml` and SQL files, or a pipeline of Spark, as a `Project`
plan     the project beside a lake: steps, and why
run      the steps; a run that was cut short is finished by the next one
checks   assertions over the lake, and unit tests in a lake of their own
"""
