"""Which way a search goes: each state of the index, each kind of server without one, and filters it cannot take."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from crewai.memory.types import MemoryRecord
from pymongo.operations import SearchIndexModel

from crewai_mongodb_memory import (
    ExactSearchTooLargeError,
    MongoMemoryError,
    MongoStorageBackend,
    VectorIndexFailedError,
    VectorIndexMissingError,
    VectorIndexNotReadyError,
    VectorSearchUnavailableError,
)
from crewai_mongodb_memory.vector_index import definition_document
from tests.atlas_standin import AtlasStandin

INDEX = "idx_crewai_memory"
QUERY = [1.0, 0.0]
MakeBackend = Callable[..., MongoStorageBackend]
SetState = Callable[..., None]


class Clock:
    """Time that only tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def ids(hits: list[tuple[MemoryRecord, float]]) -> list[str]:
    return [hit.id for hit, _ in hits]


def record(record_id: str, embedding: list[float] | None = None, **fields: Any) -> MemoryRecord:
    return MemoryRecord(id=record_id, content=record_id, embedding=embedding or QUERY, **fields)


def collection_of(backend: MongoStorageBackend) -> Any:
    return backend._connection.collection("memories")


def asked(atlas: AtlasStandin) -> list[str]:
    """The commands seen since the last call; of an aggregation its first stage."""
    names = [next(iter(body["pipeline"][0])) if name == "aggregate" else name for name, body in atlas.commands]
    atlas.commands.clear()
    return [name for name in names if not name.startswith(("sasl", "endSessions"))]


def index_model(definition: dict[str, Any], kind: str = "vectorSearch") -> SearchIndexModel:
    return SearchIndexModel(definition=definition, name=INDEX, type=kind)


def without(*paths: str, dimensions: int = 2) -> dict[str, Any]:
    """The definition of the index with some filter paths left out."""
    return {"fields": [field for field in definition_document(dimensions)["fields"] if field["path"] not in paths]}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(atlas: AtlasStandin, make_atlas_backend: MakeBackend, clock: Clock) -> MakeBackend:
    """Makes backends that know nothing yet, remember no write of their own, and tell the time by ``clock``."""

    def made(mode: str = "auto", **arguments: Any) -> MongoStorageBackend:
        backend = make_atlas_backend(**{"search_mode": mode, "read_your_writes": 0, **arguments})
        backend._store.clock = clock
        atlas.commands.clear()
        return backend

    return made


@pytest.fixture
def writer(make: MakeBackend) -> MongoStorageBackend:
    """Has saved two records, in a store whose index is up to date."""
    backend = make()
    backend.save([record("a", scope="/x", categories=["c"]), record("b", [1.0, 1.0], scope="/y")])
    return backend


@pytest.fixture
def set_state(atlas: AtlasStandin, writer: MongoStorageBackend) -> SetState:
    database = writer._store.settings.database
    return lambda state, **how: atlas.set_state(database, "memories", INDEX, state, **how)


def replace_index(writer: MongoStorageBackend, model: SearchIndexModel | None) -> None:
    collection_of(writer).drop_search_index(INDEX)
    if model is not None:
        collection_of(writer).create_search_index(model)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.message for line in caplog.records if line.levelno == logging.WARNING]


# States in which the index does not answer

