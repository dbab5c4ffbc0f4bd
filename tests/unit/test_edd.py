"""EDD.md says what the code does."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

from bson import json_util
from crewai.memory.storage.backend import StorageBackend

from crewai_mongodb_memory.pure.btree_indexes import memory_indexes
from crewai_mongodb_memory.pure.buckets import MESSAGE_INDEX, SESSION_INDEX, Thread, checked_entries, next_bucket
from crewai_mongodb_memory.pure.documents import to_document, to_record
from crewai_mongodb_memory.pure.vector_index import definition_document

NAIVE = json_util.JSONOptions(tz_aware=False)
PAGE = (Path(__file__).parents[2] / "EDD.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the tables whose first heading is the given one, backticks taken off."""
    found: list[list[str]] = []
    for table in re.findall(rf"^\| {heading} \|.*\n\|[-| ]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE):
        found += [[cell.strip().strip("`") for cell in line.strip("|\n").split(" | ")] for line in table.splitlines()]
    return found


def example() -> dict[str, object]:
    text = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0]
    document: dict[str, object] = json_util.loads(text, json_options=NAIVE)
    assert json.loads(text)
    return document


def test_the_example_is_what_its_record_is_stored_as() -> None:
    document = example()
    assert to_document(to_record(document), "double", tenant="acme") == document


def test_the_fields_are_those_of_a_document() -> None:
    assert [row[0].strip() for row in rows("field")] == list(example())


def test_the_fields_come_from_the_fields_of_a_record() -> None:
    record = to_record(example())
    for _, _, source, _ in rows("field"):
        assert source == "none" or hasattr(record, source)
    assert {row[2] for row in rows("field")} - {"none"} == set(type(record).model_fields)


def test_the_indexes_are_those_that_are_created() -> None:
    listed = [(row[0], row[1]) for row in rows("name")]
    wanted = [
        (index.name, ", ".join(f"{field} {direction}" for field, direction in index.keys))
        for index in memory_indexes(tenants=True)
    ]
    assert listed == wanted


def test_the_vector_index_is_the_one_that_is_created() -> None:
    text = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[1]
    assert json.loads(text) == definition_document(1024)


def test_every_method_of_the_protocol_is_answered() -> None:
    methods = {name for name in vars(StorageBackend) if not name.startswith(("_", "a"))}
    assert {row[0] for row in rows("method")} == methods | {"touch_records"}


def bucket() -> dict[str, object]:
    thread = Thread("session", retention=timedelta(days=1))
    entries = checked_entries(thread, [("user", "text", "m1")], datetime(2026, 5, 1))
    return next_bucket(thread, "acme", entries, "append", None)


def test_the_fields_of_a_bucket_are_those_of_its_document() -> None:
    assert {row[0] for row in rows("field of a bucket")} - {"_id"} == set(bucket())


def test_the_indexes_of_conversations_are_those_that_are_created() -> None:
    listed = [(row[0], row[1]) for row in rows("name of an index")]
    assert listed[:2] == [
        (name, ", ".join(f"{field} {direction}" for field, direction in keys))
        for name, keys in (SESSION_INDEX, MESSAGE_INDEX)
    ]


def test_the_diagram_names_every_field() -> None:
    for entity, fields in (("MEMORIES", set(example())), ("CONVERSATIONS", {"_id", *bucket()})):
        (diagram,) = re.findall(rf"{entity} \{{\n(.*?)\}}", PAGE, re.DOTALL)
        assert {line.split()[1] for line in diagram.strip().splitlines()} == fields
