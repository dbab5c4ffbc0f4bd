"""The embedded server in a folder whose name the locale cannot decode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has file names in any encoding")

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SPEC = ascii("local:./ünï")
USE = """
import asyncio, sys
from pydantic_core import to_json
from crewai.memory.types import MemoryRecord
from crewai_mongodb_memory import MongoStorageBackend
backend = MongoStorageBackend({spec})
backend.save([MemoryRecord(id="r1", content="x", embedding=[1.0])])
assert asyncio.run(backend.acount()) == 1
backend.close()
print(ascii(repr(backend)))
to_json(backend)
"""


def run(program: str, where: Path, *arguments: bytes | str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=where,
        env={**os.environ, **ASCII, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (SPEC, "ünï"),
        ("sys.argv[1]", "local:./s漢/é x"),
        ("sys.argv[1]", b"local:./caf\xe9"),
        ("'local'", "é"),
    ],
)
def test_it_holds_a_store(spec: str, name: str | bytes, tmp_path: Path) -> None:
    where = tmp_path / "wörk"
    where.mkdir()
    ended = run(USE.format(spec=spec), where, name, CREWAI_STORAGE_DIR="storäge")
    assert ended.returncode == 0, ended.stderr
    assert ascii(f"{where}/").strip("'") in ended.stdout
    made = {path.name for path in where.iterdir()}
    assert made <= {"ünï", "s漢", os.fsdecode(b"caf\xe9"), "storäge"}
    assert len(made) == 1


def test_both_locales_mean_the_same_store(tmp_path: Path) -> None:
    spec = SPEC
    shown = [run(USE.format(spec=spec), tmp_path, **other).stdout for other in ({}, {"PYTHONUTF8": "1"})]
    assert shown[0] == shown[1] != ""


def test_a_server_that_does_not_start_says_why_in_text_that_can_be_encoded(tmp_path: Path) -> None:
    (tmp_path / "ünï" / "data").mkdir(parents=True)
    (tmp_path / "ünï" / "data" / "WiredTiger").write_text("nonsense")
    (tmp_path / "ünï" / "data" / "WiredTiger.turtle").write_text("nonsense")
    program = f"""
from crewai_mongodb_memory import LocalServerError, MongoStorageBackend
try:
    MongoStorageBackend({SPEC}).count()
except LocalServerError as error:
    open("said", "w", encoding="utf-8").write(str(error))
"""
    ended = run(program, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert f"{tmp_path}/ünï did not start" in (tmp_path / "said").read_text(encoding="utf-8")
