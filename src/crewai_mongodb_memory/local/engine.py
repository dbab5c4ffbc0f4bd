"""What the folder of an embedded server holds, and the process that serves it.

Both sides use this module: the users, and the supervisor, which is ready in a moment because nothing here
imports CrewAI. Who is alive shows in file locks, which the kernel drops however a process ends:

``users.lock``
    Shared by every user. The supervisor waits for it exclusively: it gets it when the last user is gone.
``supervisor.lock``
    Held by the supervisor; its pid is the content.
``server.pid``
    Held by the server itself, which inherits the handle, so that one that outlived its supervisor is found.

Beside them lie ``data/``, ``engine.json`` (which engine wrote the data), ``server.json`` (port and password,
for the owner's eyes only) and ``server.log``.

The engine is GPL software: it is a process of its own, reached over a socket, and never imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

if sys.platform != "win32":
    import fcntl

ENGINE = "secantusdb"
HOST = "127.0.0.1"
USERS, SUPERVISOR, SERVER_PID = "users.lock", "supervisor.lock", "server.pid"
DATA, DATA_VERSION, ACCOUNT, LOG, CONFIG = "data", "engine.json", "server.json", "server.log", "engine.toml"


class StartError(Exception):
    """Why there is no server, for the user who wanted one."""


@dataclass(frozen=True)
class Account:
    """Where the server of a folder listens and who may enter; restarts keep it unless the port is taken."""

    port: int
    username: str
    password: str = field(repr=False)

    @property
    def uri(self) -> str:
        # A kill -9 of this engine takes acknowledged writes with it, unless they were journaled.
        options = "authSource=admin&directConnection=true&w=majority&journal=true"
        return f"mongodb://{self.username}:{self.password}@{HOST}:{self.port}/?{options}"

    @classmethod
    def of(cls, folder: Path) -> Account | None:
        """The account of a folder, or None if it has none that can be read."""
        stored = read_json(folder / ACCOUNT)
        try:
            return cls(int(stored["port"]), str(stored["username"]), str(stored["password"]))
        except (KeyError, TypeError, ValueError):
            return None


def has_data(folder: Path) -> bool:
    """Whether an engine has ever written into the folder."""
    return (folder / DATA).is_dir() and any((folder / DATA).iterdir())


def open_private(path: Path) -> IO[bytes]:
    """Open for appending a file that only its owner may read, whatever the umask."""
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))


def read_json(path: Path) -> dict[str, Any]:
    """The content of a file, empty if it has none that makes sense."""
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace a file at one stroke by one that only its owner may read."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open_private(draft) as handle:
        handle.write(json.dumps(content).encode())
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)


def lock(handle: IO[bytes], *, shared: bool = False) -> bool:
    """Lock at once or return False; the lock ends when the last copy of ``handle`` is closed."""
    try:
        fcntl.flock(handle, fcntl.LOCK_NB | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX))
    except BlockingIOError:
        return False
    return True


def lock_within(seconds: float, handle: IO[bytes], *, shared: bool = False) -> bool:
    """Lock as soon as possible, or return False after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not lock(handle, shared=shared):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def is_held(path: Path) -> bool:
    """Whether a process that is alive holds ``path`` exclusively."""
    try:
        with path.open("rb") as handle:
            return not lock(handle, shared=True)
    except FileNotFoundError:
        return False


def usable_port(*wanted: int) -> int:
    """A port of this machine to listen on, one of ``wanted`` if possible."""
    # Kernels take the ports of outgoing connections from above this range.
    for port in (*wanted, *(20_000 + secrets.randbelow(12_000) for _ in range(100))):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return port
    raise StartError(f"no port of {HOST} is free")


