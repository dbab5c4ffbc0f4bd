"""CrewAI's own flows for remembering and recalling, built before threads use them."""

from __future__ import annotations

import logging
from importlib import import_module

__all__ = ["build_flows"]

# Private parts of CrewAI: they may move without notice.
FLOWS = (("crewai.memory.encoding_flow", "EncodingFlow"), ("crewai.memory.recall_flow", "RecallFlow"))

logger = logging.getLogger("crewai_mongodb_memory")


def build_flows() -> None:
    """Build the definitions of the flows behind ``Memory.remember`` and ``Memory.recall``.

    CrewAI builds them at their first use without a lock (``crewai/flow/runtime``, ``Flow.flow_definition``): if two
    threads remember for the first time at once, one may get a RuntimeError, and its memory is lost. A flow that cannot
    be built is logged as a warning; nothing is raised.
    """
    for module, name in FLOWS:
        try:
            getattr(import_module(module), name).flow_definition()
        except Exception as error:
            logger.warning(
                "CrewAI's %s.%s could not be built ahead of its use (%s: %s): the first memories of several threads at "
                "once may be lost; remember once in a single thread first, or use a CrewAI that this version supports",
                module,
                name,
                type(error).__name__,
                error,
            )
