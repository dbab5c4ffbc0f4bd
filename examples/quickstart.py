"""A team's memory on MongoDB, from nothing to answers: fill it, look at it, ask it, ask it from another process.

    python examples/quickstart.py                       # the whole tour
    python examples/quickstart.py "Who speaks Arabic?"  # the tour, then your own question

It needs no key and no network: the server is the embedded one, the embeddings come from a small model on this
machine. Where VOYAGE_API_KEY is set they come from Voyage AI, and the memories go into a collection and a scope of
their own, for the vectors of two models must never meet. Everything is kept in the folder .demo; running it again
replaces what it stored.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

# CrewAI's tracing would wait 5 s after each stand-alone remember, and its telemetry needs a network.
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import track
from rich.table import Table

DATA = Path(__file__).resolve().parents[1] / "data"
STORE = "local:.demo/mongodb"

console = Console()
Person = dict[str, Any]
vectors: dict[str, list[float]] = {}  # of the texts that come with the demo


def main() -> None:
    """Run the tour, or what a command line asks of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="?", default=os.environ.get("ASK"), help="a question of your own")
    parser.add_argument("--store", default=STORE, help="where to keep the memories (default: %(default)s)")
    parser.add_argument("--only-ask", action="store_true", help="fill nothing, only answer the question")
    arguments = parser.parse_args()
    if arguments.only_ask:
        answer_in_one_line(arguments.store, arguments.question)
    else:
        tour(arguments.store, arguments.question)


def tour(store: str, question: str | None) -> None:
    """Fill a memory, show what it holds, ask it the stored questions, and find it again in another process."""
    started = time.perf_counter()
    with console.status("Starting the embedded server"):
        memory = open_memory(store)
        memory.reset()
    embed_ahead()
    fill(memory)
    show_contents(memory)
    ask_the_stored_questions(memory)
    find_it_in_another_process(store)
    if question and question.strip():
        answer(memory, question)
    else:
        console.print('\nAsk your own question: [bold]make demo ASK="Who could help me with …?"[/]')
    memory.close()
    console.print(f"[dim]{time.perf_counter() - started:.0f} s in all; kept in {store}[/]")


def open_memory(store: str) -> Any:
    """Return CrewAI's Memory on MongoDB: this is all it takes."""
    from crewai import Memory
    from crewai.events.utils.console_formatter import set_suppress_console_output

    from crewai_mongodb_memory import MongoStorageBackend

    set_suppress_console_output(True)  # CrewAI's two panels for each memory would drown the rest
    collection, scope = ("memories", "/demo/team") if is_offline() else ("memories_voyage", "/demo/voyage")
    storage = MongoStorageBackend(store, collection_name=collection)
    return Memory(storage=storage, embedder=embed, llm=no_model(), root_scope=scope)


def fill(memory: Any) -> None:
    """Remember each member of the team, under the scope of their department."""
    for person in track(people(), description="Remembering the team", console=console, transient=True):
        memory.remember(
            person["bio"],
            scope=f"/{person['department'].lower().replace(' ', '-')}",
            categories=[person["department"]],
            metadata={"name": person["name"], "title": person["title"]},
            importance=0.5,
        )
    console.print(f"[bold]Remembered {len(people())} people[/], embedded by {model().model}.", highlight=False)


def show_contents(memory: Any) -> None:
    """Print the tree of scopes and the categories."""
    console.print("\n[bold]Scopes[/]", memory.tree(), sep="\n", highlight=False)
    categories = ", ".join(f"{name} {count}" for name, count in memory.list_categories().items())
    console.print("\n[bold]Categories[/]", categories, sep="\n", highlight=False)


def ask_the_stored_questions(memory: Any) -> None:
    """Recall the answer to each stored question and mark those that come first."""
    table = Table(
        "", "Question", "Best match", "Score", title="\nRecall: the best of 17 memories", title_justify="left"
    )
    right = 0
    for stored in questions():
        best = memory.recall(stored["query"], limit=1, depth="shallow")[0]
        name = best.record.metadata["name"]
        is_right = name == stored["expects"]
        right += is_right
        shown = name if is_right else f"{name} [dim]instead of {stored['expects']}[/]"
        table.add_row("[green]✓[/]" if is_right else "[red]✗[/]", stored["query"], shown, f"{best.score:.2f}")
    console.print(table)
    console.print(
        f"{right} of {len(questions())} right at rank 1. The score weighs similarity, recency and importance."
    )


