"""The contract on this library's backend, through the vector index of the Atlas stand-in."""

from __future__ import annotations

from typing import Any

import pytest
from crewai.memory.types import MemoryRecord

from tests.atlas_standin import AtlasStandin
from tests.contract.storage_contract import StorageContract
from tests.stores import MakeBackend


class TestVectorIndex(StorageContract):
    @pytest.fixture
    def storage(self, make_atlas_backend: MakeBackend) -> Any:
        backend = make_atlas_backend()
        backend.ensure_indexes()
        return backend


class TestVectorIndexThatLagsBehind(StorageContract):
    """Every write becomes visible to the index two seconds late."""

    @pytest.fixture
    def storage(self, atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> Any:
        backend = make_atlas_backend()
        backend.ensure_indexes()
        atlas.lag = 2.0
        return backend


class TestVectorIndexWithShuffledTies(StorageContract):
    @pytest.fixture
    def storage(self, atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> Any:
        atlas.knobs.shuffle_ties = True
        backend = make_atlas_backend()
        backend.ensure_indexes()
        return backend


class TestVectorIndexWithinATenant(StorageContract):
    """The same, with another tenant's records in the same collection, and float32 vectors."""

    @pytest.fixture
    def storage(self, make_atlas_backend: MakeBackend) -> Any:
        scopes = ("/", "/a/b", "/x/y")
        others = [MemoryRecord(content="other", scope=scope, categories=["x"]) for scope in scopes]
        make_atlas_backend(tenant="other").save(others)
        backend = make_atlas_backend(tenant="acme", vector_format="float32")
        backend.ensure_indexes()
        return backend
