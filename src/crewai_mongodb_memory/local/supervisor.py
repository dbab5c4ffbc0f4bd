"""The process that keeps the embedded server of one folder running until its last user is gone.

``COMMAND`` runs it without the package's own ``__init__``, and with that without CrewAI, which takes seconds to
import. What the process writes to stdout is why it could not start the server; when it closes stdout without a
word, the server runs, or another supervisor sees to it. stderr is the log.
"""

from __future__ import annotations

import logging
import os
import queue
import secrets
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from crewai_mongodb_memory.local.engine import (
    ACCOUNT,
    DATA_VERSION,
    ENGINE,
    HOST,
    SUPERVISOR,
    USERS,
    Account,
    Server,
    StartError,
    has_data,
    lock_within,
    open_private,
    usable_port,
    write_json,
)

if sys.platform != "win32":
    import fcntl

COMMAND = [
    sys.executable,
    "-c",
    "import sys, types;"
    "package = sys.modules['crewai_mongodb_memory'] = types.ModuleType('crewai_mongodb_memory');"
    "package.__path__ = [sys.argv[1]];"
    "from crewai_mongodb_memory.local.supervisor import supervise;"
    "supervise(sys.argv[2])",
    str(Path(__file__).absolute().parents[1]),
]
RESTARTS_PER_MINUTE = 5

_logger = logging.getLogger(__name__)
_Event = Literal["server ended", "users gone"]


def supervise(folder: str) -> None:
    """Serve ``folder`` until nobody uses it, unless another process already does."""
    os.umask(0o077)
    # As nobody's child it leaves no zombie, and whoever ends a user with all its children spares it.
    if os.fork():
        os._exit(0)
    logging.basicConfig(format="%(asctime)s supervisor: %(message)s")
    with open_private(Path(folder, SUPERVISOR)) as own:
        if not lock_within(0.2, own):
            return
        own.truncate(0)
        own.write(str(os.getpid()).encode())
        own.flush()
        try:
            server = Server.survivor(Path(folder)) or _start(Path(folder))
        except Exception as reason:
            if not isinstance(reason, StartError):
                _logger.exception("the server did not start")
            sys.stdout.buffer.write((str(reason) or type(reason).__name__).encode("utf-8", "backslashreplace"))
            return
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        _keep_running(Path(folder), server)


def _keep_running(folder: Path, server: Server) -> None:
    events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
    ends: list[float] = []
    with open_private(folder / USERS) as users:
        _announce(events, "users gone", lambda: fcntl.flock(users, fcntl.LOCK_EX))
        _announce(events, "server ended", server.wait_until_it_ends)
        while events.get() == "server ended":
            ends = [*(end for end in ends if time.monotonic() - end < 60.0), time.monotonic()]
            if len(ends) > RESTARTS_PER_MINUTE:
                _logger.error("the server ended %d times within a minute: giving up", len(ends))
                return
            _logger.warning("the server ended, starting it again")
            time.sleep(len(ends) - 1)
            try:
                server = _start(folder)
            except (StartError, OSError) as reason:
                _logger.error("the server did not start: %s", reason)
                events.put("server ended")
            else:
                _announce(events, "server ended", server.wait_until_it_ends)
        server.stop()


def _announce(events: queue.SimpleQueue[_Event], event: _Event, wait: Callable[[], None]) -> None:
    def announce() -> None:
        wait()
        events.put(event)

    threading.Thread(target=announce, daemon=True).start()


def _start(folder: Path) -> Server:
    account = Account.of(folder) if has_data(folder) else None
    stays = account is not None
    account = replace(account, port=usable_port(account.port)) if account else _make_account(folder)
    server = Server.start(folder, account.port, "--auth")
    try:
        server.wait_until_it_answers(account.uri)
        if not stays:
            _refuse_strangers(account)
    except BaseException:
        server.stop()
        raise
    write_json(folder / DATA_VERSION, {"engine": ENGINE, "version": metadata.version(ENGINE)})
    write_json(folder / ACCOUNT, {"host": HOST, **asdict(account)})
    return server


def _make_account(folder: Path) -> Account:
    """Create the folder's only user, which the engine allows only while it runs without authentication."""
    from pymongo import MongoClient

    account = Account(usable_port(), "crewai", secrets.token_hex(24))
    open_uri = f"mongodb://{HOST}:{account.port}/?directConnection=true"
    server = Server.start(folder, account.port)
    try:
        server.wait_until_it_answers(open_uri)
        with MongoClient[dict[str, Any]](open_uri, timeoutMS=5000) as client:
            for user in client.admin["system.users"].find():
                client[user["db"]].command("dropUser", user["user"])
            client.admin.command("createUser", account.username, pwd=account.password, roles=["root"])
    finally:
        server.stop()
    return account


def _refuse_strangers(account: Account) -> None:
    from pymongo import MongoClient

    with MongoClient[dict[str, Any]](account.uri, timeoutMS=5000) as client:
        users = [user["user"] for user in client.admin["system.users"].find()]
    if users != [account.username]:
        raise StartError("another user was created while the server was set up: start it again")
