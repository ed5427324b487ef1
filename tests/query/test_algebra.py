"""The algebra tree: schemas, validation, printing, walking and rewriting."""

import pytest

from viewkeep.errors import QueryError
from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Output,
    Project,
    Scan,
    Select,
    SemiJoin,
    UnionAll,
)
from viewkeep.query.expressions import Call, Cast, Column, Expression, literal
from viewkeep.query.tables import Table
from viewkeep.query.traversal import inputs_of, rewrite_tree, walk, with_children
from viewkeep.query.types.data_types import BIGINT, DOUBLE, INT, Field

PARTS = Scan("parts", Table({"pid": "int", "price": "int"}, key=["pid"]), "p")
USES = Scan("uses", Table({"did": "int", "pid": "int"}, key=["did", "pid"]), "u")
SAME = Call("=", (Column("p.pid"), Column("u.pid")))


def _named(child: Node, **expressions: Expression) -> Project:
    return Project(child, tuple(Output(name, e) for name, e in expressions.items()))


def test_schemas() -> None:
    assert PARTS.schema == (Field("p.pid", INT, nullable=False), Field("p.price", INT))
    joined = Join(PARTS, USES, SAME)
    assert joined.names == ("p.pid", "p.price", "u.did", "u.pid")
    assert SemiJoin(PARTS, USES, SAME).schema == AntiJoin(PARTS, USES, SAME).schema == PARTS.schema
    half = _named(PARTS, half=Call("/", (Column("p.price"), literal(2))))
    assert half.schema == (Field("half", DOUBLE),)
    assert Distinct(half).schema == half.schema
    aggregates = (
        AggregateColumn("n", "count"),
        AggregateColumn("total", "sum", Column("p.price")),
    )
    groups = GroupBy(joined, ("u.did",), aggregates)
    assert groups.schema == (
        Field("u.did", INT, nullable=False),
        Field("n", BIGINT, nullable=False),
        Field("total", BIGINT),
    )


def test_a_union_is_nullable_where_one_input_is() -> None:
    known, unknown = _named(PARTS, x=Column("p.pid")), _named(PARTS, x=Column("p.price"))
    assert UnionAll((known, known)).schema == (Field("x", INT, nullable=False),)
    assert UnionAll((known, unknown)).schema == (Field("x", INT, nullable=True),)


def test_global_aggregates_may_be_null() -> None:
    total = GroupBy(PARTS, (), (AggregateColumn("total", "sum", Column("p.pid")),))
    assert total.schema == (Field("total", BIGINT, nullable=True),)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Select(PARTS, Call(">", (Column("p.prize"), literal(1)))),
            'no column "p.prize" (p.pid, p.price); did you mean "p.price"?',
        ),
        (lambda: Select(PARTS, Column("p.price")), "must be boolean, but it is int"),
        (
            lambda: Select(PARTS, Call("=", (Column("p.price"), literal("x")))),
            "the types must fit together, but found int, string",
        ),
        (
            lambda: _named(PARTS, x=Call("+", (literal("a"), literal(1)))),
            "both sides must be numbers, but found string, int",
        ),
        (lambda: _named(PARTS, x=Call("uper", (literal("a"),))), 'did you mean "upper"?'),
        (lambda: Project(PARTS, (Output("x", literal(1)),) * 2), 'two columns are called "x"'),
        (lambda: Project(PARTS, ()), "a projection needs at least one column"),
        (lambda: Join(PARTS, PARTS), 'two columns are called "p.pid"'),
        (lambda: SemiJoin(PARTS, USES, Column("u.did")), "must be boolean"),
        (lambda: UnionAll((PARTS, USES)), "a union of different columns: (p.pid int, p.price int)"),
        (lambda: UnionAll((PARTS,)), "a union needs at least two inputs"),
        (
            lambda: UnionAll((_named(PARTS, x=literal(1)), _named(PARTS, x=literal("a")))),
            "a union of different columns: (x int) and (x string)",
        ),
        (lambda: GroupBy(PARTS, ("p.pit",), ()), 'no column "p.pit"'),
        (lambda: GroupBy(PARTS, (), ()), "a group-by needs a key or an aggregate"),
        (
            lambda: GroupBy(PARTS, (), (AggregateColumn("m", "middle", Column("p.pid")),)),
            "unknown aggregate middle()",
        ),
        (
            lambda: _named(PARTS, x=Cast(literal(1), PARSED_DATE)),
            "cannot cast int to date",
        ),
    ],
)
def test_bad_nodes_are_refused(build: object, message: str) -> None:
    with pytest.raises(QueryError) as error:
        build()  # type: ignore[operator]
    assert message in str(error.value)


PARSED_DATE = Table({"d": "date"}).columns[0].type


def test_printing_shows_one_operator_a_line() -> None:
    rows = Select(Join(PARTS, USES, SAME), Call(">", (Column("p.price"), literal(3))))
    total = AggregateColumn("total", "sum", Column("p.price"))
    tree = _named(GroupBy(rows, ("u.did",), (total,)), did=Column("u.did"), total=Column("total"))
    assert str(tree).split("\n") == [
        "Project u.did as did, total",
        "  GroupBy u.did, sum(p.price) as total",
        "    Select p.price > 3",
        "      Join on p.pid = u.pid",
        "        Scan parts as p",
        "        Scan uses as u",
    ]


def test_a_shared_subtree_is_printed_once() -> None:
    joined = Join(PARTS, USES)
    assert str(UnionAll((joined, Distinct(joined)))).split("\n") == [
        "UnionAll",
        "  #1 Join (cross)",
        "    Scan parts as p",
        "    Scan uses as u",
        "  Distinct",
        "    #1 (above)",
    ]


def test_nodes_are_values() -> None:
    first, second = Join(PARTS, USES, SAME), Join(PARTS, USES, SAME)
    assert first == second
    assert hash(first) == hash(second)
    assert first != SemiJoin(PARTS, USES, SAME)
    match first:
        case Join(Scan(name=left), Scan(name=right), condition):
            assert (left, right, condition) == ("parts", "uses", SAME)
        case _:
            pytest.fail("a join matches by position")


def test_walk_visits_every_operator_once_inputs_first() -> None:
    joined = Join(PARTS, USES)
    tree = UnionAll((joined, Distinct(joined)))
    assert list(walk(tree)) == [PARTS, USES, joined, Distinct(joined), tree]
    assert inputs_of(tree) == tree.inputs


def test_rewrite_is_bottom_up_and_keeps_sharing() -> None:
    joined = Join(PARTS, USES)
    calls: list[Node] = []

    def drop_distinct(node: Node) -> Node:
        calls.append(node)
        return node.child if isinstance(node, Distinct) else node

    result = rewrite_tree(UnionAll((joined, Distinct(joined))), drop_distinct)
    assert result == UnionAll((joined, joined))
    assert len(calls) == 5
    assert with_children(result, (joined, Distinct(joined))).names == joined.names


def test_a_long_chain_of_shared_nodes_stays_cheap() -> None:
    """Outer joins use each side twice: 40 of them must not cost 2 to the 40."""
    node: Node = PARTS
    for _ in range(40):
        node = UnionAll((node, Distinct(node)))
    assert len(list(walk(node))) == 81
    assert len(str(node).split("\n")) < 200
    assert rewrite_tree(node, lambda same: same) == node
