"""The tree plan of a shape: by which codes siblings look each other up, from leaf to root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from muntin.errors import SettingError
from muntin.plan.join import TreeCheck, TreeNode, TreePlan, TreeStep
from muntin.plan.query import Query
from muntin.planner.classes import CodeRef
from muntin.planner.predicates import SortedPredicates
from muntin.planner.steps import FLIPPED, make_step
from muntin.planner.tree_choice import TreeShape, linear_shape, sources_of

Indexes = list[list[tuple[int, ...]]]


def shape_text(shape: TreeShape, aliases: Sequence[str]) -> str:
    """Return a shape as users write it.

    >>> shape_text(((0, 2), 1), ["A", "B", "C"])
    '((A, C), B)'
    """
    if isinstance(shape, int):
        return aliases[shape]
    return f"({shape_text(shape[0], aliases)}, {shape_text(shape[1], aliases)})"


def parse_shape(text: str, query: Query) -> TreeShape:
    """Return the shape that the setting ``tree`` describes.

    Every source once, two in each pair of brackets.
    """
    aliases = [source.alias for source in query.sources]
    names = {alias.casefold(): place for place, alias in enumerate(aliases)}
    example = shape_text(linear_shape(range(len(aliases))), aliases)
    hint = f"Write pairs in brackets, every source once, for example {example}"
    tokens = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()

    def fail(what: str) -> SettingError:
        return SettingError(f"the tree {text!r} of query {query.name} {what}", hint=hint)

    def take(expected: str | None = None) -> str:
        if not tokens or (expected and tokens[0] != expected):
            raise fail(
                f"lacks {expected or 'a source'!r}"
                + (f" before {tokens[0]!r}" if tokens else " at its end")
            )
        return tokens.pop(0)

    def read(depth: int) -> TreeShape:
        if depth > len(aliases):
            raise fail("has too many brackets")
        word = take()
        if word != "(":
            if word.casefold() not in names:
                raise fail(f"names {word!r}, which is not in FROM")
            return names[word.casefold()]
        left = read(depth + 1)
        take(",")
        right = read(depth + 1)
        take(")")
        return left, right

    shape = read(0)
    if tokens:
        raise fail(f"continues with {tokens[0]!r} after its end")
    if sorted(sources_of(shape)) != list(range(len(aliases))):
        raise fail("does not name every source once")
    return shape


class TreePlanner:
    """Builds the plan of one shape; notes the indexes that leaves need."""

    def __init__(
        self,
        parts: SortedPredicates,
        classes: Mapping[CodeRef, frozenset[CodeRef]],
        indexes: Indexes,
        indexed: AbstractSet[int],
    ) -> None:
        self._parts = parts
        self._classes = classes
        self._indexes = indexes
        self._indexed = indexed
        self._nodes: list[TreeNode] = []
        self._climbs: list[list[TreeStep]] = []

    def plan(self, shape: TreeShape, aliases: Sequence[str]) -> TreePlan:
        """Return the plan of a shape over all sources."""
        self._climbs = [[] for _ in aliases]
        self._build(shape, root=True)
        return TreePlan(
            shape_text(shape, aliases),
            tuple(self._nodes),
            tuple(tuple(path) for path in self._climbs),
        )

    def _build(self, shape: TreeShape, *, root: bool = False) -> int:
        """Plan a shape from below and return its number.

        Of the source, or of the node (-1 for the root).
        """
        if isinstance(shape, int):
            return shape
        sides = [(side, self._build(side)) for side in shape]
        parent = None if root else len(self._nodes)
        climbs = [
            self._climb(sides[1 - place], sources_of(side), parent)
            for place, (side, _) in enumerate(sides)
        ]
        for (side, _), climb in zip(sides, climbs, strict=True):
            for leaf in sources_of(side):
                self._climbs[leaf].append(climb)
        if root:
            return -1
        self._nodes.append(TreeNode(tuple(sorted(sources_of(shape))), ()))
        return len(self._nodes) - 1

    def _climb(
        self, sibling: tuple[TreeShape, int], bound: tuple[int, ...], parent: int | None
    ) -> TreeStep:
        shape, number = sibling
        if isinstance(shape, int):
            step = make_step(
                self._parts,
                self._classes,
                bound,
                shape,
                self._indexes[shape] if shape in self._indexed else None,
            )
            checks = tuple(
                TreeCheck(check.operator, (shape, check.code), (check.source, check.source_code))
                for check in step.checks
            )
            return TreeStep(shape, None, step.index, step.keys, checks, parent)
        own = sources_of(shape)
        key, keys, found = self._equalities(own, bound)
        found += self._comparisons(own, bound)
        self._nodes[number] = TreeNode(self._nodes[number].sources, tuple(key))
        return TreeStep(None, number, None, tuple(keys), tuple(found), parent)

    def _equalities(
        self, own: tuple[int, ...], bound: tuple[int, ...]
    ) -> tuple[list[CodeRef], list[CodeRef], list[TreeCheck]]:
        key, keys, checks = [], [], []
        for members in sorted(set(self._classes.values()), key=sorted):
            mine = sorted(node for node in members if node[0] in own)
            others = sorted(node for node in members if node[0] in bound)
            if not mine or not others:
                continue
            key.append(mine[0])
            keys.append(others[0])
            # Members of one side are equal to each other already, unless one source has two of
            # them.
            several = len({node[0] for node in members}) != len(members)
            pairs = [(a, b) for a in mine for b in others] if several else [(mine[0], others[0])]
            checks += [TreeCheck("=", a, b) for a, b in pairs]
        return key, keys, checks

    def _comparisons(self, own: tuple[int, ...], bound: tuple[int, ...]) -> list[TreeCheck]:
        checks = []
        for left, operator, right in self._parts.comparisons:
            if left[0] in own and right[0] in bound:
                checks.append(TreeCheck(operator, left, right))
            elif right[0] in own and left[0] in bound:
                checks.append(TreeCheck(FLIPPED[operator], right, left))
        return checks
