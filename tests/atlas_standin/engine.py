"""The server the stand-in's own tests run before: SecantusDB, in a process of its own."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

START_SECONDS: Final = 30.0


@contextlib.contextmanager
def running_engine(*options: str, storage: Path | None = None) -> Iterator[str]:
    """Start a SecantusDB on a free port, and yield its URI once it listens.

    It ends by being killed: its own way to stop takes two seconds. What should outlast it needs `storage` and
    the option --sync-on-commit.
    """
    with contextlib.ExitStack() as stack:
        folder = storage or Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = int(probe.getsockname()[1])
        command = [sys.executable, "-m", "secantus", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--storage-path", str(folder), "--log-level", "ERROR", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.kill)
        _wait_until_listening(process, port)
        yield f"mongodb://127.0.0.1:{port}/"


def _wait_until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        # Waiting for the process is the pause between two tries, and notices when it has died.
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"the engine ended with code {process.wait(timeout=0.02)}")
    raise TimeoutError(f"the engine did not listen within {START_SECONDS:.0f} s")
