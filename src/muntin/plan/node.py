"""The base of all nodes of a plan tree: what every node declares, and traversal.

A node is a frozen dataclass. Its children are the fields that hold nodes, so traversal needs no
code per class. At every instant the rows of a node are those that SQL makes of the rows of its
children at that instant. Expressions name the columns of children as ``"0.k"``: column ``k`` of
the first one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from muntin.plan.description import Fact

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Node(ABC):
    """A node of a plan tree."""

    if TYPE_CHECKING:  # at run time it would hide the fields of that name

        @property
        def schema(self) -> pa.Schema:
            """Return the columns of its rows."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Return what it does, in a few words."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Return what ``explain`` shows of it besides the label."""
        return ()

    @property
    def begins(self) -> bool:
        """Return whether it has rows before any stream has one."""
        return False

    @property
    def expires_in_order(self) -> bool:
        """Return whether the rows that leave at an instant are always the oldest present."""
        return False

    @property
    def is_leaf(self) -> bool:
        """Return whether its changes come from a window join or partitions, not an operator."""
        return False

    @property
    def is_table(self) -> bool:
        """Return whether it is a stored table, whose rows never change."""
        return False

    # -- traversal ---------------------------------------------------------------------------------

    @cached_property
    def children(self) -> tuple[Node, ...]:
        """Return the nodes that it is over."""
        return tuple(child for name in self._child_fields for child in _nodes(getattr(self, name)))

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Return the nodes whose changes its operator takes; a window join has none."""
        return () if self.is_leaf else self.children

    def with_children(self, children: tuple[Node, ...]) -> Node:
        """Return the same node over other children."""
        if all(old is new for old, new in zip(self.children, children, strict=True)):
            return self
        rest = list(children)
        changed: dict[str, object] = {}
        for name in self._child_fields:
            value = getattr(self, name)
            if isinstance(value, Node):
                changed[name] = rest.pop(0)
            else:
                changed[name] = tuple(rest.pop(0) for _ in value)
        return cast("Node", replace(cast("DataclassInstance", self), **changed))

    def walk(self) -> Iterator[Node]:
        """Yield all nodes of the tree, children first."""
        for child in self.children:
            yield from child.walk()
        yield self

    def dataflow(self) -> Iterator[Node]:
        """Yield the nodes that changes flow through, inputs first.

        Not the scans of window joins.
        """
        for child in self.inputs:
            yield from child.dataflow()
        yield self

    def transform(self, rule: Callable[[Node], Node]) -> Node:
        """Return the tree with a rule applied to every node, children first."""
        return rule(self.with_children(tuple(child.transform(rule) for child in self.children)))

    @property
    def parameters(self) -> Hashable:
        """Everything that defines it besides its children."""
        own = (field.name for field in fields(cast("DataclassInstance", self)))
        return type(self), *(getattr(self, name) for name in own if name not in self._child_fields)

    @cached_property
    def _child_fields(self) -> tuple[str, ...]:
        names = (field.name for field in fields(cast("DataclassInstance", self)))
        return tuple(name for name in names if _nodes(getattr(self, name)))


def _nodes(value: object) -> tuple[Node, ...]:
    if isinstance(value, Node):
        return (value,)
    return value if isinstance(value, tuple) and value and isinstance(value[0], Node) else ()
