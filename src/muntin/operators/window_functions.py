"""Window functions on signed rows: running aggregates, LAG, LEAD and the values of frames.

Computes at every instant what SQL computes over the rows that are there. A row that comes or goes
changes the values of the rows whose frames it enters, leaves or moves; only those are read again,
and only rows whose values change are emitted, the old row and the new one.

State: all rows of the input in order, with their values. Cost: O(log n) per change and per row
whose frame it matters to, for n rows of a group. What is kept of arguments is declared by the
functions of :mod:`muntin.aggregates`, as for groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.evaluator import Evaluator
from muntin.kernels import window_functions as kernels
from muntin.kernels.jit import prepare_part
from muntin.model.arrays import Integers
from muntin.operators.frame_layout import FramePlan, plan_frames
from muntin.operators.operator import Operator
from muntin.operators.order_words import OrderWords, tells_apart
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes
from muntin.operators.window_values import aggregate_values
from muntin.plan.window_functions import WindowCall, WindowFunctions
from muntin.state.framed_rows import FramedRows
from muntin.state.group_table import GroupTable


class WindowFunctionsOperator(Operator):
    """Runs the calls of one order."""

    keeps_rows = True

    def __init__(self, node: WindowFunctions, evaluator: Evaluator) -> None:
        prepare_part("window functions")
        self._node = node
        self._evaluator = evaluator
        self._groups = GroupTable()
        schema = node.input.schema
        self._order = OrderWords(schema, node.order)
        self._hashes = not tells_apart(node.order, range(len(schema)), node.input)
        words = self._order.count(len(node.order)) + (2 if self._hashes else 0)
        peers = self._order.count(node.peers)
        self._plan: FramePlan = plan_frames(node, words, peers)
        self._rows = FramedRows(schema, self._plan.layout)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of rows and of their values that changes of rows make."""
        (changes,) = inputs
        node, rows = self._node, self._rows
        if not len(changes):
            return Changes.none(node.schema)
        slots = self._groups.touch(self._numbers(changes.columns), changes.times)
        self._groups.count(slots, changes.signs)
        rows.reserve(self._groups.capacity)
        words = self._order.words(changes.columns, rows)
        if self._hashes:
            words.extend(row_keys(changes.columns, self._evaluator))
        first = words[:2]
        for argument in self._plan.arguments:
            words.extend(argument.words(changes.columns, rows, self._evaluator))
        bounds, reach = self._plan.keys(changes.columns, first)
        words.extend(bounds)
        coming = pa.array(np.flatnonzero(changes.signs > 0))
        rows.append(changes.columns.take(coming))
        found = rows.apply(slots, changes.signs, np.column_stack(words), reach)
        columns = rows.rows(found)
        for call in node.calls:
            columns = columns.append_column(call.name, self._values(call, found, columns))
        self._groups.release(slots)
        rows.clean()
        signs = np.ascontiguousarray(found[:, kernels.SIGN])
        return Changes(columns, changes.times[found[:, kernels.AT]], signs)

    def _numbers(self, columns: pa.Table) -> Integers:
        """Return the numbers of the groups of rows."""
        if self._node.keys:
            keys = columns.select(self._node.keys)
            return self._groups.find(*row_keys(keys, self._evaluator))
        nothing = np.zeros(columns.num_rows, np.int64)
        return self._groups.find(nothing, nothing)

    def _values(self, call: WindowCall, found: Integers, columns: pa.Table) -> pa.Array:
        """Return the values of a call for results, whose rows are given."""
        readings = self._plan.readings[call.name]
        parts = [found[:, kernels.RESULTS + self._rows.places[at] :] for at in readings]
        kinds = [self._plan.layout.readings[at].kind for at in readings]
        if kinds != [kernels.NTH]:
            return aggregate_values(call, list(zip(kinds, parts, strict=True)), self._rows)
        assert call.argument is not None, "functions of rows have one"
        places = np.ascontiguousarray(parts[0][:, 0])
        values = self._rows.values(places, call.argument)
        if call.default is None:
            return values
        other = columns.column(call.default).combine_chunks()
        return pc.if_else(pa.array(places == kernels.MISSING), other, values)

    def groups(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._groups.nbytes() + self._rows.nbytes()
