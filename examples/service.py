"""An asynchronous service whose users have memories: many requests at once on one connection, none of them waiting.

    python examples/service.py        # forty requests of two tenants at once

It needs no key and no network. The functions under "Handlers" are what you would hang on the routes of FastAPI,
Starlette or aiohttp, and ``lifespan`` is what they call when they start and stop::

    app = FastAPI(lifespan=lambda _: lifespan())
    app.post("/notes")(remember), app.get("/notes")(recall), app.get("/search")(search)
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

# CrewAI's tracing would wait 5 s after each remember, and its telemetry needs a network.
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

from crewai import Memory
from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai.llms.base_llm import BaseLLM

from crewai_mongodb_memory import MongoStorageBackend, OfflineEmbedder

STORE = "local:.demo/mongodb"
TENANTS = ["acme", "globex"]
NOTES = [
    "The invoice of May is open",
    "The parcel goes to Lisbon",
    "The meeting moved to Friday",
    "The key is at the desk",
]

embed = OfflineEmbedder()


@cache
def storage(tenant: str) -> MongoStorageBackend:
    """The storage of one tenant. All of them share one connection, and none sees another's records."""
    return MongoStorageBackend(STORE, database_name="demo_service", tenant=tenant)


@cache
def memory(tenant: str) -> Memory:
    """CrewAI's Memory of one tenant; it asks no model, since ``remember`` below says all there is to say."""
    return Memory(storage=storage(tenant), embedder=embed, llm=NoModel(model="none"))


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    """Open and close what all requests share: the first request does not wait for it, the last one is not cut off."""
    await storage(TENANTS[0]).aensure_indexes()
    yield
    for tenant in TENANTS:
        await asyncio.to_thread(memory(tenant).close)
        await storage(tenant).aclose()


# Handlers


async def remember(tenant: str, note: str) -> str:
    """Through CrewAI's Memory, in a thread: its own ``aremember`` would hold up every other request."""
    fields: dict[str, Any] = {"scope": "/notes", "categories": ["note"], "importance": 0.5}
    record = await asyncio.to_thread(memory(tenant).remember, note, **fields)
    assert record is not None
    return record.id


async def recall(tenant: str, question: str) -> str:
    """Ranked by CrewAI: similarity, recency and importance."""
    matches = await asyncio.to_thread(memory(tenant).recall, question, limit=1, depth="shallow")
    return matches[0].record.content if matches else ""


async def search(tenant: str, question: str) -> str:
    """Past CrewAI, on the event loop all the way: the storage's own methods have asynchronous twins."""
    vector = await asyncio.to_thread(embed.embed_query, question)
    found = await storage(tenant).asearch(vector, limit=1)
    return found[0][0].content if found else ""


async def main() -> None:
    """Serve forty requests at once, and say what came of them."""
    set_suppress_console_output(True)  # CrewAI's two panels for each memory would drown the rest
    async with lifespan():
        for tenant in TENANTS:
            await storage(tenant).areset()
        started = time.perf_counter()
        await asyncio.gather(*(remember(tenant, f"{note}, says {tenant}") for tenant in TENANTS for note in NOTES))
        print(f"{len(TENANTS) * len(NOTES)} notes remembered in {time.perf_counter() - started:.1f} s")

        started = time.perf_counter()
        asked = [(ask, tenant) for ask in (recall, search) for tenant in TENANTS for _ in range(8)]
        answers = await asyncio.gather(*(ask(tenant, "Where is the parcel?") for ask, tenant in asked))
        print(f"{len(asked)} questions answered in {time.perf_counter() - started:.1f} s:")
        for (ask, tenant), answer in dict(zip(asked, answers, strict=True)).items():
            print(f"  {ask.__name__:7} {tenant:7} {answer}")


class NoModel(BaseLLM):
    """Stands where CrewAI wants a language model."""

    def call(self, *_: Any, **__: Any) -> str:
        raise AssertionError("this service asks no language model")


if __name__ == "__main__":
    asyncio.run(main())
