"""A small team for tests: agents and crews of CrewAI whose model answers by script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crewai import Agent, Crew, Memory, Task

from crewai_mongodb_memory import MongoStorageBackend
from tests.scripted import ScriptedLLM

MakeMemory = Callable[..., Memory]

LAUNCH = "The launch is on Thursday"
QUESTION = "When is the launch?"


def agent(role: str = "Planner", llm: ScriptedLLM | None = None, **fields: Any) -> Agent:
    """An agent who answers by script; without one, whatever it is asked, that the launch is on Thursday."""
    return Agent(
        role=role, goal="Know the plans", backstory="A planner", llm=llm or ScriptedLLM({str: LAUNCH}), **fields
    )


def task(description: str = QUESTION, **fields: Any) -> Task:
    return Task(description=description, expected_output="A sentence", **fields)


def crew(*agents: Agent, **fields: Any) -> Crew:
    """A crew with a task for each of its agents; without any, of one planner."""
    members = list(agents) or [agent()]
    tasks = fields.pop("tasks", None) or [task(agent=member) for member in members]
    return Crew(**{"name": "Team", "agents": members, "tasks": tasks, **fields})


def told(member: Agent | ScriptedLLM) -> list[str]:
    """The task prompts that an agent's model was given, in order: with what was recalled, without what memory asked."""
    llm = member if isinstance(member, ScriptedLLM) else member.llm
    assert isinstance(llm, ScriptedLLM)
    return [prompt for prompt in llm.prompts if "Current Task:" in prompt]


def scopes_and_contents(backend: MongoStorageBackend) -> list[tuple[str, str]]:
    return sorted((record.scope, record.content) for record in backend.list_records())
