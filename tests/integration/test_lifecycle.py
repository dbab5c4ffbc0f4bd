"""The life of a backend: threads, event loops, forks, copies, dumps, factories, and what is left at the end."""

from __future__ import annotations

import asyncio
import copy
import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pymongo
import pytest
from crewai import Agent, Crew, Flow, Memory, Task
from crewai.memory.types import MemoryRecord
from pymongo.errors import ConnectionFailure

from crewai_mongodb_memory import InvalidArgumentError, MongoStorageBackend, mongo_storage_factory
from tests.atlas_standin import AtlasStandin
from tests.scripted import ScriptedLLM, embed_words
from tests.stores import MakeBackend, at_once

UNREACHABLE = "mongodb://ann:s%40cret@127.0.0.1:9/?serverSelectionTimeoutMS=200"


def record(content: str = "a fact", **fields: Any) -> MemoryRecord:
    return MemoryRecord(**{"content": content, "embedding": [1.0, 0.0], **fields})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The clients that backends have made since."""
    made: list[Any] = []
    construct = pymongo.MongoClient.__init__

    def count(client: Any, *arguments: Any, **options: Any) -> None:
        if "driver" in options:
            made.append(client)
        construct(client, *arguments, **options)

    monkeypatch.setattr(pymongo.MongoClient, "__init__", count)
    return made


# Event loops


def test_event_loops_in_two_threads_at_once(backend: MongoStorageBackend) -> None:
    def work(name: str) -> None:
        async def many() -> None:
            await asyncio.gather(*(backend.asave([record(id=f"{name}-{number}")]) for number in range(10)))

        for _ in range(2):
            asyncio.run(many())

    at_once(work, "ab")
    assert backend.count() == 20


def test_a_search_cancelled_in_the_middle_leaves_the_backend_working(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend
) -> None:
    backend = make_atlas_backend(search_mode="exact")

    async def cancel_in_the_middle() -> None:
        await backend.asave([record(id=f"r{number}") for number in range(50)])
        for _ in range(3):
            with atlas.holding("find") as held:
                search = asyncio.create_task(backend.asearch([1.0, 0.0]))
                deadline = time.monotonic() + 20
                while not held.waiting and time.monotonic() < deadline:
                    await asyncio.sleep(0.01)
                search.cancel()
                (outcome,) = await asyncio.gather(search, return_exceptions=True)
            assert isinstance(outcome, asyncio.CancelledError)
        assert len(await backend.asearch([1.0, 0.0])) == 10
        await backend.aclose()

    asyncio.run(cancel_in_the_middle())
    assert backend.count() == 50


@pytest.mark.parametrize("mode", ["exact", "atlas"])
def test_two_hundred_searches_on_a_slow_server_do_not_block_the_loop(
    atlas: AtlasStandin, make_atlas_backend: MakeBackend, mode: str
) -> None:
    backend = make_atlas_backend(search_mode=mode)
    backend.save([record(id=f"r{number}") for number in range(20)])
    backend.search([1.0, 0.0])

    async def storm() -> None:
        searches = asyncio.gather(*(backend.asearch([1.0, 0.0], limit=3) for _ in range(200)))
        with atlas.holding("find" if mode == "exact" else "$vectorSearch") as held:
            # While the server answers none of them, the loop goes on; it gives a client 100 connections.
            deadline = time.monotonic() + 20
            while held.waiting < 100 and time.monotonic() < deadline:
                await asyncio.sleep(0.01)
            assert held.waiting == 100
            for _ in range(20):
                await asyncio.sleep(0)
            assert not searches.done()
        assert [len(hits) for hits in await searches] == [3] * 200
        await backend.aclose()

    asyncio.run(storm())


def test_closing_an_event_loop_closes_its_client(backend: MongoStorageBackend) -> None:
    clients: list[Any] = []

    async def use() -> None:
        await backend.acount()
        async with backend._connection.acollections() as collections:
            clients.append(collections("memories").database.client)

    asyncio.run(use())
    asyncio.run(use())
    assert clients[0] is not clients[1]
    assert all(client._closed for client in clients)


# Clients


def test_a_factory_opens_one_client_for_twenty_flows_and_none_before_its_use(
    server: str, database_name: str, register: Callable[..., Any], opened: list[Any]
) -> None:
    factory = register(server, database_name=database_name)
    flows: list[Any] = [Flow() for _ in range(20)]
    assert {id(flow.memory._storage) for flow in flows} == {id(factory("lancedb"))}
    before = len(opened)
    for flow in flows:
        assert flow.memory._storage.count() == 0
    assert len(opened) - before <= 1
    factory("lancedb").close()


def test_everything_can_be_built_while_the_server_is_down(register: Callable[..., Any]) -> None:
    register(UNREACHABLE)
    agent = Agent(role="r", goal="g", backstory="b", llm=ScriptedLLM(), memory=True)
    task = Task(description="d", expected_output="e", agent=agent)
    crew = Crew(agents=[agent], tasks=[task], memory=True, embedder=None)
    memories: list[Any] = [agent.memory, crew._memory, Flow().memory, Memory(), Memory(storage="mongodb")]
    assert len({id(memory._storage) for memory in memories}) == 1


@pytest.mark.parametrize(
    ("spec", "is_ours"),
    [
        ("mongodb", True),
        ("lancedb", True),
        ("mongodb://127.0.0.1:9", True),
        ("mongodb://other", True),
        ("mongodb+srv://cluster0.example.net", True),
        ("local", True),
        ("local:./x", True),
        ("qdrant-edge", False),
        ("./folder", False),
        ("mongodb-folder", False),
        ("locality", False),
    ],
)
def test_the_factory_answers_its_own_specs_only(spec: str, is_ours: bool) -> None:
    factory = mongo_storage_factory(UNREACHABLE)
    assert (factory(spec) is not None) is is_ours
    assert factory(spec) is factory(spec)


def test_without_replacing_the_default_crewai_keeps_it() -> None:
    factory = mongo_storage_factory(UNREACHABLE, replace_default=False)
    assert factory("lancedb") is None
    assert factory("mongodb") is not None


def test_a_factory_that_cannot_work_says_so_when_it_is_made() -> None:
    with pytest.raises(InvalidArgumentError):
        mongo_storage_factory("nonsense")
    with pytest.raises(InvalidArgumentError):
        mongo_storage_factory(UNREACHABLE, tenant="")


# Copies and dumps


def test_copies_share_the_backend(backend: MongoStorageBackend) -> None:
    assert copy.copy(backend) is backend
    assert copy.deepcopy([backend])[0] is backend


def test_a_pickled_backend_works_elsewhere(backend: MongoStorageBackend) -> None:
    backend.save([record(id="r1")])
    with pickle.loads(pickle.dumps(backend)) as other:
        assert other is not backend
        assert repr(other) == repr(backend)
        assert other.get_record("r1") is not None


def test_what_came_from_the_environment_is_not_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_URI", UNREACHABLE)
    dumped = pickle.dumps(MongoStorageBackend())
    assert b"cret" not in dumped
    assert "127.0.0.1" in repr(pickle.loads(dumped))


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of CrewAI's unions of models and names
def test_an_agent_keeps_its_memory_through_copies(backend: MongoStorageBackend) -> None:
    memory = Memory(storage=backend, llm=ScriptedLLM(), embedder=embed_words)
    agent = Agent(role="r", goal="g", backstory="b", llm=ScriptedLLM(), memory=memory)
    copied = agent.copy()
    assert isinstance(copied.memory, Memory)
    assert copied.memory._storage is backend
    task = Task(description="d", expected_output="e", agent=agent)
    copied_crew: Any = Crew(agents=[agent], tasks=[task], memory=memory).copy()
    assert copied_crew._memory._storage is backend


def test_json_holds_a_name_that_the_factory_knows_again(register: Callable[..., Any]) -> None:
    factory = register(UNREACHABLE, tenant="acme")
    memory = Memory(storage=factory("mongodb"), embedder=embed_words, llm=ScriptedLLM())
    rest: Any = {"embedder", "llm"}
    assert memory.model_dump(exclude=rest)["storage"] is factory("mongodb")
    dumped = memory.model_dump(mode="json", exclude=rest)
    assert dumped["storage"] == "mongodb://127.0.0.1:9"
    assert Memory(**dumped)._storage is factory("mongodb")
    assert "cret" not in memory.model_dump_json(exclude=rest)


# Forks and processes

PREFORK = """
import os, sys
from crewai.memory.types import MemoryRecord
from crewai_mongodb_memory import MongoStorageBackend
backend = MongoStorageBackend({server!r}, database_name={database!r})
backend.save([MemoryRecord(id="parent", content="x", embedding=[1.0, 0.0])])
children = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        backend.save([MemoryRecord(id=f"child-{{number}}", content="x", embedding=[1.0, 0.0])])
        ok = backend.count() >= 2
        backend.close()
        os._exit(0 if ok else 1)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