NOT_ANSWERING: list[tuple[str, type[MongoMemoryError], str]] = [
    ("PENDING", VectorIndexNotReadyError, "PENDING; ensure_indexes"),
    ("BUILDING", VectorIndexNotReadyError, "BUILDING; ensure_indexes"),
    ("UNSEEN", VectorIndexNotReadyError, "PENDING; ensure_indexes"),
    ("NOT_INITIALIZED", VectorIndexNotReadyError, "PENDING; ensure_indexes"),
    ("FAILED", VectorIndexFailedError, "quota exceeded; ensure_indexes"),
    ("DELETING", VectorIndexMissingError, "create it with ensure_indexes"),
    ("DOES_NOT_EXIST", VectorIndexMissingError, "create it with ensure_indexes"),
    ("absent", VectorIndexMissingError, "create it with ensure_indexes"),
    ("misspelled", VectorIndexMissingError, "'idx_memory'; create it with ensure_indexes"),
    ("type search", VectorIndexMissingError, "drop it"),
    ("other dimensions", VectorIndexFailedError, "3 dimensions .* 2 dimensions .*; ensure_indexes"),
    ("other similarity", VectorIndexFailedError, "dotProduct .*; ensure_indexes"),
    ("other path", VectorIndexMissingError, "not a vector search index on 'embedding'"),
]


@pytest.fixture
def arranged(request: pytest.FixtureRequest, writer: MongoStorageBackend, set_state: SetState) -> dict[str, Any]:
    """Puts the index into the state that the test is about; returns arguments for the backend that meets it."""
    dot_product = {**without()["fields"][0], "similarity": "dotProduct"}
    elsewhere = {**without()["fields"][0], "path": "elsewhere"}
    models = {
        "absent": None,
        "type search": index_model({"mappings": {"dynamic": True}}, "search"),
        "other dimensions": index_model(without(dimensions=3)),
        "other similarity": index_model({"fields": [dot_product]}),
        "other path": index_model({"fields": [elsewhere]}),
    }
    state: str = request.param
    if state in models:
        replace_index(writer, models[state])
    elif state != "misspelled":
        set_state(state, message="quota exceeded" if state == "FAILED" else None)
    return {"vector_search_index": "idx_memory"} if state == "misspelled" else {}


PARAMETERS = pytest.mark.parametrize(
    ("arranged", "error", "said"), NOT_ANSWERING, indirect=["arranged"], ids=[case[0] for case in NOT_ANSWERING]
)


