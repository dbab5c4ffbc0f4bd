"""Which way a search goes: each state of the index, each kind of server without one, and filters it cannot take."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from crewai_mongodb_memory import (
    ExactSearchTooLargeError,
    MongoMemoryError,
    MongoStorageBackend,
    VectorIndexFailedError,
    VectorIndexMissingError,
    VectorIndexNotReadyError,
    VectorSearchUnavailableError,
)
from tests.atlas_standin import AtlasStandin
from tests.stores import (
    INDEX,
    QUERY,
    Clock,
    MakeBackend,
    asked,
    ids,
    record,
    replace_index,
    warnings,
    without,
)

SetState = Callable[..., None]


@pytest.fixture
def make(atlas: AtlasStandin, make: MakeBackend) -> MakeBackend:
    """Makes backends that know nothing yet, and remember no write of their own; what was asked before is forgotten."""

    def made(**arguments: Any) -> MongoStorageBackend:
        backend = make(**{"search_mode": "auto", "read_your_writes": 0, **arguments})
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
    definitions: dict[str, dict[str, Any] | None] = {
        "absent": None,
        "type search": {"mappings": {"dynamic": True}},
        "other dimensions": without(dimensions=3),
        "other similarity": {"fields": [dot_product]},
        "other path": {"fields": [elsewhere]},
    }
    state: str = request.param
    if state in definitions:
        replace_index(writer, definitions[state], "search" if state == "type search" else "vectorSearch")
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
    backend = make(**arranged)
    for _ in range(3):
        assert ids(backend.search(QUERY)) == ["a", "b"]
        assert ids(backend.search(QUERY, scope_prefix="/y")) == ["b"]
    (warning,) = warnings(caplog)
    assert re.search(said, warning), error


@PARAMETERS
def test_where_the_index_does_not_answer_atlas_raises(
    make: MakeBackend, arranged: dict[str, Any], error: type[Exception], said: str
) -> None:
    backend = make(search_mode="atlas", **arranged)
    for _ in range(2):
        with pytest.raises(error, match=said):
            backend.search(QUERY)


@pytest.mark.parametrize("mode", ["auto", "atlas"])
@pytest.mark.parametrize("state", ["READY", "STALE"])
def test_where_the_index_answers_it_is_used_in_either_mode(
    atlas: AtlasStandin, make: MakeBackend, set_state: SetState, state: str, mode: str
) -> None:
    set_state(state)
    backend = make(search_mode=mode)
    for _ in range(2):
        assert ids(backend.search(QUERY)) == ["a", "b"]
    assert asked(atlas) == ["find", "$listSearchIndexes", "$vectorSearch", "$vectorSearch"]


def test_a_stale_index_that_finds_nothing_is_not_believed(
    make: MakeBackend, writer: MongoStorageBackend, set_state: SetState, caplog: pytest.LogCaptureFixture
) -> None:
    set_state("STALE", message="lost the change stream")
    writer.save([record("new", scope="/new")])
    backend = make()
    for _ in range(2):
        assert ids(backend.search(QUERY, scope_prefix="/new")) == ["new"]
    (warning,) = warnings(caplog)
    assert "lost the change stream" in warning
    with pytest.raises(VectorIndexNotReadyError, match="lost the change stream"):
        make(search_mode="atlas").search(QUERY, scope_prefix="/new")


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
    backend = make()
    for _ in range(3):
        assert ids(backend.search(QUERY)) == ["a", "b"]
    assert len(warnings(caplog)) == 1
    with pytest.raises((VectorIndexNotReadyError, VectorIndexFailedError)):
        make(search_mode="atlas").search(QUERY)


@pytest.mark.parametrize("mode", ["auto", "atlas"])
def test_an_index_that_is_listed_as_queryable_and_not_seen_by_the_search_process_never_answers_nothing(
    make: MakeBackend, set_state: SetState, mode: str
) -> None:
    set_state("UNSEEN", queryable=True)
    try:
        assert ids(make(search_mode=mode).search(QUERY)) == ["a", "b"]
    except VectorIndexNotReadyError:
        assert mode == "atlas"


def test_an_exact_search_in_its_place_keeps_to_exact_limit(make: MakeBackend, set_state: SetState) -> None:
    set_state("BUILDING")
    backend = make(exact_limit=1)
    with pytest.raises(ExactSearchTooLargeError, match="exact_limit=1"):
        backend.search(QUERY)
    assert ids(backend.search(QUERY, scope_prefix="/x")) == ["a"]


@pytest.mark.parametrize("arguments", [{}, {"dimensions": 2}], ids=["nothing known", "dimensions known"])
def test_a_store_that_does_not_exist_has_nothing(make: MakeBackend, arguments: dict[str, Any]) -> None:
    assert make(**arguments).search(QUERY) == []


def test_a_search_in_an_index_that_does_not_exist_is_never_empty_on_atlas(make: MakeBackend) -> None:
    with pytest.raises(VectorIndexMissingError):
        make(search_mode="atlas", dimensions=2).search(QUERY)


# Servers without vector search

FLAVOURS = ["absent-8", "absent-7", "absent-6", "absent-5", "absent-115"]


@pytest.mark.parametrize("vendor", ["atlas", "community"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_server_without_vector_search_serves_everything_else(
    atlas: AtlasStandin, make: MakeBackend, flavour: Any, vendor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    atlas.knobs.search_service, atlas.knobs.flavour = flavour, vendor
    backend = make()
    backend.save([record("a", scope="/x"), record("b", [1.0, 1.0])])
    for _ in range(3):
        assert ids(backend.search(QUERY)) == ["a", "b"]
    (warning,) = warnings(caplog)
    assert "search_mode='exact'" in warning
    assert backend.ensure_indexes().vector_index == "impossible"
    assert backend.delete(scope_prefix="/x") == 1
    with pytest.raises(VectorSearchUnavailableError, match="Atlas"):
        make(search_mode="atlas").search(QUERY)
    with pytest.raises(VectorSearchUnavailableError, match="Atlas"):
        make(search_mode="atlas").ensure_indexes()


def test_a_server_without_vector_search_is_asked_again_after_five_minutes(
    atlas: AtlasStandin, make: MakeBackend, writer: MongoStorageBackend, clock: Clock
) -> None:
    atlas.knobs.search_service = "absent-8"
    backend = make()
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
