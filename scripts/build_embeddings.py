"""Give every text of data/embeddings.json and data/queries.json its vector, in place.

To change the team or the questions, edit the texts and run ``make data``: it embeds what is new or changed
and leaves the rest, byte for byte. It then ranks the team for each question, by plain cosine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crewai_mongodb_memory.embedders.offline import OfflineEmbedder

DATA = Path(__file__).resolve().parents[1] / "data"
TEAM = DATA / "embeddings.json"
QUESTIONS = DATA / "queries.json"

_DECIMALS = 6
# What another processor or another build of the runtime may change in the last decimals.
_SAME_WITHIN = 1e-5

Entry = dict[str, Any]


def rebuilt(entries: list[Entry], text_key: str, embed: Callable[[list[str]], list[list[float]]]) -> list[Entry]:
    """Entries with the vector of ``entry[text_key]`` as ``embedding``, rounded; a fitting one stays."""
    fresh = embed([entry[text_key] for entry in entries])
    return [
        {**entry, "embedding": _settled(entry.get("embedding"), vector)}
        for entry, vector in zip(entries, fresh, strict=True)
    ]


def rendered(entries: list[Entry]) -> str:
    """The text of a data file: a JSON list, one entry a line."""
    return "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "\n]\n"


def ranks(team: list[Entry], questions: list[Entry]) -> list[tuple[int, float]]:
    """For each question: the rank of the person it expects, and the lead in cosine over the best other."""
    names = [member["name"] for member in team]
    bios = np.array([member["embedding"] for member in team])
    return [_rank(bios @ np.array(question["embedding"]), names.index(question["expects"])) for question in questions]


def _rank(scores: npt.NDArray[np.float64], expected: int) -> tuple[int, float]:
    others = np.delete(scores, expected)
    return 1 + int(np.sum(others >= scores[expected])), float(scores[expected] - others.max())


def _settled(stored: list[float] | None, fresh: list[float]) -> list[float]:
    if stored is not None and len(stored) == len(fresh) and np.allclose(stored, fresh, rtol=0, atol=_SAME_WITHIN):
        return stored
    # `or 0` writes the padding, and a negative zero, as a plain 0.
    return [round(value, _DECIMALS) or 0 for value in fresh]


def _rebuild(path: Path, text_key: str, embedder: OfflineEmbedder) -> list[Entry]:
    before = path.read_text(encoding="utf-8")
    entries = rebuilt(json.loads(before), text_key, embedder)
    after = rendered(entries)
    if after != before:
        path.write_text(after, encoding="utf-8", newline="\n")
    print(f"{path.name}: {len(entries)} entries, {'written' if after != before else 'unchanged'}")
    return entries


def main() -> None:
    embedder = OfflineEmbedder()
    team = _rebuild(TEAM, "bio", embedder)
    questions = _rebuild(QUESTIONS, "query", embedder)
    print("rank    lead  question")
    for question, (rank, lead) in zip(questions, ranks(team, questions), strict=True):
        print(f"{rank:4}  {lead:+.3f}  {question['query']} ({question['expects']})")


if __name__ == "__main__":
    main()
