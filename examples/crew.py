"""A crew that remembers: what one kickoff produced is in the prompts of the next, and still there when you come back.

    python examples/crew.py                                        # one kickoff notes, a second one is asked
    python examples/crew.py "Who pays late?"                       # the second one is asked a question of yours
    python examples/crew.py --llm anthropic/claude-sonnet-4-5      # with a model of yours

With OPENAI_API_KEY set, gpt-4o-mini does the thinking. Without a model this runs too, on a stand-in that repeats
what the memory gave it. The memories are kept in the folder .demo; run it again, and they are known already.
"""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

# CrewAI's tracing would ask whether to upload this run, and its telemetry needs a network.
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

from crewai import LLM, Agent, Crew, Memory, Task
from crewai.events import MemoryRetrievalCompletedEvent, crewai_event_bus
from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai.llms.base_llm import BaseLLM
from crewai.memory.analyze import ConsolidationPlan, ExtractedMemories, MemoryAnalysis, QueryAnalysis

from crewai_mongodb_memory import MongoStorageBackend, OfflineEmbedder

STORE = "local:.demo/mongodb"
SCOPE = "/demo/support"
NOTES = ["Ada Lopez wants her invoices on paper", "Bo Chen pays late, but always in full", "Cy Okoro moves in May"]
QUESTION = "How does Ada want to get her invoices?"


def main() -> None:
    """Let one crew take notes, and ask another one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--llm", help="a model's name, as CrewAI takes it")
    arguments = parser.parse_args()
    set_suppress_console_output(True)  # CrewAI's panels would drown the rest
    llm = model(arguments.llm)
    memory = Memory(storage=MongoStorageBackend(STORE), embedder=OfflineEmbedder(), llm=llm, root_scope=SCOPE)

    print(f"{memory.info().record_count} memories in {STORE}. A crew takes notes:")
    for task in crew(memory, llm, [f"Note for later: {note}" for note in NOTES]).kickoff().tasks_output:
        print(f"  {task.raw}")

    print(f"\nA new crew is asked: {arguments.question}")
    crewai_event_bus.on(MemoryRetrievalCompletedEvent)(show_what_is_recalled)
    print(f"  It answers: {crew(memory, llm, [arguments.question]).kickoff()}")

    print(f"\nThe memory now:\n{memory.tree()}")
    memory.close()


def crew(memory: Memory, llm: BaseLLM, orders: list[str]) -> Any:
    """A crew of one, with a memory: this is all it takes."""
    clerk = Agent(role="Clerk", goal="Know our customers", backstory="Ten years in support", llm=llm)
    tasks = [Task(description=order, expected_output="One sentence", agent=clerk) for order in orders]
    return Crew(agents=[clerk], tasks=tasks, memory=memory)


def show_what_is_recalled(_: Any, event: MemoryRetrievalCompletedEvent) -> None:
    """Print the memories that CrewAI has put into a prompt."""
    print("  Its prompt came with:")
    for score, content in re.findall(r"^- \(score=(.+?)\) (.+)$", event.memory_content, re.MULTILINE):
        print(f"    {score}  {content}")


def model(name: str | None) -> BaseLLM:
    """The model of the user's, if there is one."""
    if name or os.environ.get("OPENAI_API_KEY"):
        chosen: BaseLLM = LLM(model=name or "gpt-4o-mini")
        return chosen
    return StandIn(model="stand-in")


class StandIn(BaseLLM):
    """Answers as a model would that takes every word for granted, and has nothing but its prompt to go by."""

    def call(self, messages: Any, *_: Any, response_model: Any = None, **__: Any) -> Any:
        prompt = messages if isinstance(messages, str) else str(messages[-1]["content"])
        if response_model is ExtractedMemories:  # of what a task produced, worth remembering is what is new
            return ExtractedMemories(memories=re.findall(r"^Result: Noted: (.+)$", prompt, re.MULTILINE))
        if response_model is MemoryAnalysis:
            return MemoryAnalysis(suggested_scope="/customers", categories=["customer"], importance=0.5)
        if response_model is ConsolidationPlan:  # asked only of what is nearly the same
            return ConsolidationPlan(actions=[], insert_new=False)
        if response_model is QueryAnalysis:
            return QueryAnalysis(recall_queries=[])
        if note := re.search(r"Note for later: (.+)", prompt):
            return f"Noted: {note[1]}"
        known = re.search(r"^- \(score=.+?\) (.+)$", prompt, re.MULTILINE)
        return f"I remember: {known[1]}." if known else "I do not know."

    def supports_function_calling(self) -> bool:
        return True

    def get_input_tokens_count(self, *_: Any, **__: Any) -> int:
        return 0


if __name__ == "__main__":
    main()
