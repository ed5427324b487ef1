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
KeyColumns = Annotated[Texts | None, typer.Option("--key", help="Key column.", metavar="COLUMN")]
ColumnForeignKeys = Annotated[
    Texts | None,
    typer.Option("--foreign-key", help="Foreign key.", metavar='"did -> devices.did"'),
]
TableDependencies = Annotated[
    Texts | None, typer.Option("--fd", help="Functional dependency.", metavar='"x -> y"')
]
Static = Annotated[bool, typer.Option("--static", metavar="", help="The table never changes.")]
Degrees = Annotated[Texts | None, typer.Option(help="Bounded degree.", metavar='"S: x -> y <= 3"')]
StaticRelations = Annotated[
    Texts | None, typer.Option(help="Relation that never changes.", metavar="T")
]
InsertOnly = Annotated[
    bool, typer.Option("--insert-only", metavar="", help="Rows are never deleted.")
]
