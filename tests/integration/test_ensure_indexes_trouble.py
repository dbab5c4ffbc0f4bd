"""The bootstrapper, where the server refuses or others do the same at once."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest
from pymongo.errors import OperationFailure

from crewai_mongodb_memory import MongoStorageBackend, VectorIndexFailedError, VectorIndexNotReadyError
from crewai_mongodb_memory.pure.vector_index import definition_document
from tests.atlas_standin import AtlasStandin
from tests.stores import INDEX, Clock, MakeBackend, Meanwhile, at_once, collection_of, create_index, record, warnings

ANSWERS = "the index answers"


@pytest.fixture
def other(make: MakeBackend) -> MongoStorageBackend:
    """Another backend, which has saved a record into a store without indexes."""
    backend = make(auto_setup=False)
    backend.save([record("a")])
    return backend


def create(backend: MongoStorageBackend, dimensions: int = 2, paths: int = 5) -> None:
    """Create the index, with so many of its filter paths."""
    create_index(backend, {"fields": definition_document(dimensions)["fields"][: paths + 1]})


# 125: the management service is not there yet


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 5])
def test_125_is_waited_out(atlas: AtlasStandin, other: MongoStorageBackend, make: MakeBackend, calls: int) -> None:
    atlas.knobs.connection_errors = calls
    told: list[str] = []
    report = make().ensure_indexes(on_progress=told.append)
    assert (report.vector_index, report.vector_index_state) == ("create", ANSWERS)
    assert any("waiting" in line for line in told)
    assert other.count() == 1


def test_125_that_does_not_end_is_an_index_that_is_not_ready(
    atlas: AtlasStandin, other: MongoStorageBackend, make: MakeBackend, clock: Clock
) -> None:
    atlas.knobs.connection_errors = 10**6
    with pytest.raises(VectorIndexNotReadyError, match="Search Index Management"):
        make().ensure_indexes(timeout=5)
    assert clock.now == pytest.approx(1005)
    assert "scope_1" in collection_of(other).index_information()


# 68: there is one already


@pytest.mark.parametrize("flavour", ["atlas", "community"])
@pytest.mark.parametrize(("dimensions", "paths"), [(2, 5), (2, 1), (3, 5)], ids=["same", "fewer paths", "dimensions"])
def test_68_of_an_index_made_meanwhile_ends_in_the_wanted_one(
    atlas: AtlasStandin, other: MongoStorageBackend, make: MakeBackend, flavour: Any, dimensions: int, paths: int
) -> None:
    atlas.knobs.flavour = flavour
    meanwhile = Meanwhile("aggregate")
    backend = make(event_listeners=[meanwhile])
    meanwhile.action = lambda: create(other, dimensions, paths)
    assert backend.ensure_indexes(timeout=20).vector_index_state == ANSWERS
    status = backend.status()
    assert (status.problem, status.missing_filter_paths) == ("", ())


def test_68_of_an_index_that_is_being_deleted_is_waited_out(
    atlas: AtlasStandin, other: MongoStorageBackend, make: MakeBackend, clock: Clock
) -> None:
    create(other)
    atlas.pace.drop_seconds = None
    collection_of(other).drop_search_index(INDEX)
    clock.at_pause = lambda pauses: atlas.finish_drops() if pauses == 5 else None
    report = make().ensure_indexes(timeout=60)
    assert (report.vector_index, report.vector_index_state) == ("create", ANSWERS)


def test_20_of_an_index_that_is_being_deleted_is_waited_out(
    atlas: AtlasStandin, other: MongoStorageBackend, make: MakeBackend
) -> None:
    atlas.fail_next("createSearchIndexes", 20, "Index already requested to be deleted", times=3)
    assert make().ensure_indexes(timeout=60).vector_index_state == ANSWERS
    assert other.count() == 1


# 20, 13, 26, 27, 48, 85 and 86


def test_20_names_the_tier_and_leaves_the_rest_done(
    atlas: AtlasStandin, other: MongoStorageBackend, make: MakeBackend
) -> None:
    atlas.knobs.max_indexes = 0
    with pytest.raises(VectorIndexFailedError, match=r"maximum number .* tier"):
        make().ensure_indexes()
    assert "scope_1" in collection_of(other).index_information()


@pytest.mark.parametrize("mode", ["auto", "atlas"])
def test_13_is_said_as_it_is_and_leaves_the_rest_done(
    atlas: AtlasStandin, other: MongoStorageBackend, make: MakeBackend, mode: str
) -> None:
    atlas.knobs.denied = {"createSearchIndexes"}
    with pytest.raises(OperationFailure, match="not authorized") as raised:
        make(search_mode=mode).ensure_indexes()
    assert raised.value.code == 13
    assert "scope_1" in collection_of(other).index_information()


def test_26_that_the_driver_swallows_is_no_update(other: MongoStorageBackend, make: MakeBackend) -> None:
    create(other, paths=1)
    meanwhile = Meanwhile("aggregate")
    backend = make(event_listeners=[meanwhile])
    meanwhile.action = collection_of(other).drop
    report = backend.ensure_indexes(timeout=20)
    assert report.vector_index_state == ANSWERS


def test_27_of_an_index_dropped_meanwhile_ends_in_a_new_one(other: MongoStorageBackend, make: MakeBackend) -> None:
    create(other, paths=1)
    meanwhile = Meanwhile("aggregate")
    backend = make(event_listeners=[meanwhile])
    meanwhile.action = lambda: collection_of(other).drop_search_index(INDEX)
    assert backend.ensure_indexes(timeout=20).vector_index_state == ANSWERS


def test_48_of_a_collection_made_meanwhile_is_fine(atlas: AtlasStandin, make: MakeBackend) -> None:
    backend = make()
    atlas.fail_next("create", 48, "Collection already exists.")
    assert backend.ensure_indexes().vector_index_state == ANSWERS


@pytest.mark.parametrize("code", [85, 86])
def test_an_index_that_cannot_be_made_beside_another_does_not_keep_the_rest_from_being_made(
    atlas: AtlasStandin, other: MongoStorageBackend, make: MakeBackend, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    atlas.fail_next("createIndexes", code, "Index already exists with a different name: mine", times=100)
    report = make().ensure_indexes()
    assert (report.created, report.vector_index, report.vector_index_state) == ((), "create", ANSWERS)
    assert any("different name: mine" in line or "scope_1" in line for line in warnings(caplog))
    assert other.count() == 1


def test_a_conflict_by_name_is_reported_and_the_rest_made(other: MongoStorageBackend, make: MakeBackend) -> None:
    collection_of(other).create_index([("content", 1)], name="scope_1")
    report = make().ensure_indexes()
    assert report.conflicts == ("scope_1",)
    assert len(report.created) == 3
    assert report.vector_index_state == ANSWERS


# Many at once


def test_several_threads_at_once_make_one_of_everything(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> None:
    atlas.pace.build_seconds = 0.1
    backends = [make_atlas_backend(dimensions=2) for _ in range(6)]
    reports = at_once(lambda backend: backend.ensure_indexes(timeout=30), backends)
    assert [report.vector_index_state for report in reports] == [ANSWERS] * 6
    assert len(list(collection_of(backends[0]).list_search_indexes())) == 1
    assert len(collection_of(backends[0]).index_information()) == 5


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_several_processes_at_once_make_one_of_everything(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> None:
    atlas.pace.build_seconds = 0.1
    backend = make_atlas_backend(dimensions=2)
    processes = multiprocessing.get_context("fork")
    start, states = processes.Barrier(3), processes.SimpleQueue()

    def ensure() -> None:
        start.wait()
        states.put(backend.ensure_indexes(timeout=30).vector_index_state)

    started = [processes.Process(target=ensure) for _ in range(3)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [states.get() for process in started if process.exitcode == 0] == [ANSWERS] * 3
    assert len(list(collection_of(backend).list_search_indexes())) == 1
