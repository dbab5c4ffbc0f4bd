"""What becomes of an index: building, updating, failing, being dropped, and going with its collection."""

from __future__ import annotations

import pytest
from pymongo.errors import OperationFailure

from .conftest import DEFINITION, INDEX, WIDER, Clock, Memories, Open, at_angle, found, listed, model, refused


def status(memories: Memories) -> tuple[str, bool]:
    (index,) = listed(memories)
    return index["status"], index["queryable"]


def test_a_build_takes_its_time(open_standin: Open, clock: Clock) -> None:
    _, memories = open_standin(build_seconds=5.0)
    memories.insert_one(at_angle(1, 0.0))
    assert status(memories) == ("BUILDING", False)
    clock.now += 5
    assert status(memories) == ("READY", True)
    assert found(memories) == [1]


def test_a_build_waits_to_be_finished(open_standin: Open, clock: Clock) -> None:
    standin, memories = open_standin(auto_ready=False, lag=None)
    memories.insert_one(at_angle(1, 0.0))
    clock.now += 1e6
    assert status(memories) == ("BUILDING", False)
    standin.finish_builds()
    assert status(memories) == ("READY", True)
    # The initial sync sees what was there when it ended, lag or not.
    assert found(memories) == [1]


def test_a_build_that_was_due_has_not_seen_later_writes(open_standin: Open, clock: Clock) -> None:
    _, memories = open_standin(build_seconds=5.0, lag=None)
    memories.insert_one(at_angle(1, 0.0))
    clock.now += 5
    memories.insert_one(at_angle(2, 0.0))
    assert found(memories) == [1]


def test_an_update_answers_from_the_old_definition_until_the_new_is_built(open_standin: Open) -> None:
    standin, memories = open_standin()
    memories.insert_one(at_angle(1, 0.0, s="a", t="b"))
    standin.pace.build_seconds = None
    memories.update_search_index(INDEX, WIDER)
    assert found(memories, filter={"s": "a"}) == [1]
    with pytest.raises(OperationFailure, match="Path 't' needs to be indexed as filter"):
        found(memories, filter={"t": "b"})
    standin.finish_builds()
    assert found(memories, filter={"t": "b"}) == [1]


def test_an_update_is_listed_as_building_yet_queryable(open_standin: Open) -> None:
    standin, memories = open_standin()
    standin.pace.build_seconds = None
    memories.update_search_index(INDEX, WIDER)
    (index,) = listed(memories)
    assert (index["status"], index["queryable"]) == ("BUILDING", True)
    assert (index["latestDefinition"], index["latestDefinitionVersion"]["version"]) == (WIDER, 1)
    main, staged = (index["statusDetail"][0][which] for which in ("mainIndex", "stagedIndex"))
    assert (main["definition"], main["definitionVersion"]["version"]) == (DEFINITION, 0)
    assert (staged["definition"], staged["definitionVersion"]["version"]) == (WIDER, 1)
    assert (main["status"], main["queryable"]) == ("READY", True)
    assert (staged["status"], staged["queryable"]) == ("BUILDING", False)
    standin.finish_builds()
    assert status(memories) == ("READY", True)
    assert "stagedIndex" not in listed(memories)[0]["statusDetail"][0]


def test_an_equal_update_builds_again_too(open_standin: Open) -> None:
    _, memories = open_standin()
    memories.update_search_index(INDEX, DEFINITION)
    assert listed(memories)[0]["latestDefinitionVersion"]["version"] == 1


def test_other_dimensions_make_the_old_documents_invisible(open_standin: Open) -> None:
    _, memories = open_standin()
    memories.insert_one(at_angle(1, 0.0))
    three = {"type": "vector", "path": "v", "numDimensions": 3, "similarity": "cosine"}
    memories.update_search_index(INDEX, {"fields": [three]})
    assert found(memories, queryVector=[1.0, 0.0, 0.0]) == []
    with pytest.raises(OperationFailure, match="indexed with 3 dimensions but queried with 2"):
        found(memories)


