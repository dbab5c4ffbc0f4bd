"""The embedded server with real processes: shared, guarded, and standing up again after every kill -9."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from crewai_mongodb_memory.errors import LocalServerError
from crewai_mongodb_memory.local.engine import Account, is_held
from crewai_mongodb_memory.local.server import LocalServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Linux and macOS only")

# Its children have the package imported, which takes seconds, and no threads.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["crewai_mongodb_memory.local_server"])


def eventually(holds: Callable[[], bool], *, within: float = 20.0) -> None:
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def account(folder: Path) -> Account:
    found = Account.of(folder)
    assert found
    return found


def server_pid(folder: Path) -> int:
    return int((folder / "server.pid").read_text().split()[0])


def kill(folder: Path, *files: str) -> None:
    for file in files:
        os.kill(int((folder / file).read_text().split()[0]), signal.SIGKILL)
    eventually(lambda: not any(is_held(folder / file) for file in files))


def is_down(folder: Path) -> bool:
    return not is_held(folder / "server.pid") and not is_held(folder / "supervisor.lock")


def connect(uri: str) -> MongoClient[dict[str, Any]]:
    return MongoClient(uri, serverSelectionTimeoutMS=15_000)


def live_as_user(folder: Path, working_directory: Path | None, pipe: Connection) -> None:
    if working_directory:
        os.chdir(working_directory)
        working_directory.rmdir()
    server = LocalServer.join(folder)
    pipe.send(server.uri)
    pipe.recv()
    server.leave()


class User:
    """A process of its own that is a user of a folder."""

    def __init__(self, folder: Path, working_directory: Path | None = None) -> None:
        self._pipe, theirs = processes.Pipe()
        self.process = processes.Process(target=live_as_user, args=(folder, working_directory, theirs))
        self.process.start()
        theirs.close()

    def uri(self) -> str:
        assert self._pipe.poll(25.0)
        return str(self._pipe.recv())

    def end(self, *, kill: bool = False) -> None:
        self.process.kill() if kill else self._pipe.send("leave")
        self.process.join()
        self._pipe.close()
        self.process.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "store"
    yield folder
    eventually(lambda: is_down(folder))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped") / "store"
    LocalServer.join(folder).leave()
    eventually(lambda: is_down(folder))
    return folder


@pytest.fixture
def used(stopped: Path, folder: Path) -> Path:
    """A folder that starts sooner, because it has been used before."""
    return shutil.copytree(stopped, folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    server = LocalServer.join(tmp_path_factory.mktemp("parent") / "with space" / "ünï")
    yield server
    server.leave()
    eventually(lambda: is_down(server.folder))


class TestRunning:
    def test_it_answers(self, server: LocalServer) -> None:
        with connect(server.uri) as client:
            assert client.admin.command("ping")["ok"] == 1
            assert client.write_concern.document == {"w": "majority", "j": True}

    @pytest.mark.parametrize("credentials", ["", "crewai:wrong@"])
    def test_nobody_enters_without_the_password(self, credentials: str, server: LocalServer) -> None:
        port = account(server.folder).port
        with (
            connect(f"mongodb://{credentials}127.0.0.1:{port}/?directConnection=true") as client,
            pytest.raises(OperationFailure, match=r"(?i)auth"),
        ):
            client.admin.list_collection_names()

    def test_it_has_one_user(self, server: LocalServer) -> None:
        with connect(server.uri) as client:
            assert [user["user"] for user in client.admin["system.users"].find()] == ["crewai"]

    def test_only_the_owner_sees_anything_of_the_folder(self, server: LocalServer) -> None:
        everything = [server.folder, *server.folder.rglob("*")]
        assert {path.name for path in everything} > {"data", "server.json", "server.log", "users.lock"}
        assert [path for path in everything if path.stat().st_mode & 0o077] == []

    def test_the_password_is_nowhere_else(self, server: LocalServer) -> None:
        password = account(server.folder).password
        assert password in server.uri
        shown = [repr(server), str(server)]
        for path in [*Path("/proc").glob("[0-9]*/cmdline"), server.folder / "server.log"]:
            with contextlib.suppress(OSError):
                shown.append(path.read_text(errors="replace"))
        assert [text for text in shown if password in text] == []

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
    def test_the_server_inherits_no_lock_but_its_own(self, server: LocalServer) -> None:
        handles = Path(f"/proc/{server_pid(server.folder)}/fd").iterdir()
        names = {handle.resolve().name for handle in handles}
        assert names & {"users.lock", "supervisor.lock", "server.pid"} == {"server.pid"}

    def test_another_process_shares_it_and_its_data(self, server: LocalServer) -> None:
        pid = server_pid(server.folder)
        user = User(server.folder)
        with connect(user.uri()) as theirs, connect(server.uri) as ours:
            theirs.shared.things.insert_one({"_id": 1})
            assert ours.shared.things.count_documents({}) == 1
        user.end()
        assert (server_pid(server.folder), is_held(server.folder / "server.pid")) == (pid, True)

    def test_memberships_of_one_process_are_independent(self, server: LocalServer) -> None:
        second = LocalServer.join(server.folder)
        assert second.uri == server.uri
        second.leave()
        second.leave()
        assert is_held(server.folder / "server.pid")


class TestStartAndStop:
    def test_it_stops_with_the_last_user_and_keeps_the_data(self, folder: Path) -> None:
        first, second = LocalServer.join(folder), LocalServer.join(folder)
        with connect(first.uri) as client:
            client.kept.things.insert_one({"_id": 1})
        first.leave()
        with connect(second.uri) as client:
            client.admin.command("ping")
        second.leave()
        eventually(lambda: is_down(folder))
        again = LocalServer.join(folder)
        assert again.uri == first.uri
        with connect(again.uri) as client:
            assert client.kept.things.count_documents({}) == 1
        again.leave()

    def test_a_user_may_come_while_it_stops(self, used: Path) -> None:
        for _ in range(3):
            server = LocalServer.join(used)
            with connect(server.uri) as client:
                client.admin.command("ping")
            server.leave()

    def test_a_membership_ends_with_its_object(self, used: Path) -> None:
        LocalServer.join(used)
        gc.collect()
        eventually(lambda: is_down(used))

    def test_processes_that_come_at_once_end_up_on_one_server(self, folder: Path) -> None:
        users = [User(folder) for _ in range(4)]
        assert len({user.uri() for user in users}) == 1
        for user in users:
            user.end()

    def test_a_user_needs_no_working_directory(self, used: Path, tmp_path: Path) -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        user = User(used, working_directory=gone)
        with connect(user.uri()) as client:
            client.admin.command("ping")
        user.end()

    def test_a_lost_password_is_replaced(self, folder: Path) -> None:
        server = LocalServer.join(folder)
        with connect(server.uri) as client:
            client.kept.things.insert_one({"_id": 1})
        server.leave()
        eventually(lambda: is_down(folder))
        (folder / "server.json").unlink()
        again = LocalServer.join(folder)
        with connect(again.uri) as client:
            assert client.kept.things.count_documents({}) == 1
            assert [user["user"] for user in client.admin["system.users"].find()] == ["crewai"]
        again.leave()


class TestKilled:
    def test_a_killed_user_counts_no_more(self, used: Path) -> None:
        user = User(used)
        user.uri()
        user.end(kill=True)
        eventually(lambda: is_down(used))

    def test_a_killed_server_comes_back_with_every_acknowledged_write(self, used: Path) -> None:
        server = LocalServer.join(used)
        pid = server_pid(used)
        with connect(server.uri) as client:
            things = client.kept.things
            acknowledged = 0
            with contextlib.suppress(PyMongoError):
                for number in range(100_000):
                    if number == 200:
                        os.kill(pid, signal.SIGKILL)
                    things.insert_one({"_id": number})
                    acknowledged = number + 1
            assert 200 <= acknowledged < 100_000
            assert things.count_documents({"_id": {"$lt": acknowledged}}) == acknowledged
        assert server_pid(used) != pid
        server.leave()

    def test_a_killed_supervisor_is_replaced_without_a_break(self, used: Path) -> None:
        first = LocalServer.join(used)
        with connect(first.uri) as client:
            pid = server_pid(used)
            kill(used, "supervisor.lock")
            client.admin.command("ping")
            second = LocalServer.join(used)
            assert (second.uri, server_pid(used)) == (first.uri, pid)
            client.admin.command("ping")
        second.leave()
        first.leave()

    def test_without_a_supervisor_the_last_user_sees_to_the_end(self, used: Path) -> None:
        server = LocalServer.join(used)
        kill(used, "supervisor.lock")
        server.leave()
        eventually(lambda: is_down(used))

    def test_when_both_are_killed_the_next_user_brings_the_server_back(self, used: Path) -> None:
        first = LocalServer.join(used)
        with connect(first.uri) as client:
            client.kept.things.insert_many([{"_id": number} for number in range(100)])
            kill(used, "supervisor.lock", "server.pid")
            second = LocalServer.join(used)
            assert second.uri == first.uri
            assert client.kept.things.count_documents({}) == 100
        first.leave()
        second.leave()


class TestImpossible:
    def test_with_data_that_are_none(self, folder: Path) -> None:
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "WiredTiger").write_text("nonsense")
        (folder / "data" / "WiredTiger.turtle").write_text("nonsense")
        with pytest.raises(LocalServerError, match=r"(?s)store did not start: .*server\.log.*WiredTiger.*MONGODB_URI"):
            LocalServer.join(folder)

    def test_in_no_time(self, folder: Path) -> None:
        with pytest.raises(LocalServerError, match="in time"):
            LocalServer.join(folder, timeout=0.1)
