"""A TCP forwarder in front of a MongoDB server, which counts what a store says and hears.

It stands outside of the stores and of the driver, so it sees the same for each of them: whole messages as they are on
the wire, with their headers.
"""

from __future__ import annotations

import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import IO, Any

HEADER = struct.Struct("<4i")  # length, request id, id of the request that is answered, kind of message
OP_MSG = 2013
NAME_AT = 4 + 1 + 4 + 1  # behind flags, kind of section, length of the document, type of its first element

# The driver says these on its own: it logs in, and watches the server every ten seconds.
DRIVERS_OWN = {"hello", "ismaster", "saslStart", "saslContinue", "endSessions"}


@dataclass
class Traffic:
    """What passed since the counting began.

    Attributes:
        commands: their names, in order; each is one round trip.
    """

    commands: list[str] = field(default_factory=list)
    sent: int = 0
    received: int = 0

    def as_answer(self) -> dict[str, Any]:
        """What passed until now, for JSON."""
        return {"commands": list(self.commands), "sent": self.sent, "received": self.received}


class Forwarder:
    """Listens on ``port`` and forwards to ``server_port``, both on this machine, until the process ends."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._traffic = Traffic()
        threading.Thread(target=self._accept, daemon=True).start()

    def count(self) -> Traffic:
        """Begin to count anew; what is returned grows from now on."""
        self._traffic = Traffic()
        return self._traffic

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(("127.0.0.1", self._server_port))
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            counted: set[int] = set()
            threading.Thread(target=self._forward_requests, args=(client, server, counted), daemon=True).start()
            threading.Thread(target=self._forward_replies, args=(server, client, counted), daemon=True).start()

    def _forward_requests(self, client: socket.socket, server: socket.socket, counted: set[int]) -> None:
        with client.makefile("rb") as stream:
            while message := _next_message(stream):
                _, request_id, _, kind = HEADER.unpack_from(message)
                name = _command_name(message) if kind == OP_MSG else ""
                if name and name not in DRIVERS_OWN:
                    counted.add(request_id)
                    self._traffic.commands.append(name)
                    self._traffic.sent += len(message)
                server.sendall(message)
        server.shutdown(socket.SHUT_WR)

    def _forward_replies(self, server: socket.socket, client: socket.socket, counted: set[int]) -> None:
        with server.makefile("rb") as stream:
            while message := _next_message(stream):
                if HEADER.unpack_from(message)[2] in counted:
                    self._traffic.received += len(message)
                client.sendall(message)


def _next_message(stream: IO[bytes]) -> bytes:
    header = stream.read(HEADER.size)
    return header + stream.read(HEADER.unpack(header)[0] - HEADER.size) if len(header) == HEADER.size else b""


def _command_name(message: bytes) -> str:
    start = HEADER.size + NAME_AT
    return message[start : message.index(b"\0", start)].decode()
