"""Criteria and the queries they become."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.pure.criteria import (
    Criteria,
    delete_criteria,
    ids_criteria,
    scope_criteria,
    search_criteria,
    to_query,
)

CUT = datetime(2026, 5, 1)

SEARCHES: list[tuple[tuple[Any, Any, Any], dict[str, Any]]] = [
    ((None, None, None), {}),
    (("", [], {}), {}),
    (("/", (), None), {}),
    (("a//b/", None, None), {"scope_ancestors": "/a/b"}),
    ((None, ["x", "y", "x"], None), {"categories": {"$in": ["x", "y"]}}),
    ((None, None, {"k": 1.0}), {"metadata_tokens": {"$all": ["k=1"]}}),
    ((None, None, {"k": {"n": "v"}, "l": ["a", "b"]}), {"metadata_tokens": {"$all": ['k.n="v"', 'l="a"', 'l="b"']}}),
    ((None, None, {"k": []}), {"metadata_tokens": {"$all": ["k=[]"]}}),
    (
        ("/a", ["x"], {"k": None}),
        {"scope_ancestors": "/a", "categories": {"$in": ["x"]}, "metadata_tokens": {"$all": ["k=null"]}},
    ),
]


@pytest.mark.parametrize(("arguments", "query"), SEARCHES, ids=repr)
def test_a_search_becomes_a_query(arguments: tuple[Any, Any, Any], query: dict[str, Any]) -> None:
    assert to_query(search_criteria(None, *arguments)) == query
    assert to_query(search_criteria("acme", *arguments)) == query | {"tenant": "acme"}


DELETES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"scope_prefix": "/"}, {}),
    ({"scope_prefix": "/a/"}, {"scope_ancestors": "/a"}),
    ({"record_ids": ["1", "2", "1"]}, {"_id": {"$in": ["1", "2"]}}),
    ({"older_than": CUT}, {"created_at": {"$lt": CUT}}),
    (
        {"older_than": CUT.replace(tzinfo=timezone(timedelta(hours=2)))},
        {"created_at": {"$lt": CUT - timedelta(hours=2)}},
    ),
    ({"record_ids": ["1"], "scope_prefix": "/a"}, {"_id": "1", "scope_ancestors": "/a"}),
    (
        {"metadata_filter": {"k": 1}, "categories": ["c"]},
        {"metadata_tokens": {"$all": ["k=1"]}, "categories": {"$in": ["c"]}},
    ),
]


@pytest.mark.parametrize(("arguments", "query"), DELETES, ids=repr)
def test_a_delete_becomes_a_query(arguments: dict[str, Any], query: dict[str, Any]) -> None:
    criteria = delete_criteria(None, **arguments)
    assert not criteria.matches_nothing
    assert to_query(criteria) == query
    assert to_query(delete_criteria("acme", **arguments)) == query | {"tenant": "acme"}


@pytest.mark.parametrize("given", [{"record_ids": []}, {"categories": []}, {"metadata_filter": {}}], ids=repr)
@pytest.mark.parametrize("beside", [{}, {"scope_prefix": "/a"}, {"older_than": CUT}], ids=repr)
def test_a_delete_by_something_empty_matches_nothing(given: dict[str, Any], beside: dict[str, Any]) -> None:
    assert delete_criteria(None, **given, **beside).matches_nothing


@pytest.mark.parametrize("scope", [None, ""])
def test_a_delete_without_a_criterion_is_refused(scope: str | None) -> None:
    with pytest.raises(InvalidArgumentError, match="reset"):
        delete_criteria(None, scope_prefix=scope)


OPERATORS: list[Any] = [
    {"owner": {"$ne": None}},
    {"owner": {"$gt": ""}},
    {"$or": [{}]},
    {"$where": "1"},
    {"a": {"b": [{"$regex": ".*"}]}},
    {"a\x00b": 1},
    {"k": object()},
    {"k": "\ud83d"},
    [("k", 1)],
    "k",
]


@pytest.mark.parametrize("metadata_filter", OPERATORS, ids=repr)
def test_a_metadata_filter_takes_values_only(metadata_filter: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="metadata"):
        search_criteria(None, None, None, metadata_filter)
    with pytest.raises(InvalidArgumentError, match="metadata"):
        delete_criteria(None, metadata_filter=metadata_filter)


@pytest.mark.parametrize("value", [{"$gt": ""}, 7, ["/a"], "\ud83d"], ids=repr)
def test_a_scope_is_text(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="scope"):
        scope_criteria(None, value)


@pytest.mark.parametrize("value", [{"$ne": None}, 7, None, b"x", "\ud83d"], ids=repr)
def test_a_record_id_is_text(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="record_ids"):
        ids_criteria(None, [value])


@pytest.mark.parametrize("name", ["categories", "record_ids"])
@pytest.mark.parametrize("value", ["text", b"text", {"$in": []}, [{"$gt": ""}], [7], [None]], ids=repr)
def test_a_list_is_a_list_of_texts(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        delete_criteria(None, **{name: value})


def test_older_than_is_a_datetime() -> None:
    with pytest.raises(InvalidArgumentError, match="older_than"):
        delete_criteria(None, older_than="2026-05-01")  # type: ignore[arg-type]


def test_a_literal_that_looks_like_an_operator_stays_a_literal() -> None:
    assert to_query(scope_criteria(None, "$where")) == {"scope_ancestors": "/$where"}
    assert to_query(Criteria(None, record_ids=("$ne",))) == {"_id": "$ne"}


@pytest.mark.parametrize("scope", ["  ", "//", " / / ", "/ /"])
def test_what_an_empty_variable_leaves_of_a_path_is_no_criterion(scope: str) -> None:
    with pytest.raises(InvalidArgumentError, match="reset"):
        delete_criteria(None, scope_prefix=scope)
    assert to_query(delete_criteria(None, scope_prefix=scope, record_ids=["1"])) == {"_id": "1"}
