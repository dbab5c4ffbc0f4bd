"""The examples beside the quickstart run as they are: in an empty folder, without a key, a network or a complaint."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
NAMES = ["crew", "flow", "service", "worker"]
KEYS = re.compile("API_KEY|MONGODB_URI|ATLAS_URI")

Run = subprocess.Popen[str]


def start(name: str, folder: Path, *arguments: str) -> Run:
    nowhere = dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"], "http://127.0.0.1:9")
    plain = {key: value for key, value in os.environ.items() if not KEYS.search(key)}
    return subprocess.Popen(
        [sys.executable, str(HOME / f"examples/{name}.py"), *arguments],
        cwd=folder,
        env={**plain, **nowhere, "XDG_DATA_HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(run: Run) -> str:
    printed, errors = run.communicate(timeout=120)
    assert (run.returncode, errors) == (0, "")
    return printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the crew keeps its memories; a second run finds them."""
    return tmp_path_factory.mktemp("crew")


@pytest.fixture(scope="module")
def runs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """All examples, started at once: most of their time is CrewAI's import."""
    running = {name: start(name, folder if name == "crew" else tmp_path_factory.mktemp(name)) for name in NAMES}
    yield running
    for run in running.values():
        run.kill()
        run.communicate()


@pytest.fixture(scope="module")
def first_crew(runs: dict[str, Run]) -> str:
    return output_of(runs["crew"])


def test_the_second_crew_answers_from_what_the_first_one_noted(first_crew: str) -> None:
    assert "0 memories in local:.demo/mongodb" in first_crew
    assert re.search(r"Its prompt came with:\n    0\.\d\d  Ada Lopez wants her invoices on paper\n", first_crew)
    assert "It answers: I remember: Ada Lopez wants her invoices on paper." in first_crew
    assert "/demo/support (3 records)" in first_crew


def test_a_crew_that_comes_back_knows_it_all_already_and_doubles_nothing(first_crew: str, folder: Path) -> None:
    again = output_of(start("crew", folder, "Who pays late?"))
    assert "3 memories in" in again
    assert "It answers: I remember: Bo Chen pays late, but always in full." in again
    assert "/demo/support (3 records)" in again
    assert "0 memories in" in first_crew


def test_a_flow_recalls_on_its_second_day_what_was_said_on_the_first(runs: dict[str, Run]) -> None:
    printed = output_of(runs["flow"])
    _, _, second = printed.partition("Today: I test the payment page")
    assert re.search(r"0\.\d\d  said at \d\d:\d\d:\d\d: I write the release notes for Thursday", second)
    assert "2 memories now" in printed


def test_a_service_answers_each_tenant_from_its_own_memories(runs: dict[str, Run]) -> None:
    printed = output_of(runs["service"])
    assert re.search(r"8 notes remembered in \d+\.\d s", printed)
    for tenant in ("acme", "globex"):
        for handler in ("recall", "search"):
            assert re.search(rf"{handler} +{tenant} +The parcel goes to Lisbon, says {tenant}\n", printed)


def test_forked_workers_remember_in_one_store(runs: dict[str, Run]) -> None:
    printed = output_of(runs["worker"])
    assert "3 workers, 0 failed, 9 memories" in printed
    assert "Charged the yearly subscriptions (worker 2)" in printed


def test_each_example_says_how_to_run_it_and_stays_short() -> None:
    for name in NAMES:
        text = (HOME / f"examples/{name}.py").read_text()
        assert f"    python examples/{name}.py" in text.split('"""')[1]
        assert len(text.splitlines()) < 120
