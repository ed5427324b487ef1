"""Options that several commands share: the tables, and the constraints on the data."""

from typing import Annotated

import typer

Texts = list[str]

SchemaFile = Annotated[
    str | None, typer.Option(help="File of CREATE TABLE statements.", metavar="FILE")
]
Dependencies = Annotated[
    Texts | None, typer.Option(help="Functional dependency on variables.", metavar='"x -> y"')
]
Keys = Annotated[Texts | None, typer.Option(help="Key of a relation.", metavar='"C.id"')]
ForeignKeys = Annotated[Texts | None, typer.Option(help="Foreign key.", metavar='"M.c -> C.id"')]
Degrees = Annotated[Texts | None, typer.Option(help="Bounded degree.", metavar='"S: x -> y <= 3"')]
StaticRelations = Annotated[
    Texts | None, typer.Option(help="Relation that never changes.", metavar="T")
]
InsertOnly = Annotated[
    bool, typer.Option("--insert-only", metavar="", help="Rows are never deleted.")
]
