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
)

__all__ = [
    "ConfigurationError",
    "DimensionMismatchError",
    "ExactSearchTooLargeError",
    "InvalidRecordError",
    "LocalServerError",
    "MongoMemoryError",
    "MongoStorageBackend",
    "OfflineEmbedder",
]

__version__ = "0.2.0"
