"""Records into documents and back."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import bson
import numpy as np
import pytest
from bson import Binary, ObjectId
from crewai.memory.types import MemoryRecord
from hypothesis import given
from hypothesis import strategies as st

from crewai_mongodb_memory.errors import InvalidRecordError
from crewai_mongodb_memory.pure.documents import (
    CODEC_OPTIONS,
    FIELDS,
    MAX_DOCUMENT_BYTES,
    MalformedDocumentError,
    to_document,
    to_fields,
    to_record,
)
from crewai_mongodb_memory.pure.vectors import VectorFormat

MOMENT = datetime(2026, 5, 1, 12, 0, 0, 5000)
RECORD = MemoryRecord(
    id="r1",
    content="Ada prefers tea.",
    scope="team//ada/",
    categories=["preference"],
    metadata={"room": 7},
    importance=0.75,
    created_at=MOMENT,
    last_accessed=MOMENT,
    embedding=[0.5, 0.25],
    source="ada",
    private=True,
)
DOCUMENT: dict[str, Any] = {
    "_id": "r1",
    "content": "Ada prefers tea.",
    "scope": "/team/ada",
    "scope_ancestors": ["/team", "/team/ada"],
    "categories": ["preference"],
    "metadata": {"room": 7},
    "metadata_tokens": ["room=7"],
    "importance": 0.75,
    "created_at": MOMENT,
    "last_accessed": MOMENT,
    "embedding": [0.5, 0.25],
    "source": "ada",
    "private": True,
}

TEXTS = st.text().filter(lambda text: "\x00" not in text)
MOMENTS = st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1))
RECORDS = st.builds(
    MemoryRecord,
    id=TEXTS,
    content=st.text(),
    scope=st.text(alphabet="ab/ "),
    categories=st.lists(TEXTS, max_size=3),
    metadata=st.dictionaries(TEXTS, TEXTS | st.integers(-5, 5) | st.booleans() | st.none(), max_size=3),
    importance=st.floats(0, 1),
    created_at=MOMENTS,
    last_accessed=MOMENTS,
    embedding=st.none() | st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=4),
    source=st.none() | TEXTS,
    private=st.booleans(),
)


def test_a_record_is_the_document_of_the_schema() -> None:
    assert to_document(RECORD, "double") == DOCUMENT
    assert to_document(RECORD, "double", tenant="acme") == DOCUMENT | {"tenant": "acme"}
    assert to_document(RECORD, "float32")["embedding"] == Binary.from_vector(
        [0.5, 0.25], bson.binary.BinaryVectorDtype.FLOAT32
    )


def test_a_document_is_the_record_again() -> None:
    record = to_record(DOCUMENT)
    assert record == RECORD.model_copy(update={"scope": "/team/ada"})
    assert record.embedding == [0.5, 0.25]


@pytest.mark.parametrize("vector_format", ["double", "float32"])
@given(record=RECORDS)
def test_a_record_survives_the_way_through_bson(vector_format: VectorFormat, record: MemoryRecord) -> None:
    raw = bson.encode(to_document(record, vector_format), codec_options=CODEC_OPTIONS)
    document: Any = bson.decode(raw, codec_options=CODEC_OPTIONS)
    found = to_record(document)
    for name in set(FIELDS) - {"scope", "created_at", "last_accessed"}:
        assert getattr(found, name) == getattr(record, name), name
    assert abs(found.created_at - record.created_at) < timedelta(milliseconds=1)


@pytest.mark.parametrize("embedding", [None, []])
def test_without_an_embedding_there_is_no_such_field(embedding: list[float] | None) -> None:
    assert "embedding" not in to_document(MemoryRecord(content="x", embedding=embedding), "double")


def test_a_record_read_without_its_embedding_does_not_claim_to_have_none() -> None:
    record = to_record({name: value for name, value in DOCUMENT.items() if name != "embedding"})
    assert "embedding" not in record.model_fields_set


def test_some_fields_of_a_record_are_those_fields_of_its_document() -> None:
    assert to_fields(RECORD, {"scope", "importance"}, "double") == {
        "scope": "/team/ada",
        "scope_ancestors": ["/team", "/team/ada"],
        "importance": 0.75,
    }


def test_numpy_is_welcome() -> None:
    record = RECORD.model_copy(
        update={"embedding": np.array([0.5, 0.25], dtype=np.float32), "importance": np.float64(0.75)}
    )
    assert to_document(record, "double") == DOCUMENT


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"content": "bad \ud83d end"}, "content"),
    ({"content": 7}, "content"),
    ({"scope": "/a\ud83d"}, "scope"),
    ({"scope": None}, "scope"),
    ({"categories": ["\ud83d"]}, "categories"),
    ({"categories": "text"}, "categories"),
    ({"categories": [1]}, "categories"),
    ({"metadata": {"a": {"b": object()}}}, "metadata.a.b"),
    ({"metadata": ["a"]}, "metadata"),
    ({"importance": "much"}, "importance"),
    ({"importance": float("nan")}, "importance"),
    ({"importance": 1.5}, "importance"),
    ({"created_at": "yesterday"}, "created_at"),
    ({"created_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))}, "created_at"),
    ({"source": 7}, "source"),
    ({"embedding": [float("nan")]}, "embedding"),
    ({"embedding": [[1.0]]}, "embedding"),
    ({"embedding": ["x"]}, "embedding"),
    ({"id": 7}, "id"),
    ({"id": "\ud83d"}, "id"),
]


@pytest.mark.parametrize(("fields", "key"), BAD_FIELDS, ids=repr)
def test_what_cannot_be_stored_is_named_with_its_record(fields: dict[str, Any], key: str) -> None:
    record = RECORD.model_copy(update=fields)
    with pytest.raises(InvalidRecordError) as raised:
        to_document(record, "double")
    assert (raised.value.record_id, raised.value.key) == (record.id, key)
    assert key in str(raised.value)


def test_a_document_over_the_limit_is_named_with_its_largest_field() -> None:
    record = RECORD.model_copy(update={"content": "x" * MAX_DOCUMENT_BYTES})
    with pytest.raises(InvalidRecordError, match=r"content: the document would be 16,\d+,\d+ bytes"):
        to_document(record, "double")


@pytest.mark.parametrize(
    "change",
    [
        {"_id": ObjectId()},
        {"content": None},
        {"content": 7},
        {"importance": 9},
        {"created_at": "yesterday"},
        {"categories": "text"},
        {"metadata": "text"},
        {"created_at": bson.datetime_ms.DatetimeMS(2**60)},
    ],
    ids=repr,
)
def test_a_foreign_document_is_told_apart(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedDocumentError):
        to_record(DOCUMENT | change)


@pytest.mark.parametrize("name", ["content", "scope", "created_at"])
def test_half_a_document_is_told_apart(name: str) -> None:
    with pytest.raises(MalformedDocumentError, match=name):
        to_record({key: value for key, value in DOCUMENT.items() if key != name})


def test_an_unreadable_embedding_leaves_the_record_readable() -> None:
    assert to_record(DOCUMENT | {"embedding": "garbage"}).embedding is None


def test_the_document_of_an_earlier_version_is_read_as_it_is() -> None:
    earlier = {name: value for name, value in DOCUMENT.items() if name not in ("metadata_tokens", "last_accessed")}
    assert to_record(earlier).last_accessed == MOMENT
