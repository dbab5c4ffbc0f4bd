"""Filters that the index cannot take, and an index that changes under a backend that knows it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from crewai.memory.types import MemoryRecord
from pymongo.errors import OperationFailure

from crewai_mongodb_memory import (
    MongoStorageBackend,
    VectorIndexMissingError,
    VectorIndexNotReadyError,
    VectorSearchUnavailableError,
)
from tests.atlas_standin import AtlasStandin
from tests.stores import INDEX, QUERY, Clock, MakeBackend, asked, collection_of, ids, replace_index, warnings, without

FILTERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("scope_ancestors", {"scope_prefix": "/far"}, {}),
    ("categories", {"categories": ["far"]}, {}),
    ("metadata_tokens", {"metadata_filter": {"k": "far"}}, {}),
    ("tenant", {}, {"tenant": "far"}),
]


@pytest.fixture
def make(make: MakeBackend) -> MakeBackend:
    """Makes backends that know nothing yet, and remember no write of their own."""
    return partial(make, search_mode="auto", read_your_writes=0)


@pytest.fixture
def writer(make: MakeBackend) -> MongoStorageBackend:
    """Has saved ten near records and a far one that every filter of FILTERS selects, in a store that is set up."""
    backend = make()
    backend.save([MemoryRecord(id=f"near{n}", content="near", embedding=QUERY, scope="/near") for n in range(10)])
    far = MemoryRecord(id="far", content="far", embedding=[0.1, 1.0], scope="/far", categories=["far"])
    far.metadata = {"k": "far"}
    make(tenant="far").save([far])
    return backend


@pytest.mark.parametrize("mode", ["auto", "atlas"])
@pytest.mark.parametrize(("path", "criteria", "arguments"), FILTERS, ids=[case[0] for case in FILTERS])
def test_a_filter_that_the_index_lacks_is_kept_and_answered_exactly(
    atlas: AtlasStandin,
    make: MakeBackend,
    writer: MongoStorageBackend,
    mode: str,
    path: str,
    criteria: dict[str, Any],
    arguments: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    replace_index(writer, without(path))
    backend = make(search_mode=mode, **arguments)
    for _ in range(3):
        assert ids(backend.search(QUERY, limit=5, **criteria)) == ["far"]
    assert "$vectorSearch" not in asked(atlas)
    (warning,) = warnings(caplog)
    assert f"cannot filter on {path}" in warning
    assert "ensure_indexes()" in warning


def test_what_the_index_can_filter_still_goes_through_it(
    atlas: AtlasStandin, make: MakeBackend, writer: MongoStorageBackend
) -> None:
    replace_index(writer, without("categories"))
    backend = make(search_mode="atlas")
    backend.search(QUERY)
    asked(atlas)
    assert ids(backend.search(QUERY, scope_prefix="/far", metadata_filter={"k": "far"})) == ["far"]
    assert asked(atlas) == ["$vectorSearch"]
    assert ids(backend.search(QUERY, scope_prefix="/far", categories=["far"])) == ["far"]
    assert asked(atlas) == ["find", "find"]


@pytest.mark.parametrize("mode", ["auto", "atlas"])
def test_a_filter_of_very_many_values_is_answered_under_all_of_them(
    atlas: AtlasStandin, make: MakeBackend, writer: MongoStorageBackend, mode: str
) -> None:
    many = [str(number) for number in range(600)]
    writer.save([MemoryRecord(id="extra", content="", embedding=QUERY, metadata={"k": many}, categories=["1"])])
    backend = make(search_mode=mode)
    assert ids(backend.search(QUERY, categories=many)) == ["extra"]
    asked(atlas)
    assert ids(backend.search(QUERY, metadata_filter={"k": many})) == ["extra"]
    # Each token is a clause of its own, and the index takes 1,024 clauses.
    assert asked(atlas) == ["find", "find"]


# An index that changes


@pytest.mark.parametrize("mode", ["auto", "atlas"])
def test_while_an_update_builds_the_old_definition_decides_and_then_the_new_one(
    atlas: AtlasStandin, make: MakeBackend, writer: MongoStorageBackend, clock: Clock, mode: str
) -> None:
    replace_index(writer, without("categories"))
    atlas.pace.build_seconds = None
    collection_of(writer).update_search_index(INDEX, without())
    backend = make(search_mode=mode)
    assert ids(backend.search(QUERY, categories=["far"])) == ["far"]
    asked(atlas)
    atlas.finish_builds()
    clock.now += 60
    assert ids(backend.search(QUERY, categories=["far"])) == ["far"]
    assert asked(atlas) == ["$listSearchIndexes", "$vectorSearch"]


@pytest.mark.parametrize("mode", ["auto", "atlas"])
def test_an_index_that_was_made_for_another_embedder_is_used_once_it_is_made_anew(
    atlas: AtlasStandin, make: MakeBackend, writer: MongoStorageBackend, clock: Clock, mode: str
) -> None:
    writer.reset()
    atlas.pace.build_seconds = None
    backend = make(search_mode=mode)
    backend.save([MemoryRecord(id="new", content="new", embedding=[1.0, 0.0, 0.0])])
    atlas.finish_builds()
    clock.now += 60
    assert ids(backend.search([1.0, 0.0, 0.0])) == ["new"]
    assert asked(atlas)[-1] == "$vectorSearch"


def test_an_index_that_another_process_mends_is_noticed(
    atlas: AtlasStandin, make: MakeBackend, writer: MongoStorageBackend, clock: Clock
) -> None:
    replace_index(writer, without("categories", dimensions=3))
    backend = make()
    assert ids(backend.search(QUERY, categories=["far"])) == ["far"]
    make(search_mode="atlas").ensure_indexes()
    clock.now += 60
    asked(atlas)
    assert ids(backend.search(QUERY, categories=["far"])) == ["far"]
    assert asked(atlas) == ["$listSearchIndexes", "$vectorSearch"]


@pytest.mark.parametrize("mode", ["auto", "atlas"])
def test_an_index_that_lost_a_filter_path_answers_exactly_and_does_not_fail(
    make: MakeBackend, writer: MongoStorageBackend, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    backend = make(search_mode=mode)
    assert ids(backend.search(QUERY, categories=["far"])) == ["far"]
    replace_index(writer, without("categories"))
    for _ in range(2):
        assert ids(backend.search(QUERY, categories=["far"])) == ["far"]
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("seconds", [0, 60])
@pytest.mark.parametrize("how", ["dropped", "collection dropped and filled again"])
def test_an_index_that_is_gone_never_answers_nothing(
    make: MakeBackend, writer: MongoStorageBackend, clock: Clock, how: str, seconds: int
) -> None:
    auto, strict = make(), make(search_mode="atlas")
    assert len(auto.search(QUERY)) == len(strict.search(QUERY)) == 10
    if how == "dropped":
        replace_index(writer, None)
    else:
        documents = list(collection_of(writer).find())
        collection_of(writer).drop()
        collection_of(writer).insert_many(documents)
    clock.now += seconds
    assert len(auto.search(QUERY)) == 10
    with pytest.raises(VectorIndexMissingError, match="ensure_indexes"):
        strict.search(QUERY)


def test_an_empty_answer_of_an_index_that_serves_is_believed(
    atlas: AtlasStandin, make: MakeBackend, writer: MongoStorageBackend, caplog: pytest.LogCaptureFixture
) -> None:
    for mode in ("auto", "atlas"):
        backend = make(search_mode=mode)
        assert backend.search(QUERY, scope_prefix="/nowhere") == []
        asked(atlas)
        for _ in range(5):
            assert backend.search(QUERY, scope_prefix="/nowhere") == []
        assert len(asked(atlas)) <= 10
    assert warnings(caplog) == []
    assert writer.count("/nowhere") == 0


@pytest.mark.usefixtures("writer")
def test_who_may_not_list_the_indexes_is_told(
    atlas: AtlasStandin, make: MakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    atlas.knobs.denied = {"$listSearchIndexes"}
    assert len(make().search(QUERY)) == 10
    assert ["may not list search indexes" in line for line in warnings(caplog)] == [True]
    with pytest.raises(VectorSearchUnavailableError, match="may not list search indexes"):
        make(search_mode="atlas").search(QUERY)


@pytest.mark.usefixtures("writer")
def test_a_search_service_that_starts_is_waited_for_and_not_given_up(
    atlas: AtlasStandin, make: MakeBackend, clock: Clock
) -> None:
    auto, strict = make(), make(search_mode="atlas")
    atlas.knobs.connection_errors = 2
    with pytest.raises(VectorIndexNotReadyError, match="Search Index Management"):
        strict.search(QUERY)
    assert len(auto.search(QUERY)) == 10
    clock.now += 15
    asked(atlas)
    assert len(auto.search(QUERY)) == len(strict.search(QUERY)) == 10
    assert asked(atlas).count("$vectorSearch") == 2


@pytest.mark.usefixtures("writer")
@pytest.mark.parametrize("code", [6, 50, 11600])
def test_a_passing_error_of_the_listing_is_not_taken_for_a_server_without_vector_search(
    atlas: AtlasStandin, make: MakeBackend, clock: Clock, code: int
) -> None:
    backend = make(search_mode="atlas", retryReads=False)
    atlas.fail_next("$listSearchIndexes", code, "for a moment")
    with pytest.raises(Exception, match="for a moment"):
        backend.search(QUERY)
    clock.now += 15
    assert len(backend.search(QUERY)) == 10


def test_auto_searches_exactly_while_the_search_process_cannot_be_reached(
    atlas: AtlasStandin, make: MakeBackend, writer: MongoStorageBackend, caplog: pytest.LogCaptureFixture
) -> None:
    backend = make(retryReads=False)
    assert len(backend.search(QUERY)) == 10
    atlas.fail_next("$vectorSearch", 6, "Error connecting to localhost:27027 :: caused by :: Connection refused")
    assert len(backend.search(QUERY)) == 10
    assert [writer.count(), len(warnings(caplog))] == [11, 1]


@pytest.mark.usefixtures("writer")
def test_an_error_that_is_not_of_the_index_passes_through(atlas: AtlasStandin, make: MakeBackend) -> None:
    backend = make()
    assert len(backend.search(QUERY)) == 10
    atlas.fail_next("$vectorSearch", 18, "Authentication failed.")
    with pytest.raises(OperationFailure, match="Authentication failed"):
        backend.search(QUERY)
