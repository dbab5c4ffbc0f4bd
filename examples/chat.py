"""A chat in the terminal that keeps its thread and its memory: stop it, start it again, and it goes on.

    python examples/chat.py                   # type; an empty line, Ctrl-D or Ctrl-C ends it
    python examples/chat.py --session ann     # another thread; what is remembered is shared
    python examples/chat.py --llm anthropic/claude-sonnet-4-5

The thread is what was said last, word for word (ConversationMemory). The memory is what was worth remembering, found by
meaning (CrewAI's Memory). With OPENAI_API_KEY set, gpt-4o-mini does the talking; without a model a stand-in repeats
what it was given. All is kept in the folder .demo.
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
from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai.llms.base_llm import BaseLLM
from crewai.memory.analyze import ConsolidationPlan, ExtractedMemories, MemoryAnalysis, QueryAnalysis

from crewai_mongodb_memory import ConversationMemory, MongoStorageBackend, OfflineEmbedder

STORE = "local:.demo/mongodb"


def main() -> None:
    """Chat until the user has enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--session", default="chat", help="the thread to go on with (default: %(default)s)")
    parser.add_argument("--llm", help="a model's name, as CrewAI takes it")
    arguments = parser.parse_args()
    set_suppress_console_output(True)  # CrewAI's panels would drown the chat
    llm = model(arguments.llm)
    backend = MongoStorageBackend(STORE)
    thread = ConversationMemory(backend, session_id=arguments.session)
    memory = Memory(storage=backend, embedder=OfflineEmbedder(), llm=llm, root_scope="/demo/chat")
    print(f"{thread.count()} turns in this thread, {memory.info().record_count} memories. An empty line ends the chat.")
    if thread.count():
        print(thread.history_text(4, user_label="You", assistant_label="Crew"))
    try:
        while message := input("You: ").strip():
            answer = answer_to(message, thread, memory, llm)
            thread.add_exchange(message, answer)
            print(f"Crew: {answer}", flush=True)
    except (EOFError, KeyboardInterrupt):
        print()
    print(f"Kept: {thread.count()} turns, {memory.info().record_count} memories.")
    memory.close()


def answer_to(message: str, thread: ConversationMemory, memory: Memory, llm: BaseLLM) -> str:
    """Let a crew answer, with the thread in its task and the memory at its side."""
    talker = Agent(role="Companion", goal="Help, and know the user", backstory="A good listener", llm=llm)
    said = thread.history_text() or "(nothing yet)"
    task = Task(
        description=f"The chat so far:\n{said}\n\nThe user now says: {message}",
        expected_output="A short answer to the user",
        agent=talker,
    )
    return str(Crew(agents=[talker], tasks=[task], memory=memory).kickoff())


def model(name: str | None) -> BaseLLM:
    """The model of the user's, if there is one."""
    if name or os.environ.get("OPENAI_API_KEY"):
        chosen: BaseLLM = LLM(model=name or "gpt-4o-mini")
        return chosen
    return StandIn(model="stand-in")


class StandIn(BaseLLM):
    """Has nothing but its prompt: answers questions from it, and takes everything else as worth remembering."""

    def call(self, messages: Any, *_: Any, response_model: Any = None, **__: Any) -> Any:
        prompt = messages if isinstance(messages, str) else str(messages[-1]["content"])
        if response_model is ExtractedMemories:
            told = re.findall(r"The user now says: (.+[^?\n])$", prompt, re.MULTILINE)
            return ExtractedMemories(memories=told[-1:])
        if response_model is MemoryAnalysis:
            return MemoryAnalysis(suggested_scope="/user", categories=["chat"], importance=0.5)
        if response_model is ConsolidationPlan:  # asked only of what is nearly the same
            return ConsolidationPlan(actions=[], insert_new=False)
        if response_model is QueryAnalysis:
            return QueryAnalysis(recall_queries=[])
        before = re.findall(r"^User: (.+)$", prompt, re.MULTILINE)
        known = re.search(r"^- \(score=.+?\) (.+)$", prompt, re.MULTILINE)
        if re.search(r"The user now says: .+\?$", prompt, re.MULTILINE):
            return f"I remember: {known[1]}" if known else "I do not know yet."
        return f"Noted. Before that you said: {before[-1]}" if before else "Noted."

    def supports_function_calling(self) -> bool:
        return True

    def get_input_tokens_count(self, *_: Any, **__: Any) -> int:
        return 0


if __name__ == "__main__":
    main()
