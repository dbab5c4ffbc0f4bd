"""CrewAI's unified ``Memory`` on MongoDB.

>>> from crewai_mongodb_memory import MongoStorageBackend
>>> MongoStorageBackend("mongodb://localhost")  # pass it as crewai.Memory(storage=…)
MongoStorageBackend('mongodb://localhost', database_name='crewai_memory', collection_name='memories')
"""

from crewai_mongodb_memory.backend import MongoStorageBackend
from crewai_mongodb_memory.conversation import ASSISTANT, USER, ConversationMemory
from crewai_mongodb_memory.embedders import OfflineEmbedder, VoyageEmbedder
from crewai_mongodb_memory.errors import (
    DimensionMismatchError,
    EmbedderError,
    ExactSearchTooLargeError,
    InvalidArgumentError,
    InvalidRecordError,
    LocalServerError,
    MongoMemoryError,
    VectorIndexFailedError,
    VectorIndexMissingError,
    VectorIndexNotReadyError,
    VectorSearchUnavailableError,
)
from crewai_mongodb_memory.factory import mongo_storage_factory
from crewai_mongodb_memory.lifecycle import flows
from crewai_mongodb_memory.operations.ensure_indexes import IndexReport
from crewai_mongodb_memory.operations.status import BackendStatus
from crewai_mongodb_memory.pure.buckets import Session, Turn
from crewai_mongodb_memory.version import __version__ as __version__

__all__ = [
    "ASSISTANT",
    "USER",
    "BackendStatus",
    "ConversationMemory",
    "DimensionMismatchError",
    "EmbedderError",
    "ExactSearchTooLargeError",
    "IndexReport",
    "InvalidArgumentError",
    "InvalidRecordError",
    "LocalServerError",
    "MongoMemoryError",
    "MongoStorageBackend",
    "OfflineEmbedder",
    "Session",
    "Turn",
    "VectorIndexFailedError",
    "VectorIndexMissingError",
    "VectorIndexNotReadyError",
    "VectorSearchUnavailableError",
    "VoyageEmbedder",
    "mongo_storage_factory",
]

flows.build_flows()  # while only one thread can be here: imports hold a lock
