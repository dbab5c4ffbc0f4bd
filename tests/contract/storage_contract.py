"""The contract of CrewAI's storage protocol, as a class to inherit: one fixture, ``storage``, gives an empty store.

What it demands comes from ``crewai/memory/storage/backend.py`` and from how CrewAI's Memory calls a storage; it
holds for any backend, not for this library's alone.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.types import MemoryRecord, ScopeInfo

DIMENSIONS = 8
LONG_AGO = datetime(2024, 1, 1)

PROTOCOL_METHODS = sorted(name for name in vars(StorageBackend) if not name.startswith("_"))
ROOT_SPELLINGS = [None, "", "/", "//"]
SIBLINGS = ["/app", "/app/v1", "/apple", "/a_p", "/a.p", "/a(b", "/a+b", "/a%", "/a*", "/App", "/ünïcode"]

CRITERIA: dict[str, Any] = {
    "scope_prefix": "/x",
    "categories": ["wanted"],
    "record_ids": ["target", "not-scope_prefix", "not-categories", "not-older_than", "not-metadata_filter"],
    "older_than": LONG_AGO + timedelta(days=5),
    "metadata_filter": {"team": "blue"},
}
MEETS_ALL: dict[str, Any] = {
    "scope": "/x/y",
    "categories": ["wanted", "more"],
    "created_at": LONG_AGO,
    "metadata": {"team": "blue", "more": 1},
}
MEETS_ALL_BUT: dict[str, dict[str, Any]] = {
    "scope_prefix": {"scope": "/xy"},
    "categories": {"categories": ["unwanted"]},
    "record_ids": {},
    "older_than": {"created_at": LONG_AGO + timedelta(days=9)},
    "metadata_filter": {"metadata": {"team": "red"}},
}


def vector(*components: float) -> list[float]:
    """A vector with the given first components and zeros after them."""
    return [*components, *[0.0] * (DIMENSIONS - len(components))]


def cosine_to_first_axis(cosine: float) -> list[float]:
    """A unit vector whose cosine with ``vector(1.0)`` is the given one."""
    return vector(cosine, (1 - cosine**2) ** 0.5)


def record(content: str = "a fact", embedding: list[float] | None = None, **fields: Any) -> MemoryRecord:
    embedding = vector(1.0) if embedding is None else embedding
    return MemoryRecord(content=content, embedding=embedding, **fields)


def contents(hits: list[tuple[MemoryRecord, float]]) -> list[str]:
    return [hit.content for hit, _ in hits]


class StorageContract:
    """What every storage of CrewAI's memory has to do."""

    # The protocol

    def test_is_a_storage_backend(self, storage: Any) -> None:
        assert isinstance(storage, StorageBackend)

    @pytest.mark.parametrize("method", PROTOCOL_METHODS)
    def test_has_the_signatures_of_the_protocol(self, storage: Any, method: str) -> None:
        assert inspect.signature(getattr(type(storage), method)) == inspect.signature(getattr(StorageBackend, method))

    # Saving and reading back

    def test_a_record_comes_back_as_it_was_saved(self, storage: Any) -> None:
        saved = record(
            "Ada prefers tea.",
            vector(0.5, 0.25),
            id="r1",
            scope="/team/ada",
            categories=["preference", "drink"],
            metadata={"room": 7, "likes": ["tea", "cake"], "nested": {"deep": None}},
            importance=0.75,
            created_at=datetime(2026, 1, 2, 3, 4, 5),
            last_accessed=datetime(2026, 2, 3, 4, 5, 6),
            source="ada",
            private=True,
        )
        storage.save([saved])
        found = storage.get_record("r1")
        assert type(found) is MemoryRecord
        assert found == saved
        assert found.embedding == pytest.approx(vector(0.5, 0.25))

    def test_an_unknown_id_is_none(self, storage: Any) -> None:
        assert storage.get_record("nobody") is None
        storage.save([record()])
        assert storage.get_record("nobody") is None

    def test_saving_nothing_does_nothing(self, storage: Any) -> None:
        storage.save([])
        assert storage.count() == 0

    def test_saving_an_id_again_replaces_the_record(self, storage: Any) -> None:
        storage.save([record("old", id="r1", source="ada", categories=["c"])])
        storage.save([record("new", id="r1")])
        assert storage.count() == 1
        found = storage.get_record("r1")
        assert (found.content, found.source, found.categories) == ("new", None, [])

    def test_a_batch_is_saved_whole(self, storage: Any) -> None:
        storage.save([record(f"fact {number}", id=f"r{number:03}") for number in range(300)])
        assert storage.count() == 300

    def test_a_record_without_embedding_is_kept_but_never_found(self, storage: Any) -> None:
        storage.save([MemoryRecord(content="blank", id="r1"), record("found")])
        assert storage.get_record("r1").content == "blank"
        assert storage.get_record("r1").embedding is None
        assert contents(storage.search(vector(1.0))) == ["found"]

    def test_aware_moments_are_stored_in_utc_and_come_back_naive(self, storage: Any) -> None:
        moment = datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=5)))
        storage.save([record(id="r1", created_at=moment, last_accessed=moment)])
        found = storage.get_record("r1")
        assert found.created_at == found.last_accessed == datetime(2026, 5, 1, 7)

    @pytest.mark.parametrize("operation", ["save", "update", "search"])
    def test_another_dimension_is_refused_by_name(self, storage: Any, operation: str) -> None:
        storage.save([record(id="r1")])
        call: dict[str, Callable[[], Any]] = {
            "save": lambda: storage.save([record(embedding=[1.0, 2.0])]),
            "update": lambda: storage.update(record(id="r1", embedding=[1.0, 2.0])),
            "search": lambda: storage.search([1.0, 2.0]),
        }
        with pytest.raises(EmbeddingDimensionMismatchError):
            call[operation]()
        assert storage.count() == 1

    def test_two_dimensions_in_one_save_are_refused(self, storage: Any) -> None:
        with pytest.raises(EmbeddingDimensionMismatchError):
            storage.save([record(), record(embedding=[1.0, 2.0])])
        assert storage.count() == 0

    def test_after_a_reset_another_dimension_is_taken(self, storage: Any) -> None:
        storage.save([record()])
        storage.reset()
        storage.save([record("new", embedding=[1.0, 0.0])])
        assert contents(storage.search([1.0, 0.0])) == ["new"]

    # Searching

    def test_an_empty_store_finds_nothing(self, storage: Any) -> None:
        assert storage.search(vector(1.0)) == []

    def test_the_nearest_come_first_with_the_clamped_cosine_as_score(self, storage: Any) -> None:
        cosines = [0.7, -1.0, 1.0, 0.0, 0.85]
        storage.save([record(str(cosine), cosine_to_first_axis(cosine)) for cosine in cosines])
        hits = storage.search(vector(1.0))
        assert contents(hits) == ["1.0", "0.85", "0.7", "0.0", "-1.0"]
        assert [score for _, score in hits] == pytest.approx([1.0, 0.85, 0.7, 0.0, 0.0], abs=1e-5)

    def test_the_length_of_a_vector_does_not_count(self, storage: Any) -> None:
        storage.save([record("long", vector(30.0, 3.0)), record("short", vector(0.01, 0.0))])
        hits = storage.search(vector(5.0))
        assert contents(hits) == ["short", "long"]
        assert hits[0][1] == pytest.approx(1.0, abs=1e-5)

    def test_min_score_is_on_the_scale_of_the_scores(self, storage: Any) -> None:
        storage.save([record(str(cosine), cosine_to_first_axis(cosine)) for cosine in (1.0, 0.85, 0.7, 0.0)])
        assert contents(storage.search(vector(1.0), min_score=0.8)) == ["1.0", "0.85"]

    @pytest.mark.parametrize(("limit", "found"), [(0, 0), (1, 1), (3, 3), (10, 5), (100_000, 5)])
    def test_limit_bounds_the_hits(self, storage: Any, limit: int, found: int) -> None:
        storage.save([record(embedding=cosine_to_first_axis(number / 5)) for number in range(5)])
        assert len(storage.search(vector(1.0), limit=limit)) == found

    @pytest.mark.parametrize("root", ROOT_SPELLINGS)
    def test_the_root_is_everything(self, storage: Any, root: str | None) -> None:
        storage.save([record("at root"), record("below", scope="/a"), record("deep", scope="/a/b/c")])
        assert sorted(contents(storage.search(vector(1.0), scope_prefix=root))) == [
            "at root",
            "below",
            "deep",
        ]

    @pytest.mark.parametrize("spelling", ["/a/b", "a/b", "/a/b/", "//a//b", " /a/b "])
    def test_a_scope_is_found_in_every_spelling(self, storage: Any, spelling: str) -> None:
        storage.save([record("in", scope="/a/b"), record("below", scope="/a/b/c"), record("out", scope="/a")])
        assert sorted(contents(storage.search(vector(1.0), scope_prefix=spelling))) == ["below", "in"]

    @pytest.mark.parametrize("spelling", ["Sales/EU", "/Sales//EU/", " /Sales/EU ", "Sales//EU/ "])
    def test_a_scope_is_stored_in_one_spelling(self, storage: Any, spelling: str) -> None:
        storage.save([record("sold", id="r1", scope=spelling)])
        assert storage.get_record("r1").scope == "/Sales/EU"
        assert contents(storage.search(vector(1.0), scope_prefix="/Sales/EU")) == ["sold"]

    @pytest.mark.parametrize("scope", SIBLINGS)
    def test_no_scope_sees_its_siblings(self, storage: Any, scope: str) -> None:
        storage.save([record(sibling, scope=sibling) for sibling in SIBLINGS])
        own = sorted(sibling for sibling in SIBLINGS if sibling == scope or sibling.startswith(f"{scope}/"))
        assert sorted(contents(storage.search(vector(1.0), scope_prefix=scope, limit=50))) == own
        assert sorted(found.content for found in storage.list_records(scope)) == own
        assert storage.count(scope) == len(own)
        storage.reset(scope)
        assert sorted(found.content for found in storage.list_records()) == sorted(set(SIBLINGS) - set(own))

    def test_any_of_the_categories_is_enough(self, storage: Any) -> None:
        storage.save(
            [
                record("a", categories=["a"]),
                record("ab", categories=["a", "b"]),
                record("c", categories=["c"]),
            ]
        )
        assert sorted(contents(storage.search(vector(1.0), categories=["b", "c"]))) == ["ab", "c"]

    @pytest.mark.parametrize("empty", [{"categories": []}, {"metadata_filter": {}}, {"categories": None}])
    def test_an_empty_filter_filters_nothing(self, storage: Any, empty: dict[str, Any]) -> None:
        storage.save([record(categories=["a"], metadata={"k": 1}), record()])
        assert len(storage.search(vector(1.0), **empty)) == 2

    def test_all_of_the_metadata_has_to_match(self, storage: Any) -> None:
        storage.save(
            [
                record("both", metadata={"team": "blue", "year": 2026}),
                record("team", metadata={"team": "blue", "year": 2025}),
                record("none"),
            ]
        )
        assert contents(storage.search(vector(1.0), metadata_filter={"team": "blue", "year": 2026})) == ["both"]

    @pytest.mark.parametrize(
        ("stored", "asked", "matches"),
        [
            (1, 1.0, True),
            (1.0, 1, True),
            (1, "1", False),
            ("1", 1, False),
            ("x", "X", False),
            (True, True, True),
        ],
    )
    def test_metadata_is_compared_by_value(self, storage: Any, stored: Any, asked: Any, matches: bool) -> None:
        storage.save([record(metadata={"k": stored})])
        assert bool(storage.search(vector(1.0), metadata_filter={"k": asked})) is matches

    @pytest.mark.parametrize(
        "wanted", [{"categories": ["rare"]}, {"metadata_filter": {"k": "rare"}}, {"scope_prefix": "/rare"}]
    )
    def test_filters_choose_before_the_ranking(self, storage: Any, wanted: dict[str, Any]) -> None:
        near = [record("near", scope="/often", categories=["often"], metadata={"k": "often"}) for _ in range(200)]
        far = record("far", cosine_to_first_axis(0.1), scope="/rare", categories=["rare"], metadata={"k": "rare"})
        storage.save([*near, far])
        assert contents(storage.search(vector(1.0), limit=5, **wanted)) == ["far"]

    # Deleting

    @pytest.mark.parametrize(
        "names",
        [names for size in range(1, 6) for names in itertools.combinations(CRITERIA, size)],
        ids="+".join,
    )
    def test_delete_takes_what_meets_all_criteria_and_nothing_else(self, storage: Any, names: tuple[str, ...]) -> None:
        storage.save([record(id="target", **MEETS_ALL)])
        storage.save([record(id=f"not-{name}", **MEETS_ALL | fails) for name, fails in MEETS_ALL_BUT.items()])
        deleted = storage.delete(**{name: CRITERIA[name] for name in names})
        assert {found.id for found in storage.list_records()} == {f"not-{name}" for name in names}
        assert type(deleted) is int
        assert deleted == 1 + len(CRITERIA) - len(names)

    def test_an_empty_list_of_ids_deletes_nothing(self, storage: Any) -> None:
        storage.save([record(), record(), record()])
        assert storage.delete(record_ids=[]) == 0
        assert storage.delete(record_ids=[], scope_prefix="/") == 0
        assert storage.count() == 3

    def test_deleting_a_scope_leaves_the_records_at_the_root(self, storage: Any) -> None:
        storage.save([record("root"), record("y", scope="/y")])
        assert storage.delete(scope_prefix="/y", older_than=datetime(2100, 1, 1)) == 1
        assert [found.content for found in storage.list_records()] == ["root"]

    def test_deleting_by_an_invented_id_deletes_nothing(self, storage: Any) -> None:
        storage.save([record()])
        assert storage.delete(record_ids=["invented", "' OR 1=1 --"]) == 0
        assert storage.count() == 1

    @pytest.mark.parametrize("aware", [False, True])
    def test_older_than_is_utc_aware_or_not(self, storage: Any, aware: bool) -> None:
        storage.save([record("old", created_at=LONG_AGO), record("new", created_at=LONG_AGO + timedelta(days=2))])
        cut = LONG_AGO + timedelta(days=1)
        assert storage.delete(older_than=cut.replace(tzinfo=timezone.utc) if aware else cut) == 1
        assert [found.content for found in storage.list_records()] == ["new"]

    # Updating and touching

    def test_update_changes_what_it_is_given(self, storage: Any) -> None:
        storage.save([record("old", vector(1.0), id="r1", scope="/a", categories=["x"])])
        changed = storage.get_record("r1").model_copy(
            update={"content": "new", "scope": "/b", "categories": ["y"], "embedding": vector(0.0, 1.0)}
        )
        storage.update(changed)
        assert storage.count() == 1
        found = storage.search(vector(0.0, 1.0), scope_prefix="/b", categories=["y"], min_score=0.9)
        assert contents(found) == ["new"]
        assert storage.search(vector(1.0), scope_prefix="/a") == []

    def test_update_keeps_the_privacy_it_was_not_told_of(self, storage: Any) -> None:
        storage.save([record("secret", id="r1", source="alice", private=True)])
        rebuilt = MemoryRecord(id="r1", content="merged secret", embedding=vector(1.0))
        storage.update(rebuilt)
        found = storage.get_record("r1")
        assert (found.content, found.source, found.private) == ("merged secret", "alice", True)

    def test_update_without_embedding_keeps_the_stored_one(self, storage: Any) -> None:
        storage.save([record("kept", id="r1")])
        storage.update(MemoryRecord(id="r1", content="kept too"))
        assert contents(storage.search(vector(1.0), min_score=0.9)) == ["kept too"]

    def test_update_of_an_unknown_id_stores_nothing(self, storage: Any) -> None:
        storage.save([record(id="r1")])
        storage.update(record("ghost", id="r2"))
        assert storage.count() == 1

    def test_touching_sets_last_accessed_and_nothing_else(self, storage: Any) -> None:
        storage.save([record(f"r{n}", id=f"r{n}", created_at=LONG_AGO, last_accessed=LONG_AGO) for n in range(3)])
        storage.touch_records(["r0", "r1", "r0", "nobody"])
        storage.touch_records([])
        touched = {found.id: found for found in storage.list_records()}
        assert touched["r0"].last_accessed > LONG_AGO + timedelta(days=300)
        assert touched["r1"].last_accessed > LONG_AGO + timedelta(days=300)
        assert touched["r2"].last_accessed == LONG_AGO
        assert all(found.created_at == LONG_AGO for found in touched.values())

    # Listing

    def test_records_are_listed_newest_first_in_pages(self, storage: Any) -> None:
        storage.save([record(str(n), created_at=LONG_AGO + timedelta(minutes=n)) for n in (3, 1, 4, 0, 2)])
        assert [found.content for found in storage.list_records()] == ["4", "3", "2", "1", "0"]
        assert [found.content for found in storage.list_records(limit=2, offset=1)] == ["3", "2"]

    def test_pages_of_equally_old_records_do_not_overlap(self, storage: Any) -> None:
        storage.save([record(str(n), created_at=LONG_AGO, scope="/a") for n in range(20)])
        pages = [storage.list_records("/a", limit=6, offset=offset) for offset in range(0, 24, 6)]
        assert len({found.id for page in pages for found in page}) == 20

    @pytest.mark.parametrize("bounds", [{"limit": 0}, {"limit": -1}, {"offset": -1}, {"offset": 99}])
    def test_odd_pages_are_empty(self, storage: Any, bounds: dict[str, int]) -> None:
        storage.save([record()])
        assert storage.list_records(**bounds) == []

    # Scopes and categories

    def test_scope_info_tells_of_the_scope_and_all_below(self, storage: Any) -> None:
        storage.save(
            [
                record(scope="/a", categories=["x"], created_at=LONG_AGO),
                record(scope="/a/b", categories=["y", "x"], created_at=LONG_AGO + timedelta(days=1)),
                record(scope="/a/b/c", created_at=LONG_AGO + timedelta(days=3)),
                record(scope="/a/d", created_at=LONG_AGO + timedelta(days=2)),
                record(scope="/ab", categories=["z"], created_at=LONG_AGO - timedelta(days=9)),
            ]
        )
        for spelling in ("/a", "/a/", "a"):
            info = storage.get_scope_info(spelling)
            assert type(info) is ScopeInfo
            assert info == ScopeInfo(
                path="/a",
                record_count=4,
                categories=["x", "y"],
                oldest_record=LONG_AGO,
                newest_record=LONG_AGO + timedelta(days=3),
                child_scopes=["/a/b", "/a/d"],
            )

    def test_the_info_of_the_root_is_of_everything(self, storage: Any) -> None:
        storage.save([record(), record(scope="/b/c"), record(scope="/a")])
        info = storage.get_scope_info("/")
        assert (info.path, info.record_count, info.child_scopes) == ("/", 3, ["/a", "/b"])

    @pytest.mark.parametrize("saved", [False, True])
    def test_an_unknown_scope_is_empty(self, storage: Any, saved: bool) -> None:
        if saved:
            storage.save([record(scope="/a")])
        assert storage.get_scope_info("/nowhere") == ScopeInfo(path="/nowhere")
        assert storage.list_scopes("/nowhere") == []
        assert storage.list_categories("/nowhere") == {}
        assert storage.count("/nowhere") == 0

    def test_child_scopes_are_listed_sorted(self, storage: Any) -> None:
        storage.save([record(scope=scope) for scope in ("/", "/b/x", "/a", "/b", "/c/y/z", "/b.d", "/b/w")])
        assert storage.list_scopes() == ["/a", "/b", "/b.d", "/c"]
        assert storage.list_scopes("/b") == storage.list_scopes("/b/") == ["/b/w", "/b/x"]
        assert storage.list_scopes("/c") == ["/c/y"]
        assert storage.list_scopes("/a") == []

    def test_categories_are_counted(self, storage: Any) -> None:
        storage.save(
            [
                record(categories=["x", "y"], scope="/a"),
                record(categories=["x"], scope="/a/b"),
                record(categories=["z"], scope="/ab"),
            ]
        )
        assert storage.list_categories() == {"x": 2, "y": 1, "z": 1}
        assert storage.list_categories("/a") == {"x": 2, "y": 1}
        assert type(storage.list_categories()) is dict

    def test_count_is_of_a_scope_and_all_below(self, storage: Any) -> None:
        assert storage.count() == 0
        storage.save([record(scope=scope) for scope in ("/", "/a", "/a/b", "/ab")])
        assert [storage.count(scope) for scope in (None, "/", "/a", "/a/b", "/ab")] == [4, 4, 2, 1, 1]

    def test_reset_of_a_scope_spares_the_rest(self, storage: Any) -> None:
        storage.save([record(scope=scope) for scope in ("/", "/a", "/a/b", "/ab")])
        storage.reset("/a/")
        assert sorted(found.scope for found in storage.list_records()) == ["/", "/ab"]

    @pytest.mark.parametrize("root", ROOT_SPELLINGS)
    def test_reset_of_the_root_takes_everything(self, storage: Any, root: str | None) -> None:
        storage.save([record(), record(scope="/a")])
        storage.reset(root)
        assert storage.count() == 0
        storage.save([record()])
        assert storage.count() == 1

    # Async

    def test_the_async_methods_do_the_same(self, storage: Any) -> None:
        async def round_trip() -> None:
            await storage.asave([record("here", scope="/a"), record("there", scope="/b")])
            assert contents(await storage.asearch(vector(1.0), scope_prefix="/a")) == ["here"]
            assert await storage.adelete(scope_prefix="/a") == 1
            assert contents(await storage.asearch(vector(1.0))) == ["there"]

        asyncio.run(round_trip())
