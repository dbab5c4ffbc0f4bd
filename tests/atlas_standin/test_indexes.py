"""The index management commands over the wire: what they take and what they refuse, on Atlas and on community."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from .conftest import DEFINITION, INDEX, WIDER, Document, Open, at_angle, found, listed, model, refused

REORDERED: Document = {"fields": list(reversed(DEFINITION["fields"]))}


def test_an_index_as_atlas_lists_it(open_standin: Open) -> None:
    _, memories = open_standin()
    (index,) = listed(memories)
    version = index["latestDefinitionVersion"]
    main = {"status": "READY", "queryable": True, "definitionVersion": version, "definition": DEFINITION}
    host = index["statusDetail"][0]["hostname"]
    assert index == {
        "id": index["id"],
        "name": INDEX,
        "type": "vectorSearch",
        "status": "READY",
        "queryable": True,
        "latestDefinitionVersion": {"version": 0, "createdAt": version["createdAt"]},
        "latestDefinition": DEFINITION,
        "statusDetail": [{"hostname": host, "status": "READY", "queryable": True, "mainIndex": main}],
    }


def test_community_lists_no_type(open_standin: Open) -> None:
    _, memories = open_standin(flavour="community")
    assert "type" not in listed(memories)[0]


def test_listing_selects_by_name_or_id_and_takes_later_stages(open_standin: Open) -> None:
    _, memories = open_standin()
    memories.create_search_index(model(name="other"))
    ids = {index["name"]: index["id"] for index in listed(memories)}
    assert list(ids) == [INDEX, "other"]
    assert [ids["other"]] == [index["id"] for index in listed(memories, "other")]
    assert listed(memories, "wrong") == []
    by_id = [{"$listSearchIndexes": {"id": ids[INDEX]}}, {"$project": {"_id": 0, "name": 1}}]
    assert list(memories.aggregate(by_id)) == [{"name": INDEX}]
    both = [{"$listSearchIndexes": {"id": ids[INDEX], "name": INDEX}}]
    assert refused(lambda: list(memories.aggregate(both)))[0] == 72
    assert refused(lambda: list(memories.aggregate([{"$listSearchIndexes": {"nome": INDEX}}])))[0] == 40415


def test_a_missing_collection_has_no_indexes_and_takes_none(open_standin: Open) -> None:
    _, memories = open_standin()
    nowhere = memories.database["nowhere"]
    missing = f"Collection '{nowhere.full_name}' does not exist."
    assert listed(nowhere) == []
    assert (26, missing) == refused(lambda: nowhere.create_search_index(model()))
    for name in ("updateSearchIndex", "dropSearchIndex"):
        command = {name: nowhere.name, "name": INDEX, "definition": DEFINITION}
        assert (26, missing) == refused(partial(nowhere.database.command, command))
    # Here the driver swallows the 26.
    nowhere.update_search_index(INDEX, DEFINITION)
    nowhere.drop_search_index(INDEX)


DUPLICATES: list[tuple[str, Document, tuple[int, str] | None]] = [
    ("atlas", DEFINITION, (68, "Duplicate Index")),
    ("atlas", WIDER, (68, "Duplicate Index")),
    ("community", DEFINITION, None),
    ("community", {**DEFINITION, "numPartitions": 1}, None),
    ("community", WIDER, (68, f"Index {INDEX} already exists with a different definition. Drop it first if needed.")),
    (
        "community",
        REORDERED,
        (68, f"Index {INDEX} already exists with a different definition. Drop it first if needed."),
    ),
]


@pytest.mark.parametrize(("flavour", "definition", "error"), DUPLICATES)
def test_creating_an_index_again(
    open_standin: Open, flavour: str, definition: Document, error: tuple[int, str] | None
) -> None:
    _, memories = open_standin(flavour=flavour)
    before = listed(memories)
    if error is None:
        again = {"createSearchIndexes": memories.name, "indexes": [model(definition).document]}
        (created,) = memories.database.command(again)["indexesCreated"]
        assert (created["name"], created["id"] == before[0]["id"]) == (INDEX, False)
    else:
        assert error == refused(lambda: memories.create_search_index(model(definition)))
    assert before == listed(memories)


def test_one_conflict_and_none_is_created(open_standin: Open) -> None:
    _, memories = open_standin()
    assert refused(lambda: memories.create_search_indexes([model(name="new"), model()]))[0] == 68
    assert [index["name"] for index in listed(memories)] == [INDEX]
    assert memories.create_search_indexes([model(name="a"), model(name="b")]) == ["a", "b"]


def test_an_index_is_called_default_and_is_a_search_index_unless_told(open_standin: Open) -> None:
    _, memories = open_standin(indexed=False)
    command = {"createSearchIndexes": memories.name, "indexes": [{"definition": {"mappings": {}}}]}
    memories.database.command(command)
    assert [(index["name"], index["type"]) for index in listed(memories)] == [("default", "search")]


BAD: Document = {"fields": [{"type": "vector", "path": "v", "numDimensions": 0, "similarity": "cosine"}]}

INVALID: list[tuple[str, str, Document, int, str]] = [
    (
        "community",
        "create",
        BAD,
        8,
        '"userCommand.indexes[0].fields[0].numDimensions" must be within bounds [1..8192]',
    ),
    ("community", "update", BAD, 125, '"fields[0].numDimensions" must be within bounds [1..8192]'),
    ("community", "forget", DEFINITION, 8, '"userCommand.indexes[0].mappings" is required'),
    ("community", "update", {**DEFINITION, "dynamic": True}, 125, 'unrecognized field "dynamic"'),
    ("atlas", "create", BAD, 2, "Invalid search index definition"),
    ("atlas", "update", BAD, 2, "Invalid search index definition"),
    ("atlas", "create", {"fields": [{"type": "filter", "path": "s"}]}, 2, "Invalid search index definition"),
    ("atlas", "create", {**DEFINITION, "dynamic": True}, 2, "Invalid search index definition"),
    ("atlas", "forget", DEFINITION, 2, "Attribute mappings missing"),
]


@pytest.mark.parametrize(("flavour", "call", "definition", "code", "text"), INVALID)
def test_invalid_definitions(
    open_standin: Open, flavour: str, call: str, definition: Document, code: int, text: str
) -> None:
    _, memories = open_standin(flavour=flavour)
    untyped = {"createSearchIndexes": memories.name, "indexes": [{"name": "new", "definition": definition}]}
    calls: dict[str, Callable[[], Any]] = {
        "create": lambda: memories.create_search_index(model(definition, "new")),
        "update": lambda: memories.update_search_index(INDEX, definition),
        "forget": lambda: memories.database.command(untyped),
    }
    assert (code, text) == refused(calls[call])


@pytest.mark.parametrize("name", ["updateSearchIndex", "dropSearchIndex"])
def test_exactly_one_of_name_and_id(open_standin: Open, name: str) -> None:
    _, memories = open_standin()
    command = {name: memories.name, "definition": DEFINITION}
    run = memories.database.command
    assert refused(lambda: run(command)) == (72, "Must set either 'name' or 'id'.")
    both = {**command, "name": INDEX, "id": "0" * 24}
    assert refused(lambda: run(both)) == (72, "Cannot set both 'name' and 'id'.")
    missing = f"No index with name wrong exists in namespace {memories.full_name}"
    assert (27, missing) == refused(lambda: run({**command, "name": "wrong"}))
    by_id = {name: memories.name, "id": listed(memories)[0]["id"]}
    assert run(by_id if name == "dropSearchIndex" else {**by_id, "definition": DEFINITION})["ok"] == 1.0


def test_the_type_cannot_be_changed(open_standin: Open) -> None:
    _, memories = open_standin()
    command = {"updateSearchIndex": memories.name, "name": INDEX, "type": "search", "definition": {"mappings": {}}}
    assert refused(lambda: memories.database.command(command)) == (197, "An index's type cannot be changed")


def test_commands_take_no_write_concern(open_standin: Open) -> None:
    _, memories = open_standin()
    command = {"dropSearchIndex": memories.name, "name": INDEX, "writeConcern": {"w": 1}}
    assert refused(lambda: memories.database.command(command)) == (72, "Command does not support writeConcern")


def test_the_clusters_quota(open_standin: Open) -> None:
    standin, memories = open_standin(max_indexes=2)
    other = memories.database["other"]
    other.insert_one(at_angle(1, 0.0))
    other.create_search_index(model())
    full = (20, "The maximum number of FTS indexes has been reached for this instance size.")
    assert full == refused(lambda: other.create_search_index(model(name="third")))
    standin.knobs.max_indexes = 3
    other.create_search_index(model(name="third"))


def test_the_management_service_may_be_unreachable_at_first(open_standin: Open) -> None:
    _, memories = open_standin(indexed=False, connection_errors=2)
    unreachable = (125, "Error connecting to Search Index Management service.")
    assert unreachable == refused(lambda: memories.create_search_index(model()))
    assert unreachable == refused(lambda: listed(memories))
    memories.create_search_index(model())


def test_privileges(open_standin: Open) -> None:
    standin, memories = open_standin()
    standin.knobs.denied = {"createSearchIndexes", "$listSearchIndexes", "$vectorSearch"}
    for call in (
        lambda: memories.create_search_index(model(name="new")),
        lambda: listed(memories),
        lambda: found(memories),
    ):
        code, text = refused(call)
        assert (code, text.startswith(f"not authorized on {memories.database.name} to execute")) == (13, True)
    memories.drop_search_index(INDEX)
