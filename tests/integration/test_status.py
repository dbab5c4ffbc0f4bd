"""What ``status()`` tells of the server, the index, and the records that no search can find."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from bson import Binary
from bson.binary import BinaryVectorDtype
from crewai.memory.types import MemoryRecord
from pymongo.operations import SearchIndexModel

from crewai_mongodb_memory import BackendStatus
from crewai_mongodb_memory.pure.vector_index import FILTER_PATHS, definition_document
from tests.atlas_standin import AtlasStandin
from tests.stores import INDEX, QUERY, MakeBackend, collection_of, create_index


def record(record_id: str, embedding: list[float] | None) -> MemoryRecord:
    return MemoryRecord(id=record_id, content=record_id, embedding=embedding)


def test_a_store_in_good_order(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend()
    backend.save([record("a", QUERY), record("b", [0.5, 0.5])])
    version = collection_of(backend).database.client.server_info()["version"]
    assert backend.status() == BackendStatus(
        server=version,
        search="vector index",
        vector_index_state="the index answers",
        problem="",
        missing_filter_paths=(),
        records=2,
        dimensions=2,
        without_embedding=0,
        wrong_length=0,
        zero=0,
    )


def test_it_can_be_printed_as_json_and_asked_asynchronously(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend()
    backend.save([record("a", QUERY)])

    async def ask() -> BackendStatus:
        async with backend:
            return await backend.astatus()

    status = asyncio.run(ask())
    assert status == backend.status()
    assert json.loads(json.dumps(dataclasses.asdict(status)))["records"] == 1


def test_it_counts_the_records_that_no_search_finds_by_why(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend()
    backend.save([record("found", QUERY), record("blank", None), record("zero", [0.0, 0.0])])
    binaries = [
        Binary.from_vector([1, 2], BinaryVectorDtype.INT8),
        Binary.from_vector([1.0, 2.0, 3.0], BinaryVectorDtype.FLOAT32),
        Binary.from_vector([0.0, 0.0], BinaryVectorDtype.FLOAT32),
        Binary.from_vector([0.5, 0.5], BinaryVectorDtype.FLOAT32),
    ]
    arrays = [None, "text", [], ["a", "b"], [1.0, None], [1.0, 2.0, 3.0], [float("nan"), 1.0], [1e-50, 0.0]]
    collection_of(backend).insert_many({"_id": f"b{n}", "embedding": one} for n, one in enumerate(binaries))
    collection_of(backend).insert_many({"_id": f"a{n}", "embedding": one} for n, one in enumerate(arrays))
    status = backend.status()
    assert (status.records, status.dimensions) == (15, 2)
    assert (status.without_embedding, status.wrong_length, status.zero) == (8, 2, 3)
    unfindable = status.without_embedding + status.wrong_length + status.zero
    listing = collection_of(backend).aggregate(
        [{"$vectorSearch": {"index": INDEX, "path": "embedding", "queryVector": QUERY, "limit": 99, "exact": True}}]
    )
    assert len(list(listing)) == status.records - unfindable


def test_one_stray_vector_is_the_wrong_one_and_not_all_others(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend(dimensions=2)
    collection_of(backend).insert_one({"_id": "stray", "embedding": [1.0, 2.0, 3.0]})
    backend.save([record(f"r{number}", QUERY) for number in range(5)])
    status = make_atlas_backend().status()
    assert (status.dimensions, status.wrong_length, status.problem) == (2, 1, "")


def test_it_counts_the_records_of_its_tenant(make_atlas_backend: MakeBackend) -> None:
    make_atlas_backend(tenant="other").save([record("a", QUERY), record("b", None)])
    acme = make_atlas_backend(tenant="acme")
    acme.save([record("c", QUERY)])
    assert (acme.status().records, acme.status().without_embedding) == (1, 0)
    assert make_atlas_backend().status().records == 3


@pytest.mark.parametrize(
    ("state", "said", "problem"),
    [
        ("PENDING", "being built", "still being built: PENDING; ensure_indexes"),
        ("BUILDING", "being built", "still being built: BUILDING; ensure_indexes"),
        ("FAILED", "failed", "has failed: disk is full; ensure_indexes"),
        ("DELETING", "no such index", "create it with ensure_indexes"),
        ("DOES_NOT_EXIST", "no such index", "create it with ensure_indexes"),
    ],
)
def test_an_index_that_does_not_answer_is_named_with_the_remedy(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend, state: str, said: str, problem: str
) -> None:
    backend = make_atlas_backend()
    backend.save([record("a", QUERY)])
    message = "disk is full" if state == "FAILED" else None
    atlas.set_state(backend._store.settings.database, "memories", INDEX, state, message=message)
    status = backend.status()
    assert said in status.vector_index_state
    assert problem in status.problem
    assert (status.search, status.missing_filter_paths, status.records) == ("exact", (), 1)


def test_a_stale_index_is_named(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend()
    backend.save([record("a", QUERY)])
    atlas.set_state(backend._store.settings.database, "memories", INDEX, "STALE")
    assert "lost touch" in backend.status().vector_index_state


def test_a_definition_that_has_drifted_is_named(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend(auto_setup=False)
    backend.save([record("a", QUERY)])
    create_index(backend, {"fields": definition_document(2)["fields"][:2]})
    status = backend.status()
    assert (status.search, status.problem) == ("vector index", "")
    assert status.missing_filter_paths == tuple(sorted(set(FILTER_PATHS) - {"scope_ancestors"}))


def test_an_index_of_other_dimensions_is_a_problem(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend(auto_setup=False)
    backend.save([record("a", QUERY)])
    create_index(backend, definition_document(1024))
    status = backend.status()
    assert status.search == "exact"
    assert "1024 dimensions" in status.problem
    assert "2 dimensions" in status.problem


def test_an_index_of_another_type_is_a_problem(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend(auto_setup=False)
    backend.save([record("a", QUERY)])
    model = SearchIndexModel(definition={"mappings": {"dynamic": True}}, name=INDEX, type="search")
    collection_of(backend).create_search_index(model)
    assert "drop it" in backend.status().problem


@pytest.mark.parametrize("flavour", ["absent-8", "absent-7", "absent-6", "absent-5", "absent-115"])
def test_a_server_without_vector_search_is_named(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend, flavour: Any
) -> None:
    atlas.knobs.search_service = flavour
    backend = make_atlas_backend(search_mode="auto")
    backend.save([record("a", QUERY)])
    status = backend.status()
    assert (status.search, status.vector_index_state) == ("exact", "this server has no vector search")
    assert "search_mode='exact'" in status.problem
    assert status.server[0].isdigit()


def test_an_exact_store_has_no_problem_and_asks_for_no_index(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend
) -> None:
    backend = make_atlas_backend(search_mode="exact")
    backend.save([record("a", QUERY), record("b", None)])
    atlas.commands.clear()
    status = backend.status()
    assert (status.search, status.problem, status.records, status.without_embedding) == ("exact", "", 2, 1)
    assert "$listSearchIndexes" not in str(atlas.commands)


def test_an_empty_store_before_and_after_it_is_set_up(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend()
    before = backend.status()
    assert (before.records, before.dimensions, before.search) == (0, None, "exact")
    backend.ensure_indexes()
    after = backend.status()
    assert (after.records, after.search, after.problem) == (0, "vector index", "")
