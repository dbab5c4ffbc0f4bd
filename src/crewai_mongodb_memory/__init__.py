"""CrewAI's unified ``Memory`` on MongoDB.

>>> from crewai_mongodb_memory import MongoStorageBackend
>>> MongoStorageBackend("mongodb://localhost")  # pass it as crewai.Memory(storage=…)
MongoStorageBackend('mongodb://localhost', database_name='crewai_memory', collection_name='memories')
"""

from crewai_mongodb_memory import flows
from crewai_mongodb_memory.backend import MongoStorageBackend
from crewai_mongodb_memory.buckets import Session, Turn
from crewai_mongodb_memory.conversation import ASSISTANT, USER, ConversationMemory
from crewai_mongodb_memory.embedders import OfflineEmbedder, VoyageEmbedder
from crewai_mongodb_memory.errors import (
    ConfigurationError,
    DimensionMismatchError,
    EmbedderError,
    ExactSearchTooLargeError,
    InvalidRecordError,
    LocalServerError,
    MongoMemoryError,
    VectorIndexFailedError,
    VectorIndexMissingError,
    VectorIndexNotReadyError,
    VectorSearchUnavailableError,
)
from crewai_mongodb_memory.factory import mongo_storage_factory
from crewai_mongodb_memory.operations.bootstrap import IndexReport
from crewai_mongodb_memory.operations.status import BackendStatus

__all__ = [
    "ASSISTANT",
    "USER",
    "BackendStatus",
    "ConfigurationError",
    "ConversationMemory",
    "DimensionMismatchError",
    "EmbedderError",
    "ExactSearchTooLargeError",
    "IndexReport",
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

__version__ = "0.2.0"

flows.build_flows()  # an import has a lock
