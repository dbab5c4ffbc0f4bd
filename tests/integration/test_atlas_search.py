"""Searching through a vector index that serves: what is sent, what comes back, and what must never come back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import bson
import numpy as np
import pytest
from crewai.memory.types import MemoryRecord

from crewai_mongodb_memory import InvalidArgumentError, MongoStorageBackend
from tests.atlas_standin import AtlasStandin
from tests.stores import Listener, MakeBackend, asked, collection_of, ids

DIMENSIONS = 8


class Colour(Enum):
    RED = "red"


def vector(*components: float) -> list[float]:
    return [*components, *[0.0] * (DIMENSIONS - len(components))]


def at_cosine(cosine: float) -> list[float]:
    return vector(cosine, (1 - cosine**2) ** 0.5)


def record(record_id: str, embedding: list[float] | None = None, **fields: Any) -> MemoryRecord:
    return MemoryRecord(id=record_id, content=record_id, embedding=embedding or vector(1.0), **fields)


def stage_of(atlas: AtlasStandin) -> dict[str, Any]:
    """The only ``$vectorSearch`` stage seen, without its vector."""
    (stage,) = [body["pipeline"][0]["$vectorSearch"] for name, body in atlas.commands if name == "aggregate"]
    return {name: value for name, value in stage.items() if name != "queryVector"}


@pytest.fixture
def reader(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> Callable[..., MongoStorageBackend]:
    """Saves records and gives a backend that knows the store and the index, and remembers no write of its own."""

    def make(*records: MemoryRecord, **arguments: Any) -> MongoStorageBackend:
        make_atlas_backend(**arguments).save(list(records))
        backend = make_atlas_backend(read_your_writes=0, **arguments)
        backend.search(vector(1.0))
        atlas.commands.clear()
        return backend

    return make


# What is sent


def test_every_filter_goes_into_the_stage(atlas: AtlasStandin, reader: MakeBackend) -> None:
    backend = reader(record("a", scope="/x/y", categories=["c"], metadata={"k": 1, "l": 2}), tenant="acme")
    assert ids(backend.search(vector(1.0), "/x", ["c", "d"], {"k": 1, "l": 2})) == ["a"]
    assert stage_of(atlas) == {
        "index": "idx_crewai_memory",
        "path": "embedding",
        "limit": 10,
        "numCandidates": 200,
        "filter": {
            "tenant": "acme",
            "scope_ancestors": "/x",
            "categories": {"$in": ["c", "d"]},
            "$and": [{"metadata_tokens": "k=1"}, {"metadata_tokens": "l=2"}],
        },
    }


def test_no_criterion_is_no_filter(atlas: AtlasStandin, reader: MakeBackend) -> None:
    backend = reader(record("a"))
    assert ids(backend.search(vector(1.0), "/", [], {})) == ["a"]
    assert "filter" not in stage_of(atlas)


@pytest.mark.parametrize("num_candidates", [None, 7])
@pytest.mark.parametrize("limit", [1, 10, 600, 10_000, 20_000, 2**40])
def test_every_limit_is_within_what_the_stage_takes(
    atlas: AtlasStandin, reader: MakeBackend, limit: int, num_candidates: int | None
) -> None:
    backend = reader(record("a"), num_candidates=num_candidates)
    assert ids(backend.search(vector(1.0), limit=limit)) == ["a"]
    assert asked(atlas) == ["$vectorSearch"]


@pytest.mark.parametrize(
    ("query", "limit"),
    [(vector(1.0), 0), (vector(1.0), -1), (vector(), 5), ([], 5), (vector(1e-50), 5)],
    ids=["no hits", "fewer than none", "zeros", "nothing", "zeros once it is float32"],
)
def test_what_can_find_nothing_is_not_sent(
    atlas: AtlasStandin, reader: MakeBackend, query: list[float], limit: int
) -> None:
    backend = reader(record("a"))
    assert backend.search(query, limit=limit) == []
    assert asked(atlas) == []


@pytest.mark.parametrize("query", [[vector(1.0)], [float("nan"), *vector()[1:]], ["a"] * 8, [1e39, *vector()[1:]]])
def test_what_is_no_vector_is_refused_before_the_server_sees_it(
    atlas: AtlasStandin, reader: MakeBackend, query: Any
) -> None:
    backend = reader(record("a"))
    with pytest.raises(InvalidArgumentError):
        backend.search(query)
    assert asked(atlas) == []


def test_numpy_vectors_are_taken(reader: MakeBackend) -> None:
    query: Any = np.array(vector(1.0), dtype=np.float32)
    assert ids(reader(record("a")).search(query)) == ["a"]


@pytest.mark.parametrize("option", ["readConcernLevel=majority", "readPreference=secondary"])
def test_no_option_of_the_connection_string_breaks_a_search(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend, option: str
) -> None:
    backend = make_atlas_backend(connection_string=f"{atlas.uri}&{option}")
    assert backend.ensure_indexes().vector_index_state == "the index answers"
    backend.save([record("a")])
    assert ids(backend.search(vector(1.0))) == ["a"]
    backend.wait_until_searchable(["a"], timeout=5)
    assert backend.status().search == "vector index"


# Round trips and bytes


def test_the_usual_search_is_one_command_outside_of_any_transaction(atlas: AtlasStandin, reader: MakeBackend) -> None:
    backend = reader(*(record(f"r{number}", at_cosine(number / 10)) for number in range(10)))
    assert len(backend.search(vector(1.0), limit=10)) == 10
    (sent,) = [body for _, body in atlas.commands]
    assert sent["readConcern"] == {"level": "local"}
    assert not {"autocommit", "startTransaction"} & sent.keys()


def test_an_asynchronous_search_is_one_command_too(atlas: AtlasStandin, reader: MakeBackend) -> None:
    backend = reader(record("a"))

    async def search() -> list[str]:
        async with backend:
            return ids(await backend.asearch(vector(1.0)))

    assert asyncio.run(search()) == ["a"]
    assert asked(atlas) == ["$vectorSearch"]


def test_ten_hits_cost_less_than_12_kilobytes_and_carry_no_embedding(make_atlas_backend: MakeBackend) -> None:
    commands, dice = Listener(), random.Random(1)
    backend = make_atlas_backend(event_listeners=[commands])
    fields: dict[str, Any] = {
        "scope": "/crew/research/market",
        "categories": ["preference", "decision"],
        "metadata": {"agent": "researcher", "task": "market study", "year": 2026},
        "source": "researcher",
    }
    query, *embeddings = [[dice.gauss(0, 1) for _ in range(1024)] for _ in range(21)]
    records = [record(f"{number:036}", one, **fields) for number, one in enumerate(embeddings)]
    backend.save([one.model_copy(update={"content": "x" * 300}) for one in records])
    backend.search(query)
    commands.take()
    hits = backend.search(query, "/crew", limit=10)
    assert len(hits) == 10
    (reply,) = commands.replies
    assert len(bson.encode(reply)) < 12_000
    assert {hit.embedding is None for hit, _ in hits} == {True}


def test_a_hit_is_the_record_that_was_saved_but_for_its_embedding(reader: MakeBackend) -> None:
    saved = record("a", scope="/x", categories=["c"], metadata={"k": [1, "two", None]}, source="ada", private=True)
    moments = {
        name: getattr(saved, name).replace(microsecond=getattr(saved, name).microsecond // 1000 * 1000)
        for name in ("created_at", "last_accessed")
    }
    ((hit, score),) = reader(saved).search(vector(1.0))
    assert hit == saved.model_copy(update={"embedding": None} | moments)
    assert score == pytest.approx(1.0)


# Scores


def test_scores_are_clamped_cosines_on_the_scale_of_min_score(reader: MakeBackend) -> None:
    backend = reader(*(record(str(cosine), at_cosine(cosine)) for cosine in (1.0, 0.85, 0.7, 0.0, -1.0)))
    hits = backend.search(vector(1.0))
    assert ids(hits) == ["1.0", "0.85", "0.7", "0.0", "-1.0"]
    assert [score for _, score in hits] == pytest.approx([1.0, 0.85, 0.7, 0.0, 0.0], abs=1e-6)
    assert ids(backend.search(vector(1.0), min_score=0.8)) == ["1.0", "0.85"]


def test_a_record_right_at_min_score_is_kept_although_the_index_computes_in_float32(reader: MakeBackend) -> None:
    cosines = [number / 25 for number in range(1, 26)]
    backend = reader(*(record(str(cosine), at_cosine(cosine)) for cosine in cosines))
    kept = [min(ids(backend.search(vector(1.0), limit=25, min_score=cosine)), key=float) for cosine in cosines]
    assert kept == [str(cosine) for cosine in cosines]
    beyond = [ids(backend.search(vector(1.0), limit=25, min_score=cosine + 1e-5)) for cosine in cosines]
    assert [str(cosine) in found for cosine, found in zip(cosines, beyond, strict=True)] == [False] * 25


# Filters


def test_a_filter_restricts_before_the_ranking(reader: MakeBackend) -> None:
    near = [record(f"n{number}", scope="/near", categories=["y"], metadata={"k": 2}) for number in range(200)]
    backend = reader(*near, record("far", at_cosine(0.1), scope="/far", categories=["x"], metadata={"k": 1}))
    criteria: list[dict[str, Any]] = [{"scope_prefix": "/far"}, {"categories": ["x"]}, {"metadata_filter": {"k": 1}}]
    for one in criteria:
        assert ids(backend.search(vector(1.0), limit=5, **one)) == ["far"]


def test_a_tenant_restricts_before_the_ranking(reader: MakeBackend, make_atlas_backend: MakeBackend) -> None:
    make_atlas_backend(tenant="other").save([record(f"n{number}") for number in range(50)])
    assert ids(reader(record("mine", at_cosine(0.1)), tenant="acme").search(vector(1.0), limit=5)) == ["mine"]


@pytest.mark.parametrize(
    "value",
    [Decimal("1.5"), Colour.RED, UUID(int=7), True, None, 1.5, "a.b=c", ["p", "q"], {"deep": {"er": 1}}, "x" * 9000],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_metadata_value_filters_in_the_index(
    atlas: AtlasStandin, reader: MakeBackend, value: Any
) -> None:
    backend = reader(record("yes", at_cosine(0.2), metadata={"k": value}), record("no", metadata={"k": "else"}))
    assert ids(backend.search(vector(1.0), metadata_filter={"k": value})) == ["yes"]
    assert asked(atlas) == ["$vectorSearch"]


def test_a_text_too_long_for_the_index_is_compared_in_full(reader: MakeBackend) -> None:
    category, scope = "c" * 8200, "/" + "s" * 8200
    backend = reader(
        record("yes", categories=[category], scope=scope),
        record("no", categories=[category + "d"], scope=scope + "t"),
    )
    assert ids(backend.search(vector(1.0), categories=[category])) == ["yes"]
    assert ids(backend.search(vector(1.0), scope_prefix=scope)) == ["yes"]


@pytest.mark.parametrize(
    ("criteria", "change"),
    [
        ({"scope_prefix": "/mine"}, {"scope": "/theirs", "scope_ancestors": ["/theirs"]}),
        ({"categories": ["mine"]}, {"categories": ["theirs"]}),
        ({"metadata_filter": {"of": "me"}}, {"metadata": {"of": "them"}, "metadata_tokens": ['of="them"']}),
        ({}, {"tenant": "them"}),
    ],
    ids=["scope", "categories", "metadata", "tenant"],
)
def test_a_record_that_moved_after_it_was_indexed_never_leaks(
    atlas: AtlasStandin, reader: MakeBackend, criteria: dict[str, Any], change: dict[str, Any]
) -> None:
    fields: dict[str, Any] = {"scope": "/mine", "categories": ["mine"], "metadata": {"of": "me"}}
    backend = reader(record("moved", **fields), record("stays", at_cosine(0.5), **fields), tenant="me")
    atlas.lag = None
    collection_of(backend).update_one({"_id": "moved"}, {"$set": change})
    assert ids(backend.search(vector(1.0), **criteria)) == ["stays"]


def test_both_forms_of_a_vector_are_found(reader: MakeBackend, make_atlas_backend: MakeBackend) -> None:
    make_atlas_backend(vector_format="float32").save([record("binary")])
    assert ids(reader(record("array")).search(vector(1.0))) == ["array", "binary"]
