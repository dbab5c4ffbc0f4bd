"""The stand-in's own look at the backing server: which collections there are, and what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pymongo import MongoClient
from pymongo import collection as driver
from pymongo.uri_parser import parse_uri

from .management import Collection
from .proxy import Address
from .replica import Namespace
from .wire import CODEC


class Backing:
    """A server a URI names, which may carry the credentials that the stand-in itself reads with."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._client: MongoClient[dict[str, Any]] = MongoClient(uri, directConnection=True, connect=False)
        host, port = parse_uri(uri)["nodelist"][0]
        self.address: Address = (host, port or 27017)

    def uri_through(self, address: Address) -> str:
        """The same URI with the address of a proxy in it."""
        return re.sub(r"^(mongodb://(?:[^@/]*@)?)[^/?]*", rf"\g<1>{address[0]}:{address[1]}", self._uri)

    def identify(self, namespace: Namespace) -> Collection | None:
        """What the server knows of a collection; None if it does not exist."""
        database, name = namespace
        known = self._client[database].list_collections(filter={"name": name})
        for found in known:
            return Collection(bytes(found["info"].get("uuid", name.encode())), found["type"])
        return None

    def read_all(self, namespace: Namespace) -> Iterable[Mapping[str, Any]]:
        return self._collection(namespace).find()

    def read_some(self, namespace: Namespace, ids: list[Any]) -> Iterable[Mapping[str, Any]]:
        return self._collection(namespace).find({"_id": {"$in": ids}})

    def close(self) -> None:
        self._client.close()

    def _collection(self, namespace: Namespace) -> driver.Collection[dict[str, Any]]:
        database, name = namespace
        return self._client.get_database(database, codec_options=CODEC)[name]
