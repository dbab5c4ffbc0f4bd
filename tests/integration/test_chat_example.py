"""The chat example keeps its thread and its memory over restarts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parents[2]


def chat(folder: Path, *lines: str, session: str = "chat") -> str:
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    finished = subprocess.run(
        [sys.executable, str(HOME / "examples/chat.py"), "--session", session],
        input="".join(f"{line}\n" for line in lines),
        cwd=folder,
        env={**keyless, "XDG_DATA_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_a_chat_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = chat(tmp_path, "My cat is called Pamuk", "I drink green tea")
    assert "0 turns in this thread, 0 memories" in first
    assert "Before that you said: My cat is called Pamuk" in first
    assert "Kept: 4 turns, 2 memories" in first
    second = chat(tmp_path, "What is my cat called?")
    assert "4 turns in this thread, 2 memories" in second
    assert "You: I drink green tea" in second
    assert "Crew: I remember: My cat is called Pamuk" in second
    other = chat(tmp_path, "What do I drink?", session="other")
    assert "0 turns in this thread" in other
    assert "I remember: I drink green tea" in other
