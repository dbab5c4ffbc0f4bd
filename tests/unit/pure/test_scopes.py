"""Scope paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewai_mongodb_memory.pure import scopes

SPELLINGS: list[tuple[str | None, str]] = [
    (None, "/"),
    ("", "/"),
    ("/", "/"),
    (" // ", "/"),
    ("/a", "/a"),
    ("a", "/a"),
    ("/a/", "/a"),
    ("//a//b", "/a/b"),
    (" Sales//EU/ ", "/Sales/EU"),
    ("/a b/ c ", "/a b/c"),
    ("/A/ü", "/A/ü"),
    ("/a/../b", "/a/../b"),
    ("/a.b/*/%_", "/a.b/*/%_"),
]


@pytest.mark.parametrize(("spelling", "scope"), SPELLINGS)
def test_each_scope_has_one_spelling(spelling: str | None, scope: str) -> None:
    assert scopes.normalize(spelling) == scope


@given(st.text())
def test_normalizing_twice_changes_nothing_more(text: str) -> None:
    once = scopes.normalize(text)
    assert scopes.normalize(once) == once
    assert once.startswith("/")


@given(st.text(alphabet="ab/ ."))
def test_the_ancestors_are_the_scopes_it_is_found_under(text: str) -> None:
    scope = scopes.normalize(text)
    found_under = scopes.ancestors(scope)
    assert found_under[-1] == scope
    assert found_under == sorted(set(found_under), key=len)
    assert len(found_under) == max(1, scopes.depth(scope))
    assert all(scope == ancestor or scope.startswith(f"{ancestor}/") for ancestor in found_under)


def test_the_root_is_an_ancestor_of_root_records_only() -> None:
    assert scopes.ancestors("/") == ["/"]
    assert "/" not in scopes.ancestors("/a")


def test_children_are_paths_again() -> None:
    assert scopes.child_names_to_paths("/", ["b", "a"]) == ["/a", "/b"]
    assert scopes.child_names_to_paths("/a/b", ["c"]) == ["/a/b/c"]
