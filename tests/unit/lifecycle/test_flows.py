"""What becomes of the import where a private part of CrewAI is not as expected."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORT_WHERE = """
import logging, sys
logging.basicConfig(level=logging.WARNING, format="%(name)s %(levelname)s %(message)s", stream=sys.stdout)
{change}
import crewai_mongodb_memory
crewai_mongodb_memory.MongoStorageBackend("mongodb://host").close()
"""


def raising(error: str) -> str:
    return f"import crewai.memory.recall_flow as m; m.RecallFlow.flow_definition = classmethod(lambda cls: {error})"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("import crewai; sys.modules['crewai.memory.encoding_flow'] = None", "EncodingFlow"),
        ("import crewai.memory.encoding_flow as m; del m.EncodingFlow", "EncodingFlow"),
        ("import crewai.memory.recall_flow as m; m.RecallFlow = object()", "RecallFlow"),
        (raising("1 / 0"), "RecallFlow"),
        (raising("[].pop()"), "RecallFlow"),
        (raising("cls(1, 2)"), "RecallFlow"),
    ],
)
def test_the_package_imports_and_the_log_says_what_does_not_work(change: str, said: str) -> None:
    program = IMPORT_WHERE.format(change=change)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("crewai_mongodb_memory")]
    assert line.startswith("crewai_mongodb_memory WARNING")
    assert f".{said} could not be built" in line
