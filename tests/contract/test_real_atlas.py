"""The contract on this library's backend, through the vector index of a real Atlas or Atlas Local.

Its tests are there when ``MONGODB_ATLAS_URI`` says where, such as ``mongodb://localhost:27017/?directConnection=true``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.storage_contract import DIMENSIONS, StorageContract
from tests.stores import MakeBackend, collection_of

if os.environ.get("MONGODB_ATLAS_URI"):

    class TestRealAtlas(StorageContract):
        @pytest.fixture
        def storage(self, request: pytest.FixtureRequest, make_backend: MakeBackend) -> Iterator[Any]:
            # A store of set dimensions cannot be given others; the test of that uses what an automatic one does.
            is_automatic = "another_dimension_is_taken" in request.node.name
            backend = make_backend(
                connection_string=os.environ["MONGODB_ATLAS_URI"],
                search_mode="auto" if is_automatic else "atlas",
                dimensions=None if is_automatic else DIMENSIONS,
            )
            backend.ensure_indexes()
            yield backend
            database = collection_of(backend).database
            database.client.drop_database(database.name)
