"""A flow that remembers: each run recalls what earlier ones left, with ``self.recall`` and ``self.remember``.

    python examples/flow.py                              # two days at a stand-up
    python examples/flow.py "I fix the login page"       # one more day, with what you say
    python examples/flow.py --forget                     # start anew

It needs no key and no network, and no model: each memory here says its scope, categories and importance itself.
The memories are kept in the folder .demo.
"""

from __future__ import annotations

import argparse
import os
from datetime import datetime
from typing import Any

# CrewAI's tracing would wait 5 s after each remember, and its telemetry needs a network.
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

from crewai import Flow, Memory
from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai.flow.flow import listen, start
from crewai.llms.base_llm import BaseLLM
from crewai.memory.analyze import ConsolidationPlan
from pydantic import BaseModel

from crewai_mongodb_memory import MongoStorageBackend, OfflineEmbedder

STORE = "local:.demo/mongodb"
DAYS = ["I write the release notes for Thursday", "I test the payment page, the release waits for it"]


class Day(BaseModel):
    """What the flow is about."""

    today: str = ""


class StandUp(Flow[Day]):
    """One day: what was said before about the same thing, then what is said today."""

    @start()
    def look_back(self) -> None:
        """Recall by meaning: what earlier days said that bears on today."""
        for match in self.recall(self.state.today, scope="/days", limit=2, depth="shallow"):
            when = match.record.metadata["at"]
            print(f"    {match.score:.2f}  said at {when}: {match.record.content}")

    @listen(look_back)
    def note(self) -> None:
        """Remember one thing and wait for it, or a list of things in the background: the flow waits at its end."""
        fields: dict[str, Any] = {"scope": "/days", "categories": ["plan"], "importance": 0.5}
        self.remember(self.state.today, metadata={"at": f"{datetime.now():%H:%M:%S}"}, **fields)


def main() -> None:
    """Run the flow for each day."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("today", nargs="?", help="what you do today")
    parser.add_argument("--forget", action="store_true", help="forget what earlier runs left")
    arguments = parser.parse_args()
    set_suppress_console_output(True)  # CrewAI's panels would drown the rest
    memory = Memory(
        storage=MongoStorageBackend(STORE),
        embedder=OfflineEmbedder(),
        root_scope="/demo/flow",
        llm=KeepTheOld(model="none"),
    )
    if arguments.forget:
        memory.reset()
    print(f"{memory.info().record_count} memories of earlier days in {STORE}")
    for today in [arguments.today] if arguments.today else DAYS:
        print(f"  Today: {today}")
        StandUp(memory=memory, suppress_flow_events=True).kickoff({"today": today})
    print(f"{memory.info().record_count} memories now")
    memory.close()


class KeepTheOld(BaseLLM):
    """Stands where CrewAI wants a language model: it is asked only when the same thing is said again."""

    def call(self, *_: Any, **__: Any) -> ConsolidationPlan:
        return ConsolidationPlan(actions=[], insert_new=False)


if __name__ == "__main__":
    main()
