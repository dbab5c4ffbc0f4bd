"""``MongoStorageBackend``: CrewAI's storage protocol, each method one line over an operation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

from crewai.memory.types import MemoryRecord, ScopeInfo

from crewai_mongodb_memory.async_methods import AsyncMethods
from crewai_mongodb_memory.lifecycle.copies import SharedByCopies
from crewai_mongodb_memory.lifecycle.locks import ForkSafeLock, SharedByKey
from crewai_mongodb_memory.mongo import driver
from crewai_mongodb_memory.mongo.clients import Connection
from crewai_mongodb_memory.mongo.connection_string import checked_connection_string, is_local, public_name
from crewai_mongodb_memory.operations import read, write
from crewai_mongodb_memory.operations.commands import Operation
from crewai_mongodb_memory.operations.ensure_indexes import IndexReport, Progress, ensure_indexes
from crewai_mongodb_memory.operations.recent_writes import RecentWrites
from crewai_mongodb_memory.operations.search import search
from crewai_mongodb_memory.operations.status import BackendStatus, status, wait_until_searchable
from crewai_mongodb_memory.operations.store import Settings, Store
from crewai_mongodb_memory.pure.search_route import SearchMode
from crewai_mongodb_memory.pure.vectors import VectorFormat

__all__ = ["MongoStorageBackend"]

P = ParamSpec("P")
T = TypeVar("T")


class MongoStorageBackend(AsyncMethods, SharedByCopies):
    """CrewAI's memory on MongoDB: pass it as ``Memory(storage=…)``.

    Building one does no I/O. It is safe to share among threads, event loops and forks; a pickle of one holds its
    connection string. Every method has an asynchronous twin (``asave``, ``asearch``, …) on ``AsyncMongoClient``.

    Args:
        connection_string: ``mongodb+srv://…`` or ``mongodb://…`` for a server; ``"local"`` or ``"local:./folder"``
            for an embedded one that keeps its data in a folder. None takes ``$MONGODB_URI``, then ``$ATLAS_URI``.
        database_name: the database.
        collection_name: the collection of records.
        dimensions: of every embedding; None takes those of the first one stored.
        vector_format: how embeddings are stored: ``"double"`` (an array) or ``"float32"`` (a BSON vector, a third
            of the size). None is double on servers and float32 on the embedded one.
        vector_search_index: the name of the vector search index.
        search_mode: ``"auto"`` searches through the vector index where it serves, and exactly where it does not,
            saying so once in the log; ``"atlas"`` raises instead; ``"exact"`` never asks for an index. The embedded
            server has none, and ``"auto"`` is exact there.
        num_candidates: how many candidates an approximate search considers, up to 10,000. None takes 20 for each
            hit, and at least 100.
        exact_limit: the most records that one exact search may score.
        read_your_writes: seconds for which a record that this process saved or changed is found although the vector
            index does not have it yet; 0 is off.
        tenant: a hard partition. With it every read, write and delete is confined to this tenant's records;
            without it a backend sees the records of all.
        auto_setup: create missing indexes at the first save.
        client_options: for ``MongoClient``; ``appname`` and ``driver`` cannot be set.

    Raises:
        InvalidArgumentError: an argument cannot be used.
    """

    def __init__(
        self,
        connection_string: str | None = None,
        *,
        database_name: str = "crewai_memory",
        collection_name: str = "memories",
        dimensions: int | None = None,
        vector_format: VectorFormat | None = None,
        vector_search_index: str = "idx_crewai_memory",
        search_mode: SearchMode = "auto",
        num_candidates: int | None = None,
        exact_limit: int = 50_000,
        read_your_writes: float = 60.0,
        tenant: str | None = None,
        auto_setup: bool = True,
        **client_options: Any,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name in ARGUMENTS} | client_options
        uri = checked_connection_string(connection_string)
        default_format: VectorFormat = "float32" if is_local(uri) else "double"
        has_no_index = is_local(uri) and search_mode == "auto"
        settings = Settings(
            database=database_name,
            collection=collection_name,
            tenant=tenant,
            dimensions=dimensions,
            vector_format=vector_format or default_format,
            vector_search_index=vector_search_index,
            search_mode="exact" if has_no_index else search_mode,
            num_candidates=num_candidates,
            exact_limit=exact_limit,
            read_your_writes=read_your_writes,
            auto_setup=auto_setup,
        )
        lag = 0.0 if settings.search_mode == "exact" else read_your_writes
        recent = _recent_writes.get((public_name(uri), database_name, collection_name))
        recent.keep_for(lag)
        self._store = Store(settings, recent)
        self._connection = Connection(uri, database_name, client_options)
        self._name = public_name(uri)

    @property
    def _json_name(self) -> str:
        """The connection string without credentials and options: what a factory knows its own backends by."""
        return self._name

    def __repr__(self) -> str:
        settings = self._store.settings
        tenant = "" if settings.tenant is None else f", tenant={settings.tenant!r}"
        return (
            f"MongoStorageBackend({self._name!r}, database_name={settings.database!r}, "
            f"collection_name={settings.collection!r}{tenant})"
        )

    # Records

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records by id, in order, replacing those that exist; it is safe to repeat.

        All records are checked before any is sent, with one insert, and where an id is taken one bulk write more. A
        record without an embedding is kept and listed, but no search finds it.

        Raises:
            InvalidRecordError: a record cannot be stored, or its id belongs to another tenant.
            DimensionMismatchError: an embedding does not fit the store.
        """
        self._run(write.save, records)

    def update(self, record: MemoryRecord) -> None:
        """Change the fields that the record was built with (``model_fields_set``); an unknown id writes nothing.

        What was not given stays: CrewAI's consolidation leaves out ``source`` and ``private``. An embedding of
        None keeps the stored one. To clear ``source``, give it as None.

        Raises:
            InvalidRecordError: a field cannot be stored; nothing was written.
            DimensionMismatchError: the embedding does not fit the store.
        """
        self._run(write.update, record)

    def touch_records(self, record_ids: list[str]) -> None:
        """Set ``last_accessed`` of these records to now; unknown ids are passed over."""
        self._run(write.touch_records, record_ids)

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that meet every given criterion and return how many there were.

        A criterion that is given but empty matches nothing. ``scope_prefix="/"`` is everything. ``categories``:
        any of them; ``metadata_filter``: all of it; ``older_than``: ``created_at`` before it, naive is UTC.

        Raises:
            InvalidArgumentError: no criterion at all, or one that is not what it should be.
        """
        return self._run(write.delete, scope_prefix, categories, record_ids, older_than, metadata_filter)

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete every record in a scope, or all; the collection and its indexes stay."""
        self._run(write.reset, scope_prefix)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record with its embedding, or None."""
        return self._run(read.get_record, record_id)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records without their embeddings, newest ``created_at`` first, equal ones by id.

        Change one with :meth:`update`: :meth:`save` would store it without an embedding.
        """
        return self._run(read.list_records, scope_prefix, limit, offset)

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records nearest to a query with their scores, best first, equal ones by id.

        The filters choose the candidates before they are ranked: the scope and all below it, any of the categories,
        all of the metadata (a list in it: all of its elements). The score is the cosine, clamped to [0, 1]; with
        ``min_score`` at 0 opposite vectors come too, at 0.0. A query of zeros finds nothing.

        Raises:
            InvalidArgumentError: the query or a filter is not what it should be.
            DimensionMismatchError: the query does not fit the store.
            ExactSearchTooLargeError: an exact search, and the filters leave more than ``exact_limit`` candidates.
            VectorIndexMissingError, VectorIndexNotReadyError, VectorIndexFailedError, VectorSearchUnavailableError:
                with ``search_mode="atlas"`` only: the index cannot serve.
        """
        return self._run(search, query_embedding, scope_prefix, categories, metadata_filter, limit, min_score)

    # Scopes and categories

    def count(self, scope_prefix: str | None = None) -> int:
        """Return how many records a scope and all below it hold; None counts all."""
        return self._run(read.count, scope_prefix)

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return count, categories, oldest and newest ``created_at`` and direct children of a scope."""
        return self._run(read.get_scope_info, scope)

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the paths of a scope's direct children, sorted."""
        return self._run(read.list_scopes, parent)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return each category with the number of records that have it, most first."""
        return self._run(read.list_categories, scope_prefix)

    # The server

    def ensure_indexes(
        self, *, wait: bool = True, timeout: float = 300.0, on_progress: Progress | None = None
    ) -> IndexReport:
        """Create or mend everything the store needs on the server, and return what was done.

        The collection, its indexes and the vector search index (of the store's dimensions; 1,024 while there are
        none). Definitions are compared by meaning, so a start that finds all in order changes nothing. Documents of
        an earlier version are given the fields that filters use. Several processes may call it at once.

        Args:
            wait: until the vector index answers with its new definition.
            timeout: seconds to wait.
            on_progress: is told of each step in a line.

        Raises:
            VectorIndexNotReadyError: the index is not ready in time; the server goes on building it.
            VectorIndexFailedError: the server gave up on the index, or takes no more of them.
            VectorIndexMissingError, VectorSearchUnavailableError: with ``search_mode="atlas"`` only.
        """
        return self._run(ensure_indexes, wait, timeout, on_progress)

    def wait_until_searchable(self, record_ids: Sequence[str], *, timeout: float = 60.0) -> None:
        """Wait for at most ``timeout`` seconds until the vector index finds these records as they are now.

        Raises:
            VectorIndexNotReadyError: it does not find all in time.
            InvalidArgumentError: a record does not exist, or has no embedding.
        """
        self._run(wait_until_searchable, record_ids, timeout)

    def status(self) -> BackendStatus:
        """Return how the store is doing; it reads every embedding once, to count those that no search finds."""
        return self._run(status)

    # Life

    def close(self) -> None:
        """Give the connection back; the last backend on a client closes it. A later call connects again."""
        self._connection.close()

    async def aclose(self) -> None:
        """Same as :meth:`close`, for the client of the running event loop too."""
        await self._connection.aclose()

    def __enter__(self) -> MongoStorageBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(
        self, operation: Callable[Concatenate[Store, P], Operation[T]], *arguments: P.args, **options: P.kwargs
    ) -> T:
        with self._store.notices.of_errors(), self._connection.collections() as collections:
            return driver.run(operation(self._store, *arguments, **options), collections)

    async def _arun(
        self, operation: Callable[Concatenate[Store, P], Operation[T]], *arguments: P.args, **options: P.kwargs
    ) -> T:
        with self._store.notices.of_errors():
            async with self._connection.acollections() as collections:
                return await driver.arun(operation(self._store, *arguments, **options), collections)


_recent_writes = SharedByKey(lambda: RecentWrites(lock=ForkSafeLock()))
ARGUMENTS = frozenset(inspect.signature(MongoStorageBackend.__init__).parameters) - {"self", "client_options"}
