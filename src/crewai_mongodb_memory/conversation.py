"""``ConversationMemory``: a chat transcript that loses, doubles and reorders no turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from crewai_mongodb_memory.backend import MongoStorageBackend
from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.operations import transcript_append, transcript_read
from crewai_mongodb_memory.operations.store import COLLECTION_NAME
from crewai_mongodb_memory.pure import checks
from crewai_mongodb_memory.pure.buckets import Session, Thread, Turn

__all__ = ["ASSISTANT", "USER", "ConversationMemory"]

USER = "user"
ASSISTANT = "assistant"


class ConversationMemory:
    """The transcript of one chat session, kept in buckets of turns on the backend's database.

    Any number of threads, tasks and processes may append to one session at once: turns are numbered 1, 2, 3 … by the
    server, without a gap or a repeat. No embeddings are made. A backend's ``tenant`` keeps sessions apart as well.
    Every method has an asynchronous twin (``aadd_turn``, ``aturns``, …).

    Args:
        backend: whose database and connection to use.
        session_id: names the session; text that is not empty.
        collection_name: the collection of transcripts.
        bucket_size: the most turns of one document, 2 to 10,000. It may change between runs.
        max_turns: how many turns :meth:`recent_turns` and :meth:`history_text` give unless told.
        retention: a bucket is removed when nothing was added to it for so long; None keeps all.

    Raises:
        InvalidArgumentError: an argument cannot be used.
    """

    def __init__(
        self,
        backend: MongoStorageBackend,
        *,
        session_id: str = "default",
        collection_name: str = "conversations",
        bucket_size: int = 50,
        max_turns: int = 6,
        retention: timedelta | None = None,
    ) -> None:
        if not isinstance(backend, MongoStorageBackend):
            raise InvalidArgumentError(f"a ConversationMemory needs a MongoStorageBackend, not {backend!r}")
        if not (isinstance(collection_name, str) and COLLECTION_NAME.fullmatch(collection_name)):
            raise InvalidArgumentError(f"collection_name {collection_name!r} is not a name that MongoDB takes")
        if collection_name == backend._store.settings.collection:
            raise InvalidArgumentError(f"collection_name {collection_name!r} is that of the backend's memories")
        self._backend = backend
        self._thread = Thread(session_id, collection_name, bucket_size, retention)
        self._max_turns = checks.whole_number("max_turns", max_turns, 1)
        self._known = transcript_read.Known()

    def __repr__(self) -> str:
        return f"ConversationMemory({self._backend!r}, session_id={self._thread.session_id!r})"

    def add_turn(self, role: str, content: str, *, message_id: str | None = None) -> Turn:
        """Append a turn and return it with its number.

        Args:
            role: who said it, such as :data:`USER` or :data:`ASSISTANT`.
            message_id: names the message within the session, in up to 1,000 characters. An append that is repeated
                with the same id, for its reply was lost, changes nothing and returns the stored turn.

        Raises:
            InvalidRecordError: the content is not text, or over 15 MB.
        """
        said = [(role, content, message_id)]
        return self._backend._run(transcript_append.append, self._thread, self._known, said)[0]

    def add_exchange(
        self, user_message: str, assistant_message: str, *, message_ids: tuple[str, str] | None = None
    ) -> tuple[Turn, Turn]:
        """Append what the user said and what the assistant answered, both or neither, one right after the other.

        Args:
            message_ids: of the two, as for :meth:`add_turn`.
        """
        said = _exchange(user_message, assistant_message, message_ids)
        user, assistant = self._backend._run(transcript_append.append, self._thread, self._known, said)
        return user, assistant

    def turns(self, *, since: datetime | None = None) -> list[Turn]:
        """Return all turns, oldest first; with ``since`` (naive is UTC) those from that moment on."""
        return self._backend._run(transcript_read.turns, self._thread, since)

    def recent_turns(self, limit: int | None = None) -> list[Turn]:
        """Return the last ``limit`` turns (``max_turns`` unless told), oldest first, reading no more than those."""
        return self._backend._run(transcript_read.recent_turns, self._thread, self._known, self._limit(limit))

    def history_text(
        self, limit: int | None = None, *, user_label: str = "User", assistant_label: str = "Assistant"
    ) -> str:
        """Return the last turns as text for a prompt, ``Label: content`` each; other roles are their own label."""
        return _as_text(self.recent_turns(limit), user_label, assistant_label)

    def count(self) -> int:
        """Return how many turns the session has."""
        return self._backend._run(transcript_read.count, self._thread, self._known)

    def clear(self) -> int:
        """Remove the session's turns and return how many there were; the next turn is number 1 again.

        A bucket without turns remains for the next one; if none comes, the server removes it after an hour.
        """
        return self._backend._run(transcript_append.clear, self._thread, self._known)

    def sessions(self, prefix: str | None = None, limit: int = 100) -> list[Session]:
        """Return the sessions of the collection, the most recently active first; ``prefix`` is literal."""
        return self._backend._run(transcript_read.sessions, self._thread.collection, prefix, limit)

    # The same on asyncio

    async def aadd_turn(self, role: str, content: str, *, message_id: str | None = None) -> Turn:
        """Same as :meth:`add_turn`."""
        return (
            await self._backend._arun(
                transcript_append.append, self._thread, self._known, [(role, content, message_id)]
            )
        )[0]

    async def aadd_exchange(
        self, user_message: str, assistant_message: str, *, message_ids: tuple[str, str] | None = None
    ) -> tuple[Turn, Turn]:
        """Same as :meth:`add_exchange`."""
        said = _exchange(user_message, assistant_message, message_ids)
        user, assistant = await self._backend._arun(transcript_append.append, self._thread, self._known, said)
        return user, assistant

    async def aturns(self, *, since: datetime | None = None) -> list[Turn]:
        """Same as :meth:`turns`."""
        return await self._backend._arun(transcript_read.turns, self._thread, since)

    async def arecent_turns(self, limit: int | None = None) -> list[Turn]:
        """Same as :meth:`recent_turns`."""
        return await self._backend._arun(transcript_read.recent_turns, self._thread, self._known, self._limit(limit))

    async def ahistory_text(
        self, limit: int | None = None, *, user_label: str = "User", assistant_label: str = "Assistant"
    ) -> str:
        """Same as :meth:`history_text`."""
        return _as_text(await self.arecent_turns(limit), user_label, assistant_label)

    async def acount(self) -> int:
        """Same as :meth:`count`."""
        return await self._backend._arun(transcript_read.count, self._thread, self._known)

    async def aclear(self) -> int:
        """Same as :meth:`clear`."""
        return await self._backend._arun(transcript_append.clear, self._thread, self._known)

    async def asessions(self, prefix: str | None = None, limit: int = 100) -> list[Session]:
        """Same as :meth:`sessions`."""
        return await self._backend._arun(transcript_read.sessions, self._thread.collection, prefix, limit)

    def _limit(self, limit: int | None) -> int:
        return self._max_turns if limit is None else limit


def _exchange(
    user_message: str, assistant_message: str, message_ids: tuple[str, str] | None
) -> list[tuple[str, str, str | None]]:
    if message_ids is not None and len(checks.texts("message_ids", message_ids)) != 2:
        raise InvalidArgumentError(f"message_ids has to be two texts that differ, not {message_ids!r}")
    of_user, of_assistant = message_ids or (None, None)
    return [(USER, user_message, of_user), (ASSISTANT, assistant_message, of_assistant)]


def _as_text(turns: Sequence[Turn], user_label: str, assistant_label: str) -> str:
    labels = {USER: user_label, ASSISTANT: assistant_label}
    return "\n".join(f"{labels.get(turn.role, turn.role)}: {turn.content}" for turn in turns)
