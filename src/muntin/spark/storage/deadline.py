"""A deadline on work that cannot be interrupted.

Arrow has no timeouts for the requests of some file systems, and none of them can be canceled. So
the work runs in a thread, and the caller stops waiting for it. The thread ends when the work does;
it does not keep the process alive.

An interrupt (Ctrl-C) reaches the caller only. So a file that is being written is written to its
end, or not at all if the process ends: Arrow would otherwise close the stream that the interrupt
left, and an object store would keep an empty file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def within_deadline(seconds: float, work: Callable[[], T]) -> T:
    """Return what ``work`` returns, or raise what it raises.

    Raises
    ------
    TimeoutError
        When it takes longer than ``seconds``. It may still have its effect later.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 (the caller gets any error)
            done.set_exception(error)

    threading.Thread(target=run, name="muntin-storage", daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():
            return done.result()  # or it raises an error of the work itself
        raise TimeoutError(f"no answer for {seconds:g} seconds") from None
