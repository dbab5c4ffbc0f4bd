"""The rules of the house: what a module may import, how long it may be, and what is public."""

from __future__ import annotations

import ast
import graphlib
import sys
from pathlib import Path

import pytest

import crewai_mongodb_memory

PACKAGE = "crewai_mongodb_memory"
SOURCE = Path(crewai_mongodb_memory.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
GROUND = {"errors", "version"}
# What a ring may import of ours beside itself; the root, which wires them, may import all.
RINGS = {
    "pure": {"errors"},
    "operations": {"pure", "errors"},
    "lifecycle": set(),
    "local": {"errors"},
    "mongo": {"pure", "local", "lifecycle", *GROUND},
    "embedders": {"pure", "lifecycle", "errors"},
}
ALLOWED_IN_PURE = {"bson", "numpy", "pydantic", "crewai.memory.types"}
CLOCKS = {"now", "utcnow", "today", "time", "monotonic", "perf_counter"}


def imported(path: Path) -> set[str]:
    """The modules that a module imports; of ``from package import name`` the package and the name's own."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            module = node.module or ""
            modules = {f"{module}.{alias.name}" for alias in node.names} & OUR_MODULES.keys()
            names |= modules or {module}
    return names


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def place(module: str) -> str:
    """The ring of one of our modules, or its own name at the root; empty for the package itself."""
    return module.removeprefix(PACKAGE).lstrip(".").split(".")[0]


OUR_MODULES = {module_name(path): path for path in MODULES}
IN_RINGS = [path for path in MODULES if path.parent != SOURCE]


def test_every_folder_is_a_ring() -> None:
    assert {path.relative_to(SOURCE).parts[0] for path in IN_RINGS} == RINGS.keys()


@pytest.mark.parametrize("path", IN_RINGS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_arrows_point_one_way(path: Path) -> None:
    ring = path.relative_to(SOURCE).parts[0]
    own = {place(module) for module in imported(path) if module.split(".")[0] == PACKAGE}
    assert own <= {ring, *RINGS[ring]}


def test_the_ground_stands_on_nothing_of_ours() -> None:
    for name in GROUND:
        assert not {module for module in imported(SOURCE / f"{name}.py") if module.startswith(PACKAGE)}


def test_there_is_no_import_cycle() -> None:
    imports = {name: imported(path) & OUR_MODULES.keys() for name, path in OUR_MODULES.items()}
    list(graphlib.TopologicalSorter(imports).static_order())


@pytest.mark.parametrize("path", sorted((SOURCE / "pure").glob("*.py")), ids=lambda path: path.stem)
def test_a_pure_module_does_no_io_and_has_no_clock(path: Path) -> None:
    for module in imported(path):
        package = module.split(".")[0]
        assert package in {*sys.stdlib_module_names, PACKAGE} or {module, package} & ALLOWED_IN_PURE, module
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert not {call.attr for call in calls if isinstance(call, ast.Attribute)} & CLOCKS
    assert not {"os", "io", "time", "socket", "pathlib", "threading", "logging"} & imported(path)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_stays_at_home_size(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 40, node.name


def test_operations_are_neither_asynchronous_nor_on_a_client() -> None:
    for path in (SOURCE / "operations").glob("*.py"):
        assert not {"MongoClient", "AsyncMongoClient"} & {name.rpartition(".")[2] for name in imported(path)}, path
        tree = ast.parse(path.read_text())
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
