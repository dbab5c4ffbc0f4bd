"""Flows of CrewAI with a memory on this storage: ``self.remember``, ``self.recall``, and what is left after them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from crewai import Flow, Memory
from crewai.flow.flow import listen, start
from crewai.flow.human_feedback import DistilledLessons, HumanFeedbackResult, PreReviewResult, human_feedback

from crewai_mongodb_memory import MongoStorageBackend
from tests.scripted import ScriptedLLM, embed_words
from tests.team import LAUNCH, MakeMemory, agent, crew, scopes_and_contents, told


class Diary(Flow[dict[str, Any]]):
    """Remembers a note, then recalls what it knows of a question."""

    @start()
    def write(self) -> None:
        if "note" in self.state:
            self.remember(self.state["note"], categories=["diary"], importance=0.5)

    @listen(write)
    def read(self) -> list[str]:
        return [match.record.content for match in self.recall(self.state["question"])]


class Batch(Flow[dict[str, Any]]):
    """Remembers many notes in the background, at its very end."""

    @start()
    def write(self) -> str:
        self.remember([f"Note number {number}" for number in range(5)])
        return "done"


def test_a_flow_recalls_what_an_earlier_flow_remembered(memory: Memory) -> None:
    Diary(memory=memory).kickoff({"note": LAUNCH, "question": "launch"})
    assert Diary(memory=memory).kickoff({"question": "launch"}) == [LAUNCH]


def test_a_flow_on_an_event_loop_recalls_too(memory: Memory) -> None:
    async def keep_a_diary() -> Any:
        return await Diary(memory=memory).kickoff_async({"note": LAUNCH, "question": "launch"})

    assert asyncio.run(keep_a_diary()) == [LAUNCH]


def test_background_saves_of_a_flow_are_done_when_its_kickoff_returns(
    memory: Memory, backend: MongoStorageBackend
) -> None:
    Batch(memory=memory).kickoff()
    assert sorted(record.content for record in backend.list_records()) == [f"Note number {n}" for n in range(5)]


def test_a_flow_without_a_memory_of_its_own_is_on_mongodb_once_the_factory_is_registered(
    server: str, database_name: str, register: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crewai.memory.unified_memory._default_embedder", lambda: embed_words)
    monkeypatch.setattr(Memory, "_llm", ScriptedLLM())
    factory = register(server, database_name=database_name, search_mode="exact")
    assert Diary().kickoff({"note": LAUNCH, "question": "launch"}) == [LAUNCH]
    assert scopes_and_contents(factory("lancedb")) == [("/flow/diary/notes", LAUNCH)]
    factory("lancedb").close()


def test_a_flow_on_a_scope_stays_in_it(make_memory: MakeMemory, backend: MongoStorageBackend) -> None:
    memory = make_memory()
    memory.remember("The launch of another team", scope="/other", categories=["x"], importance=0.5)
    assert Diary(memory=memory.scope("/mine")).kickoff({"note": LAUNCH, "question": "launch"}) == [LAUNCH]
    assert scopes_and_contents(backend)[0] == ("/mine", LAUNCH)


def test_a_flow_and_the_crew_in_it_share_a_memory(memory: Memory) -> None:
    member = agent(llm=ScriptedLLM({str: "Then Friday is free"}))

    class Week(Flow[dict[str, Any]]):
        @start()
        def plan(self) -> None:
            self.remember(LAUNCH, categories=["plan"], importance=0.5)

        @listen(plan)
        def ask_the_crew(self) -> None:
            crew(member, memory=self.memory).kickoff()

        @listen(ask_the_crew)
        def look_back(self) -> set[str]:
            return {match.record.content for match in self.recall("Thursday Friday")}

    assert Week(memory=memory).kickoff() == {LAUNCH, "Then Friday is free"}
    assert f") {LAUNCH}" in told(member)[0]


def test_flows_of_two_tenants_at_once_never_meet(
    make_memory: MakeMemory, make_backend: Callable[..., MongoStorageBackend]
) -> None:
    async def keep_diaries() -> list[Any]:
        flows = [Diary(memory=make_memory(make_backend(tenant=name))) for name in ("acme", "globex")]
        inputs = [{"note": f"A fact of {name}", "question": "fact"} for name in ("acme", "globex")]
        kickoffs = [flow.kickoff_async(given) for flow, given in zip(flows, inputs, strict=True)]
        return list(await asyncio.gather(*kickoffs))

    assert asyncio.run(keep_diaries()) == [["A fact of acme"], ["A fact of globex"]]


def test_lessons_from_a_persons_feedback_improve_the_next_draft(
    memory: Memory, backend: MongoStorageBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def improve(prompt: str) -> PreReviewResult:
        return PreReviewResult(improved_output="Draft, kindly" if "Always be kind" in prompt else "Draft")

    llm = ScriptedLLM({DistilledLessons: DistilledLessons(lessons=["Always be kind"]), PreReviewResult: improve})
    monkeypatch.setattr("builtins.input", lambda *_: "Be kind")

    class Letter(Flow[dict[str, Any]]):
        @start()
        @human_feedback(message="Good?", llm=llm, learn=True)
        def draft(self) -> str:
            return "Draft"

    def seen_by_the_person() -> Any:
        result = Letter(memory=memory).kickoff()
        assert isinstance(result, HumanFeedbackResult)
        return result.output

    assert seen_by_the_person() == "Draft"
    assert [record.source for record in backend.list_records()] == ["hitl"]
    assert seen_by_the_person() == "Draft, kindly"
