"""The proxy itself, between real drivers and the engine: it changes nothing that is not its business."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import bson
import pytest
from bson import ObjectId
from pymongo import AsyncMongoClient, MongoClient
from pymongo.errors import AutoReconnect, DuplicateKeyError, NotPrimaryError, OperationFailure
from pymongo.server_api import ServerApi

from . import AtlasStandin
from .conftest import INDEX, Document, Memories, Open, at_angle, found, model, search
from .engine import running_engine
from .wire import (
    CHECKSUM_PRESENT,
    OP_MSG,
    OP_QUERY,
    Message,
    command_message,
    decode_command,
    decode_reply,
    read_message,
)


def test_drivers_stay_on_the_proxy(open_standin: Open) -> None:
    standin, memories = open_standin()
    client = memories.database.client
    here = standin.uri.removeprefix("mongodb://").rstrip("/")
    hello = client.admin.command("hello")
    assert ([here], here, here) == (hello["hosts"], hello["primary"], hello["me"])
    assert not {"topologyVersion", "compression"} & hello.keys()
    host, _, port = here.partition(":")
    assert {(host, int(port))} == client.nodes
    assert (host, int(port)) == client.primary


def test_ordinary_commands_pass_through(open_standin: Open) -> None:
    standin, memories = open_standin()
    memories.insert_many([{"_id": n, "n": n} for n in range(500)])
    assert len(list(memories.find(batch_size=50))) == 500
    assert list(memories.aggregate([{"$match": {"n": 3}}])) == [{"_id": 3, "n": 3}]
    with pytest.raises(DuplicateKeyError):
        memories.insert_one({"_id": 1})
    assert [name for name, _ in standin.commands[:2]] == ["insert", "find"]
    assert len(standin.commands[0][1]["documents"]) == 500
    assert memories.name == standin.commands[0][1]["insert"]


def test_compression_is_not_negotiated(open_standin: Open) -> None:
    standin, memories = open_standin()
    with MongoClient[Document](standin.uri, compressors="zlib") as client:
        assert client[memories.database.name][memories.name].count_documents({}) == 0


def test_the_stable_api_is_refused_for_searches_only(open_standin: Open) -> None:
    standin, memories = open_standin()
    with MongoClient[Document](standin.uri, server_api=ServerApi("1", strict=True)) as client:
        strict = client[memories.database.name][memories.name]
        strict.insert_one(at_angle(1, 0.0))
        for call in (
            lambda: found(strict),
            lambda: list(strict.list_search_indexes()),
            lambda: strict.create_search_index(model(name="new")),
        ):
            with pytest.raises(OperationFailure) as raised:
                call()
            assert raised.value.code == 323


def test_the_async_driver(open_standin: Open) -> None:
    standin, memories = open_standin(indexed=False)

    async def use() -> tuple[list[str], list[Any]]:
        async with AsyncMongoClient[Document](standin.uri) as client:
            collection = client[memories.database.name][memories.name]
            await collection.create_search_index(model())
            await collection.insert_many([at_angle(n, float(n)) for n in range(9)])
            names = [index["name"] async for index in await collection.list_search_indexes()]
            hits = await collection.aggregate([search(limit=5)], batchSize=2)
            return names, [hit["_id"] async for hit in hits]

    assert asyncio.run(use()) == ([INDEX], [0, 1, 2, 3, 4])


def test_many_clients_at_once(open_standin: Open) -> None:
    standin, memories = open_standin()
    failures: list[BaseException] = []

    def write_and_search(number: int) -> None:
        try:
            with MongoClient[Document](standin.uri) as client:
                mine = client[memories.database.name][memories.name]
                for n in range(5):
                    mine.insert_one(at_angle(f"{number}-{n}", 0.0, s=str(number)))
                    assert n + 1 == len(found(mine, filter={"s": str(number)}))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write_and_search, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(found(memories, limit=100)) == 30


@pytest.mark.parametrize("name", ["aggregate", "$vectorSearch"])
def test_a_command_can_be_made_to_fail(open_standin: Open, name: str) -> None:
    standin, memories = open_standin()
    memories.insert_one(at_angle(1, 0.0))
    standin.fail_next(name, 50, "operation exceeded time limit", times=2)
    for _ in range(2):
        with pytest.raises(OperationFailure) as raised:
            found(memories)
        assert raised.value.code == 50
    assert found(memories) == [1]


def test_failures_may_carry_labels_and_state_changes(open_standin: Open) -> None:
    standin, memories = open_standin()
    standin.fail_next("insert", 91, "shutting down", labels=["RetryableWriteError"])
    memories.insert_one({"_id": 1})
    assert [name for name, _ in standin.commands] == ["insert", "insert"]
    standin.fail_next("insert", 10107, "not primary", times=2, labels=["RetryableWriteError"])
    with pytest.raises(NotPrimaryError):
        memories.insert_one({"_id": 2})


@pytest.mark.parametrize(("when", "stored"), [("before", 0), ("after", 1)])
def test_a_connection_can_break_over_a_command(open_standin: Open, when: Any, stored: int) -> None:
    standin, memories = open_standin()
    with MongoClient[Document](standin.uri, retryWrites=False) as client:
        unsafe = client[memories.database.name][memories.name]
        standin.cut_connection_next("insert", when=when)
        with pytest.raises(AutoReconnect):
            unsafe.insert_one({"_id": 1})
        assert stored == unsafe.count_documents({})


def test_a_lost_reply_is_retried_without_a_second_write(open_standin: Open) -> None:
    standin, memories = open_standin()
    standin.cut_connection_next("insert", when="after")
    memories.insert_one({"_id": 1})
    standin.cut_connection_next("$vectorSearch")
    assert found(memories) == []
    assert [name for name, _ in standin.commands if name == "insert"] == ["insert", "insert"]


def test_credentials_pass_through_and_are_asked_for(tmp_path: Path) -> None:
    with running_engine("--sync-on-commit", storage=tmp_path) as uri, MongoClient[Document](uri) as client:
        client.admin.command("createUser", "ada", pwd="countess", roles=["root"])
    with running_engine("--auth", storage=tmp_path) as uri:
        known = uri.replace("mongodb://", "mongodb://ada:countess@")
        with AtlasStandin(known) as standin, MongoClient[Document](standin.uri) as client:
            assert "ada:countess@" in standin.uri
            memories = client["app"]["memories"]
            memories.insert_one(at_angle(1, 0.0))
            memories.create_search_index(model())
            assert found(memories) == [1]
            _require_refusals_for_strangers(standin)


def _require_refusals_for_strangers(standin: AtlasStandin) -> None:
    with MongoClient[Document](standin.uri.replace("ada:countess@", "")) as stranger:
        memories: Memories = stranger["app"]["memories"]
        for call in (
            lambda: found(memories),
            lambda: found(memories, index="wrong"),
            lambda: list(memories.list_search_indexes()),
            lambda: memories.create_search_index(model(name="new")),
            lambda: memories.find_one(),
        ):
            with pytest.raises(OperationFailure) as raised:
                call()
            assert raised.value.code == 13
    with (
        MongoClient[Document](standin.uri.replace("countess", "wrong")) as impostor,
        pytest.raises(OperationFailure) as raised,
    ):
        impostor.admin.command("ping")
    assert raised.value.code == 18


def test_a_legacy_greeting_gets_a_legacy_reply(open_standin: Open) -> None:
    standin, _ = open_standin()
    document = bson.encode({"isMaster": 1, "helloOk": True})
    query = b"\0\0\0\0admin.$cmd\0" + b"\0\0\0\0\xff\xff\xff\xff" + document
    reply = decode_reply(_exchange(standin, Message(7, 0, OP_QUERY, query)))
    assert (reply["ok"], len(reply["hosts"])) == (1.0, 1)


def test_document_sequences_and_checksums_are_read(open_standin: Open) -> None:
    standin, memories = open_standin()
    documents = b"".join(bson.encode({"_id": ObjectId()}) for _ in range(3))
    sequence = b"documents\0" + documents
    body = bson.encode({"insert": memories.name, "$db": memories.database.name})
    payload = CHECKSUM_PRESENT.to_bytes(4, "little") + b"\0" + body
    payload += b"\1" + (len(sequence) + 4).to_bytes(4, "little") + sequence + b"\xde\xad\xbe\xef"
    message = Message(7, 0, OP_MSG, payload)
    assert len(decode_command(message)["documents"]) == 3
    assert decode_reply(_exchange(standin, message))["n"] == 3
    assert memories.count_documents({}) == 3


def _exchange(standin: AtlasStandin, message: Message) -> Message:
    host, _, port = standin.uri.removeprefix("mongodb://").rstrip("/").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(message.framed())
        reply = read_message(raw)
    assert reply is not None
    assert reply.response_to == message.request_id
    return reply


def test_a_fault_of_the_tool_is_an_error_of_the_command(open_standin: Open) -> None:
    standin, _ = open_standin()
    reply = decode_reply(_exchange(standin, command_message({"insert": "c", "$db": "d", "documents": 1}, 7)))
    assert (reply["code"], reply["errmsg"][:27]) == (1, "The Atlas stand-in failed: ")


def test_stopping_ends_every_thread_and_frees_the_port(engine_uri: str) -> None:
    standin = AtlasStandin(engine_uri)
    with pytest.raises(RuntimeError, match="only while it runs"):
        _ = standin.uri
    with standin, MongoClient[Document](standin.uri) as client:
        client.admin.command("ping")
        with socket.create_connection(("127.0.0.1", int(standin.uri.rstrip("/").rpartition(":")[2]))):
            standin.stop()
    standin.stop()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("atlas-standin")] == []