def accepts(port: int) -> bool:
    """Whether anything listens on a port of this machine."""
    try:
        socket.create_connection((HOST, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def answers(port: int, uri: str) -> bool:
    """Whether a server listens that ``uri`` opens; SCRAM proves it to both sides."""
    # Imported here, the driver loads while the engine starts.
    from pymongo import MongoClient
    from pymongo.errors import PyMongoError

    if not accepts(port):
        return False
    try:
        with MongoClient[dict[str, Any]](uri, timeoutMS=5000) as client:
            client.admin.command("ping")
    except PyMongoError:
        return False
    return True


class Server:
    """The server process of a folder: a child of this process, or one that outlived its supervisor."""

    def __init__(self, folder: Path, port: int, pid: int, child: subprocess.Popen[bytes] | None) -> None:
        self._port = port
        self._pid_file = folder / SERVER_PID
        self._pid = pid
        self._child = child

    @classmethod
    def start(cls, folder: Path, port: int, *options: str) -> Server:
        """Start the engine on the folder's data, with its output on stderr; it does not answer yet."""
        # Without a configuration file the engine would read one from other places. The paths are relative because
        # the engine cannot open a path that its locale cannot decode.
        (folder / CONFIG).touch()
        command = [sys.executable, "-m", "secantus", f"--config={CONFIG}", f"--storage-path={DATA}"]
        command += [f"--host={HOST}", f"--port={port}", "--standalone", "--log-level=WARNING", *options]
        # Among the engine's variables are switches for its own tests that turn durability off.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SECANTUS_")}
        with open_private(folder / SERVER_PID) as pid_file:
            if not lock_within(1.0, pid_file):
                raise StartError("another server process uses the folder")
            pid_file.truncate(0)
            child = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                pass_fds=[pid_file.fileno()],
            )
            pid_file.write(f"{child.pid} {socket.gethostname()}".encode())
        return cls(folder, port, child.pid, child)

    @classmethod
    def survivor(cls, folder: Path) -> Server | None:
        """The server that outlived its supervisor, or None; one that lets nobody in is killed first."""
        account = Account.of(folder)
        deadline = time.monotonic() + 10.0
        while is_held(folder / SERVER_PID):
            pid, _, machine = (folder / SERVER_PID).read_text(encoding="utf-8").partition(" ")
            if account and answers(account.port, account.uri):
                return cls(folder, account.port, int(pid), None)
            if not account or time.monotonic() > deadline:
                # In another container that shares the folder, the number means another process.
                if machine != socket.gethostname():
                    raise StartError(f"process {pid or '?'} of another machine, {machine or '?'}, uses the folder")
                os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.05)
        return None

    def wait_until_it_answers(self, uri: str) -> None:
        """Return as soon as somebody can enter with ``uri``."""
        deadline = time.monotonic() + 20.0
        while not answers(self._port, uri):
            if self._child and self._child.poll() is not None:
                raise StartError(f"its process ended with exit code {self._child.returncode}")
            if time.monotonic() > deadline:
                raise StartError("its process runs but does not answer")
            time.sleep(0.02)

    def wait_until_it_ends(self) -> None:
        """Return when the process is gone."""
        if self._child:
            self._child.wait()
        else:
            with self._pid_file.open("rb") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX)

    def stop(self) -> None:
        """End the process in good order, or by force if that takes more than ten seconds."""
        self._signal(signal.SIGTERM)
        signalled = time.monotonic()
        deadline = signalled + 10.0
        while self._runs():
            time.sleep(0.02)
            # A connection also wakes the engine, which would notice only after two seconds that it has to stop.
            if accepts(self._port) and time.monotonic() > signalled + 0.5:
                # It lost the signal, as Python can when its main thread is about to wait.
                self._signal(signal.SIGTERM)
                signalled = time.monotonic()
            if time.monotonic() > deadline:
                self._signal(signal.SIGKILL)

    def _signal(self, kind: signal.Signals) -> None:
        if self._runs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, kind)

    def _runs(self) -> bool:
        return self._child.poll() is None if self._child else is_held(self._pid_file)
