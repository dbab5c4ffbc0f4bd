"""The factory for CrewAI's ``set_memory_storage_factory``: every memory of a process on MongoDB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crewai_mongodb_memory.backend import MongoStorageBackend
from crewai_mongodb_memory.lifecycle.locks import ForkSafeLock
from crewai_mongodb_memory.mongo.connection_string import checked_connection_string, is_local

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
        InvalidArgumentError: an argument cannot be used.
    """
    return _Backends(checked_connection_string(connection_string), replace_default, backend_options)


class _Backends:
    """The backends of one factory, by the specs that mean them; None where a spec could mean two."""

    def __init__(self, connection_string: str, replace_default: bool, options: dict[str, Any]) -> None:
        self._options = options
        self._lock = ForkSafeLock()
        default = MongoStorageBackend(connection_string, **options)
        names = [SPEC, connection_string, default._json_name, *([CREWAI_DEFAULT] if replace_default else [])]
        self._by_spec: dict[str, MongoStorageBackend | None] = dict.fromkeys(names, default)

    def __call__(self, spec: str) -> MongoStorageBackend | None:
        with self._lock:
            if spec in self._by_spec or not (is_local(spec) or spec.startswith(("mongodb://", "mongodb+srv://"))):
                return self._by_spec.get(spec)
            connection_string = checked_connection_string(spec)
            made = self._by_spec.get(connection_string) or MongoStorageBackend(connection_string, **self._options)
            # A name that two users of one host share is neither's: a dump of one must not come back as the other's.
            name = made._json_name
            self._by_spec[name] = made if self._by_spec.get(name, made) is made else None
            self._by_spec[spec] = self._by_spec[connection_string] = made
            return made
