"""Linear regression over a join, from one element of the matrix ring, kept under updates."""

import random

import numpy as np
import pytest

from viewkeep.errors import RingError
from viewkeep.rings import INTEGERS, MatrixRing, Relation, least_squares

RING = MatrixRing(("size", "age", "price"), INTEGERS)
LIFTS = {variable: RING.lift(variable) for variable in RING.variables}


def moments(houses, sales):
    """The element for Q = sum over houses(id, size, age) * sales(id, price)."""
    by_house = houses.marginalise(("size", "age"), LIFTS)
    by_sale = sales.marginalise("price", LIFTS)
    return (by_house * by_sale).marginalise("id", LIFTS).lookup(())


@pytest.fixture
def data():
    seeded = random.Random(3)
    houses = [(i, seeded.randrange(50, 200), seeded.randrange(80)) for i in range(40)]
    sales = [(seeded.randrange(40), seeded.randrange(100, 900)) for _ in range(60)]
    return houses, sales


def relations(houses, sales):
    return (
        Relation.from_rows(("id", "size", "age"), houses, RING),
        Relation.from_rows(("id", "price"), sales, RING),
    )


def joined(houses, sales):
    return np.array([(s, a, p) for i, s, a in houses for j, p in sales if i == j])


def test_the_element_holds_count_sums_and_products_of_the_join(data):
    element, points = moments(*relations(*data)), joined(*data)
    assert RING.count_of(element) == len(points)
    assert [RING.sum_of(element, v) for v in RING.variables] == points.sum(axis=0).tolist()
    products = [
        [RING.sum_of_products(element, v, w) for w in RING.variables] for v in RING.variables
    ]
    assert products == (points.T @ points).tolist()


@pytest.mark.parametrize("ridge", [0.0, 25.0])
def test_the_model_equals_the_one_learned_from_the_joined_points(data, ridge):
    model = least_squares(RING, moments(*relations(*data)), "price", ridge)
    points = joined(*data).astype(float)
    design = np.column_stack([np.ones(len(points)), points[:, :2]])
    penalty = np.diag([0.0, ridge, ridge])
    direct = np.linalg.solve(design.T @ design + penalty, design.T @ points[:, 2])
    assert [model.intercept, *model.weights.values()] == pytest.approx(direct.tolist())
    assert model.predict({"size": 100, "age": 10}) == pytest.approx(direct @ [1, 100, 10])


def test_a_delete_is_maintained_by_adding_the_negated_delta(data):
    houses, sales = relations(*data)
    total = moments(houses, sales)
    gone = data[1][0]
    delta = Relation.from_mapping(("id", "price"), {gone: RING.from_integer(-1)}, RING)
    maintained = RING.add(total, moments(houses, delta))
    rest = data[1][1:]
    assert RING.equal(maintained, moments(*relations(data[0], rest)))
    assert not RING.equal(maintained, total)


def test_dependent_features_are_reported_and_a_ridge_term_decides():
    ring = MatrixRing(("x", "twice", "y"))
    total = ring.zero
    for x in range(4):
        point = ring.multiply(ring.lift("x")(x), ring.lift("twice")(2 * x))
        total = ring.add(total, ring.multiply(point, ring.lift("y")(3 * x)))
    with pytest.raises(RingError, match="ridge"):
        least_squares(ring, total, "y")
    assert least_squares(ring, total, "y", ridge=1e-6).predict({"x": 2, "twice": 4}) == (
        pytest.approx(6, abs=1e-3)
    )


def test_an_unknown_variable_is_named_with_a_suggestion():
    with pytest.raises(RingError, match=r'no variable "prize".*"price"'):
        RING.lift("prize")


def test_the_product_of_two_values_of_one_variable_has_both_cross_terms():
    product = RING.multiply(RING.lift("age")(2), RING.lift("age")(5))
    assert RING.sum_of(product, "age") == 2 + 5
    assert RING.sum_of_products(product, "age", "age") == (2 + 5) ** 2