assert backend.count() == 4, backend.count()
backend.close()
"""

FORK_IN_THE_MIDDLE = """
import os, threading
from crewai.memory.types import MemoryRecord
from crewai_mongodb_memory import MongoStorageBackend, OfflineEmbedder, mongo_storage_factory
from crewai_mongodb_memory.lifecycle.locks import ForkSafeLock
where = dict(database_name={database!r}, search_mode="auto")
backend, factory = MongoStorageBackend({server!r}, **where), mongo_storage_factory({server!r}, **where)
embed = OfflineEmbedder()
held, go_on = threading.Event(), threading.Event()

def be_in_the_middle_of_everything():
    for lock in list(ForkSafeLock._all):
        lock.__enter__()
    held.set()
    go_on.wait()

threading.Thread(target=be_in_the_middle_of_everything, daemon=True).start()
held.wait()
pid = os.fork()
if pid == 0:
    backend.save([MemoryRecord(id="child", content="x", embedding=embed.embed_query("x"))])
    ok = factory("mongodb").count() == 1
    backend.close(), factory("mongodb").close()
    os._exit(0 if ok else 1)
assert os.waitpid(pid, 0)[1] == 0
os._exit(0)
"""

NOTHING_LEFT_TO_BUILD = """
from crewai.flow import runtime
from crewai.memory.encoding_flow import EncodingFlow
from crewai.memory.recall_flow import RecallFlow
import crewai_mongodb_memory

