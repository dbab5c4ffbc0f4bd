"""The sockets: clients on one side, the backing server on the other, each conversation in its own thread."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from typing import Any, Final, Protocol

from .cluster import Upstream
from .errors import CommandError
from .faults import CutMoment
from .wire import (
    MORE_TO_COME,
    Message,
    command_message,
    decode_command,
    decode_reply,
    read_message,
    reply_message,
)

Address = tuple[str, int]
Command = dict[str, Any]

HANDSHAKES: Final = ("hello", "isMaster", "ismaster")


class Desk(Protocol):
    """Who decides about the commands that come in."""

    def cut(self, name: str, body: Command) -> CutMoment | None:
        """Whether and when the connection breaks over this command."""

    def answer(self, name: str, body: Command, upstream: Upstream) -> Command | None:
        """The stand-in's own answer, or None for a command that the backing server answers."""

    def forwarded(self, name: str, body: Command) -> None:
        """The backing server has answered this command."""


class Proxy:
    """Listens on a port of its own and lets `desk` and the backing server answer."""

    def __init__(self, backing: Address, desk: Desk) -> None:
        self._backing = backing
        self._desk = desk
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._listener.getsockname()
        self._lock = threading.Lock()
        self._conversations: dict[Conversation, threading.Thread] = {}
        self._stopping = False
        self._acceptor = threading.Thread(target=self._accept, name="atlas-standin", daemon=True)
        self._acceptor.start()

    def stop(self) -> None:
        """Close every socket and wait for every thread."""
        self._stopping = True
        # accept() does not notice a close everywhere; a last visitor wakes it on any platform.
        with contextlib.suppress(OSError):
            socket.create_connection(self.address, timeout=1).close()
        self._acceptor.join()
        self._listener.close()
        with self._lock:
            remaining = dict(self._conversations)
        for conversation in remaining:
            conversation.hang_up()
        for thread in remaining.values():
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._stopping:
                client.close()
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._converse(client)

    def _converse(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._backing, timeout=10)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conversation = Conversation(client, server, self._desk, self.address)
        thread = threading.Thread(target=self._run, args=(conversation,), name="atlas-standin-client", daemon=True)
        with self._lock:
            self._conversations[conversation] = thread
        thread.start()

    def _run(self, conversation: Conversation) -> None:
        try:
            conversation.run()
        finally:
            with self._lock:
                self._conversations.pop(conversation, None)


class Conversation:
    """One client's connection, and the connection to the backing server that is its own."""

    def __init__(self, client: socket.socket, server: socket.socket, desk: Desk, address: Address) -> None:
        self._client = client
        self._server = server
        self._desk = desk
        self._address = address
        self._request_ids = itertools.count(1 << 30)

    def run(self) -> None:
        with self._client, self._server, contextlib.suppress(OSError):
            while (message := read_message(self._client)) is not None:
                reply = self._reply_to(message)
                if reply is None:
                    return
                if not message.flags & MORE_TO_COME:
                    self._client.sendall(reply.framed())

    def hang_up(self) -> None:
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def ask(self, body: Command) -> Command:
        """Run a command on the backing server, as this client."""
        reply = self._exchange(command_message(body, next(self._request_ids)))
        if reply is None:
            raise ConnectionResetError("the backing server closed the connection")
        return decode_reply(reply)

    def _reply_to(self, message: Message) -> Message | None:
        """The reply to send, or None where the connection breaks instead."""
        body = decode_command(message)
        name = next(iter(body))
        if name in HANDSHAKES:
            return self._handshake(message)
        moment = self._desk.cut(name, body)
        if moment == "before":
            return None
        reply = self._answer(message, name, body)
        return None if moment == "after" else reply

    def _answer(self, message: Message, name: str, body: Command) -> Message | None:
        try:
            own = self._desk.answer(name, body, self)
            if own is not None:
                return reply_message(own, message)
            reply = self._exchange(message)
            self._desk.forwarded(name, body)
            return reply
        except CommandError as error:
            return reply_message(error.reply(), message)
        except OSError:
            return None
        except Exception as error:
            # A fault of this tool must reach the test, not end in a thread.
            return reply_message(CommandError(1, f"The Atlas stand-in failed: {error!r}").reply(), message)

    def _exchange(self, message: Message) -> Message | None:
        self._server.sendall(message.asking_for_one_plain_reply().framed())
        return read_message(self._server)

    def _handshake(self, message: Message) -> Message | None:
        """The server's greeting, with this proxy as the only member of whatever it is a member of."""
        reply = self._exchange(message)
        if reply is None:
            return None
        greeting = decode_reply(reply)
        here = f"{self._address[0]}:{self._address[1]}"
        if "hosts" in greeting:
            greeting |= {"hosts": [here], "me": here, "passives": [], "arbiters": []}
        if "primary" in greeting:
            greeting["primary"] = here
        # Without a topology version drivers poll instead of waiting for pushes; and compressed messages
        # could not be read here.
        for name in ("topologyVersion", "compression"):
            greeting.pop(name, None)
        return reply_message(greeting, message)
