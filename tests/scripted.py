"""Stand-ins for what costs money or needs a network: a model that answers by script, and a small embedder."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import numpy as np
from crewai.llms.base_llm import BaseLLM
from crewai.memory.analyze import ConsolidationPlan, ExtractedMemories, MemoryAnalysis, QueryAnalysis
from pydantic import BaseModel, PrivateAttr

WORD_DIMENSIONS = 64


def remember_the_result(prompt: str) -> ExtractedMemories:
    """What a model finds worth remembering of a task: its result, as it is."""
    return ExtractedMemories(memories=re.findall(r"^Result: (.+)$", prompt, re.MULTILINE))


def tool_call(name: str, **arguments: Any) -> list[dict[str, Any]]:
    """A model's answer that calls a tool instead of saying something."""
    return [{"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]


class ScriptedLLM(BaseLLM):
    """Answers each kind of question by the script it was given; it never says anything else.

    Args:
        script: by the model class that an answer has to have (``str`` where it is free), the answer, or a function
            from the prompt to it.
    """

    _script: dict[type, Any] = PrivateAttr(default_factory=dict)
    _asked: list[str] = PrivateAttr(default_factory=list)
    _prompts: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, script: dict[type, Any] | None = None) -> None:
        super().__init__(model="scripted")
        self._script = {
            MemoryAnalysis: MemoryAnalysis(suggested_scope="/notes", categories=["note"], importance=0.5),
            QueryAnalysis: QueryAnalysis(keywords=[], suggested_scopes=[], complexity="simple", recall_queries=[]),
            ConsolidationPlan: ConsolidationPlan(actions=[], insert_new=True),
            ExtractedMemories: remember_the_result,
            str: "done",
            **(script or {}),
        }

    @property
    def asked(self) -> list[str]:
        """The names of the answers asked for, in order."""
        return self._asked

    @property
    def prompts(self) -> list[str]:
        """The prompts that a free answer was asked for, in order: what agents were told."""
        return self._prompts

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *_: Any, response_model: type[BaseModel] | None = None, **__: Any) -> Any:
        prompt = messages if isinstance(messages, str) else "\n\n".join(str(one["content"]) for one in messages)
        self._asked.append(response_model.__name__ if response_model else "text")
        if response_model is None:
            self._prompts.append(prompt)
        answer = self._script.get(response_model or str)
        return answer(prompt) if callable(answer) else answer

    async def acall(self, messages: Any, *_: Any, **options: Any) -> Any:
        return self.call(messages, **options)


def embed_words(texts: list[str]) -> list[list[float]]:
    """Embed texts by their words: the more words two texts share, the higher their cosine."""
    return [_embed(text).tolist() for text in texts]


def _embed(text: str) -> Any:
    total = np.zeros(WORD_DIMENSIONS)
    for word in re.findall(r"\w+", text.lower()):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        total += np.random.default_rng(seed).standard_normal(WORD_DIMENSIONS)
    return total / (np.linalg.norm(total) or 1.0)
