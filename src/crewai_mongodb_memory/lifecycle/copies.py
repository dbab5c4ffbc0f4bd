"""Copies and dumps: what CrewAI's copying of agents, crews and memories makes of an object that holds connections.

CrewAI copies deeply for each kickoff and training run (``crewai/agents/agent_builder/base_agent.py``), and dumps for
its checkpoints (``crewai/state/runtime.py``). A plain class passes through both unless it can say what it is as JSON.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

from pydantic_core import SchemaSerializer, core_schema

__all__ = ["SharedByCopies"]

Self = TypeVar("Self", bound="SharedByCopies")


class SharedByCopies(ABC):
    """An object that every copy shares, that is rebuilt from its arguments when unpickled, and a name in JSON."""

    _arguments: dict[str, Any]

    @property
    @abstractmethod
    def _json_name(self) -> str:
        """What stands for the object in JSON: no credentials."""

    def __copy__(self: Self) -> Self:
        return self

    def __deepcopy__(self: Self, _: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self._arguments)

    __pydantic_serializer__: ClassVar[SchemaSerializer] = SchemaSerializer(
        core_schema.any_schema(
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda shared: shared._json_name, when_used="json"
            )
        )
    )


def _rebuilt(kind: Any, arguments: dict[str, Any]) -> Any:
    return kind(**arguments)
