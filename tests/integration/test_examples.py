"""The examples run, as a newcomer would run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HOME = Path(__file__).parents[2]


def run(folder: Path, *arguments: str) -> str:
    """What the quickstart prints, given arguments; it must not complain of anything."""
    command = [
        sys.executable,
        str(HOME / "examples/quickstart.py"),
        "--store",
        f"local:{folder}",
        *arguments,
    ]
    finished = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, check=False, timeout=120)
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
