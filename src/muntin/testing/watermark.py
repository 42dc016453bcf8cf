"""Up to which instant the rows of all streams are complete: the rule of INTERFACE section 2, for the oracle's side.

Without ``advance`` that is everything before the least, over the streams, of the newest time seen minus the slack (rows
of that very time may still come); ``advance`` completes an instant itself. A row of a completed instant is late.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Watermark:
    """Follows the times of the rows that are fed; all times in microseconds."""

    _slack: dict[str, int] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _advanced: int | None = None

    def declare(self, stream: str, slack: int) -> None:
        """A further stream counts from now on."""
        self._slack[stream.casefold()] = slack

    def arrive(self, stream: str, time: int) -> bool:
        """Take note of a row; whether it is in time."""
        name = stream.casefold()
        complete = self.complete
        if complete is not None and time <= complete:
            return False
        self._newest[name] = max(time, self._newest.get(name, time))
        return True

    def advance(self, at: int) -> None:
        """Nothing up to ``at`` will come any more."""
        self._advanced = at if self._advanced is None else max(at, self._advanced)

    @property
    def complete(self) -> int | None:
        """The last instant that is complete, if there is one."""
        seen = None
        if self._slack and self._newest.keys() >= self._slack.keys():
            seen = min(self._newest[name] - slack for name, slack in self._slack.items()) - 1
        known = [instant for instant in (seen, self._advanced) if instant is not None]
        return max(known, default=None)
