"""The dimensions of a store: taken from what is in it, refused when they differ, and followed by the vector index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crewai_mongodb_memory import DimensionMismatchError, MongoStorageBackend
from tests.atlas_standin import AtlasStandin
from tests.stores import MakeBackend, collection_of, ids, record

TWO, THREE = [1.0, 0.0], [1.0, 0.0, 0.0]


def indexed_dimensions(backend: MongoStorageBackend) -> int:
    (listed,) = collection_of(backend).list_search_indexes()
    return int(listed["latestDefinition"]["fields"][0]["numDimensions"])


def sent(atlas: AtlasStandin) -> list[str]:
    return [name for name, _ in atlas.commands]


def test_an_embedder_of_3072_dimensions_just_works_on_a_fresh_store(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend
) -> None:
    backend = make_atlas_backend()
    backend.save([record("a", [1.0] * 3072)])
    assert ids(backend.search([1.0] * 3072)) == ["a"]
    assert backend.ensure_indexes().vector_index == "keep"
    assert indexed_dimensions(backend) == 3072
    assert "updateSearchIndex" not in sent(atlas)


def test_the_index_of_a_bare_store_follows_its_first_embedding(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend()
    assert backend.ensure_indexes().dimensions == 1024
    backend.save([record("a", THREE)])
    assert indexed_dimensions(backend) == 3
    assert ids(backend.search(THREE)) == ["a"]


@pytest.mark.parametrize("dimensions", [None, 3], ids=["automatic", "configured"])
def test_another_dimension_is_refused_on_every_path_and_sends_no_vector(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend, dimensions: int | None
) -> None:
    make_atlas_backend().save([record("a", THREE)])
    backend = make_atlas_backend(dimensions=dimensions)
    calls: list[Callable[[], Any]] = [
        lambda: backend.save([record("b", TWO)]),
        lambda: backend.update(record("a", TWO)),
        lambda: backend.search(TWO),
        lambda: backend.search(TWO, categories=["c"], min_score=0.5),
    ]
    atlas.commands.clear()
    for call in calls:
        with pytest.raises(DimensionMismatchError, match="3-dimensional"):
            call()
    assert not {"insert", "update", "findAndModify"} & set(sent(atlas))
    assert "$vectorSearch" not in str(atlas.commands)


def test_another_dimension_is_refused_asynchronously_as_well(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend()
    backend.save([record("a", THREE)])

    async def refused() -> None:
        for call in (backend.asearch(TWO), backend.asave([record("b", TWO)]), backend.aupdate(record("a", TWO))):
            with pytest.raises(DimensionMismatchError):
                await call
        await backend.aclose()

    asyncio.run(refused())
    assert backend.count() == 1


def test_after_a_reset_another_dimension_is_taken_and_the_index_follows(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend()
    backend.save([record("a", THREE)])
    backend.reset()
    backend.save([record("b", TWO)])
    assert ids(backend.search(TWO)) == ["b"]
    assert indexed_dimensions(backend) == 2


@pytest.mark.parametrize("how", ["by scope", "by another backend"])
def test_a_store_that_was_emptied_some_other_way_takes_another_dimension_as_well(
    make_atlas_backend: MakeBackend, how: str
) -> None:
    backend = make_atlas_backend()
    backend.save([record("a", THREE, scope="/x")])
    if how == "by scope":
        backend.delete(scope_prefix="/x")
    else:
        make_atlas_backend().reset()
    backend.save([record("b", TWO)])
    assert ids(backend.search(TWO)) == ["b"]


def test_a_store_of_configured_dimensions_keeps_them_after_a_reset(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend(dimensions=3)
    backend.save([record("a", THREE)])
    backend.reset()
    with pytest.raises(DimensionMismatchError):
        backend.save([record("b", TWO)])
    assert indexed_dimensions(backend) == 3


@pytest.mark.parametrize("embedding", [None, [], "text", ["a"]], ids=["null", "empty", "text", "texts"])
def test_a_document_without_a_usable_vector_does_not_hide_the_dimensions_of_the_others(
    make_atlas_backend: MakeBackend, embedding: Any
) -> None:
    backend = make_atlas_backend()
    collection_of(backend).insert_one({"_id": "bad", "embedding": embedding})
    backend.save([record("a", THREE)])
    fresh = make_atlas_backend()
    assert ids(fresh.search(THREE)) == ["a"]
    with pytest.raises(DimensionMismatchError):
        fresh.save([record("b", TWO)])


def test_one_stray_vector_does_not_lock_out_the_embedder_that_the_index_is_made_for(
    make_atlas_backend: MakeBackend,
) -> None:
    backend = make_atlas_backend(dimensions=3)
    collection_of(backend).insert_one({"_id": "stray", "embedding": TWO})
    backend.save([record("a", THREE)])
    assert ids(make_atlas_backend().search(THREE)) == ["a"]
