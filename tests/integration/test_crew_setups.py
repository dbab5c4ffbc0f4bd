"""Crews as people set them up: with tenants, resets and trouble, through the factory, and defined in YAML or JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crewai.project as parts
import pytest
from crewai import Agent, Crew, Task
from crewai.project.crew_loader import load_crew

from crewai_mongodb_memory import MongoStorageBackend
from tests.scripted import ScriptedLLM, embed_words
from tests.stores import at_once
from tests.team import LAUNCH, QUESTION, MakeMemory, agent, crew, scopes_and_contents, told

UNREACHABLE = "mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=200"


# Tenants and resets


def test_crews_of_two_tenants_at_once_never_meet(
    make_memory: MakeMemory, make_backend: Callable[..., MongoStorageBackend]
) -> None:
    llms = {name: ScriptedLLM({str: f"A fact of {name}"}) for name in ("acme", "globex")}

    def work(name: str) -> None:
        memory = make_memory(make_backend(tenant=name))
        for _ in range(4):
            crew(agent(llm=llms[name]), memory=memory).kickoff()

    at_once(work, llms)
    for name, other in (("acme", "globex"), ("globex", "acme")):
        assert f") A fact of {name}" in told(llms[name])[-1]
        assert f"A fact of {other}" not in str(llms[name].prompts)
        assert {record.content for record in make_backend(tenant=name).list_records()} == {f"A fact of {name}"}


def test_a_crews_reset_spares_other_tenants(
    make_memory: MakeMemory, make_backend: Callable[..., MongoStorageBackend]
) -> None:
    mine, theirs = make_backend(tenant="mine"), make_backend(tenant="theirs")
    crews = [crew(memory=make_memory(storage)) for storage in (mine, theirs)]
    for one in crews:
        one.kickoff()
    crews[0].reset_memories("memory")
    assert (mine.count(), theirs.count()) == (0, 1)


def test_a_reset_of_a_crew_on_a_scope_stays_in_it(make_memory: MakeMemory, backend: MongoStorageBackend) -> None:
    memory = make_memory()
    memory.remember("Kept", scope="/other", categories=["x"], importance=0.5)
    one = crew(memory=memory.scope("/team"))
    one.kickoff()
    assert backend.count() == 2
    one.reset_memories("memory")
    assert scopes_and_contents(backend) == [("/other", "Kept")]


# Trouble


def test_a_kickoff_answers_although_the_server_is_down_and_the_log_says_so(
    make_memory: MakeMemory, caplog: pytest.LogCaptureFixture
) -> None:
    with MongoStorageBackend(UNREACHABLE) as down, caplog.at_level(logging.ERROR, "crewai_mongodb_memory"):
        assert str(crew(memory=make_memory(down)).kickoff()) == LAUNCH
    said = [line.getMessage() for line in caplog.records if line.name == "crewai_mongodb_memory"]
    assert len(said) == 1
    assert "the server cannot be reached" in said[0]


# Factories and definitions


def test_memory_true_is_on_mongodb_once_the_factory_is_registered(
    server: str, database_name: str, register: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crewai.memory.unified_memory._default_embedder", lambda: embed_words)
    factory = register(server, database_name=database_name, search_mode="exact")
    crew(name="Night Shift", memory=True).kickoff()
    assert scopes_and_contents(factory("lancedb")) == [("/crew/night-shift/agent/planner/notes", LAUNCH)]
    newcomer = agent()
    crew(newcomer, name="Night Shift", memory=True).kickoff()
    assert f") {LAUNCH}" in told(newcomer)[0]
    factory("lancedb").close()


AGENTS = """
planner:
  role: Planner
  goal: Know the plans
  backstory: A planner
"""

TASKS = f"""
ask:
  description: {QUESTION}
  expected_output: A sentence
  agent: planner
"""


def crew_of_yaml(folder: Path) -> Any:
    """A crew as ``crewai create crew`` lays one out: its agents and tasks in YAML, itself a decorated class."""
    (folder / "agents.yaml").write_text(AGENTS)
    (folder / "tasks.yaml").write_text(TASKS)

    @parts.CrewBase
    class NightShift:
        agents_config: Any = str(folder / "agents.yaml")
        tasks_config: Any = str(folder / "tasks.yaml")

        @parts.agent
        def planner(self) -> Agent:
            return Agent(config=self.agents_config["planner"], llm=ScriptedLLM({str: LAUNCH}))

        @parts.task
        def ask(self) -> Task:
            return Task(**self.tasks_config["ask"])

        @parts.crew
        def crew(self) -> Crew:
            made: Any = self
            return Crew(name="Night Shift", agents=made.agents, tasks=made.tasks, memory=True)

    return NightShift().crew()


def test_a_crew_defined_in_yaml_remembers_through_the_factory(
    server: str,
    database_name: str,
    register: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("crewai.memory.unified_memory._default_embedder", lambda: embed_words)
    factory = register(server, database_name=database_name, search_mode="exact")
    crew_of_yaml(tmp_path).kickoff()
    assert scopes_and_contents(factory("lancedb")) == [("/crew/night-shift/agent/planner/notes", LAUNCH)]
    again = crew_of_yaml(tmp_path)
    again.kickoff()
    assert f") {LAUNCH}" in told(again.agents[0])[-1]
    factory("lancedb").close()


PARTS = """
from tests.scripted import ScriptedLLM, embed_words
from tests.team import LAUNCH

class Embedder:
    def __call__(self, texts):
        return embed_words(texts)

embedder = Embedder()
llm = ScriptedLLM({str: LAUNCH})
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A crew defined in JSON, as ``crewai create`` lays one out, with a memory of the spec ``mongodb``."""
    llm = {"python": "parts.llm"}
    planner = {"role": "Planner", "goal": "Know the plans", "backstory": "A planner", "llm": llm}
    memory = {"storage": "mongodb", "embedder": {"python": "parts.embedder"}, "llm": llm, "root_scope": "/defined"}
    tasks = [{"name": "ask", "description": QUESTION, "expected_output": "A sentence", "agent": "planner"}]
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/planner.json").write_text(json.dumps(planner))
    (tmp_path / "crew.jsonc").write_text(json.dumps({"agents": ["planner"], "tasks": tasks, "memory": memory}))
    (tmp_path / "parts.py").write_text(PARTS)
    return tmp_path / "crew.jsonc"


def test_a_crew_defined_in_json_remembers_through_the_factory(
    server: str, database_name: str, register: Callable[..., Any], project: Path
) -> None:
    factory = register(server, database_name=database_name, search_mode="exact")
    load_crew(project)[0].kickoff()
    assert scopes_and_contents(factory("mongodb")) == [("/defined/agent/planner/notes", LAUNCH)]
    again, _ = load_crew(project)
    again.kickoff()
    assert f") {LAUNCH}" in told(again.agents[0])[-1]
    factory("mongodb").close()
