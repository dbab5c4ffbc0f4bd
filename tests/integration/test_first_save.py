"""The first save of a process: it creates the indexes that are missing, waits for none, and never fails for them."""

from __future__ import annotations

from typing import Any

import pytest
from crewai.memory.types import MemoryRecord
from pymongo.errors import ConnectionFailure

from crewai_mongodb_memory import MongoStorageBackend
from tests.atlas_standin import AtlasStandin
from tests.stores import QUERY, MakeBackend, collection_of, record, warnings


def found(backend: MongoStorageBackend) -> list[str]:
    return [hit.id for hit, _ in backend.search(QUERY)]


def test_it_creates_the_index_and_does_not_wait_for_it(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> None:
    atlas.pace.build_seconds = None
    backend = make_atlas_backend(search_mode="auto")
    now = 1000.0
    backend._store.clock = lambda: now
    backend.save([record("a")])
    assert found(backend) == ["a"]
    atlas.finish_builds()
    now += 11
    atlas.commands.clear()
    assert found(backend) == ["a"]
    assert [next(iter(body["pipeline"][0])) for _, body in atlas.commands] == ["$listSearchIndexes", "$vectorSearch"]


def test_a_save_without_an_embedding_leaves_the_index_to_the_next(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend()
    backend.save([MemoryRecord(id="blank", content="")])
    backend.save([record("a")])
    assert found(backend) == ["a"]


def test_indexes_that_cannot_be_made_do_not_keep_it_from_making_the_vector_index(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend
) -> None:
    backend = make_atlas_backend()
    atlas.fail_next("createIndexes", 85, "Index already exists with a different name: mine", times=100)
    backend.save([record("a")])
    assert found(backend) == ["a"]


def test_what_a_broken_connection_left_out_the_next_save_makes_up_for(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend
) -> None:
    backend = make_atlas_backend()
    atlas.cut_connection_next("createIndexes")
    with pytest.raises(ConnectionFailure):
        backend.save([record("a")])
    backend.save([record("b")])
    assert len(collection_of(backend).index_information()) == 5
    assert backend.count() == 2


def test_a_search_service_that_is_starting_is_left_to_a_later_save(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend
) -> None:
    backend = make_atlas_backend()
    atlas.knobs.connection_errors = 1
    backend.save([record("a")])
    backend.save([record("b")])
    assert backend.status().vector_index_state == "the index answers"


@pytest.mark.parametrize(
    ("knob", "value", "said"), [("max_indexes", 0, "tier"), ("denied", {"createSearchIndexes"}, "createSearchIndexes")]
)
def test_an_index_that_cannot_be_made_is_told_of_once_with_the_remedy_and_nothing_fails(
    atlas: AtlasStandin,
    make_atlas_backend: MakeBackend,
    knob: str,
    value: Any,
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    setattr(atlas.knobs, knob, value)
    backend = make_atlas_backend(search_mode="auto")
    for number in range(3):
        backend.save([record(f"r{number}")])
    (warning,) = warnings(caplog)
    assert said in warning
    assert len(found(backend)) == 3


def test_a_second_process_changes_nothing(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> None:
    make_atlas_backend().save([record("a")])
    atlas.commands.clear()
    make_atlas_backend().save([record("b")])
    assert not {"createIndexes", "createSearchIndexes", "updateSearchIndex"} & {name for name, _ in atlas.commands}


def test_without_auto_setup_nothing_is_created(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> None:
    make_atlas_backend(auto_setup=False).save([record("a")])
    assert not {"createIndexes", "createSearchIndexes", "updateSearchIndex"} & {name for name, _ in atlas.commands}
