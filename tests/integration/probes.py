"""What CrewAI does at forks, at exits and at checkpoints: each tried in a process that it may hang or spoil.

    python -m tests.integration.probes local:./folder database

CrewAI takes seconds to import, so it is imported once; each probe runs in a fork of that, made before anything of
CrewAI was used. The last line printed is JSON: by the name of the probe its exit code and how many records it left.
"""

from __future__ import annotations

import concurrent.futures.thread
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crewai import Crew, Flow, Memory
from crewai.events.base_events import BaseEvent
from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.flow_events import FlowCreatedEvent
from crewai.events.types.memory_events import MemorySaveStartedEvent
from crewai.memory.analyze import MemoryAnalysis
from crewai.memory.storage.factory import set_memory_storage_factory
from crewai.state.checkpoint_config import CheckpointConfig

from crewai_mongodb_memory import MongoStorageBackend
from tests.scripted import ScriptedLLM, embed_words
from tests.team import LAUNCH, QUESTION, agent, crew

STALL = 4.0
HANG = 6
PATIENCE = 60
NO = 3  # an exit code apart from that of an error

Probe = Callable[[MongoStorageBackend], bool]


def main(server: str, database: str) -> None:
    """Run all probes at once and print what came of them."""

    def backend_of(name: str) -> MongoStorageBackend:
        return MongoStorageBackend(server, database_name=database, tenant=name, search_mode="exact")

    running: dict[str, int] = {}
    for probe in PROBES:
        process = os.fork()
        if process == 0:
            sys.exit(0 if probe(backend_of(probe.__name__)) else NO)
        running[probe.__name__] = process
    exits = {name: os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for name, process in running.items()}
    found = {}
    for name, code in exits.items():
        with backend_of(name) as backend:
            found[name] = [code, backend.count()]
    sys.stdout.write(f"\n{json.dumps(found)}\n")


def memory_on(storage: Any, llm: ScriptedLLM | None = None) -> Memory:
    return Memory(storage=storage, llm=llm or ScriptedLLM(), embedder=embed_words)


# Forks


def a_crew_built_before_a_fork(backend: MongoStorageBackend) -> bool:
    built = crew(memory=memory_on(backend))
    return each_of_three_children(built.kickoff, PATIENCE)


def a_flow_built_before_a_fork(backend: MongoStorageBackend) -> bool:
    flows: list[Any] = []
    four_times(lambda: flows.append(Flow(memory=memory_on(backend))), FlowCreatedEvent)
    return each_of_three_children(lambda: flows[0].remember("In the child"), HANG)


def a_memory_used_before_a_fork(backend: MongoStorageBackend) -> bool:
    memory = memory_on(backend)
    memory.remember("Before the fork")
    return each_of_three_children(lambda: memory.remember("In the child"), HANG)


def a_memory_made_after_a_fork_where_another_was_used_before(backend: MongoStorageBackend) -> bool:
    four_times(lambda: memory_on(backend).remember("Before the fork"), MemorySaveStartedEvent)
    return each_of_three_children(lambda: memory_on(backend).remember("In the child"), HANG)


def four_times(work: Callable[[], object], event: type[BaseEvent]) -> None:
    """Work with handlers of its event so slow that the event bus starts four threads, as it does in a busy process."""
    together = threading.Barrier(4)
    with crewai_event_bus.scoped_handlers():

        @crewai_event_bus.on(event)
        def wait_for_the_others(_: Any, __: BaseEvent) -> None:
            together.wait(PATIENCE)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        crewai_event_bus.flush()


def each_of_three_children(work: Callable[[], object], seconds: int) -> bool:
    """Tell whether three forked children all end their work in time."""
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            signal.alarm(seconds)
            work()
            os._exit(0)
        children.append(child)
    return [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]


# Exits


def wait_for_the_exit(_: str) -> MemoryAnalysis:
    """Answer as late as a model over a network would: when the process is on its way out."""
    deadline = time.monotonic() + PATIENCE
    while not concurrent.futures.thread._shutdown and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    return MemoryAnalysis(suggested_scope="/notes", categories=["note"], importance=0.5)


def an_exit_right_after_a_crews_kickoff(backend: MongoStorageBackend) -> bool:
    crew(memory=memory_on(backend)).kickoff()
    return True


def an_exit_right_after_remember_many(backend: MongoStorageBackend) -> bool:
    memory_on(backend, ScriptedLLM({MemoryAnalysis: wait_for_the_exit})).remember_many(["A fact"])
    return True


def an_exit_right_after_an_agents_kickoff(backend: MongoStorageBackend) -> bool:
    agent(memory=memory_on(backend, ScriptedLLM({MemoryAnalysis: wait_for_the_exit}))).kickoff(QUESTION)
    return True


# Checkpoints


def a_checkpoint_after_a_task(backend: MongoStorageBackend) -> bool:
    return bool(checkpoints_of(backend, "task_completed"))


def a_crew_restored_from_a_checkpoint_at_its_start(backend: MongoStorageBackend) -> bool:
    (checkpoint,) = checkpoints_of(backend, "crew_kickoff_started")
    memory = Crew.from_checkpoint(CheckpointConfig(restore_from=checkpoint))._memory
    assert isinstance(memory, Memory)
    return [match.record.content for match in memory.recall(QUESTION, depth="shallow")] == [LAUNCH]


def checkpoints_of(backend: MongoStorageBackend, event: Any) -> list[Path]:
    """The checkpoints that a kickoff of a crew with ``memory=True`` leaves when they are due at an event."""
    os.environ["OPENAI_API_KEY"] = "none"  # CrewAI restores every model as one of OpenAI's; none is asked
    setattr(sys.modules[Memory.__module__], "_default_embedder", lambda: embed_words)  # noqa: B010
    set_memory_storage_factory(lambda _: backend)
    folder = Path(tempfile.mkdtemp())
    crew(memory=True, checkpoint=CheckpointConfig(location=str(folder), on_events=[event])).kickoff()
    crewai_event_bus.flush()
    return list(folder.rglob("*.json"))


# Tracing


def a_remember_without_a_word_on_tracing(backend: MongoStorageBackend) -> bool:
    os.environ.pop("CREWAI_TRACING_ENABLED", None)
    started = time.monotonic()
    memory_on(backend).remember("A fact")
    return time.monotonic() - started < STALL


PROBES: list[Probe] = [
    a_crew_built_before_a_fork,
    a_flow_built_before_a_fork,
    a_memory_used_before_a_fork,
    a_memory_made_after_a_fork_where_another_was_used_before,
    an_exit_right_after_a_crews_kickoff,
    an_exit_right_after_remember_many,
    an_exit_right_after_an_agents_kickoff,
    a_checkpoint_after_a_task,
    a_crew_restored_from_a_checkpoint_at_its_start,
    a_remember_without_a_word_on_tracing,
]

if __name__ == "__main__":
    main(*sys.argv[1:])
