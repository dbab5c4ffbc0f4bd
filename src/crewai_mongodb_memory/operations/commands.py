"""Commands: the driver calls that operations are made of, as plain values.

An operation is a generator: it yields commands, is sent their results, and returns its answer. It never sees a
client, so the same operation runs on ``MongoClient`` and on ``AsyncMongoClient`` (``mongo/driver.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from pymongo import IndexModel, ReturnDocument, UpdateOne
from pymongo.operations import SearchIndexModel
from pymongo.read_concern import ReadConcern
from pymongo.results import BulkWriteResult, DeleteResult, InsertManyResult, InsertOneResult, UpdateResult

__all__ = [
    "Aggregate",
    "BuildInfo",
    "BulkWrite",
    "Command",
    "Count",
    "CreateCollection",
    "CreateIndexes",
    "CreateSearchIndex",
    "DeleteMany",
    "Document",
    "Find",
    "FindOne",
    "FindOneAndUpdate",
    "InsertMany",
    "InsertOne",
    "ListIndexes",
    "ListSearchIndexes",
    "Operation",
    "Pause",
    "Query",
    "UpdateMany",
    "UpdateOneDocument",
    "UpdateSearchIndex",
    "VectorSearch",
    "ask",
]

Document: TypeAlias = dict[str, Any]
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class Command(ABC, Generic[R]):
    """One call of the driver on one collection; ``R`` is what the operation is sent as its result."""

    collection: str

    @abstractmethod
    def on(self, collection: Any) -> Any:
        """Call the driver and return the result, its cursor, or on an asynchronous collection an awaitable."""


@dataclass(frozen=True)
class Pause:
    """No call of the driver: wait some seconds before the next one."""

    seconds: float


Operation: TypeAlias = Generator[Command[Any] | Pause, Any, T]


def ask(command: Command[R]) -> Operation[R]:
    """Yield a command and return its result, with the type that the command says: ``yield from ask(Find(…))``."""
    result: R = yield command
    return result


@dataclass(frozen=True)
class Query(Command[list[Document]]):
    """A command that is answered by a cursor; the operation is sent a list of its documents.

    Attributes:
        consume: takes the documents away in batches of ``batch_size`` as they arrive, so that they are never all
            in memory; then the list that is sent is empty.
    """

    consume: Callable[[list[Document]], None] | None = field(default=None, kw_only=True)
    batch_size: int = field(default=1000, kw_only=True)


@dataclass(frozen=True)
class Find(Query):
    filter: Document
    projection: Document | None = None
    sort: Sequence[tuple[str, int]] | None = None
    skip: int = 0
    limit: int = 0

    def on(self, collection: Any) -> Any:
        return collection.find(
            self.filter,
            dict(self.projection) if self.projection else None,
            sort=self.sort,
            skip=self.skip,
            limit=self.limit,
            batch_size=self.batch_size if self.consume else 0,
        )


@dataclass(frozen=True)
class FindOne(Command[Document | None]):
    """The operation is sent the document, or None."""

    filter: Document

    def on(self, collection: Any) -> Any:
        return collection.find_one(self.filter)


@dataclass(frozen=True)
class Aggregate(Query):
    pipeline: Sequence[Document]

    def on(self, collection: Any) -> Any:
        return collection.aggregate(self.pipeline)


@dataclass(frozen=True)
class ListIndexes(Query):
    def on(self, collection: Any) -> Any:
        return collection.list_indexes()


@dataclass(frozen=True)
class VectorSearch(Aggregate):
    def on(self, collection: Any) -> Any:
        # $vectorSearch refuses every read concern but local, whatever the client's connection string asks for.
        return collection.with_options(read_concern=ReadConcern("local")).aggregate(self.pipeline)


@dataclass(frozen=True)
class ListSearchIndexes(Query):
    name: str

    def on(self, collection: Any) -> Any:
        return collection.list_search_indexes(self.name)


@dataclass(frozen=True)
class Count(Command[int]):
    filter: Document

    def on(self, collection: Any) -> Any:
        # Without a filter the server would read every document, embeddings and all, to count them.
        return collection.count_documents(self.filter, **({} if self.filter else {"hint": "_id_"}))


@dataclass(frozen=True)
class BulkWrite(Command[BulkWriteResult]):
    requests: Sequence[UpdateOne]

    def on(self, collection: Any) -> Any:
        return collection.bulk_write(self.requests, ordered=True)


@dataclass(frozen=True)
class UpdateOneDocument(Command[UpdateResult]):
    filter: Document
    update: Document

    def on(self, collection: Any) -> Any:
        return collection.update_one(self.filter, self.update)


@dataclass(frozen=True)
class FindOneAndUpdate(Command[Document | None]):
    """The operation is sent the changed document, or None."""

    filter: Document
    update: Document | Sequence[Document]
    projection: Document
    sort: Sequence[tuple[str, int]] | None = None

    def on(self, collection: Any) -> Any:
        return collection.find_one_and_update(
            self.filter,
            self.update,
            projection=self.projection,
            sort=self.sort,
            return_document=ReturnDocument.AFTER,
        )


@dataclass(frozen=True)
class InsertOne(Command[InsertOneResult]):
    document: Document

    def on(self, collection: Any) -> Any:
        return collection.insert_one(self.document)


@dataclass(frozen=True)
class InsertMany(Command[InsertManyResult]):
    """In order: a document that is refused ends it, and those before it are stored."""

    documents: Sequence[Document]

    def on(self, collection: Any) -> Any:
        return collection.insert_many(self.documents, ordered=True)


@dataclass(frozen=True)
class UpdateMany(Command[UpdateResult]):
    filter: Document
    update: Document

    def on(self, collection: Any) -> Any:
        return collection.update_many(self.filter, self.update)


@dataclass(frozen=True)
class DeleteMany(Command[DeleteResult]):
    filter: Document

    def on(self, collection: Any) -> Any:
        return collection.delete_many(self.filter)


@dataclass(frozen=True)
class CreateIndexes(Command[list[str]]):
    models: Sequence[IndexModel]

    def on(self, collection: Any) -> Any:
        return collection.create_indexes(self.models)


@dataclass(frozen=True)
class CreateCollection(Command[object]):
    def on(self, collection: Any) -> Any:
        return collection.database.create_collection(self.collection)


@dataclass(frozen=True)
class CreateSearchIndex(Command[str]):
    name: str
    definition: Document

    def on(self, collection: Any) -> Any:
        return collection.create_search_index(
            SearchIndexModel(definition=self.definition, name=self.name, type="vectorSearch")
        )


@dataclass(frozen=True)
class UpdateSearchIndex(Command[None]):
    name: str
    definition: Document

    def on(self, collection: Any) -> Any:
        return collection.update_search_index(self.name, self.definition)


@dataclass(frozen=True)
class BuildInfo(Command[Document]):
    def on(self, collection: Any) -> Any:
        return collection.database.command("buildInfo")
