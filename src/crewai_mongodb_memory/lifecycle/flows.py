"""CrewAI's own flows for remembering and recalling, made ready before threads use them."""

from __future__ import annotations

from crewai.memory.encoding_flow import EncodingFlow
from crewai.memory.recall_flow import RecallFlow

__all__ = ["build_flows"]


def build_flows() -> None:
    """Build the definitions of the flows behind ``Memory.remember`` and ``Memory.recall``.

    CrewAI does so at their first use and without a lock (``crewai/flow/runtime``, ``Flow.flow_definition``): of two
    threads that remember for the first time at once, one may get a RuntimeError, and its memory is lost.
    """
    for flow in (EncodingFlow, RecallFlow):
        flow.flow_definition()
