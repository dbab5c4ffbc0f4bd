"""Errors of embedders in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["errors_logged"]

logger = logging.getLogger("crewai_mongodb_memory")


@contextmanager
def errors_logged(embedder: object) -> Iterator[None]:
    """Log an error before it reaches the caller.

    CrewAI embeds in the background and raises none of the errors there (``crewai/memory/unified_memory.py``), so the
    log may be the only place where a user sees why memories are missing.
    """
    try:
        yield
    except Exception as error:
        logger.error("%r embedded nothing: %s: %s", embedder, type(error).__name__, error)
        raise
