"""What operations know of the store they work on: its settings, and what this process has learned about it."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import get_args

from crewai_mongodb_memory.errors import InvalidArgumentError, MongoMemoryError, explain
from crewai_mongodb_memory.operations.recent_writes import RecentWrites
from crewai_mongodb_memory.pure import checks
from crewai_mongodb_memory.pure.search_route import SearchMode
from crewai_mongodb_memory.pure.vector_index import VectorIndex, VectorIndexState
from crewai_mongodb_memory.pure.vectors import VectorFormat

__all__ = ["Notices", "Settings", "Store"]

logger = logging.getLogger("crewai_mongodb_memory")

SAME_ERROR_AFTER = 60.0  # seconds
MOST_TOPICS = 1000

# MongoDB manual, "MongoDB Limits and Thresholds", naming restrictions
DATABASE_NAME = re.compile(r'[^/\\. "$*<>:|?\x00]{1,63}')
COLLECTION_NAME = re.compile(r"(?!system\.)(?!\.)(?!.*\.\.)(?!.*\.$)[^$\x00]{1,200}")


@dataclass(frozen=True)
class Settings:
    """How a backend was made; see :class:`crewai_mongodb_memory.MongoStorageBackend`."""

    database: str = "crewai_memory"
    collection: str = "memories"
    tenant: str | None = None
    dimensions: int | None = None
    vector_format: VectorFormat = "double"
    search_mode: SearchMode = "auto"
    vector_search_index: str = "idx_crewai_memory"
    num_candidates: int | None = None
    exact_limit: int = 50_000
    read_your_writes: float = 60.0
    auto_setup: bool = True

    def __post_init__(self) -> None:
        for name, value, form in (
            ("database_name", self.database, DATABASE_NAME),
            ("collection_name", self.collection, COLLECTION_NAME),
        ):
            if not (isinstance(value, str) and form.fullmatch(value)):
                raise InvalidArgumentError(f"{name} {value!r} is not a name that MongoDB takes")
        if self.tenant is not None and not (isinstance(self.tenant, str) and self.tenant.strip()):
            raise InvalidArgumentError(f"tenant has to be text that is not blank, or None for all; not {self.tenant!r}")
        if not (self.tenant or "").isprintable():
            raise InvalidArgumentError(f"tenant {self.tenant!r} holds characters that cannot be printed")
        if self.vector_format not in get_args(VectorFormat):
            raise InvalidArgumentError(f"vector_format has to be 'double' or 'float32', not {self.vector_format!r}")
        if self.search_mode not in get_args(SearchMode):
            raise InvalidArgumentError(f"search_mode has to be 'auto', 'atlas' or 'exact', not {self.search_mode!r}")
        checks.text("vector_search_index", self.vector_search_index)
        checks.seconds("read_your_writes", self.read_your_writes)
        for name, most in (("dimensions", 8192), ("num_candidates", 10_000), ("exact_limit", checks.MOST - 1)):
            value = getattr(self, name)
            if value is not None or name == "exact_limit":
                object.__setattr__(self, name, checks.whole_number(name, value, 1, most))


class Notices:
    """Problems that are worth a line in the log.

    CrewAI swallows most errors of a storage (``crewai/memory/recall_flow.py``, ``encoding_flow.py``), so a line in the
    log may be all that a user ever sees.
    """

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def warn(self, topic: str, message: str) -> None:
        """Log a warning, unless this topic has had one."""
        if topic not in self._said:
            self._said[topic] = time.monotonic()
            logger.warning(message)

    @contextmanager
    def of_errors(self) -> Iterator[None]:
        """Log an error that passes through, with its remedy; the same one again only after a minute."""
        try:
            yield
        except Exception as error:
            own_text = str(error) if isinstance(error, MongoMemoryError) else getattr(error, "code", "")
            topic = f"{type(error).__name__} {own_text}"
            if len(self._said) > MOST_TOPICS:
                self._said.clear()
            if time.monotonic() - self._said.get(topic, -math.inf) >= SAME_ERROR_AFTER:
                self._said[topic] = time.monotonic()
                logger.error("%s: %s", type(error).__name__, explain(error))
            raise


@dataclass
class Store:
    """The settings of a store with what this process has learned about it.

    Attributes:
        recent: what this process wrote lately.
        dimensions: of the embeddings in it; None until it is known.
        is_set_up: its B-tree indexes were looked after by this process.
        indexed_dimensions: those that this process has looked after the vector index for.
        vector_index: as the server last told of it; None until it is asked.
        asked_at: when that was, on ``clock``.
        clock: seconds from some moment on.
        now: the time of day, aware.
        notices: what was said in the log already.
        conversations_set_up: collections of transcripts whose indexes were looked after.
    """

    settings: Settings
    recent: RecentWrites = field(default_factory=RecentWrites)
    dimensions: int | None = None
    is_set_up: bool = False
    indexed_dimensions: int | None = None
    vector_index: VectorIndex | None = None
    asked_at: float = 0.0
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    notices: Notices = field(default_factory=Notices)
    conversations_set_up: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.dimensions = self.settings.dimensions

    @property
    def may_lag(self) -> bool:
        """Whether searches may go through an index that lags behind writes, as far as is known."""
        known = self.vector_index
        return self.settings.search_mode != "exact" and not (known and known.state is VectorIndexState.UNAVAILABLE)

    def forget(self) -> None:
        """Forget what may have changed after everything was deleted."""
        self.dimensions = self.settings.dimensions
        self.indexed_dimensions = None
