"""Deadlines for blocking calls on sockets, kept by the kernel."""

from __future__ import annotations

import socket
import struct


def limit(
    own: socket.socket,
    seconds: float,
    *options: int,
) -> None:
    """Let calls take at most some seconds, 0 for no limit; by default receiving and sending."""
    own.setblocking(True)
    value = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
    for option in options or (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        own.setsockopt(socket.SOL_SOCKET, option, value)
