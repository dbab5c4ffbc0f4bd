"""The stores that are compared: their titles, and how each is opened.

Each is opened in a process of its own, because the package and the earlier one have the same import name.
"""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EARLIER = "crewai-mongodb-memory==0.1.0"
EARLIER_FOLDER = Path(sys.prefix, "earlier")


@dataclass(frozen=True)
class Store:
    """One column of the tables.

    Attributes:
        served: it needs a MongoDB server; one that is not served keeps its data in a folder.
    """

    key: str
    title: str
    served: bool = True

    @property
    def environment(self) -> dict[str, str]:
        """What the process of the store is told besides what it inherits."""
        return {"PYTHONPATH": str(EARLIER_FOLDER)} if self is EARLIER_PACKAGE else {}


OURS = Store("float32", "this package")
DOUBLE = Store("double", "this package, double")
EARLIER_PACKAGE = Store("earlier", "0.1.0")
LANCEDB = Store("lancedb", "LanceDB", served=False)
STORES = (OURS, DOUBLE, EARLIER_PACKAGE, LANCEDB)


def open_store(key: str, place: str) -> Any:
    """Open a store on a server's URI or in a folder, in the process that measures it."""
    if key == LANCEDB.key:
        from crewai.memory.storage.lancedb_storage import LanceDBStorage

        return LanceDBStorage(place)
    import crewai_mongodb_memory as package

    if key == EARLIER_PACKAGE.key:
        return package.MongoDBStorageBackend(place)  # type: ignore[attr-defined]
    # With float32 this is what "local:…" means, on a server that the other package can reach as well.
    vector_format: Any = key
    return package.MongoStorageBackend(place, vector_format=vector_format, search_mode="exact")


def install_earlier() -> None:
    """Put the earlier package into a folder that only its own process imports from; the driver stays the same.

    Raises:
        subprocess.CalledProcessError: it cannot be had.
    """
    if not EARLIER_FOLDER.is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, f"--target={EARLIER_FOLDER}", EARLIER], check=True)


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    names = ("crewai-mongodb-memory", "crewai", "pymongo", "secantusdb", "lancedb", "numpy")
    return {"Python": platform.python_version()} | {name: importlib.metadata.version(name) for name in names}
