"""Records and questions, the same in every run and in every process."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product

import numpy as np
from crewai.memory.types import MemoryRecord

DIMENSIONS = 1024
SEED = 20_250_101
START = datetime(2025, 1, 1)

SCOPES = [
    f"/{company}/{team}/{agent}" for company, team, agent in product(("acme", "globex"), ("sales", "care"), "abcde")
]
CATEGORIES = ["decision", "fact", "goal", "lesson", "person", "preference", "procedure", "risk"]
CUSTOMERS = 97
WORDS = [
    *("customer", "order", "address", "agent", "contract", "invoice", "account", "delivery", "refund", "Lisbon"),
    *("asked", "agreed", "prefers", "cancelled", "confirmed", "moved", "paid", "expects", "renewed", "returned"),
    *("the", "their", "before", "after", "because", "while", "Friday", "always", "never", "to", "from", "with"),
]


def record(number: int) -> MemoryRecord:
    """The record with this number; a scope has one in 20 of all, a category about one in four."""
    chance = np.random.default_rng([SEED, number])
    return MemoryRecord(
        id=record_id(number),
        content=" ".join(chance.choice(WORDS, 29)),
        scope=SCOPES[number % len(SCOPES)],
        categories=sorted({CATEGORIES[number % 8], CATEGORIES[number // 8 % 8]}),
        metadata={
            "customer": number % CUSTOMERS,
            "channel": ("mail", "phone", "chat")[number % 3],
            "open": number % 2 == 0,
        },
        importance=number % 10 / 10,
        created_at=START + timedelta(minutes=number),
        last_accessed=START + timedelta(minutes=number),
        embedding=_direction(chance),
    )


def records(numbers: range) -> list[MemoryRecord]:
    return [record(number) for number in numbers]


def record_id(number: int) -> str:
    return f"record-{number:08}"


def question(number: int) -> list[float]:
    """A query embedding; another number gives another one, so that nobody answers from a cache."""
    return _direction(np.random.default_rng([SEED + 1, number]))


def _direction(chance: np.random.Generator) -> list[float]:
    vector = chance.standard_normal(DIMENSIONS)
    numbers: list[float] = (vector / np.linalg.norm(vector)).tolist()
    return numbers
