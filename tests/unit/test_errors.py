"""The exceptions themselves."""

from __future__ import annotations

import copy
import pickle

import pytest
from pymongo.errors import BulkWriteError, OperationFailure, ServerSelectionTimeoutError

from crewai_mongodb_memory import DimensionMismatchError, InvalidRecordError, MongoMemoryError
from crewai_mongodb_memory.errors import explain


@pytest.mark.parametrize("error", [InvalidRecordError("r1", "metadata.k", "is odd"), DimensionMismatchError(3, 4)])
def test_an_error_survives_the_way_to_another_process(error: MongoMemoryError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OperationFailure("no", 13), "privilege"),
        (OperationFailure("no", 8000), "password"),
        (ServerSelectionTimeoutError("no"), "cannot be reached"),
    ],
)
def test_an_error_of_the_driver_is_explained(error: Exception, remedy: str) -> None:
    assert remedy in explain(error)


def test_the_error_of_a_bulk_write_is_explained_without_what_was_to_be_written() -> None:
    fault = {"index": 0, "code": 11000, "errmsg": "duplicate key", "op": {"content": "the memory itself"}}
    said = explain(
        BulkWriteError({"writeErrors": [fault], "writeConcernErrors": [{"code": 64, "errmsg": "timed out"}]})
    )
    assert said == "duplicate key (code 11000); timed out (code 64)"
