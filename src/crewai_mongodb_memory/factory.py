"""The factory for CrewAI's ``set_memory_storage_factory``: every memory of a process on MongoDB."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from crewai_mongodb_memory.backend import MongoStorageBackend
from crewai_mongodb_memory.connection import checked_connection_string, is_local, public_name

__all__ = ["mongo_storage_factory"]

SPEC = "mongodb"
CREWAI_DEFAULT = "lancedb"


def mongo_storage_factory(
    connection_string: str | None = None, *, replace_default: bool = True, **backend_options: Any
) -> Callable[[str], MongoStorageBackend | None]:
    """Return a factory that gives memories a shared :class:`MongoStorageBackend`.

    Register it once, before any Crew or Flow is built::

        from crewai.memory.storage.factory import set_memory_storage_factory

        set_memory_storage_factory(mongo_storage_factory("mongodb+srv://…"))

    The factory answers ``"mongodb"`` and, with ``replace_default``, CrewAI's default ``"lancedb"`` (that of
    ``Crew(memory=True)``, ``Agent(memory=True)`` and every ``Flow()``) with one backend on ``connection_string``. A
    connection string as the spec (``mongodb://…``, ``mongodb+srv://…``, ``local``, ``local:…``) gets a backend of its
    own, the same each time. It gives None for every other spec, which leaves those to CrewAI. Nothing connects before
    the first use.

    Args:
        connection_string: as for :class:`MongoStorageBackend`.
        backend_options: for every backend that the factory makes.

    Raises:
        ConfigurationError: an argument cannot be used.
    """
    default_string = checked_connection_string(connection_string)
    default = MongoStorageBackend(default_string, **backend_options)
    backends = {default_string: default, public_name(default_string): default, SPEC: default}
    if replace_default:
        backends[CREWAI_DEFAULT] = default
    lock = threading.Lock()

    def factory(spec: str) -> MongoStorageBackend | None:
        with lock:
            if spec not in backends and (is_local(spec) or spec.startswith(("mongodb://", "mongodb+srv://"))):
                made = MongoStorageBackend(spec, **backend_options)
                backends[spec] = made
                backends.setdefault(public_name(spec), made)
            return backends.get(spec)

    return factory
