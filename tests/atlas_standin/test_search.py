"""`$vectorSearch` over the wire: what it returns, what may follow it, and which error comes when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bson import ObjectId
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from .conftest import DEFINITION, INDEX, Document, Memories, Open, at_angle, found, model, search

SCORE: Document = {"$meta": "vectorSearchScore"}


@pytest.fixture
def memories(open_standin: Open) -> Memories:
    _, collection = open_standin()
    collection.insert_many([at_angle("near", 0.0, s="a"), at_angle("middle", 1.0, s="b"), at_angle("far", 9.0, s="a")])
    return collection


def refused(memories: Memories, *stages: Document, **options: Any) -> OperationFailure:
    with pytest.raises(OperationFailure) as raised:
        list(memories.aggregate(list(stages), **options))
    return raised.value


def test_the_nearest_come_first_whole_and_without_a_trace_of_the_score(memories: Memories) -> None:
    assert [at_angle("near", 0.0, s="a"), at_angle("middle", 1.0, s="b")] == list(memories.aggregate([search(limit=2)]))
    assert found(memories, filter={"s": "a"}) == ["near", "far"]
    assert found(memories, exact=True, numCandidates=...) == ["near", "middle", "far"]


def test_ids_of_any_type_come_back(memories: Memories) -> None:
    ids = [ObjectId(), "$v", "", 7, 2.5, None, {"a": 1}, b"bytes"]
    memories.delete_many({})
    memories.insert_many([at_angle(id_, n / 10) for n, id_ in enumerate(ids)])
    assert ids == found(memories)


LATER: list[tuple[list[Document], list[Document]]] = [
    (
        [{"$project": {"s": 1, "score": SCORE}}],
        [
            {"_id": "near", "s": "a", "score": 1.0},
            {"_id": "middle", "s": "b", "score": pytest.approx(0.853553, abs=1e-6)},
        ],
    ),
    (
        [{"$addFields": {"score": SCORE}}, {"$unset": "v"}, {"$match": {"score": {"$gt": 0.9}}}],
        [{"_id": "near", "s": "a", "score": 1.0}],
    ),
    # the score outlives stages that do not mention it, and is removed after the last that does
    (
        [{"$project": {"s": 1}}, {"$limit": 1}, {"$set": {"score": SCORE}}],
        [{"_id": "near", "s": "a", "score": 1.0}],
    ),
    (
        [{"$replaceRoot": {"newRoot": {"is": "$_id"}}}, {"$limit": 1}, {"$set": {"score": SCORE}}],
        [{"is": "near", "score": 1.0}],
    ),
    (
        [{"$project": {"v": 0}}, {"$sort": {"score": SCORE}}, {"$limit": 1}],
        [{"_id": "near", "s": "a"}],
    ),
    (
        [{"$limit": 1}, {"$project": {"_id": 0, "whole": "$$ROOT", "score": SCORE}}],
        [{"whole": at_angle("near", 0.0, s="a"), "score": 1.0}],
    ),
    ([{"$sort": {"_id": 1}}, {"$skip": 1}, {"$project": {"_id": 1}}], [{"_id": "near"}]),
    ([{"$group": {"_id": None, "best": {"$max": SCORE}}}], [{"_id": None, "best": 1.0}]),
    ([{"$group": {"_id": "$s"}}, {"$sort": {"_id": 1}}], [{"_id": "a"}, {"_id": "b"}]),
    ([{"$count": "n"}], [{"n": 2}]),
    (
        [{"$facet": {"a": [{"$limit": 1}, {"$project": {"score": SCORE}}], "b": [{"$count": "n"}]}}],
        [{"a": [{"_id": "near", "score": 1.0}], "b": [{"n": 2}]}],
    ),
    (
        [{"$limit": 1}, {"$project": {"literal": {"$literal": SCORE}}}],
        [{"_id": "near", "literal": SCORE}],
    ),
]


@pytest.mark.parametrize(("stages", "expected"), LATER)
def test_any_stage_may_follow(memories: Memories, stages: list[Document], expected: list[Document]) -> None:
    assert expected == list(memories.aggregate([search(limit=2), *stages]))


def test_stages_that_write_may_follow_too(memories: Memories) -> None:
    memories.aggregate([search(limit=1), {"$set": {"score": SCORE}}, {"$unset": ["v", "s"]}, {"$merge": "best"}])
    assert list(memories.database["best"].find()) == [{"_id": "near", "score": 1.0}]


@pytest.mark.parametrize("own", [[search(limit=1)], [{"$match": {"_id": "middle"}}]])
def test_a_search_may_stand_in_a_union(memories: Memories, own: list[Document]) -> None:
    other = memories.database["other"]
    other.insert_many([at_angle("there", 1.0), at_angle("afar", 9.0)])
    other.create_search_index(model())
    union = {"coll": "other", "pipeline": [search(limit=1), {"$project": {"_id": 1}}]}
    stages = [*own, {"$unionWith": union}, {"$project": {"score": SCORE}}]
    expected: list[Document] = [{"_id": "near", "score": 1.0}] if "$vectorSearch" in own[0] else [{"_id": "middle"}]
    assert [*expected, {"_id": "there", "score": pytest.approx(0.853553, abs=1e-6)}] == list(memories.aggregate(stages))


def test_results_come_in_batches(memories: Memories) -> None:
    memories.insert_many([at_angle(n, 2.0) for n in range(50)])
    assert len(list(memories.aggregate([search(limit=100)], batchSize=7))) == 53


def test_deleted_documents_drop_out_and_nothing_takes_their_place(open_standin: Open) -> None:
    standin, memories = open_standin()
    memories.insert_many([at_angle(n, float(n), s="a") for n in range(5)])
    standin.flush()
    standin.lag = None
    memories.delete_one({"_id": 1})
    assert found(memories, limit=3) == [0, 2]
    memories.delete_many({})
    assert found(memories) == []


def test_updated_documents_match_as_they_were_and_come_as_they_are(open_standin: Open) -> None:
    standin, memories = open_standin(lag=None)
    memories.insert_one(at_angle(1, 0.0, s="old"))
    standin.flush()
    memories.update_one({"_id": 1}, {"$set": {"s": "new", "v": [0.0, 1.0]}})
    assert list(memories.aggregate([search(filter={"s": "old"}), {"$set": {"score": SCORE}}])) == [
        {"_id": 1, "v": [0.0, 1.0], "s": "new", "score": 1.0}
    ]
    assert found(memories, filter={"s": "new"}) == []


@pytest.mark.parametrize(
    ("stages", "code"),
    [
        ([{"$match": {}}, search()], 40602),
        ([{"$facet": {"a": [search()]}}], 40600),
        ([{"$lookup": {"from": "memories", "pipeline": [search()], "as": "x"}}], 51047),
        ([{"$match": {}}, search(limit=0)], 40602),
        ([search(limit=0)], 7912700),
        ([search(limit="1")], 8575100),
        ([search(filter={"s": {"$foo": 1}})], 2),
        ([search(numCandidates=...)], 8),
        ([search(), {"$group": {"_id": 1}}, {"$set": {"score": SCORE}}], 40218),
        ([{"$set": {"score": SCORE}}], 40218),
        ([search(), {"$set": {"meta": "$$SEARCH_META"}}], 6347902),
        ([{"$search": {"text": {}}}], 238),
        ([search(), {"$noSuchStage": 1}], 40324),
    ],
)
def test_error_codes(memories: Memories, stages: list[Document], code: int) -> None:
    assert code == refused(memories, *stages).code


def test_no_other_read_concern_than_local(memories: Memories) -> None:
    assert refused(memories.with_options(read_concern=ReadConcern("majority")), search()).code == 72
    assert len(found(memories.with_options(read_concern=ReadConcern("local")))) == 3


def test_no_transaction_but_a_plain_session(memories: Memories) -> None:
    with memories.database.client.start_session() as session:
        assert len(list(memories.aggregate([search()], session=session))) == 3
        with session.start_transaction():
            assert refused(memories, search(), session=session).code == 263
            session.abort_transaction()


@pytest.mark.parametrize(
    ("prefix", "opening"),
    [
        ("8.x", "Executor error during aggregate command on namespace: {} :: caused by :: "),
        ("7.x", "PlanExecutor error during aggregation :: caused by :: "),
    ],
)
def test_mongots_errors_have_code_8_and_the_servers_prefix(open_standin: Open, prefix: str, opening: str) -> None:
    _, memories = open_standin(prefix=prefix)
    error = refused(memories, search(filter={"q": 1}))
    assert error.details is not None
    assert (error.code, error.details["codeName"], error.details["ok"]) == (8, "UnknownError", 0.0)
    assert opening.format(memories.full_name) + "Path 'q' needs to be indexed as filter" == error.details["errmsg"]


@pytest.mark.parametrize("changes", [{"index": "wrong"}, {"index": "wrong", "filter": {"q": 1}, "path": "x"}])
def test_a_missing_index_is_an_empty_answer(memories: Memories, changes: Document) -> None:
    assert found(memories, **changes) == []


def test_a_malformed_stage_fails_without_an_index_but_not_without_a_collection(memories: Memories) -> None:
    """mongod checks first; mongot parses only what a collection is there for."""
    nowhere = memories.database["nowhere"]
    assert refused(memories, search(index="wrong", numCandidates=0)).code == 8
    assert found(nowhere, numCandidates=0) == []
    assert refused(nowhere, search(limit=0)).code == 7912700


def test_a_mistyped_filter_is_no_filter(memories: Memories) -> None:
    assert len(found(memories, filters={"s": "a"})) == 3


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("PENDING", "while in state NOT_STARTED"),
        ("BUILDING", "while in state INITIAL_SYNC"),
        ("FAILED", "while in state FAILED"),
        ("NOT_INITIALIZED", f"Index {INDEX} not initialized"),
        ("READY", None),
        ("STALE", None),
        ("DOES_NOT_EXIST", None),
        ("UNSEEN", None),
        ("DELETING", None),
    ],
)
def test_index_states(open_standin: Open, state: str, text: str | None) -> None:
    standin, memories = open_standin()
    memories.insert_one(at_angle(1, 0.0))
    standin.set_state(memories.database.name, memories.name, INDEX, state)
    if text is None:
        assert ([] if state in ("UNSEEN", "DELETING") else [1]) == found(memories)
        return
    # The stage is parsed before the index is looked at, and its mapping checked after.
    assert "numCandidates" in str(refused(memories, search(numCandidates=0)))
    assert text in str(refused(memories, search(filter={"q": 1})))


def test_a_search_index_answers_no_vector_search(memories: Memories) -> None:
    memories.create_search_index(model({"mappings": {"dynamic": True}}, "text", "search"))
    assert "Cannot execute $vectorSearch over search index 'text'" in str(refused(memories, search(index="text")))


def test_automatic_embedding_needs_its_index(memories: Memories) -> None:
    assert "queryVector must be present" in str(refused(memories, search(queryVector=..., query="text")))


SERVICES: list[tuple[str, str, int, int, int]] = [
    ("absent-8", "atlas", 31082, 31082, 31082),
    ("absent-7", "atlas", 6047401, 6047401, 115),
    ("absent-7", "community", 6047401, 6047401, 59),
    ("absent-6", "community", 40324, 40324, 59),
    ("absent-5", "community", 7501001, 40324, 59),
    ("absent-115", "community", 115, 115, 115),
]


@pytest.mark.parametrize(("service", "flavour", "searching", "listing", "managing"), SERVICES)
def test_servers_without_search(
    open_standin: Open, service: str, flavour: str, searching: int, listing: int, managing: int
) -> None:
    _, memories = open_standin(indexed=False, search_service=service, flavour=flavour)
    # Where there is no search, nobody reads what the stage says or where it stands.
    assert searching == refused(memories, {"$match": {}}, search(limit=0), {"$set": {"score": SCORE}}).code
    assert searching == refused(memories.database["nowhere"], search()).code
    with pytest.raises(OperationFailure) as raised:
        list(memories.list_search_indexes())
    assert listing == raised.value.code
    calls: list[Callable[[], object]] = [
        lambda: memories.create_search_index(model()),
        lambda: memories.update_search_index(INDEX, DEFINITION),
        lambda: memories.drop_search_index(INDEX),
    ]
    for call in calls:
        with pytest.raises(OperationFailure) as raised:
            call()
        assert managing == raised.value.code
