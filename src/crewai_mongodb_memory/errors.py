"""The exceptions, split by who must act.

::

    MongoMemoryError
    ├── InvalidArgumentError          the caller: an argument or a filter has to change
    ├── InvalidRecordError          the caller: a record cannot be stored as it is
    ├── DimensionMismatchError      the caller: the embedder and the store do not fit
    ├── ExactSearchTooLargeError    the caller: narrow the search, or add a vector index
    ├── VectorIndexMissingError     the operator: create the index
    ├── VectorIndexNotReadyError    nobody: wait until the index is built
    ├── VectorIndexFailedError      the operator: mend the index
    ├── VectorSearchUnavailableError  the operator: this server has no vector search
    ├── EmbedderError               nobody: the service that embeds gave no answer in time, or an unusable one
    └── LocalServerError            the machine: the embedded server cannot run here

None derives from ``RuntimeError`` or ``OSError``: CrewAI drops those without a word
(``crewai/memory/unified_memory.py``, ``crewai/utilities/reset_memories.py``).
Errors of the MongoDB driver pass through as they are.
"""

from __future__ import annotations

from typing import Any

from crewai.memory.storage.backend import EmbeddingDimensionMismatchError

__all__ = [
    "DimensionMismatchError",
    "EmbedderError",
    "ExactSearchTooLargeError",
    "InvalidArgumentError",
    "InvalidRecordError",
    "LocalServerError",
    "MongoMemoryError",
    "VectorIndexFailedError",
    "VectorIndexMissingError",
    "VectorIndexNotReadyError",
    "VectorSearchUnavailableError",
    "explain",
]


class MongoMemoryError(Exception):
    """Every error that this library raises on its own account."""


class InvalidArgumentError(MongoMemoryError, ValueError):
    """An argument, a connection string or a filter cannot be used; nothing was written."""


class InvalidRecordError(MongoMemoryError, ValueError):
    """A record cannot be stored as it is.

    Nothing was written, unless its id belongs to another tenant: then the records before it in the same save were.

    Attributes:
        record_id: the ``id`` of the record.
        key: where in the record the fault is, as a dotted path such as ``metadata.price``.
    """

    def __init__(self, record_id: str, key: str, reason: str) -> None:
        self.record_id = record_id
        self.key = key
        self.reason = reason
        super().__init__(f"record {record_id!r}: {key}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.record_id, self.key, self.reason)


class DimensionMismatchError(MongoMemoryError, EmbeddingDimensionMismatchError):
    """An embedding has another length than the vectors of this store; nothing was written.

    Attributes:
        stored_dim: dimensions of the store.
        new_dim: dimensions of the embedding that was given.
    """

    def __init__(self, stored_dim: int, new_dim: int) -> None:
        super().__init__(stored_dim, new_dim)
        self.args = (
            f"this store holds {stored_dim}-dimensional embeddings and was given one of {new_dim} dimensions: "
            f"use the embedder that the store was filled with, or another collection_name, or clear this one "
            f"with Memory.reset_all() and let the new embedder fill it again",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stored_dim, self.new_dim)


class ExactSearchTooLargeError(MongoMemoryError):
    """An exact search would have to score more records than ``exact_limit`` allows."""


class VectorIndexMissingError(MongoMemoryError):
    """There is no vector search index of that name; a server answers every search in it with nothing."""


class VectorIndexNotReadyError(MongoMemoryError):
    """The vector search index is still being built."""


class VectorIndexFailedError(MongoMemoryError):
    """The vector search index cannot serve this store: it has failed, or is defined for other embeddings."""


class VectorSearchUnavailableError(MongoMemoryError):
    """The server has no vector search, or does not let this user at it."""


class EmbedderError(MongoMemoryError):
    """A service that embeds texts gave no answer after every attempt, or one that cannot be used."""


class LocalServerError(MongoMemoryError):
    """The embedded server cannot be used here; the text says what to do."""


REMEDIES = {
    "ServerSelectionTimeoutError": "the server cannot be reached: is the address right, does it run, does it let this "
    "machine in (on Atlas: the IP access list)?",
    "AutoReconnect": "the connection broke; the next call connects again",
    "NetworkTimeout": "the server did not answer in time",
    13: "the user of the connection string lacks a privilege: readWrite on the database is enough, dbAdmin sets it up",
    18: "user name or password are wrong",
    8000: "user name or password are wrong",
    50: "the operation took longer than it may",
}


def explain(error: Exception) -> str:
    """Return the text of an error for the log; one of the driver's with what can be done about it.

    >>> explain(MongoMemoryError("its own text"))
    'its own text'
    """
    if isinstance(error, MongoMemoryError):
        return str(error)
    said = _without_documents(error)
    remedy = REMEDIES.get(getattr(error, "code", None) or type(error).__name__, "") or next(
        (text for name, text in REMEDIES.items() if name in {base.__name__ for base in type(error).__mro__}), ""
    )
    return f"{said}{f' ({remedy})' if remedy else ''}"


def _without_documents(error: Exception) -> str:
    """The text of an error of the driver; that of a bulk write would hold all it was to write."""
    details = getattr(error, "details", None) or {}
    if "writeErrors" not in details:
        return str(error)
    faults = [*details["writeErrors"], *(details.get("writeConcernErrors") or [])]
    return (
        "; ".join(f"{fault.get('errmsg')} (code {fault.get('code')})" for fault in faults[:3]) or "a bulk write failed"
    )
