"""Relation against a plain dict, under random sequences of updates, with indexes."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from viewkeep.rings import Relation

values = st.integers(0, 3)
rows = st.tuples(values, values, values)
multiplicities = st.integers(-2, 2)
INDEXES = [("a",), ("b",), ("b", "a"), ("a", "c"), (), ("a", "b", "c")]


class RelationMachine(RuleBasedStateMachine):
    """Every look-up and every group equals what a scan of the dict gives."""

    @initialize()
    def start(self):
        self.relation = Relation(("a", "b", "c"))
        self.model = Counter()
        self.indexes = []

    @rule(columns=st.sampled_from(INDEXES))
    def make_index(self, columns):
        self.indexes.append(self.relation.index_on(columns))

    @rule(row=rows, payload=multiplicities)
    def add(self, row, payload):
        self.relation.add(row, payload)
        self.count(row, payload)

    @rule(row=rows)
    def delete_completely(self, row):
        self.relation.add(row, -self.relation.lookup(row))
        self.model.pop(row, None)

    @rule(delta=st.dictionaries(rows, multiplicities, max_size=5))
    def update_with_columns_in_another_order(self, delta):
        turned = {(c, a, b): n for (a, b, c), n in delta.items()}
        self.relation.update(Relation.from_mapping(("c", "a", "b"), turned))
        for row, payload in delta.items():
            self.count(row, payload)

    @rule()
    def double(self):
        self.relation.update(self.relation)
        self.model = Counter({row: 2 * n for row, n in self.model.items()})

    def count(self, row, payload):
        self.model[row] += payload
        if not self.model[row]:
            del self.model[row]

    @invariant()
    def entries_equal_the_model(self):
        assert len(self.relation) == len(self.model)
        assert sorted(self.relation.items()) == sorted(self.model.items())
        for row in [(0, 0, 0), (1, 2, 3), *self.model]:
            assert self.relation.lookup(row) == self.model[row]
            assert (row in self.relation) == (self.model[row] != 0)

    @invariant()
    def groups_equal_a_scan(self):
        for index in self.indexes:
            places = ["abc".index(column) for column in index.columns]
            groups = {}
            for row, payload in self.model.items():
                groups.setdefault(tuple(row[i] for i in places), []).append((row, payload))
            assert len(index) == len(groups)
            for key in [*groups, (9,) * len(places)]:
                expected = sorted(groups.get(key, []))
                assert sorted(index.matches(key)) == expected
                assert index.group_size(key) == len(expected)
                assert (key in index) == bool(expected)


RelationMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestRelation = RelationMachine.TestCase
