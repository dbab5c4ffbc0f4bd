"""The asynchronous twin of every method of the backend: the same operation on the running loop's client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

from crewai.memory.types import MemoryRecord, ScopeInfo

from crewai_mongodb_memory.operations import read, write
from crewai_mongodb_memory.operations.commands import Operation
from crewai_mongodb_memory.operations.ensure_indexes import IndexReport, Progress, ensure_indexes
from crewai_mongodb_memory.operations.search import search
from crewai_mongodb_memory.operations.status import BackendStatus, status, wait_until_searchable
from crewai_mongodb_memory.operations.store import Store

__all__ = ["AsyncMethods"]

P = ParamSpec("P")
T = TypeVar("T")
Self = TypeVar("Self", bound="AsyncMethods")


class AsyncMethods(ABC):
    """Every method of :class:`~crewai_mongodb_memory.MongoStorageBackend` with an ``a`` before its name."""

    @abstractmethod
    async def _arun(
        self, operation: Callable[Concatenate[Store, P], Operation[T]], *arguments: P.args, **options: P.kwargs
    ) -> T: ...

    @abstractmethod
    async def aclose(self) -> None: ...

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Same as ``save``."""
        await self._arun(write.save, records)

    async def aupdate(self, record: MemoryRecord) -> None:
        """Same as ``update``."""
        await self._arun(write.update, record)

    async def atouch_records(self, record_ids: list[str]) -> None:
        """Same as ``touch_records``."""
        await self._arun(write.touch_records, record_ids)

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Same as ``delete``."""
        return await self._arun(write.delete, scope_prefix, categories, record_ids, older_than, metadata_filter)

    async def areset(self, scope_prefix: str | None = None) -> None:
        """Same as ``reset``."""
        await self._arun(write.reset, scope_prefix)

    async def aget_record(self, record_id: str) -> MemoryRecord | None:
        """Same as ``get_record``."""
        return await self._arun(read.get_record, record_id)

    async def alist_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """Same as ``list_records``."""
        return await self._arun(read.list_records, scope_prefix, limit, offset)

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Same as ``search``."""
        return await self._arun(search, query_embedding, scope_prefix, categories, metadata_filter, limit, min_score)

    async def acount(self, scope_prefix: str | None = None) -> int:
        """Same as ``count``."""
        return await self._arun(read.count, scope_prefix)

    async def aget_scope_info(self, scope: str) -> ScopeInfo:
        """Same as ``get_scope_info``."""
        return await self._arun(read.get_scope_info, scope)

    async def alist_scopes(self, parent: str = "/") -> list[str]:
        """Same as ``list_scopes``."""
        return await self._arun(read.list_scopes, parent)

    async def alist_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Same as ``list_categories``."""
        return await self._arun(read.list_categories, scope_prefix)

    async def aensure_indexes(
        self, *, wait: bool = True, timeout: float = 300.0, on_progress: Progress | None = None
    ) -> IndexReport:
        """Same as ``ensure_indexes``."""
        return await self._arun(ensure_indexes, wait, timeout, on_progress)

    async def async_wait_until_searchable(self, record_ids: Sequence[str], *, timeout: float = 60.0) -> None:
        """Same as ``wait_until_searchable``."""
        await self._arun(wait_until_searchable, record_ids, timeout)

    async def astatus(self) -> BackendStatus:
        """Same as ``status``."""
        return await self._arun(status)
