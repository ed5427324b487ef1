"""A picture of the variable order: a tree with the atoms as leaves."""

from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from viewkeep.analysis import Analysis, VariableOrder
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.report.style import KINDS, RELATION, kind_of


def order_tree(analysis: Analysis) -> Group:
    """Every variable with its kind and what its view depends on; atoms hang below their lowest
    variable. With inputs, the variables are those of the fracture."""
    query = analysis.fracture
    static = analysis.query.constraints.static
    trees = [_order_subtree(query, root, static) for root in analysis.variable_order]
    loose = [_atom_label(atom, static) for atom in query.atoms if not atom.variables]
    return Group(*trees, *loose)


def atoms_below(query: ConjunctiveQuery, order: VariableOrder) -> tuple[Atom, ...]:
    """The atoms whose lowest variable this is: all other variables of theirs are above it."""
    deeper = {each.variable for child in order.children for each in child.walk()}
    return tuple(
        query.atoms[i]
        for i in sorted(query.atoms_of[order.variable])
        if query.atoms[i].schema.isdisjoint(deeper)
    )


def _order_subtree(query: ConjunctiveQuery, order: VariableOrder, static: frozenset[str]) -> Tree:
    tree = Tree(_variable_label(query, order), guide_style="dim")
    for atom in atoms_below(query, order):
        tree.add(_atom_label(atom, static))
    for child in order.children:
        tree.add(_order_subtree(query, child, static))
    return tree


def _variable_label(query: ConjunctiveQuery, order: VariableOrder) -> Text:
    kind = kind_of(query, order.variable)
    label = Text.assemble((order.variable, f"bold {KINDS[kind]}"), "  ", (kind, KINDS[kind]))
    if order.depends_on:
        label.append(f", depends on {', '.join(order.depends_on)}")
    return label


def _atom_label(atom: Atom, static: frozenset[str]) -> Text:
    return Text.assemble((str(atom), RELATION), "  static" if atom.relation in static else "")
