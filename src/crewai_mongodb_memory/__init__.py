"""CrewAI's unified ``Memory`` on MongoDB.

>>> from crewai_mongodb_memory import MongoStorageBackend
>>> MongoStorageBackend("local:./memories")  # pass it as crewai.Memory(storage=…)
MongoStorageBackend('local:./memories', database_name='crewai_memory', collection_name='memories')
"""

from crewai_mongodb_memory.backend import MongoStorageBackend
from crewai_mongodb_memory.embedders import OfflineEmbedder
from crewai_mongodb_memory.errors import (
    ConfigurationError,
    DimensionMismatchError,
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
    "BackendStatus",
    "ConfigurationError",
    "DimensionMismatchError",
    "ExactSearchTooLargeError",
    "IndexReport",
    "InvalidRecordError",
    "LocalServerError",
    "MongoMemoryError",
    "MongoStorageBackend",
    "OfflineEmbedder",
    "VectorIndexFailedError",
    "VectorIndexMissingError",
    "VectorIndexNotReadyError",
    "VectorSearchUnavailableError",
    "mongo_storage_factory",
]

__version__ = "0.2.0"