def build(flow):
    raise AssertionError(f"{flow.__name__} is built while threads use it")

runtime.build_flow_definition = build
EncodingFlow.flow_definition(), RecallFlow.flow_definition()
"""

WRITERS = """
import os
from crewai.memory.types import MemoryRecord
from crewai_mongodb_memory import MongoStorageBackend
children = []
for writer in range(8):
    pid = os.fork()
    if pid == 0:
        with MongoStorageBackend({server!r}, database_name={database!r}) as backend:
            for number in range(25):
                backend.save([MemoryRecord(id=f"{{writer}}-{{number}}", content="x", embedding=[1.0, 0.0])])
        os._exit(0)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 8
"""


def run_to_its_end(program: str) -> None:
    """Run a program in a process of its own, which has to end well and without a complaint."""
    # From 3.12 on Python warns of any fork of a process with threads, which is what is tried here.
    warnings = ["-W", "error::ResourceWarning", "-W", "ignore:.*use of fork:DeprecationWarning"]
    command = [sys.executable, *warnings, "-c", program]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_forked_workers_use_a_backend_that_the_parent_used(
    server: str, database_name: str, backend: MongoStorageBackend
) -> None:
    run_to_its_end(PREFORK.format(server=server, database=database_name))
    assert backend.count() == 4


def test_a_fork_in_the_middle_of_other_threads_work_leaves_the_child_working(
    server: str, database_name: str, backend: MongoStorageBackend
) -> None:
    run_to_its_end(FORK_IN_THE_MIDDLE.format(server=server, database=database_name))
    assert [found.id for found in backend.list_records()] == ["child"]


def test_eight_processes_write_one_store_and_nothing_is_lost_or_doubled(
    server: str, database_name: str, backend: MongoStorageBackend
) -> None:
    run_to_its_end(WRITERS.format(server=server, database=database_name))
    assert backend.count() == 200
    assert len({found.id for found in backend.list_records(limit=500)}) == 200


def test_the_first_memories_of_several_threads_at_once_find_crewais_flows_built() -> None:
    run_to_its_end(NOTHING_LEFT_TO_BUILD)


# Loud where CrewAI is silent


def test_what_crewai_swallows_is_in_the_log_once_with_the_remedy(caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory(storage=MongoStorageBackend(UNREACHABLE), llm=ScriptedLLM(), embedder=embed_words)
    with caplog.at_level(logging.ERROR, "crewai_mongodb_memory"):
        assert memory.recall("a question", depth="deep", scope="/somewhere") == []
        assert memory.recall("a question", depth="deep", scope="/somewhere") == []
    said = [line.getMessage() for line in caplog.records if line.name == "crewai_mongodb_memory"]
    assert len(said) == 1
    assert "the server cannot be reached" in said[0]
    assert "cret" not in caplog.text
    memory.close()


def test_a_failed_background_save_is_in_the_log(atlas: AtlasStandin, caplog: pytest.LogCaptureFixture) -> None:
    with MongoStorageBackend(atlas.uri, database_name="test_loud", search_mode="exact") as backend:
        memory = Memory(storage=backend, llm=ScriptedLLM(), embedder=embed_words)
        atlas.fail_next("insert", 13, "not authorized on test_loud to execute command")
        memory.remember_many(["a fact"])
        memory.drain_writes()
        assert "lacks a privilege" in caplog.text


# What is left


def test_a_closed_backend_leaves_no_thread_and_no_warning(server: str, database_name: str) -> None:
    before = {thread.name for thread in threading.enumerate()}

    async def use() -> None:
        async with MongoStorageBackend(server, database_name=database_name) as own:
            await own.acount()

    with MongoStorageBackend(server, database_name=database_name, retryReads=False) as backend:
        backend.count()
    asyncio.run(use())
    gc.collect()
    deadline = time.monotonic() + 5
    while {thread.name for thread in threading.enumerate()} - before and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert {thread.name for thread in threading.enumerate()} - before == set()


def test_two_users_of_one_host_are_told_apart_in_dumps() -> None:
    factory = mongo_storage_factory(UNREACHABLE)
    bob, eve = factory("mongodb://bob:x@h2"), factory("mongodb://eve:x@h2")
    assert bob is not eve
    assert factory("mongodb://h2") is None
    assert factory("mongodb://bob:x@h2") is bob


def test_event_loops_leave_nothing_behind(backend: MongoStorageBackend) -> None:
    backend.count()
    clients = backend._connection._clients
    assert clients is not None
    for _ in range(5):
        asyncio.run(backend.acount())
    assert len(clients._aclients) == len(clients._loops) == 0


def test_when_server_and_supervisor_are_gone_the_next_call_but_one_finds_a_new_server(folder: Path) -> None:
    with MongoStorageBackend(f"local:{folder}", serverSelectionTimeoutMS=300) as backend:
        backend.save([record(id="r1")])
        for name in ("supervisor.lock", "server.pid"):
            os.kill(int((folder / name).read_text().split()[0]), signal.SIGKILL)
        with pytest.raises(ConnectionFailure):
            backend.count()
        assert backend.count() == 1


def test_closing_one_memory_cuts_off_no_other_in_the_middle_of_its_saves(make_backend: MakeBackend) -> None:
    backend = make_backend()

    def save(name: str) -> None:
        for number in range(20):
            backend.save([record(id=f"{name}-{number}")])

    with ThreadPoolExecutor(2) as threads:
        saves = [threads.submit(save, name) for name in "ab"]
        while not all(one.done() for one in saves):
            backend.close()
    for one in saves:
        one.result()
    assert backend.count() == 40