def test_a_failed_index_says_why(open_standin: Open) -> None:
    standin, memories = open_standin()
    standin.set_state(memories.database.name, memories.name, INDEX, "FAILED", message="too many fields")
    (index,) = listed(memories)
    assert (index["status"], index["queryable"]) == ("FAILED", False)
    assert index["statusDetail"][0]["mainIndex"]["message"] == "too many fields"
    standin.finish_builds()
    assert status(memories) == ("FAILED", False)
    memories.update_search_index(INDEX, DEFINITION)
    assert status(memories) == ("READY", True)


def test_a_failed_update_leaves_the_old_definition_answering(open_standin: Open) -> None:
    standin, memories = open_standin()
    memories.insert_one(at_angle(1, 0.0))
    standin.pace.build_seconds = None
    memories.update_search_index(INDEX, WIDER)
    standin.set_state(memories.database.name, memories.name, INDEX, "FAILED", message="no room")
    assert status(memories) == ("FAILED", True)
    assert listed(memories)[0]["statusDetail"][0]["stagedIndex"]["message"] == "no room"
    assert found(memories) == [1]


def test_the_listing_may_call_any_state_queryable(open_standin: Open) -> None:
    """Atlas Local has been seen to."""
    standin, memories = open_standin()
    standin.set_state(memories.database.name, memories.name, INDEX, "BUILDING", queryable=True)
    assert status(memories) == ("BUILDING", True)
    with pytest.raises(LookupError):
        standin.set_state(memories.database.name, memories.name, "wrong", "READY")
    with pytest.raises(ValueError, match="'DONE' is not one of PENDING"):
        standin.set_state(memories.database.name, memories.name, INDEX, "DONE")


# What a listing makes of main and staged definition, if the staged is an update, and if main itself is built anew.
PAIRS: list[tuple[str, str, str, str, bool]] = [
    ("READY", "PENDING", "BUILDING", "READY", True),
    ("READY", "BUILDING", "BUILDING", "READY", True),
    ("READY", "READY", "BUILDING", "READY", True),
    ("READY", "STALE", "BUILDING", "READY", True),
    ("READY", "FAILED", "FAILED", "READY", True),
    ("READY", "DOES_NOT_EXIST", "BUILDING", "READY", True),
    ("STALE", "PENDING", "BUILDING", "STALE", True),
    ("STALE", "BUILDING", "BUILDING", "BUILDING", True),
    ("STALE", "READY", "BUILDING", "BUILDING", True),
    ("STALE", "STALE", "BUILDING", "STALE", True),
    ("STALE", "FAILED", "STALE", "STALE", True),
    ("FAILED", "BUILDING", "BUILDING", "FAILED", False),
    ("FAILED", "READY", "BUILDING", "FAILED", False),
    ("FAILED", "FAILED", "FAILED", "FAILED", False),
    ("PENDING", "READY", "PENDING", "PENDING", False),
    ("BUILDING", "FAILED", "BUILDING", "BUILDING", False),
    ("BUILDING", "READY", "BUILDING", "BUILDING", False),
    ("DOES_NOT_EXIST", "PENDING", "PENDING", "PENDING", False),
    ("DOES_NOT_EXIST", "BUILDING", "BUILDING", "BUILDING", False),
    ("DOES_NOT_EXIST", "READY", "BUILDING", "BUILDING", False),
    ("DOES_NOT_EXIST", "STALE", "BUILDING", "BUILDING", False),
    ("DOES_NOT_EXIST", "FAILED", "FAILED", "FAILED", False),
    ("DOES_NOT_EXIST", "DOES_NOT_EXIST", "DOES_NOT_EXIST", "DOES_NOT_EXIST", False),
]


