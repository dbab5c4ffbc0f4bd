"""The examples run, as a newcomer would run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crewai_mongodb_memory import MongoStorageBackend
from tests.fake_voyage import KEY, FakeVoyage

HOME = Path(__file__).parents[2]


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        str(HOME / "examples/quickstart.py"),
        "--store",
        f"local:{folder}",
        *arguments,
    ]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("VOYAGE")}
    return subprocess.run(
        command,
        cwd=folder.parent,
        env=plain | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def run(folder: Path, *arguments: str, **environment: str) -> str:
    """What the quickstart prints, given arguments; it must not complain of anything."""
    finished = start(folder, *arguments, **environment)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return finished.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quickstart") / "store"


@pytest.fixture(scope="module")
def tour(folder: Path) -> str:
    return run(folder, "Who draws [wireframes]?")


def right_by_plain_cosine() -> int:
    people = json.loads((HOME / "data/embeddings.json").read_text(encoding="utf-8"))
    questions = json.loads((HOME / "data/queries.json").read_text(encoding="utf-8"))
    vectors = np.array([person["embedding"] for person in people])
    best = [people[int(np.argmax(vectors @ np.array(question["embedding"])))]["name"] for question in questions]
    return sum(name == question["expects"] for name, question in zip(best, questions, strict=True))


def test_the_stored_questions_are_right_where_plain_cosine_is(tour: str) -> None:
    right = right_by_plain_cosine()
    assert right >= 12
    assert f"{right} of " in tour
    assert tour.count("✓") == right


def test_the_tour_shows_scopes_and_categories(tour: str) -> None:
    assert "/demo/team (17 records)" in tour
    assert "Engineering 5" in tour


def test_a_second_process_finds_the_same(tour: str) -> None:
    assert "A second process on the same store finds 17 memories" in tour


def test_a_question_of_ones_own_is_answered_to_the_letter(tour: str) -> None:
    _, _, answer = tour.partition("Who draws [wireframes]?\n")
    assert "Ingrid Solberg" in answer.splitlines()[0]


def test_a_second_run_replaces_the_first(tour: str, folder: Path) -> None:
    again = run(folder)
    assert "/demo/team (17 records)" in again
    assert "17 records" in tour


def test_with_a_key_voyage_embeds_into_a_collection_of_its_own(api: FakeVoyage, folder: Path, tour: str) -> None:
    # Vectors as far apart as those of a real model: at 0.85 CrewAI would take two people for one.
    api.change = lambda vectors: [
        [float(mark == round(1023 * 2 * vector[1])) for mark in range(1024)] for vector in vectors
    ]
    shown = run(folder, "Who draws?", VOYAGE_API_KEY=KEY, VOYAGE_BASE_URL=api.base_url)
    assert "/demo/voyage (17 records)" in shown
    assert "embedded by voyage-3.5" in shown
    assert "A second process on the same store finds 17 memories" in shown
    kinds = [(body["input_type"], len(body["input"])) for body in api.bodies]
    assert kinds == [("document", 17), ("query", 20), ("query", 1), ("query", 1)]
    with MongoStorageBackend(f"local:{folder}") as plain:
        assert plain.list_scopes("/demo") == ["/demo/team"]
        assert plain.count() == 17
    assert "17 records" in tour


def test_a_key_that_is_not_accepted_is_said_in_a_line(api: FakeVoyage, tmp_path: Path) -> None:
    finished = start(tmp_path / "store", VOYAGE_API_KEY="pa-another", VOYAGE_BASE_URL=api.base_url)
    assert finished.returncode == 1
    assert "Voyage AI does not accept the key" in finished.stderr
    assert "Without VOYAGE_API_KEY it runs on this machine's own model." in finished.stderr
    assert "Traceback" not in finished.stderr
    assert "pa-another" not in finished.stderr