@PARAMETERS
def test_where_the_index_does_not_answer_auto_searches_exactly_and_says_so_once(
    make: MakeBackend, arranged: dict[str, Any], error: type[Exception], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    backend = make("auto", **arranged)
    for _ in range(3):
        assert ids(backend.search(QUERY)) == ["a", "b"]
        assert ids(backend.search(QUERY, scope_prefix="/y")) == ["b"]
    (warning,) = warnings(caplog)
    assert re.search(said, warning), error


@PARAMETERS
def test_where_the_index_does_not_answer_atlas_raises(
    make: MakeBackend, arranged: dict[str, Any], error: type[Exception], said: str
) -> None:
    backend = make("atlas", **arranged)
    for _ in range(2):
        with pytest.raises(error, match=said):
            backend.search(QUERY)


@pytest.mark.parametrize("mode", ["auto", "atlas"])
@pytest.mark.parametrize("state", ["READY", "STALE"])
def test_where_the_index_answers_it_is_used_in_either_mode(
    atlas: AtlasStandin, make: MakeBackend, set_state: SetState, state: str, mode: str
) -> None:
    set_state(state)
    backend = make(mode)
    for _ in range(2):
        assert ids(backend.search(QUERY)) == ["a", "b"]
    assert asked(atlas) == ["find", "$listSearchIndexes", "$vectorSearch", "$vectorSearch"]


def test_a_stale_index_that_finds_nothing_is_not_believed(
    make: MakeBackend, writer: MongoStorageBackend, set_state: SetState, caplog: pytest.LogCaptureFixture
) -> None:
    set_state("STALE", message="lost the change stream")
    writer.save([record("new", scope="/new")])
    backend = make("auto")
    for _ in range(2):
        assert ids(backend.search(QUERY, scope_prefix="/new")) == ["new"]
    (warning,) = warnings(caplog)
    assert "lost the change stream" in warning
    with pytest.raises(VectorIndexNotReadyError, match="lost the change stream"):
        make("atlas").search(QUERY, scope_prefix="/new")


@pytest.mark.parametrize("prefix", ["8.x", "7.x"])
@pytest.mark.parametrize("state", ["BUILDING", "PENDING", "NOT_INITIALIZED", "FAILED"])
def test_an_index_that_is_listed_as_queryable_and_is_not_is_found_out(
    atlas: AtlasStandin,
    make: MakeBackend,
    set_state: SetState,
    state: str,
    prefix: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    atlas.knobs.prefix = prefix
    set_state(state, queryable=True)
    backend = make("auto")
    for _ in range(3):
        assert ids(backend.search(QUERY)) == ["a", "b"]
    assert len(warnings(caplog)) == 1
    with pytest.raises((VectorIndexNotReadyError, VectorIndexFailedError)):
        make("atlas").search(QUERY)


@pytest.mark.parametrize("mode", ["auto", "atlas"])
def test_an_index_that_is_listed_as_queryable_and_not_seen_by_the_search_process_never_answers_nothing(
    make: MakeBackend, set_state: SetState, mode: str
) -> None:
    set_state("UNSEEN", queryable=True)
    try:
        assert ids(make(mode).search(QUERY)) == ["a", "b"]
    except VectorIndexNotReadyError:
        assert mode == "atlas"


def test_an_exact_search_in_its_place_keeps_to_exact_limit(make: MakeBackend, set_state: SetState) -> None:
    set_state("BUILDING")
    backend = make("auto", exact_limit=1)
    with pytest.raises(ExactSearchTooLargeError, match="exact_limit=1"):
        backend.search(QUERY)
    assert ids(backend.search(QUERY, scope_prefix="/x")) == ["a"]


@pytest.mark.parametrize("arguments", [{}, {"dimensions": 2}], ids=["nothing known", "dimensions known"])
def test_a_store_that_does_not_exist_has_nothing(make: MakeBackend, arguments: dict[str, Any]) -> None:
    assert make("auto", **arguments).search(QUERY) == []


def test_a_search_in_an_index_that_does_not_exist_is_never_empty_on_atlas(make: MakeBackend) -> None:
    with pytest.raises(VectorIndexMissingError):
        make("atlas", dimensions=2).search(QUERY)


# Servers without vector search

FLAVOURS = ["absent-8", "absent-7", "absent-6", "absent-5", "absent-115"]


@pytest.mark.parametrize("vendor", ["atlas", "community"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_server_without_vector_search_serves_everything_else(
    atlas: AtlasStandin, make: MakeBackend, flavour: Any, vendor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    atlas.knobs.search_service, atlas.knobs.flavour = flavour, vendor
    backend = make("auto")
    backend.save([record("a", scope="/x"), record("b", [1.0, 1.0])])
    for _ in range(3):
        assert ids(backend.search(QUERY)) == ["a", "b"]
    (warning,) = warnings(caplog)
    assert "search_mode='exact'" in warning
    assert backend.ensure_indexes().vector_index == "impossible"
    assert backend.delete(scope_prefix="/x") == 1
    with pytest.raises(VectorSearchUnavailableError, match="Atlas"):
        make("atlas").search(QUERY)
    with pytest.raises(VectorSearchUnavailableError, match="Atlas"):
        make("atlas").ensure_indexes()


def test_a_server_without_vector_search_is_asked_again_after_five_minutes(
    atlas: AtlasStandin, make: MakeBackend, writer: MongoStorageBackend, clock: Clock
) -> None:
    atlas.knobs.search_service = "absent-8"
    backend = make("auto")
    backend.search(QUERY)
    asked(atlas)
    clock.now += 299
    backend.search(QUERY)
    assert asked(atlas) == ["find", "find"]
    atlas.knobs.search_service = "mongot"
    clock.now += 2
    backend.search(QUERY)
    assert asked(atlas) == ["$listSearchIndexes", "$vectorSearch"]
    assert writer.count() == 2