def test_the_status_of_every_pair_of_main_and_staged_definition(open_standin: Open) -> None:
    standin, memories = open_standin()
    standin.pace.build_seconds = None
    names = (memories.database.name, memories.name, INDEX)
    for updated in (False, True):
        if updated:
            memories.update_search_index(INDEX, WIDER)
        for main, staged, update, rebuild, queryable in PAIRS:
            standin.set_state(*names, main, which="main")
            standin.set_state(*names, staged, which="staged")
            assert status(memories) == (update if updated else rebuild, queryable), (main, staged, updated)
            detail = listed(memories)[0]["statusDetail"][0]
            assert (detail["status"], detail["queryable"]) == status(memories)
            states = [(detail[which]["status"], detail[which]["queryable"]) for which in ("mainIndex", "stagedIndex")]
            assert states == [(state, state in ("READY", "STALE")) for state in (main, staged)]


def test_a_staged_definition_that_is_ready_takes_over_when_builds_finish(open_standin: Open) -> None:
    standin, memories = open_standin(lag=None)
    names = (memories.database.name, memories.name, INDEX)
    standin.set_state(*names, "STALE", which="main", message="lost the change stream")
    memories.insert_one(at_angle(1, 0.0))
    standin.set_state(*names, "READY", which="staged")
    assert (status(memories), found(memories)) == (("BUILDING", True), [])
    standin.finish_builds()
    assert (status(memories), found(memories)) == (("READY", True), [1])
    assert listed(memories)[0]["latestDefinitionVersion"]["version"] == 0


@pytest.mark.parametrize(("state", "listing"), [("DOES_NOT_EXIST", "DOES_NOT_EXIST"), ("UNSEEN", "PENDING")])
def test_what_does_not_exist_is_not_queryable(open_standin: Open, state: str, listing: str) -> None:
    standin, memories = open_standin()
    standin.set_state(memories.database.name, memories.name, INDEX, state)
    assert status(memories) == (listing, False)


def test_listings_show_the_definition_as_given_and_as_understood(open_standin: Open) -> None:
    _, memories = open_standin(indexed=False)
    vector, filtered = DEFINITION["fields"]
    given = {"fields": [{**vector, "quantization": "none"}, filtered], "numPartitions": 1, "storedSource": False}
    memories.create_search_index(model(given))
    (index,) = listed(memories)
    assert index["latestDefinition"] == given
    assert index["statusDetail"][0]["mainIndex"]["definition"] == DEFINITION


def test_atlas_drops_in_its_own_time(open_standin: Open, clock: Clock) -> None:
    standin, memories = open_standin(drop_seconds=5.0)
    memories.insert_one(at_angle(1, 0.0))
    memories.drop_search_index(INDEX)
    assert status(memories) == ("DELETING", False)
    assert found(memories) == []
    assert refused(lambda: memories.create_search_index(model())) == (68, "Duplicate Index")
    assert refused(lambda: memories.drop_search_index(INDEX)) == (20, "Index already requested to be deleted")
    clock.now += 5
    assert listed(memories) == []
    memories.create_search_index(model())
    standin.pace.drop_seconds = None
    memories.drop_search_index(INDEX)
    assert status(memories) == ("DELETING", False)
    standin.finish_drops()
    assert listed(memories) == []


def test_community_drops_at_once(open_standin: Open) -> None:
    _, memories = open_standin(flavour="community", drop_seconds=None)
    memories.drop_search_index(INDEX)
    assert listed(memories) == []
    memories.create_search_index(model())


@pytest.mark.parametrize("drop", ["collection", "database"])
def test_dropping_the_collection_drops_its_indexes_for_good(open_standin: Open, drop: str) -> None:
    _, memories = open_standin(max_indexes=1)
    memories.insert_one(at_angle(1, 0.0))
    if drop == "collection":
        memories.drop()
    else:
        memories.database.client.drop_database(memories.database.name)
    memories.insert_one(at_angle(1, 0.0))
    assert (listed(memories), found(memories)) == ([], [])
    memories.create_search_index(model())
    assert found(memories) == [1]


def test_emptying_or_renaming_the_collection_keeps_its_indexes(open_standin: Open) -> None:
    _, memories = open_standin()
    memories.delete_many({})
    memories.insert_one(at_angle(1, 0.0))
    memories.rename("renamed")
    renamed = memories.database["renamed"]
    renamed.insert_one(at_angle(2, 1.0))
    assert found(renamed) == [1, 2]
    assert listed(memories) == []