def find_it_in_another_process(store: str) -> None:
    """Ask from a second process, which joins the same server, while this one holds the memory open."""
    question = questions()[0]["query"]
    command = [sys.executable, __file__, "--only-ask", "--store", store, question]
    with console.status("Asking from a second process"):
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    console.print(f"\n[bold]A second process[/] on the same store finds {escape(found)}", highlight=False)


def answer_in_one_line(store: str, question: str) -> None:
    """Print the best match of a question, for whoever reads this process's output."""
    memory = open_memory(store)
    best = memory.recall(question, limit=1, depth="shallow")[0]
    print(f"{len(memory.list_records())} memories, and answers “{question}” with {best.record.metadata['name']}.")
    memory.close()


def answer(memory: Any, question: str) -> None:
    """Print the best three matches of a question."""
    console.print(f"\n[bold]{escape(question)}[/]", highlight=False)
    for match in memory.recall(question, limit=3, depth="shallow"):
        person = match.record.metadata
        console.print(f"  {match.score:.2f}  [bold]{person['name']}[/], {person['title']}", highlight=False)
        console.print(Padding(f"[dim]{escape(match.record.content)}[/]", (0, 0, 0, 8)))


def embed(texts: list[str]) -> list[list[float]]:
    """Embed texts: those that a vector is known for by that, all others as questions to the model."""
    return [vectors[text] if text in vectors else model().embed_query(text) for text in texts]


def embed_ahead() -> None:
    """Get the vectors of all texts that come with the demo: they are stored with them, or Voyage AI makes them."""
    bios, asked = [person["bio"] for person in people()], [stored["query"] for stored in questions()]
    if is_offline():
        vectors.update(zip(bios, (person["embedding"] for person in people()), strict=True))
        vectors.update(zip(asked, (stored["embedding"] for stored in questions()), strict=True))
        return
    with console.status("Embedding by Voyage AI; an account without a payment method waits a minute now and then"):
        vectors.update(zip(bios, model().embed_documents(bios), strict=True))
        vectors.update(zip(asked, model()(asked), strict=True))


def is_offline() -> bool:
    return not os.environ.get("VOYAGE_API_KEY", "").strip()


@cache
def model() -> Any:
    """Return Voyage AI's model if there is a key for it, else the small one on this machine."""
    from crewai_mongodb_memory import OfflineEmbedder, VoyageEmbedder

    if is_offline():
        return OfflineEmbedder()
    return VoyageEmbedder(input_type="query", attempts=10, base_url=os.environ.get("VOYAGE_BASE_URL") or None)


def no_model() -> Any:
    """Stand in for a language model: each memory here says its scope, categories and importance itself.

    Only when two tours run at once is one asked anything, namely what to do about a memory that is there already.
    """
    from crewai.llms.base_llm import BaseLLM
    from crewai.memory.analyze import ConsolidationPlan

    class KeepWhatIsThere(BaseLLM):
        def supports_function_calling(self) -> bool:
            return True

        def call(self, *_: Any, **__: Any) -> ConsolidationPlan:
            return ConsolidationPlan(actions=[], insert_new=False)

    return KeepWhatIsThere(model="none")


@cache
def people() -> list[Person]:
    loaded: list[Person] = json.loads((DATA / "embeddings.json").read_text(encoding="utf-8"))
    return loaded


@cache
def questions() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((DATA / "queries.json").read_text(encoding="utf-8"))
    return loaded


def run() -> None:
    """Run it, and say in a line what it cannot do."""
    from crewai_mongodb_memory import MongoMemoryError

    try:
        main()
    except MongoMemoryError as error:
        remedy = "" if is_offline() else "\nWithout VOYAGE_API_KEY it runs on this machine's own model."
        sys.exit(f"{error}{remedy}")


if __name__ == "__main__":
    try:
        run()
    except KeyboardInterrupt:
        console.print("\nStopped. Run it again: it replaces what it stored.")
        sys.exit(130)
