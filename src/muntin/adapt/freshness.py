"""Freshness turned into refresh rates, at the least cost [Mukherji11, section 4.2].

In a state with a fixed number of rows, an intermediate result stays until that number of newer ones
has arrived: rows over rate. A row of a stream appears in results for at most the sum of these times
along its path (Lemma 1), so its freshness bounds the rates. The paper leaves the rates open: a
higher rate in one state allows a lower one in the next. We take those whose best cover by paths
costs least. With ``x`` rows per second sent up from each leaf, the rates are linear in ``x`` and
the sums of Lemma 1 convex, so the problem is convex, with one variable per leaf. Newton steps under
a logarithmic barrier solve it in milliseconds without a library. Rates are averages: to keep
results fresh despite random variation, states are refreshed faster (``PlanModel.chance``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from muntin.adapt.model import PlanModel

Vector = NDArray[np.float64]

_EXACT = 1e-7
"""Relative distance from the least cost at which the search ends."""
_TIGHTEN = 30.0
_MOST_STEPS = 60
_ROOM = 1e-9


def residence(model: PlanModel, arrivals: tuple[float, ...]) -> tuple[float, ...]:
    """Return the seconds of Lemma 1 for each leaf: the stay of its rows in states along the path.

    ``arrivals`` has the rows per second that arrive in each state.
    """
    found = []
    for leaf, path in enumerate(model.shape.paths):
        seconds = model.windows[leaf]
        for h in path[1:]:
            seconds += (
                0.0
                if model.own[h] == 0
                else model.held(h) / arrivals[h]
                if arrivals[h] > 0
                else inf
            )
        found.append(seconds)
    return tuple(found)


def is_fresh(model: PlanModel, budgets: tuple[float, ...], tolerance: float = 1e-6) -> bool:
    """Return whether Lemma 1 holds for every stream under probe budgets.

    It always does where intermediate results leave with their members.
    """
    if not model.fixed:
        return True
    seconds = residence(model, model.flow(budgets).arrivals)
    return all(
        have <= allowed * (1 + tolerance)
        for have, allowed in zip(seconds, model.freshness, strict=True)
    )


@dataclass(frozen=True)
class RefreshProblem:
    """Find the shares of each leaf's rows to send up so that the states are refreshed in time.

    ``feeding`` has the arrivals per second in each state from each leaf when all its rows are sent
    up; ``rows`` the sizes of the states; ``on_path`` which states lie on the path of each stream
    with a freshness; ``windows`` and ``allowed`` the seconds of that stream in its own state and in
    all; ``costs`` the resources when all rows of a leaf are sent up.
    """

    feeding: Vector
    rows: Vector
    on_path: Vector
    windows: Vector
    allowed: Vector
    costs: Vector

    @classmethod
    def of(cls, model: PlanModel) -> RefreshProblem | None:
        """Return the problem of a plan; None if nothing has to be refreshed."""
        shape = model.shape
        leaves = [leaf for leaf in range(shape.leaves) if model.freshness[leaf] < inf]
        states = [
            h
            for h in shape.susceptible
            if model.own[h] > 0 and any(h in shape.paths[leaf] for leaf in leaves)
        ]
        if not model.fixed or not leaves or not states:
            return None
        feeding = np.zeros((len(states), shape.leaves))
        for leaf, path in enumerate(shape.paths):
            for hop, h in enumerate(path[1:]):
                if h in states:
                    feeding[states.index(h), leaf] = (
                        model.rates[leaf] * model.cardinalities[leaf][hop]
                    )
        return cls(
            feeding,
            np.array([model.held(h) for h in states]),
            np.array([[float(h in shape.paths[leaf]) for h in states] for leaf in leaves]),
            np.array([model.windows[leaf] for leaf in leaves]),
            np.array([model.freshness[leaf] for leaf in leaves]),
            np.array([model.path_limit(leaf) for leaf in range(shape.leaves)]),
        )

    def seconds(self, shares: Vector) -> Vector:
        """Return the sums of Lemma 1 for each stream; infinite where a state is never refreshed."""
        rates = self.feeding @ shares
        each: Vector = np.divide(self.rows, rates, out=np.full(len(rates), inf), where=rates > 0)
        held: Vector = (
            self.on_path @ each
            if np.all(rates > 0)
            else np.array([each[path > 0].sum() for path in self.on_path])
        )
        together: Vector = self.windows + held
        return together

    def least_cost(self) -> Vector | None:
        """Return the shares of least cost; None if even all rows are too few."""
        every = np.ones(len(self.costs))
        slack = self.allowed - self.windows
        needed = self.seconds(every) - self.windows
        concerned = self.on_path.any(axis=1)
        if np.any(slack < 0) or np.any(needed > slack):
            return None
        if not concerned.any():
            return np.zeros(len(self.costs))
        ratio = float(np.max(needed[concerned] / slack[concerned]))
        if ratio >= 1 - _ROOM:
            return every
        scale = max(float(self.costs.sum()), 1e-300)
        start = np.append(every * min((1 + ratio) / 2, 2 * ratio), 1.0)
        found = self._descend(start, np.append(self.costs / scale, 0.0), budget=inf)[:-1]
        # Seconds in states are inverse to the rates: all shares can be scaled down together until
        # the first sum is reached.
        tight = float(np.max((self.seconds(found) - self.windows)[concerned] / slack[concerned]))
        return np.minimum(found * min(tight, 1.0), 1.0)

    def least_factor(self, resources: float) -> float:
        """Return the least factor on all freshness for which the resources suffice."""
        total = float(self.costs.sum())
        budget = min(resources / total, 1.0) if total > 0 else 1.0
        shares = np.full(len(self.costs), 0.5 * budget)
        seconds = self.seconds(shares)
        if not np.all(np.isfinite(seconds)) or np.any(self.allowed <= 0):
            return inf
        factor = float(np.max(seconds / self.allowed))
        start = np.append(shares, factor * 1.5)
        scale = max(total, 1e-300)
        direction = np.zeros(len(start))
        direction[-1] = 1.0 / factor
        return float(self._descend(start, direction, budget=resources / scale)[-1])

    def _descend(self, start: Vector, direction: Vector, budget: float) -> Vector:
        """Minimize along a direction, starting strictly inside all bounds.

        Returns the shares and the factor; the factor stays where the direction does not contain it.
        ``budget`` bounds the resources as a share of their total.
        """
        fixed = direction[-1] == 0
        point = start
        bounds = len(self.allowed) + 2 * len(self.costs) + 1
        weight = bounds / max(float(direction @ start), 1e-300)
        while bounds / weight > _EXACT * float(direction @ point):
            for _ in range(_MOST_STEPS):
                slope, curve = self._barrier(point, budget)
                slope = slope + weight * direction
                if fixed:
                    slope, curve = slope[:-1], curve[:-1, :-1]
                step = _newton(curve, slope)
                decrement = float(-slope @ step)
                if decrement < 1e-8:
                    break
                step = np.append(step, 0.0) if fixed else step
                point = self._along(point, step, weight * direction, budget)
            weight *= _TIGHTEN
        return point

    def _slacks(self, point: Vector, budget: float) -> Vector:
        """Return the slack of every bound."""
        shares = point[:-1]
        of_lemma = point[-1] * self.allowed - self.seconds(shares)
        spent = float(self.costs @ shares) / max(float(self.costs.sum()), 1e-300)
        rest = [budget - spent] if budget < inf else []
        return np.concatenate([of_lemma[self._bounding], shares, 1.0 - shares, rest])

    @property
    def _bounding(self) -> NDArray[np.bool_]:
        """Return the streams whose freshness bounds more than their own window."""
        found: NDArray[np.bool_] = np.any(self.on_path > 0, axis=1)
        return found

    def _barrier(self, point: Vector, budget: float) -> tuple[Vector, NDArray[np.float64]]:
        """Return gradient and Hessian of the negative sum of the logarithms of all slacks."""
        shares = point[:-1]
        rates = self.feeding @ shares
        bounding = self._bounding
        on_path = self.on_path[bounding]
        slack = (point[-1] * self.allowed - self.seconds(shares))[bounding]
        normals = np.column_stack(
            [on_path @ (self.feeding * (self.rows / rates**2)[:, None]), self.allowed[bounding]]
        )
        slope = -(normals / slack[:, None]).sum(axis=0)
        curve = (normals / slack[:, None] ** 2).T @ normals
        bend = (on_path / slack[:, None]).sum(axis=0) * 2 * self.rows / rates**3
        curve[:-1, :-1] += self.feeding.T @ (self.feeding * bend[:, None])
        slope[:-1] += 1 / (1 - shares) - 1 / shares
        curve[:-1, :-1] += np.diag(1 / (1 - shares) ** 2 + 1 / shares**2)
        if budget < inf:
            price = self.costs / max(float(self.costs.sum()), 1e-300)
            rest = budget - float(price @ shares)
            slope[:-1] += price / rest
            curve[:-1, :-1] += np.outer(price, price) / rest**2
        return slope, curve

    def _along(self, point: Vector, step: Vector, linear: Vector, budget: float) -> Vector:
        """Return a point along a step that is better and inside all bounds."""
        before = float(linear @ point) - float(np.log(self._slacks(point, budget)).sum())
        length = 1.0
        for _ in range(50):
            there = point + length * step
            slacks = self._slacks(there, budget)
            if np.all(slacks > 0) and float(linear @ there) - float(
                np.log(slacks).sum()
            ) <= before + 1e-12 * abs(before):
                return there
            length /= 2
        return point


def _newton(curve: NDArray[np.float64], slope: Vector) -> Vector:
    """Return the Newton step; each share is scaled by its curvature, as they differ widely."""
    unit = 1 / np.sqrt(np.diag(curve))
    step: Vector = -unit * np.linalg.solve(
        curve * np.outer(unit, unit) + 1e-12 * np.eye(len(unit)), unit * slope
    )
    return step
