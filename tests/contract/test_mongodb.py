"""The contract on this library's backend, with a real server over the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from crewai.memory.types import MemoryRecord

from crewai_mongodb_memory import MongoStorageBackend
from tests.contract.storage_contract import StorageContract


class TestExactSearchWithFloat32(StorageContract):
    @pytest.fixture
    def storage(self, backend: MongoStorageBackend) -> Any:
        return backend


class TestExactSearchWithDoubles(StorageContract):
    @pytest.fixture
    def storage(self, make_backend: Callable[..., MongoStorageBackend]) -> Any:
        return make_backend(vector_format="double")


class TestExactSearchWithinATenant(StorageContract):
    """The same, with another tenant's records in the same collection."""

    @pytest.fixture
    def storage(self, make_backend: Callable[..., MongoStorageBackend]) -> Any:
        others = [
            MemoryRecord(content=scope, scope=scope, categories=["x", "wanted"]) for scope in ("/", "/a/b", "/x/y")
        ]
        make_backend(tenant="other").save(others)
        return make_backend(tenant="acme")
