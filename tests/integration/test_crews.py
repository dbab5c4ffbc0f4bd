"""Crews of CrewAI with a memory on this storage: what one kickoff produced is in the prompts of the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from crewai import Crew, Memory, Process

from crewai_mongodb_memory import MongoStorageBackend
from tests.scripted import ScriptedLLM, tool_call
from tests.team import LAUNCH, QUESTION, MakeMemory, agent, crew, scopes_and_contents, task, told

# Kickoffs

KICKOFFS: dict[str, Callable[[Crew], Any]] = {
    "kickoff": lambda crew: crew.kickoff(),
    "kickoff_async": lambda crew: asyncio.run(crew.kickoff_async()),
    "akickoff": lambda crew: asyncio.run(crew.akickoff()),
}


@pytest.mark.parametrize("kickoff", KICKOFFS.values(), ids=KICKOFFS)
def test_what_a_task_produced_is_in_the_prompt_of_the_next_kickoff(
    memory: Memory, backend: MongoStorageBackend, kickoff: Callable[[Crew], Any]
) -> None:
    assert kickoff(crew(memory=memory)).raw == LAUNCH
    assert scopes_and_contents(backend) == [("/crew/team/agent/planner/notes", LAUNCH)]
    newcomer = agent(llm=ScriptedLLM({str: "As remembered"}))
    kickoff(crew(newcomer, memory=memory))
    (prompt,) = told(newcomer)
    assert f"Relevant memories:\n- (score=0.75) {LAUNCH}" in prompt


def test_each_agent_of_a_crew_remembers_in_a_scope_of_its_own(memory: Memory, backend: MongoStorageBackend) -> None:
    crew(agent("Planner"), agent("Head of Sales", ScriptedLLM({str: "Ten were sold"})), memory=memory).kickoff()
    assert scopes_and_contents(backend) == [
        ("/crew/team/agent/head-of-sales/notes", "Ten were sold"),
        ("/crew/team/agent/planner/notes", LAUNCH),
    ]
    newcomer = agent("Newcomer")
    crew(newcomer, memory=memory).kickoff()
    assert LAUNCH in told(newcomer)[0]
    assert "Ten were sold" in told(newcomer)[0]


def test_the_second_task_of_a_crew_recalls_the_first(memory: Memory) -> None:
    first, second = agent("First"), agent("Second")
    tasks = [task(agent=first), task("What is on Thursday?", agent=second, context=[])]
    crew(first, second, tasks=tasks, memory=memory).kickoff()
    assert f") {LAUNCH}" in told(second)[0]


def test_a_manager_and_the_coworker_it_delegates_to_share_the_crews_memory(
    memory: Memory, backend: MongoStorageBackend
) -> None:
    delegates = tool_call("delegate_work_to_coworker", task="Find the day", context="None", coworker="Planner")

    def kick_off() -> tuple[ScriptedLLM, ScriptedLLM]:
        answers = iter([delegates, "It will be Thursday"])
        manager, coworker = ScriptedLLM({str: lambda _: next(answers)}), ScriptedLLM({str: LAUNCH})
        crew(
            agent(llm=coworker), tasks=[task()], process=Process.hierarchical, manager_llm=manager, memory=memory
        ).kickoff()
        return manager, coworker

    kick_off()
    assert scopes_and_contents(backend) == [
        ("/crew/team/agent/crew-manager/notes", "It will be Thursday"),
        ("/crew/team/agent/planner/notes", LAUNCH),
    ]
    for member in kick_off():
        assert f") {LAUNCH}" in told(member)[0]
        assert ") It will be Thursday" in told(member)[0]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of CrewAI's unions of models and names
def test_a_kickoff_for_each_input_recalls_those_before_it(memory: Memory, backend: MongoStorageBackend) -> None:
    llm = ScriptedLLM({str: lambda prompt: "Alpha is blue" if "is Alpha?" in prompt else "Beta is red"})
    member = agent(llm=llm)
    each = crew(member, tasks=[task("What is {what}?", agent=member)], memory=memory)
    each.kickoff_for_each([{"what": "Alpha"}, {"what": "Beta"}])
    first, second = told(llm)
    assert "Relevant memories" not in first
    assert ") Alpha is blue" in second
    assert len(backend.list_records()) == 2


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of CrewAI's unions of models and names
def test_kickoffs_for_each_input_at_once_lose_nothing(memory: Memory, backend: MongoStorageBackend) -> None:
    numbers = [f"{number:02}" for number in range(12)]
    llm = ScriptedLLM({str: lambda prompt: f"Number {prompt.split('What is ')[1][:2]} is done"})
    member = agent(llm=llm)
    each = crew(member, tasks=[task("What is {number}?", agent=member)], memory=memory)
    asyncio.run(each.akickoff_for_each([{"number": number} for number in numbers]))
    assert sorted(record.content for record in backend.list_records()) == [f"Number {n} is done" for n in numbers]


# What agents see


def test_an_agent_with_a_memory_of_its_own_keeps_it_from_the_others(make_memory: MakeMemory) -> None:
    private, shared = make_memory(root_scope="/private"), make_memory(root_scope="/shared")
    crew(agent("Secretary", ScriptedLLM({str: "The salary is secret"}), memory=private), memory=shared).kickoff()
    secretary, colleague = agent("Secretary", memory=private), agent("Colleague")
    crew(secretary, colleague, memory=shared).kickoff()
    assert ") The salary is secret" in told(secretary)[0]
    assert "secret" not in told(colleague)[0]


def test_an_agent_with_a_scope_remembers_and_recalls_there_only(
    make_memory: MakeMemory, backend: MongoStorageBackend
) -> None:
    memory = make_memory()
    crew(agent("Ada", memory=memory.scope("/team/ada"))).kickoff()
    crew(agent("Bob", ScriptedLLM({str: "Bob plays chess"}), memory=memory.scope("/team/bob"))).kickoff()
    assert scopes_and_contents(backend) == [("/team/ada", LAUNCH), ("/team/bob", "Bob plays chess")]
    ada = agent("Ada", memory=memory.scope("/team/ada"))
    crew(ada).kickoff()
    assert f") {LAUNCH}" in told(ada)[0]
    assert "chess" not in told(ada)[0]


def test_an_agent_with_a_slice_recalls_from_its_scopes_and_adds_nothing(
    make_memory: MakeMemory, backend: MongoStorageBackend
) -> None:
    memory = make_memory()
    for name in "abc":
        memory.remember(f"Launch notes of {name}", scope=f"/notes/{name}", categories=["x"], importance=0.5)
    reader = agent("Reader", memory=memory.slice(["/notes/a", "/notes/b"]))
    crew(reader).kickoff()
    assert all(f") Launch notes of {name}" in told(reader)[0] for name in "ab")
    assert "Launch notes of c" not in told(reader)[0]
    assert backend.count() == 3


def test_an_agent_searches_and_saves_with_the_memory_tools(memory: Memory, backend: MongoStorageBackend) -> None:
    memory.remember(LAUNCH, scope="/plans", categories=["plan"], importance=0.5)
    answers = iter(
        [tool_call("search_memory", queries=["launch day"]), tool_call("save_to_memory", contents=["I asked"]), "Done"]
    )
    member = agent(llm=ScriptedLLM({str: lambda _: next(answers)}))
    crew(member, memory=memory).kickoff()
    _, found, saved = told(member)
    assert "Found memories:\n- (score=" in found
    assert LAUNCH in found.partition("Found memories:")[2]
    assert "Saved to memory (scope=/crew/team/notes, importance=0.5)." in saved
    assert {"I asked", "Done"} < {record.content for record in backend.list_records()}


def test_an_agent_without_a_crew_remembers_too(memory: Memory) -> None:
    agent(memory=memory).kickoff("Hello")
    memory.drain_writes()
    second = agent(memory=memory)
    second.kickoff(QUESTION)
    assert isinstance(second.llm, ScriptedLLM)
    assert any(f") {LAUNCH}" in prompt and QUESTION in prompt for prompt in second.llm.prompts)
    memory.drain_writes()  # what it remembers after the test would open a client that nobody closes
