"""Documents of 0.1.0, which lack the fields that searches filter on."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.atlas_standin import AtlasStandin
from tests.stores import QUERY, MakeBackend, Meanwhile, collection_of, record


def old_document(number: int, **fields: Any) -> dict[str, Any]:
    moment = datetime(2026, 1, 1)
    return {
        "_id": f"{number:05}",
        "content": "old",
        "scope": "/x/y",
        "scope_ancestors": ["/x", "/x/y"],
        "categories": [],
        "metadata": {"n": number, "even": number % 2 == 0},
        "importance": 0.5,
        "created_at": moment,
        "last_accessed": moment,
        "embedding": QUERY,
        "source": None,
        "private": False,
    } | fields


def test_old_documents_get_their_tokens_in_batches(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crewai_mongodb_memory.operations.ensure_indexes.BACKFILL_AT_A_TIME", 10)
    backend = make_atlas_backend()
    collection_of(backend).insert_many(old_document(number) for number in range(25))
    told: list[str] = []
    atlas.commands.clear()
    assert backend.ensure_indexes(on_progress=told.append).backfilled == 25
    assert [len(body["updates"]) for name, body in atlas.commands if name == "update"] == [10, 10, 5]
    assert sum("earlier version" in line for line in told) == 3
    assert [one.id for one, _ in backend.search(QUERY, metadata_filter={"n": 12})] == ["00012"]
    assert backend.delete(metadata_filter={"even": True}, scope_prefix="/x") == 13
    assert backend.ensure_indexes().backfilled == 0


def test_old_documents_of_any_shape_are_completed(make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend(tenant="acme")
    shapes: list[dict[str, Any]] = [{"scope": "Sales//EU/"}, {"scope": None}, {"scope": 7}, {"metadata": None}]
    documents = [old_document(number, **shape) for number, shape in enumerate(shapes)]
    for document in documents:
        del document["scope_ancestors"]
    collection_of(backend).insert_many(documents)
    assert backend.ensure_indexes().backfilled == 4
    found = [(one["scope"], one["scope_ancestors"]) for one in collection_of(backend).find(sort=[("_id", 1)])]
    assert found == [("/Sales/EU", ["/Sales", "/Sales/EU"]), ("/", ["/"]), ("/", ["/"]), ("/x/y", ["/x", "/x/y"])]


def test_a_document_that_changes_while_it_is_completed_keeps_the_change(make_atlas_backend: MakeBackend) -> None:
    meanwhile = Meanwhile("find")
    backend, other = make_atlas_backend(event_listeners=[meanwhile]), make_atlas_backend()
    collection_of(other).insert_one(old_document(1))
    meanwhile.action = lambda: other.update(record("00001", scope="/moved", metadata={"n": "new"}))
    backend.ensure_indexes()
    assert other.count("/moved") == 1
    assert [one.id for one, _ in other.search(QUERY, metadata_filter={"n": "new"})] == ["00001"]
