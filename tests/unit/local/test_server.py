"""Which folder a specification means, what an account shows of itself, and where no server can be."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from crewai_mongodb_memory.errors import InvalidArgumentError, LocalServerError
from crewai_mongodb_memory.local.engine import Account
from crewai_mongodb_memory.local.server import LocalServer, local_folder


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREWAI_STORAGE_DIR", raising=False)


@pytest.mark.parametrize(
    ("spec", "folder"),
    [
        ("local", ".crewai/mongodb"),
        ("local:./x", "x"),
        ("local:x/y", "x/y"),
        ("local:with space/ünï", "with space/ünï"),
        ("local:a:b", "a:b"),
    ],
)
def test_relative_folders_lie_below_the_working_directory(spec: str, folder: str, tmp_path: Path) -> None:
    assert local_folder(spec) == tmp_path / folder


def test_absolute_folders_and_homes_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert local_folder("local:/var/x") == Path("/var/x")
    assert local_folder("local:~/x") == Path("/home/ann/x")


def test_the_default_follows_crewais_storage_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREWAI_STORAGE_DIR", "storage")
    assert local_folder("local") == tmp_path / "storage" / "mongodb"
    assert local_folder("local:./x") == tmp_path / "x"


@pytest.mark.parametrize("spec", ["local:", "local: ", "locals", "mongodb://host", ""])
def test_what_names_no_folder_is_refused(spec: str) -> None:
    with pytest.raises(InvalidArgumentError, match="names no folder"):
        local_folder(spec)


def test_a_relative_folder_needs_a_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert local_folder("local:/var/x") == Path("/var/x")
    with pytest.raises(InvalidArgumentError, match="absolute"):
        local_folder("local")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"port": "x", "username": "a", "password": "b"}'])
def test_an_account_that_cannot_be_read_is_none(content: str, tmp_path: Path) -> None:
    assert Account.of(tmp_path) is None
    (tmp_path / "server.json").write_text(content)
    assert Account.of(tmp_path) is None


def test_an_account_shows_no_password_and_asks_for_journaled_writes() -> None:
    account = Account(20_000, "crewai", "secret")
    assert "secret" not in repr(account)
    assert account.uri.startswith("mongodb://crewai:secret@127.0.0.1:20000/?")
    assert "w=majority&journal=true" in account.uri


class TestImpossible:
    def test_without_the_extra(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def version(name: str) -> str:
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(importlib.metadata, "version", version)
        folder = tmp_path / "store"
        with pytest.raises(LocalServerError, match=r"pip install 'crewai-mongodb-memory\[local\]'.*MONGODB_URI"):
            LocalServer.join(folder)
        assert not folder.exists()

    @pytest.mark.parametrize("below", ["", "x", "x/y"])
    def test_in_a_folder_that_cannot_be(self, below: str, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.touch()
        with pytest.raises(LocalServerError, match=r"file.* cannot hold .*MONGODB_URI"):
            LocalServer.join(file / below)

    def test_with_data_of_another_engine(self, tmp_path: Path) -> None:
        folder = tmp_path / "store"
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "WiredTiger").touch()
        (folder / "engine.json").write_text('{"engine": "secantusdb", "version": "0.6.0b12"}')
        with pytest.raises(LocalServerError, match=r"store.*0\.6\.0b12.*pip install secantusdb==0\.6\.0b12"):
            LocalServer.join(folder)
