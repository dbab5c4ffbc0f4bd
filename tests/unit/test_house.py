"""The rules of the house: what a module may import, how long it may be, and what is public."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import crewai_mongodb_memory

SOURCE = Path(crewai_mongodb_memory.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
PURE = [
    "scopes",
    "times",
    "metadata",
    "vectors",
    "documents",
    "filters",
    "pipelines",
    "ranking",
    "indexes",
    "vector_index",
    "routing",
    "recent",
    "buckets",
    "checks",
    "locks",
    "errors",
]
ALLOWED_IN_PURE = {"bson", "numpy", "pydantic", "crewai.memory.types", "crewai.memory.storage.backend"}
CLOCKS = {"now", "utcnow", "today", "time", "monotonic", "perf_counter"}


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_imports_nothing_that_does_io(name: str) -> None:
    for module in imported(ast.parse((SOURCE / f"{name}.py").read_text())):
        package = module.split(".")[0]
        allowed = package in sys.stdlib_module_names or module in ALLOWED_IN_PURE or package in ALLOWED_IN_PURE
        own = module.removeprefix("crewai_mongodb_memory.")
        assert allowed or module == "crewai_mongodb_memory" or own in PURE, module


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_has_no_clock(name: str) -> None:
    calls = [
        node.func for node in ast.walk(ast.parse((SOURCE / f"{name}.py").read_text())) if isinstance(node, ast.Call)
    ]
    assert not {call.attr for call in calls if isinstance(call, ast.Attribute)} & CLOCKS


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_stays_at_home_size(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 40, node.name


def test_operations_never_touch_a_client() -> None:
    for path in (SOURCE / "operations").glob("*.py"):
        tree = ast.parse(path.read_text())
        assert not {"crewai_mongodb_memory.connection", "crewai_mongodb_memory.driver"} & imported(tree), path
        assert not [node for node in ast.walk(tree) if isinstance(node, (ast.AsyncFunctionDef, ast.Await))], path


def test_the_public_names_are_there_and_nothing_else_is() -> None:
    names = crewai_mongodb_memory.__all__
    modules = {path.stem for path in MODULES} | {path.name for path in SOURCE.iterdir() if path.is_dir()}
    public = {name for name in vars(crewai_mongodb_memory) if not name.startswith("_")} - modules
    assert public == set(names)
    assert len(names) == len(set(names))
    assert all(hasattr(crewai_mongodb_memory, name) for name in names)


def test_no_error_is_of_a_kind_that_crewai_drops() -> None:
    errors = [
        value
        for value in vars(crewai_mongodb_memory).values()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert len(errors) >= 6
    for error in errors:
        assert issubclass(error, crewai_mongodb_memory.MongoMemoryError)
        assert not issubclass(error, (RuntimeError, OSError)), error


def test_the_version_is_that_of_the_changelog() -> None:
    changelog = (SOURCE.parents[1] / "CHANGELOG.md").read_text()
    assert f"## {crewai_mongodb_memory.__version__}" in changelog
