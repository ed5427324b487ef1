"""The variable order that a view tree is made for, by what is known of its updates."""

from dataclasses import replace

from viewkeep.analysis.foreign_keys import foreign_key_join, referring_atoms
from viewkeep.analysis.insert_only import insert_only
from viewkeep.analysis.order_search import best_order
from viewkeep.analysis.variable_order import JoinShape, VariableOrder
from viewkeep.query.conjunctive import ConjunctiveQuery


def maintenance_order(query: ConjunctiveQuery, shape: JoinShape) -> tuple[VariableOrder, ...]:
    """The cheapest order; where updates are amortized, one that suits the amortization.

    With inserts only, every tuple climbs once, so the narrowest order is best. With foreign keys,
    rows of the referring atom must be cheap; a referenced row pays for the rows that wait for it.
    """
    best = best_order(shape)
    if best.update > 0 and query.constraints.insert_only and insert_only(query):
        return best_order(replace(shape, dynamic=(False,) * len(shape.atoms))).roots
    if best.update > 0 and foreign_key_join(query):
        facts = referring_atoms(query)
        return best_order(
            replace(shape, dynamic=tuple(i in facts for i in range(len(shape.atoms))))
        ).roots
    return best.roots
