"""Known limits of CrewAI that no storage can mend: each test says what should hold, and fails the day it does.

They are told to users in the README; when one of them is mended upstream, take it out here and there.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from crewai import Memory
from crewai.memory.analyze import ConsolidationPlan, QueryAnalysis
from crewai.memory.types import MemoryRecord

from crewai_mongodb_memory import MongoStorageBackend
from tests.scripted import ScriptedLLM, embed_words
from tests.team import LAUNCH, MakeMemory, agent, crew, told

HOME = Path(__file__).parents[2]
FINE, NO = 0, 3

Probes = Callable[[], dict[str, tuple[int, int]]]


def upstream(where: str, why: str, raises: Any = AssertionError, **options: Any) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, raises=raises, reason=f"CrewAI, {where}: {why}", **options)


def keep(memory: Memory, content: str, scope: str, **fields: Any) -> None:
    """Remember something without asking a model for anything."""
    memory.remember(content, scope=scope, categories=["x"], importance=0.5, **fields)


def contents(matches: Any) -> set[str]:
    return {match.record.content for match in matches}


# Deep recall


@upstream("memory/recall_flow.py, filter_and_chunk", "a scope that has children is replaced by them")
def test_a_deep_recall_finds_what_is_right_at_a_scope_that_has_children(make_memory: MakeMemory) -> None:
    memory = make_memory()
    keep(memory, "Tea at the scope", "/team")
    keep(memory, "Tea below the scope", "/team/ada")
    assert contents(memory.recall("tea", scope="/team")) == {"Tea at the scope", "Tea below the scope"}


@upstream("memory/recall_flow.py, filter_and_chunk", "candidates[:20]")
def test_a_deep_recall_searches_every_child_of_a_scope(make_memory: MakeMemory, backend: MongoStorageBackend) -> None:
    vector = embed_words(["tea"])[0]
    backend.save([MemoryRecord(content=f"Tea {n}", scope=f"/team/{n:02}", embedding=vector) for n in range(21)])
    assert len(make_memory().recall("tea", scope="/team", limit=30)) == 21


@upstream("memory/recall_flow.py, _do_search", "a time with a zone is compared with one without, and the error dropped")
def test_a_time_filter_in_utc_keeps_what_is_newer(make_memory: MakeMemory) -> None:
    since = QueryAnalysis(recall_queries=["tea"], time_filter="2020-01-01T00:00:00Z")
    memory = make_memory(llm=ScriptedLLM({QueryAnalysis: since}), query_analysis_threshold=0)
    keep(memory, "Tea at five", "/team")
    assert contents(memory.recall("tea")) == {"Tea at five"}


@upstream(
    "memory/recall_flow.py, filter_and_chunk", "the scopes that a model suggests replace the scope that was asked"
)
def test_a_recall_in_a_scope_stays_in_it_whatever_the_model_suggests(make_memory: MakeMemory) -> None:
    elsewhere = QueryAnalysis(recall_queries=["tea"], suggested_scopes=["/b"])
    memory = make_memory(llm=ScriptedLLM({QueryAnalysis: elsewhere}), query_analysis_threshold=0)
    keep(memory, "Tea of b", "/b")
    assert contents(memory.scope("/a").recall("tea")) == set()


@upstream("memory/unified_memory.py, arecall", "it calls recall")
def test_an_awaited_recall_leaves_the_event_loop_free(make_memory: MakeMemory) -> None:
    used: list[threading.Thread] = []

    def embed(texts: list[str]) -> list[list[float]]:
        used.append(threading.current_thread())
        return embed_words(texts)

    async def recall() -> None:
        await make_memory(embedder=embed).arecall("tea", depth="shallow")
        assert used != [threading.current_thread()]

    asyncio.run(recall())


# Privacy


@upstream("memory/encoding_flow.py, parallel_analyze", "all similar records go to the model, whoever's they are")
def test_a_private_memory_is_not_shown_to_the_model_that_consolidates_anothers(make_memory: MakeMemory) -> None:
    seen: list[str] = []

    def consolidate(prompt: str) -> ConsolidationPlan:
        seen.append(prompt)
        return ConsolidationPlan(actions=[], insert_new=True)

    memory = make_memory(llm=ScriptedLLM({ConsolidationPlan: consolidate}))
    keep(memory, "Alice earns 90000 a year", "/pay", source="alice", private=True)
    keep(memory, "Alice earns 90000 a year gross", "/pay", source="bob")
    assert not any("90000" in prompt.partition("Existing similar memories")[2] for prompt in seen)


# Copies of agents and crews


@upstream("agents/agent_builder/base_agent.py, copy", "a dump of the scope has no memory", RuntimeError)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_scope_of_an_agent_lasts_through_kickoff_for_each(make_memory: MakeMemory) -> None:
    crew(agent(memory=make_memory().scope("/team"))).kickoff_for_each([{}])


@upstream("agents/agent_builder/base_agent.py, copy", "a dump of the slice has no memory, and the error is dropped")
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_slice_of_an_agent_lasts_through_kickoff_for_each(make_memory: MakeMemory) -> None:
    memory = make_memory()
    keep(memory, LAUNCH, "/team")
    reader = agent(memory=memory.slice(["/team"]))
    crew(reader).kickoff_for_each([{}])
    assert LAUNCH in told(reader)[0]


@upstream("agents/agent_builder/base_agent.py, copy", "the memory is rebuilt from a dump, in which its model is a dict")
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_memory_of_an_agent_keeps_its_model_through_kickoff_for_each(
    make_memory: MakeMemory, backend: MongoStorageBackend
) -> None:
    crew(agent(memory=make_memory())).kickoff_for_each([{}])
    assert [record.content for record in backend.list_records()] == [LAUNCH]


@upstream(
    "memory/unified_memory.py, __deepcopy__",
    "isinstance(…, threading.Lock), which is a function before Python 3.13",
    TypeError,
    condition=sys.version_info < (3, 13),
)
def test_a_memory_can_be_copied_deeply(make_memory: MakeMemory, backend: MongoStorageBackend) -> None:
    assert copy.deepcopy(make_memory())._storage is backend


@upstream("agents/agent_builder/base_agent_executor.py, _save_to_memory", "a slice has no remember_many")
def test_an_agent_with_a_writable_slice_remembers(make_memory: MakeMemory, backend: MongoStorageBackend) -> None:
    crew(agent(memory=make_memory().slice(["/team"], read_only=False))).kickoff()
    assert backend.count() == 1


# Resets and defaults


@upstream("crew.py, _get_memory_systems", "reset_all() takes no notice of root_scope")
def test_a_crews_reset_spares_other_crews(make_memory: MakeMemory) -> None:
    one, two = make_memory(root_scope="/crew/one"), make_memory(root_scope="/crew/two")
    keep(two, "Theirs", "/notes")
    crew(memory=one).reset_memories("memory")
    assert len(two.list_records()) == 1


@upstream("crew.py, _get_memory_systems", "a slice has no reset", RuntimeError)
def test_a_crew_on_a_slice_can_be_reset(make_memory: MakeMemory) -> None:
    crew(memory=make_memory().slice(["/team"])).reset_memories("memory")


@upstream("memory/unified_memory.py, model_post_init", "any unknown name is taken for a folder of LanceDB's")
def test_mongodb_without_a_factory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lancedb = SimpleNamespace(LanceDBStorage=lambda path: f"LanceDB in the folder {path}")
    monkeypatch.setitem(sys.modules, "crewai.memory.storage.lancedb_storage", lancedb)
    storage: Any = Memory(storage="mongodb")._storage
    assert storage != "LanceDB in the folder mongodb"


# Processes


@pytest.fixture(scope="module")
def database_of_probes() -> str:
    return f"test_{uuid4().hex}"


@pytest.fixture(scope="module", autouse=True)
def probes(server: str, database_of_probes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probes]:
    """What came of the probes, which run beside the other tests: exit codes and counts of records by name."""
    folder = tmp_path_factory.mktemp("probes")
    output = folder / "output"
    command = [sys.executable, "-m", "tests.integration.probes", server, database_of_probes]
    newcomer = {**os.environ, "CREWAI_STORAGE_DIR": str(folder)}  # to whom CrewAI has not yet offered its tracing
    with output.open("w") as file:
        running = subprocess.Popen(command, cwd=HOME, env=newcomer, stdout=file, stderr=subprocess.STDOUT)

    def found() -> dict[str, tuple[int, int]]:
        assert running.wait(timeout=120) == 0, output.read_text()
        return {name: tuple(one) for name, one in json.loads(output.read_text().splitlines()[-1]).items()}

    yield found
    running.wait(timeout=120)


def expect(found: tuple[int, int], wanted: tuple[int, int], known: tuple[int, int]) -> None:
    """Assert that it is as wanted; what is neither that nor the known trouble is an error of the probe itself."""
    if found not in (wanted, known):
        raise RuntimeError(f"the probe came to {found}")
    assert found == wanted


def test_a_crew_that_was_built_before_a_fork_works_in_the_children(probes: Probes) -> None:
    assert probes()["a_crew_built_before_a_fork"] == (FINE, 3)


@upstream("events/event_bus.py, _sync_executor", "a flow starts the event bus, whose threads are not in the child")
def test_a_flow_that_was_built_before_a_fork_works_in_the_children(probes: Probes) -> None:
    expect(probes()["a_flow_built_before_a_fork"], (FINE, 3), (NO, 0))


@upstream("memory/unified_memory.py, _save_pool", "its thread is not in the child")
def test_a_memory_that_was_used_before_a_fork_works_in_the_children(probes: Probes) -> None:
    expect(probes()["a_memory_used_before_a_fork"], (FINE, 4), (NO, 1))


@upstream("events/event_bus.py, _sync_executor", "the threads of the one event bus are not in the child")
def test_a_memory_made_after_a_fork_works_although_another_was_used_before(probes: Probes) -> None:
    expect(probes()["a_memory_made_after_a_fork_where_another_was_used_before"], (FINE, 7), (NO, 4))


def test_a_crew_recalls_what_another_process_remembered_that_exited_after_its_kickoff(
    probes: Probes, server: str, database_of_probes: str, make_memory: MakeMemory
) -> None:
    name = "an_exit_right_after_a_crews_kickoff"
    assert probes()[name] == (FINE, 1)
    newcomer = agent()
    with MongoStorageBackend(server, database_name=database_of_probes, tenant=name, search_mode="exact") as left:
        crew(newcomer, memory=make_memory(left)).kickoff()
    assert f") {LAUNCH}" in told(newcomer)[0]


@upstream("memory/unified_memory.py, _background_encode_batch", "a save under way is dropped when the process exits")
def test_remember_many_is_done_before_the_process_exits(probes: Probes) -> None:
    expect(probes()["an_exit_right_after_remember_many"], (FINE, 1), (FINE, 0))


@upstream("agent/core.py, _save_kickoff_to_memory", "it does not wait for what it saves")
def test_an_agents_kickoff_is_remembered_before_the_process_exits(probes: Probes) -> None:
    expect(probes()["an_exit_right_after_an_agents_kickoff"], (FINE, 1), (FINE, 0))


@upstream("state/runtime.py", "memory's own flows are part of the state, and have a class in them")
def test_a_crew_with_a_memory_leaves_a_checkpoint_after_a_task(probes: Probes) -> None:
    expect(probes()["a_checkpoint_after_a_task"], (FINE, 1), (NO, 1))


def test_a_crew_restored_from_a_checkpoint_of_its_start_recalls_through_the_factory(probes: Probes) -> None:
    assert probes()["a_crew_restored_from_a_checkpoint_at_its_start"] == (FINE, 1)


@upstream("telemetry/tracing/handlers.py, _reparent_suppressed_flow_children", "ready.wait(timeout=5.0)")
def test_a_remember_outside_a_crew_does_not_wait_for_tracing(probes: Probes) -> None:
    expect(probes()["a_remember_without_a_word_on_tracing"], (FINE, 1), (NO, 1))
