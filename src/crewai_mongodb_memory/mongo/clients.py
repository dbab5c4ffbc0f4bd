"""Connections: the clients that reach a store.

A client is made at its first use, never before: CrewAI builds a storage for every flow, whether it uses memory or
not. All backends of a process that say the same connection string and options share one client; the last of them to
close closes it. After a fork the child makes its own. On asyncio there is one client an event loop, closed with it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from pymongo import AsyncMongoClient, MongoClient
from pymongo.driver_info import DriverInfo
from pymongo.errors import ConnectionFailure
from pymongo.read_preferences import ReadPreference

from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.lifecycle.locks import ForkSafeLock
from crewai_mongodb_memory.local.server import LocalServer, local_folder
from crewai_mongodb_memory.mongo.connection_string import check_acknowledged, is_local
from crewai_mongodb_memory.pure.documents import CODEC_OPTIONS
from crewai_mongodb_memory.version import __version__

__all__ = ["Connection"]

APP_NAME = "devrel-integ-crewai-python"
DRIVER_NAME = "crewai-mongodb-memory"
SERVER_SELECTION_TIMEOUT_MS = 10_000  # PyMongo's 30 s, times CrewAI's retries and threads, looks like a hang
FIXED_OPTIONS = {"appname", "driver"}


class Connection:
    """A backend's hold on the shared clients: taken at the first use, given back by ``close``.

    Args:
        connection_string: as checked by :func:`checked_connection_string`.
        options: for ``MongoClient`` and ``AsyncMongoClient``.
    """

    def __init__(self, connection_string: str, database_name: str, options: Mapping[str, Any]) -> None:
        fixed = FIXED_OPTIONS & {name.lower() for name in options}
        if fixed:
            raise InvalidArgumentError(
                f"{', '.join(sorted(fixed))} cannot be set: they name this library to the server"
            )
        check_acknowledged(options)
        self._connection_string = connection_string
        self._database_name = database_name
        self._options = dict(options)
        self._clients: _Clients | None = None
        self._lock = ForkSafeLock()

    @contextmanager
    def collections(self) -> Iterator[Callable[[str], Any]]:
        """Give a function from names to ``Collection``, and keep the client open as long as it is in use."""
        clients = self._hold()
        try:
            yield partial(clients.collection, self._database_name)
        except ConnectionFailure:
            self._renew_local(clients)
            raise
        finally:
            clients.give_back()

    @asynccontextmanager
    async def acollections(self) -> AsyncIterator[Callable[[str], Any]]:
        """Same as :meth:`collections`, for ``AsyncCollection`` of the running loop's client."""
        clients = self._hold()
        try:
            if is_local(self._connection_string):
                await asyncio.to_thread(clients.uri)
            yield partial(_collection, await clients.aclient(), self._database_name)
        except ConnectionFailure:
            self._renew_local(clients)
            raise
        finally:
            clients.give_back()

    def close(self) -> None:
        """Give the clients back; a later use takes them again. Closing twice is fine."""
        with self._lock:
            clients, self._clients = self._clients, None
        if clients is not None:
            clients.give_back()

    async def aclose(self) -> None:
        """Same as :meth:`close`, and waits for the running loop's client to close if nobody else holds it."""
        with self._lock:
            clients, self._clients = self._clients, None
        if clients is not None:
            await asyncio.to_thread(clients.give_back)
            if not clients.is_held:
                await clients.aclose_here()

    def _renew_local(self, clients: _Clients) -> None:
        """After a lost connection, let the next use look for the embedded server again, and start it if it is gone."""
        if not is_local(self._connection_string):
            return
        with self._lock:
            is_current = self._clients is clients
            if is_current:
                self._clients = None
        if is_current:
            clients.forget()
            clients.give_back()

    def _hold(self) -> _Clients:
        """Hold the clients once more, for one operation: whoever closes meanwhile does not cut it off."""
        with self._lock:
            if self._clients is None or self._clients.process != os.getpid():
                self._clients = _Clients.take(self._connection_string, self._options)
            return self._clients.hold()


def _collection(client: Any, database_name: str, name: str) -> Any:
    # Read from the primary whatever the URI prefers: a memory just saved has to be there for the next recall.
    return client[database_name].get_collection(
        name, codec_options=CODEC_OPTIONS, read_preference=ReadPreference.PRIMARY
    )


