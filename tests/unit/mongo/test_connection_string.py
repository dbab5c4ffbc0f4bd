"""Connection strings: which are taken, and what is shown of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crewai_mongodb_memory import InvalidArgumentError, MongoStorageBackend
from crewai_mongodb_memory.mongo.connection_string import checked_connection_string, public_name

SECRET = "p%40ss"
USABLE = [
    "mongodb://localhost",
    "mongodb://ann:p%40ss@host1:27017,host2:27018/db?replicaSet=rs",
    "mongodb+srv://ann:p%40ss@cluster0.example.net/?retryWrites=true",
    "mongodb+srv://ann:p%40ss@cluster0.example.net/?srvMaxHosts=2&srvServiceName=x&w=1",
    "local:/folder",
]
UNUSABLE = [
    "",
    "localhost",
    "http://localhost",
    "mongodb://",
    "mongodb://ann:p%40ss:x@host:port/",
    "mongodb://ann:p/%40ss@host",
    "mongodb+srv://",
    "local:",
    "mongodb",
    "mongodb://ann:p%40ss@host/?w=0",
    "mongodb://ann:p%40ss@host/?authSource=admin;w=0",
    "mongodb://ann:p%40ss@host/?W=00",
    "mongodb://ann:p%40ss@host/?w=%30",
    "mongodb+srv://ann:p%40ss@cluster0.example.net/?w=+0",
    "local:a\0b",
]


@pytest.mark.parametrize("connection_string", USABLE)
def test_usable_ones_are_taken_without_a_connection(connection_string: str) -> None:
    assert checked_connection_string(connection_string) == connection_string
    with MongoStorageBackend(connection_string) as backend:
        assert "p%40ss" not in repr(backend)
        assert "ann" not in repr(backend)


def test_a_folder_stays_what_it_is_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREWAI_STORAGE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    assert checked_connection_string("local:./x") == f"local:{tmp_path}/x"
    assert checked_connection_string("local") == f"local:{tmp_path}/.crewai/mongodb"
    backend = MongoStorageBackend("local:./x")
    monkeypatch.chdir("/")
    assert f"local:{tmp_path}/x" in repr(backend)


@pytest.mark.parametrize("options", [{"w": 0}, {"W": 0}, {"w": "0"}])
def test_writes_that_nobody_acknowledges_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="no server acknowledges"):
        MongoStorageBackend("mongodb://host", **options)


@pytest.mark.parametrize("connection_string", UNUSABLE)
def test_others_are_refused_without_a_word_of_them(connection_string: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        MongoStorageBackend(connection_string)
    assert "40ss" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("connection_string", [7, b"mongodb://localhost", object()])
def test_a_connection_string_is_text(connection_string: object) -> None:
    with pytest.raises(InvalidArgumentError, match="has to be text"):
        MongoStorageBackend(connection_string)  # type: ignore[arg-type]


def test_the_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MONGODB_URI", raising=False)
    monkeypatch.delenv("ATLAS_URI", raising=False)
    with pytest.raises(InvalidArgumentError, match="MONGODB_URI"):
        MongoStorageBackend()
    monkeypatch.setenv("ATLAS_URI", "mongodb://atlas")
    assert "atlas" in repr(MongoStorageBackend())
    monkeypatch.setenv("MONGODB_URI", "mongodb://first")
    assert "first" in repr(MongoStorageBackend())


@pytest.mark.parametrize(
    ("connection_string", "shown"),
    [
        ("mongodb://ann:secret@h1,h2/db?x=y", "mongodb://h1,h2"),
        ("mongodb+srv://ann:se@cret@h1?x=y", "mongodb+srv://h1"),
        ("mongodb://h1:1", "mongodb://h1:1"),
        ("mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:abc@SECRET", "mongodb://h"),
        ("local:./x", "local:./x"),
    ],
)
def test_only_hosts_are_shown(connection_string: str, shown: str) -> None:
    assert public_name(connection_string) == shown


@pytest.mark.parametrize("option", ["appname", "appName", "driver"])
def test_our_name_to_the_server_is_fixed(option: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"appname|driver"):
        MongoStorageBackend("mongodb://localhost", **{option: "mine"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"tenant": ""},
        {"tenant": " "},
        {"tenant": 7},
        {"dimensions": 0},
        {"dimensions": 9000},
        {"dimensions": 3.0},
        {"exact_limit": 0},
        {"exact_limit": True},
        {"vector_format": "int8"},
        {"collection_name": ""},
        {"database_name": ""},
        {"database_name": "a b"},
        {"collection_name": "$x"},
        {"collection_name": "a..b"},
    ],
    ids=repr,
)
def test_settings_that_cannot_be_used_are_refused_by_name(arguments: dict[str, object]) -> None:
    (name,) = arguments
    with pytest.raises(InvalidArgumentError, match=name):
        MongoStorageBackend("mongodb://localhost", **arguments)  # type: ignore[arg-type]
