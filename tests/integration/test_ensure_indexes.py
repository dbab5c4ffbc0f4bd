"""The bootstrapper: what it creates, keeps, mends and waits for, and each way in which the server can refuse."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crewai_mongodb_memory import (
    MongoStorageBackend,
    VectorIndexFailedError,
    VectorIndexMissingError,
    VectorIndexNotReadyError,
)
from crewai_mongodb_memory.pure.vector_index import definition_document
from tests.atlas_standin import AtlasStandin
from tests.stores import INDEX, QUERY, Clock, MakeBackend, collection_of, create_index, record

B_TREES = ("scope_1", "categories_1", "created_at_-1__id_1", "scope_ancestors_1_created_at_-1__id_1")


@pytest.fixture
def backend(make: MakeBackend) -> MongoStorageBackend:
    """A backend that knows nothing yet, on a store of two dimensions with one record and no index."""
    make(auto_setup=False).save([record("a")])
    return make()


def latest(backend: MongoStorageBackend) -> dict[str, Any]:
    """What the server lists of the index."""
    (listed,) = collection_of(backend).list_search_indexes()
    return dict(listed)


def with_vector(**changes: Any) -> dict[str, Any]:
    vector, *filters = definition_document(2)["fields"]
    return {"fields": [vector | changes, *filters]}


def sent(atlas: AtlasStandin, *names: str) -> list[str]:
    return [name for name, _ in atlas.commands if name in names]


# From nothing, and from what is there


def test_a_bare_database_gets_everything(make: MakeBackend) -> None:
    backend, told = make(), list[str]()
    report = backend.ensure_indexes(on_progress=told.append)
    assert (report.created, report.kept, report.conflicts, report.backfilled) == (B_TREES, (), (), 0)
    assert (report.vector_index, report.dimensions) == ("create", 1024)
    assert report.vector_index_state == "the index answers"
    listed = latest(backend)
    assert (listed["type"], listed["latestDefinition"]) == ("vectorSearch", definition_document(1024))
    assert set(collection_of(backend).index_information()) == {"_id_", *B_TREES}
    assert any("creating 4 indexes" in line for line in told)


def test_a_second_start_keeps_all(atlas: AtlasStandin, make: MakeBackend) -> None:
    make().ensure_indexes()
    atlas.commands.clear()
    report = make().ensure_indexes()
    assert (report.created, report.kept, report.vector_index) == ((), B_TREES, "keep")
    assert sent(atlas, "createIndexes", "createSearchIndexes", "updateSearchIndex") == []


@pytest.mark.parametrize(
    ("arguments", "dimensions"), [({"dimensions": 512}, 512), ({}, 2)], ids=["configured", "found"]
)
def test_the_index_is_made_for_the_dimensions_of_the_store(
    make: MakeBackend, arguments: dict[str, Any], dimensions: int
) -> None:
    if not arguments:
        make(auto_setup=False).save([record("a")])
    assert make(**arguments).ensure_indexes().dimensions == dimensions


def test_in_an_empty_store_the_dimensions_of_an_index_that_is_there_are_kept(make: MakeBackend) -> None:
    make(dimensions=512).ensure_indexes()
    report = make().ensure_indexes()
    assert (report.vector_index, report.dimensions) == ("keep", 512)


SAME = [
    {"fields": list(reversed(with_vector()["fields"]))},
    with_vector(quantization="none", indexingMethod="hnsw"),
    with_vector(quantization="scalar"),
    with_vector(numDimensions=2.0, hnswOptions={"maxEdges": 32}),
    {"fields": [*with_vector()["fields"], {"type": "filter", "path": "mine"}]},
    with_vector() | {"numPartitions": 2, "storedSource": False},
]


@pytest.mark.parametrize("flavour", ["atlas", "community"])
@pytest.mark.parametrize("definition", SAME, ids=["order", "defaults", "quantized", "numbers", "more paths", "more"])
def test_a_definition_that_means_the_same_is_never_rebuilt(
    atlas: AtlasStandin, backend: MongoStorageBackend, definition: dict[str, Any], flavour: Any
) -> None:
    atlas.knobs.flavour = flavour
    create_index(backend, definition)
    atlas.commands.clear()
    assert backend.ensure_indexes().vector_index == "keep"
    backend.save([record("b")])
    assert sent(atlas, "createSearchIndexes", "updateSearchIndex") == []


DRIFTED = [
    {"fields": [field for field in with_vector()["fields"] if field["path"] != "categories"]},
    with_vector(numDimensions=3),
    with_vector(similarity="euclidean"),
]


@pytest.mark.parametrize("definition", DRIFTED, ids=["missing path", "other dimensions", "other similarity"])
def test_a_definition_that_has_drifted_is_mended_once(
    atlas: AtlasStandin, make: MakeBackend, backend: MongoStorageBackend, definition: dict[str, Any]
) -> None:
    create_index(backend, definition)
    assert backend.ensure_indexes().vector_index == "update"
    assert backend.search(QUERY, categories=["none"]) == []
    assert make().ensure_indexes().vector_index == "keep"
    assert len(sent(atlas, "updateSearchIndex")) == 1


def test_an_update_keeps_what_others_have_added_to_the_definition(backend: MongoStorageBackend) -> None:
    others = [
        {"type": "filter", "path": "mine"},
        {"type": "vector", "path": "image", "numDimensions": 4, "similarity": "euclidean"},
    ]
    vector = with_vector(quantization="scalar", hnswOptions={"maxEdges": 32})["fields"][0]
    create_index(backend, {"fields": [vector, *others], "numPartitions": 2})
    backend.ensure_indexes()
    definition = latest(backend)["latestDefinition"]
    assert vector in definition["fields"]
    assert [field for field in definition["fields"] if field in others] == others
    assert definition["numPartitions"] == 2


def test_an_index_of_another_type_is_left_alone_and_told_of(make: MakeBackend, backend: MongoStorageBackend) -> None:
    create_index(backend, {"mappings": {"dynamic": True}}, "search")
    report = make(search_mode="auto").ensure_indexes()
    assert (report.vector_index, report.vector_index_state) == (
        "conflict",
        "the index is not a vector search index on embedding",
    )
    with pytest.raises(VectorIndexMissingError, match="drop it"):
        backend.ensure_indexes()
    assert latest(backend)["type"] == "search"


# Waiting


def test_it_waits_until_the_index_answers(atlas: AtlasStandin, backend: MongoStorageBackend, clock: Clock) -> None:
    atlas.pace.build_seconds = None
    clock.at_pause = lambda pauses: atlas.finish_builds() if pauses == 40 else None
    told: list[str] = []
    assert backend.ensure_indexes(on_progress=told.append).vector_index_state == "the index answers"
    assert clock.pauses == 40
    assert sum("waiting" in line for line in told) == 40


def test_an_update_is_waited_for_although_the_old_definition_answers(
    atlas: AtlasStandin, backend: MongoStorageBackend, clock: Clock
) -> None:
    create_index(backend, DRIFTED[0])
    atlas.pace.build_seconds = None
    clock.at_pause = lambda pauses: atlas.finish_builds() if pauses == 3 else None
    assert backend.ensure_indexes().vector_index == "update"
    assert clock.pauses == 3
    assert backend.status().missing_filter_paths == ()


def test_it_waits_no_longer_than_it_may(atlas: AtlasStandin, backend: MongoStorageBackend, clock: Clock) -> None:
    atlas.pace.build_seconds = None
    started = clock.now
    with pytest.raises(VectorIndexNotReadyError, match="goes on building"):
        backend.ensure_indexes(timeout=7.3)
    assert clock.now - started == pytest.approx(7.3)
    atlas.finish_builds()
    assert backend.ensure_indexes().vector_index == "keep"


def test_without_waiting_it_returns_at_once(atlas: AtlasStandin, backend: MongoStorageBackend, clock: Clock) -> None:
    atlas.pace.build_seconds = None
    report = backend.ensure_indexes(wait=False)
    assert (report.vector_index, report.vector_index_state) == ("create", "the index is being built")
    assert clock.pauses == 0


@pytest.mark.parametrize("is_update", [False, True], ids=["first build", "update"])
def test_an_index_that_fails_ends_the_wait_with_the_words_of_the_server(
    atlas: AtlasStandin, backend: MongoStorageBackend, clock: Clock, is_update: bool
) -> None:
    if is_update:
        create_index(backend, DRIFTED[0])
    atlas.pace.build_seconds = None
    database = backend._store.settings.database
    clock.at_pause = lambda pauses: (
        atlas.set_state(database, "memories", INDEX, "FAILED", message="disk is full") if pauses == 2 else None
    )
    with pytest.raises(VectorIndexFailedError, match="disk is full"):
        backend.ensure_indexes()
    assert clock.pauses == 2


@pytest.mark.parametrize("is_update", [False, True], ids=["first build", "update"])
def test_an_index_that_has_failed_is_mended(
    atlas: AtlasStandin, make: MakeBackend, backend: MongoStorageBackend, is_update: bool
) -> None:
    create_index(backend, DRIFTED[0])
    if is_update:
        atlas.pace.build_seconds = None
        make().ensure_indexes(wait=False)
        atlas.pace.build_seconds = 0.0
    atlas.set_state(backend._store.settings.database, "memories", INDEX, "FAILED", message="quota")
    report = backend.ensure_indexes(timeout=5)
    assert (report.vector_index, report.vector_index_state) == ("update", "the index answers")


def test_the_asynchronous_twin_does_the_same(make: MakeBackend) -> None:
    backend = make()

    async def ensure() -> str:
        async with backend:
            return (await backend.aensure_indexes()).vector_index

    assert asyncio.run(ensure()) == "create"
    assert backend.ensure_indexes().vector_index == "keep"
