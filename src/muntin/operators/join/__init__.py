"""Window joins: one driver that owns windows, frontier and room, and tactics that find matches.

``driver`` is where to begin reading; ``registry`` names the tactics and makes operators.
"""

from muntin.operators.join.driver import JoinOperator
from muntin.operators.join.events import NewRows
from muntin.operators.join.matches import Matches
from muntin.operators.join.registry import TacticOptions, Tools, make_join

__all__ = ["JoinOperator", "Matches", "NewRows", "TacticOptions", "Tools", "make_join"]