class _Clients:
    """The clients of one process for one connection string and set of options, and how many hold them."""

    _shared: ClassVar[dict[object, _Clients]] = {}
    _sharing = ForkSafeLock()

    def __init__(self, connection_string: str, options: Mapping[str, Any]) -> None:
        self.process = os.getpid()
        self._connection_string = connection_string
        self._options = options
        self._holders = 0
        self._lock = threading.RLock()
        self._server: LocalServer | None = None
        self._client: MongoClient[Any] | None = None
        self._collections: dict[tuple[str, str], Any] = {}
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[AsyncMongoClient[Any], None]]
        self._loops = WeakKeyDictionary()
        self._aclients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncMongoClient[Any]] = WeakKeyDictionary()

    @classmethod
    def take(cls, connection_string: str, options: Mapping[str, Any]) -> _Clients:
        key = (connection_string, tuple(sorted((name, repr(value)) for name, value in options.items())))
        with cls._sharing:
            clients = cls._shared.setdefault(key, cls(connection_string, options))
            clients._holders += 1
            return clients

    @property
    def is_held(self) -> bool:
        return self._holders > 0

    def give_back(self) -> None:
        if self.process != os.getpid():
            return
        with _Clients._sharing:
            self._holders -= 1
            if self._holders:
                return
            self._unshare()
        self.close()

    def hold(self) -> _Clients:
        with _Clients._sharing:
            self._holders += 1
            return self

    def forget(self) -> None:
        """Share these clients with nobody who does not hold them yet."""
        with _Clients._sharing:
            self._unshare()

    def _unshare(self) -> None:
        for key in [key for key, clients in _Clients._shared.items() if clients is self]:
            del _Clients._shared[key]

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            self._collections = {}
            server, self._server = self._server, None
        if client is not None:
            client.close()
        if server is not None:
            server.leave()

    def uri(self) -> str:
        if not is_local(self._connection_string):
            return self._connection_string
        with self._lock:
            if self._server is None:
                self._server = LocalServer.join(Path(local_folder(self._connection_string)))
            return self._server.uri

    def client(self) -> MongoClient[Any]:
        with self._lock:
            if self._client is None:
                self._client = MongoClient(self.uri(), **self._client_options())
            return self._client

    def collection(self, database_name: str, name: str) -> Any:
        """A ``Collection`` of the synchronous client, made once: that takes longer than much else of a call."""
        made = self._collections.get((database_name, name))
        if made is None:
            client = self.client()
            with self._lock:
                made = _collection(client, database_name, name)
                if client is self._client:
                    self._collections[database_name, name] = made
        return made

    async def aclient(self) -> AsyncMongoClient[Any]:
        """The running loop's client. The generator that owns it is ended by the loop itself, when that closes."""
        loop = asyncio.get_running_loop()
        if loop not in self._aclients:
            owner = self._own_client()
            self._loops[loop] = owner
            self._aclients[loop] = await anext(owner)
        return self._aclients[loop]

    async def aclose_here(self) -> None:
        loop = asyncio.get_running_loop()
        self._aclients.pop(loop, None)
        owner = self._loops.pop(loop, None)
        if owner is not None:
            await owner.aclose()

    async def _own_client(self) -> AsyncGenerator[AsyncMongoClient[Any], None]:
        client: AsyncMongoClient[Any] = AsyncMongoClient(self.uri(), **self._client_options())
        try:
            yield client
        finally:
            for by_loop in (self._loops, self._aclients):
                by_loop.pop(asyncio.get_running_loop(), None)
            await client.close()

    def _client_options(self) -> dict[str, Any]:
        options = dict(self._options)
        said = [*options, self._connection_string.partition("?")[2]]
        if not any("serverselectiontimeoutms" in one.lower() for one in said):
            options["serverSelectionTimeoutMS"] = SERVER_SELECTION_TIMEOUT_MS
        return options | {"appname": APP_NAME, "driver": DriverInfo(DRIVER_NAME, __version__)}


def _close_all() -> None:
    for clients in list(_Clients._shared.values()):
        clients.close()


_inherited: list[object] = []


def _start_anew_in_child() -> None:
    """Leave the parent's clients alone: closing or collecting them in the child would disturb the parent."""
    _inherited.append(_Clients._shared)
    _Clients._shared = {}


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew_in_child)
