"""Setting up a collection of transcripts: the indexes that keep its writers apart."""

from __future__ import annotations

from pymongo import IndexModel
from pymongo.errors import DuplicateKeyError

from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.operations.commands import CreateIndexes, ListIndexes, Operation, ask
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure import buckets
from crewai_mongodb_memory.pure.buckets import Thread

__all__ = ["set_up_once"]


def set_up_once(store: Store, thread: Thread) -> Operation[None]:
    """Create the unique indexes, without which two writers could give one number twice, and the one to expire by.

    Raises:
        InvalidArgumentError: an index or a document of an earlier version is in the way.
    """
    if thread.collection in store.conversations_set_up:
        return
    existing = {index["name"]: index for index in (yield from ask(ListIndexes(thread.collection)))}
    name, keys = buckets.SESSION_INDEX
    earlier = existing.get(name)
    if earlier is not None and not (earlier.get("unique") and tuple(earlier["key"].items()) == keys):
        raise InvalidArgumentError(
            f"{thread.collection!r} has an index {name!r} of an earlier version, which does not keep two writers "
            f"apart; drop it: db.getCollection({thread.collection!r}).dropIndex({name!r})"
        )
    models = [model for model in _wanted_indexes() if model.document["name"] not in existing]
    try:
        if models:
            yield from ask(CreateIndexes(thread.collection, models))
    except DuplicateKeyError as error:
        raise InvalidArgumentError(
            f"{thread.collection!r} holds buckets of an earlier version with one number twice; keep this conversation "
            f"in another collection_name, or remove one of each: {error}"
        ) from error
    store.conversations_set_up.add(thread.collection)


def _wanted_indexes() -> list[IndexModel]:
    session, session_keys = buckets.SESSION_INDEX
    message, message_keys = buckets.MESSAGE_INDEX
    named = {"message_ids": {"$exists": True}}  # else two buckets without any would be taken for the same
    expiring = {"expires_at": {"$exists": True}}
    return [
        IndexModel(list(session_keys), name=session, unique=True),
        IndexModel(list(message_keys), name=message, unique=True, partialFilterExpression=named),
        IndexModel([("expires_at", 1)], name="expires_at_1", expireAfterSeconds=0, partialFilterExpression=expiring),
    ]
