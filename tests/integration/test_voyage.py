"""``VoyageEmbedder`` on a stand-in for Voyage AI's API, over the loopback."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from http.server import ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from crewai import Memory
from crewai.events import crewai_event_bus
from crewai.events.types.memory_events import MemorySaveFailedEvent
from crewai.memory.types import embed_texts
from pydantic import SecretStr
from voyageai.client import Client

from crewai_mongodb_memory import EmbedderError, InvalidArgumentError, OfflineEmbedder, VoyageEmbedder
from crewai_mongodb_memory.backend import MongoStorageBackend
from crewai_mongodb_memory.embedders import voyage
from tests.fake_voyage import KEY, FakeVoyage, Handler, Reply, vector_of
from tests.scripted import ScriptedLLM


def status(code: int, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
    return lambda handler: handler.answer(code, {"detail": f"as ordered: {code}"} if body is None else body, headers)


def silence(handler: Handler) -> None:
    handler.server.gave_up.wait(10)
    handler.answer(200, handler.embedded(handler.server.bodies[-1]))


def hang_up(handler: Handler) -> None:
    handler.connection.close()


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that would have been made."""
    made: list[float] = []
    monkeypatch.setattr(voyage, "_sleep", made.append)
    return made


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VOYAGE_API_KEY", "VOYAGE_API_KEY_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def embed(api: FakeVoyage) -> VoyageEmbedder:
    return VoyageEmbedder(KEY, base_url=api.base_url)


def base_of(embedder: VoyageEmbedder) -> str:
    client, _ = embedder._client()
    return str(client._params["base_url"])


# What is sent, and what comes back


def test_a_call_names_model_and_size_and_gives_plain_floats(api: FakeVoyage, embed: VoyageEmbedder) -> None:
    vectors = embed(["a fox", "snow"])
    assert vectors == [vector_of("a fox"), vector_of("snow")]
    assert {type(value) for vector in vectors for value in vector} == {float}
    (body,) = api.bodies
    assert (body["model"], body["output_dimension"]) == ("voyage-3.5", 1024)
    assert body["input_type"] is None


@pytest.mark.parametrize("own", [None, "query", "document"])
def test_each_way_to_call_says_what_the_texts_are(api: FakeVoyage, own: Any) -> None:
    embed = VoyageEmbedder(KEY, base_url=api.base_url, input_type=own)
    assert embed(["a fox"]) == embed.embed_documents(["a fox"]) == [embed.embed_query("a fox")]
    assert [body["input_type"] for body in api.bodies] == [own, "document", "query"]


def test_1500_texts_go_out_in_twelve_calls_and_come_back_in_order(api: FakeVoyage, embed: VoyageEmbedder) -> None:
    texts = [f"text {number}" for number in range(1500)]
    assert embed(texts) == [vector_of(text) for text in texts]
    assert api.sizes == [128] * 11 + [92]


@pytest.mark.parametrize(
    ("model", "most_tokens", "calls"),
    [("voyage-3.5", 320_000, 11), ("voyage-3-large", 120_000, 29), ("voyage-4-lite", 1_000_000, 4)],
)
def test_long_texts_stay_under_the_tokens_of_a_call(api: FakeVoyage, model: str, most_tokens: int, calls: int) -> None:
    api.most_tokens = most_tokens
    texts = [f"{number:04} 漢字" + "x" * 8000 for number in range(400)]
    vectors = VoyageEmbedder(KEY, base_url=api.base_url, model=model)(texts)
    assert vectors == [vector_of(text) for text in texts]
    assert len(api.sizes) == calls
    assert sum(api.sizes) == 400


def test_a_text_too_long_for_any_call_goes_alone(api: FakeVoyage, embed: VoyageEmbedder) -> None:
    texts = ["a", "b", "c" * 400_000, "d", "e"]
    assert embed(texts) == [vector_of(text) for text in texts]
    assert api.sizes == [2, 1, 2]


def test_a_call_that_is_too_large_all_the_same_is_halved(
    api: FakeVoyage, embed: VoyageEmbedder, pauses: list[float]
) -> None:
    api.most_tokens = 400
    texts = [f"{number:03}" + "x" * 97 for number in range(10)]
    assert embed(texts) == [vector_of(text) for text in texts]
    assert api.sizes == [10, 5, 2, 3, 5, 2, 3]
    assert pauses == []


@pytest.mark.parametrize("code", [400, 413])
def test_a_call_that_is_always_too_large_ends(api: FakeVoyage, embed: VoyageEmbedder, code: int) -> None:
    api.replies = [status(code, {"detail": "your batch is too large"})] * 100
    with pytest.raises(InvalidArgumentError, match="your batch is too large"):
        embed([f"text {number}" for number in range(128)])
    assert api.sizes == [128, 64, 32, 16, 8, 4, 2, 1]


def test_nothing_and_blanks_are_not_sent(api: FakeVoyage, embed: VoyageEmbedder) -> None:
    assert embed([]) == embed.embed_documents([]) == []
    assert embed(["", " \n"]) == [[0.0] * 1024] * 2 == [embed.embed_query(" ")] * 2
    assert api.bodies == []
    assert embed(["", "a fox", " ", "snow"]) == [[0.0] * 1024, vector_of("a fox"), [0.0] * 1024, vector_of("snow")]
    assert api.bodies[0]["input"] == ["a fox", "snow"]


@pytest.mark.parametrize(
    ("text", "sent"), [("Grüße, 世界! 👋", "Grüße, 世界! 👋"), ("half a pair \ud83d", "half a pair \ufffd")], ids=ascii
)
def test_any_text_can_be_sent(api: FakeVoyage, embed: VoyageEmbedder, text: str, sent: str) -> None:
    assert embed(["a fox", text]) == [vector_of("a fox"), vector_of(sent)]
    assert embed.embed_query(text) == vector_of(sent)
    assert [body["input"] for body in api.bodies] == [["a fox", sent], [sent]]


@pytest.mark.parametrize("kind", [tuple, iter, np.array], ids=["tuple", "iterator", "array"])
def test_any_iterable_of_texts_is_sent_in_its_order(embed: VoyageEmbedder, kind: Callable[[Any], Any]) -> None:
    texts = ["a fox", "", "snow"]
    expected = [vector_of("a fox"), [0.0] * 1024, vector_of("snow")]
    assert embed(kind(texts)) == embed.embed_documents(kind(texts)) == expected


def test_a_single_text_in_place_of_a_list_is_refused(embed: VoyageEmbedder) -> None:
    for call in (embed, embed.embed_documents):
        with pytest.raises(InvalidArgumentError, match="embed_query"):
            call("a fox")


def test_older_models_are_not_asked_for_a_size(api: FakeVoyage) -> None:
    VoyageEmbedder(KEY, base_url=api.base_url, model="voyage-law-2")(["a fox"])
    assert api.bodies[0]["output_dimension"] is None


def test_a_vector_of_another_length_is_refused(api: FakeVoyage) -> None:
    embed = VoyageEmbedder(KEY, base_url=api.base_url, model="voyage-3-lite", dimensions=512)
    with pytest.raises(InvalidArgumentError, match=r"voyage-3-lite gives 1024 dimensions, not 512.*dimensions=1024"):
        embed(["a fox"])


def test_an_answer_that_lacks_vectors_is_refused(api: FakeVoyage, embed: VoyageEmbedder) -> None:
    api.change = lambda vectors: vectors[:-1]
    with pytest.raises(EmbedderError, match="1 vectors for 2 texts"):
        embed(["a fox", "snow"])


def test_threads_share_one(api: FakeVoyage, embed: VoyageEmbedder) -> None:
    texts = [f"text {number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(embed.embed_query, texts)) == [vector_of(text) for text in texts]
    assert len(api.bodies) == 40


# What fails, and what is tried again


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_after_a_growing_pause(
    api: FakeVoyage, embed: VoyageEmbedder, pauses: list[float], code: int
) -> None:
    api.replies = [status(code), status(code)]
    assert embed(["a fox"]) == [vector_of("a fox")]
    assert len(api.bodies) == 3
    assert 1 <= pauses[0] <= 2 <= pauses[1] <= 4
    assert len(pauses) == 2


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (429, {"error": "without the usual detail"}),
        (429, {"error": {"message": "without the usual detail"}}),
        (429, "<html>slow down</html>"),
        (529, {"detail": "overloaded"}),
        (520, "<html>origin down</html>"),
        (200, "<html>starting up</html>"),
    ],
)
def test_what_may_pass_is_known_whatever_the_body(api: FakeVoyage, embed: VoyageEmbedder, code: int, body: Any) -> None:
    api.replies = [status(code, body), status(code, body)]
    assert embed(["a fox"]) == [vector_of("a fox")]


@pytest.mark.parametrize(("code", "body"), [(429, None), (429, "<html>slow down</html>"), (500, None), (503, None)])
@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "0"}, 1, 2),
        ({"Retry-After": "1"}, 1, 2),
        ({"Retry-After": "7"}, 7, 8),
        ({"retry-after": " 7.2 "}, 8, 9),
        ({"Retry-After": "60"}, 60, 61),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:40 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 40, 41),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:40 GMT", "Date": "today"}, 1, 2),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 1, 2),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 -0000"}, 1, 2),
        ({"Retry-After": "soon"}, 1, 2),
        ({"Retry-After": "-5"}, 1, 2),
        ({"Retry-After": "nan"}, 1, 2),
        ({"Retry-After": ""}, 1, 2),
        ({}, 1, 2),
    ],
    ids=str,
)
def test_a_pause_is_as_long_as_the_server_asks(
    api: FakeVoyage,
    embed: VoyageEmbedder,
    pauses: list[float],
    code: int,
    body: Any,
    headers: dict[str, str],
    least: float,
    most: float,
) -> None:
    api.replies = [status(code, body, headers)]
    assert embed(["a fox"]) == [vector_of("a fox")]
    (pause,) = pauses
    assert least <= pause <= most


def test_a_date_without_the_servers_clock_is_compared_with_ours(
    api: FakeVoyage, embed: VoyageEmbedder, pauses: list[float]
) -> None:
    api.replies = [status(503, headers={"Retry-After": formatdate(time.time() + 30, usegmt=True), "Date": ""})]
    assert embed(["a fox"]) == [vector_of("a fox")]
    assert 25 <= pauses[0] <= 31


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"Retry-After": "61"}, "61 s"),
        ({"Retry-After": "3600"}, "3,600 s"),
        ({"Retry-After": "60.1"}, "61 s"),
        ({"Retry-After": "9" * 5000}, "1,000,000,000 s"),
        ({"Retry-After": "Wed, 21 Oct 2026 08:28:00 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, "3,600 s"),
    ],
    ids=lambda value: f"{value!s:.40}",
)
@pytest.mark.parametrize("code", [429, 503])
def test_a_longer_wait_is_told_at_once(
    api: FakeVoyage, embed: VoyageEmbedder, pauses: list[float], code: int, headers: dict[str, str], told: str
) -> None:
    api.replies = [status(code, headers=headers)] * 3
    with pytest.raises(
        EmbedderError, match=rf"attempts: 1\): try again in {told}, as Voyage AI asks, more than the 60 s"
    ):
        embed(["a fox"])
    assert len(api.bodies) == 1
    assert pauses == []


def test_the_last_attempt_tells_how_long_to_wait(api: FakeVoyage, embed: VoyageEmbedder) -> None:
    api.replies = [status(429, headers={"Retry-After": "20"})] * 3
    with pytest.raises(EmbedderError, match=r"attempts: 3\): try again in 20 s, as Voyage AI asks; an account without"):
        embed(["a fox"])


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "9"}], ids=str)
def test_no_two_clients_come_back_at_the_same_time(
    api: FakeVoyage, embed: VoyageEmbedder, pauses: list[float], headers: dict[str, str]
) -> None:
    for _ in range(2):
        api.replies = [status(429, headers=headers)] * 2
        embed(["a fox"])
    assert len(set(pauses)) == 4


def test_only_the_call_that_failed_is_repeated(api: FakeVoyage, embed: VoyageEmbedder) -> None:
    texts = [f"text {number}" for number in range(200)]
    api.replies = [status(429), status(500)]
    assert embed(texts) == [vector_of(text) for text in texts]
    assert api.sizes == [128, 128, 128, 72]


def test_silence_and_broken_connections_are_tried_again(api: FakeVoyage) -> None:
    api.replies = [silence, hang_up]
    assert VoyageEmbedder(KEY, base_url=api.base_url, timeout=0.2)(["a fox"]) == [vector_of("a fox")]
    assert len(api.bodies) == 3


@pytest.mark.parametrize("attempts", [1, 3, 10])
def test_attempts_come_to_an_end(api: FakeVoyage, pauses: list[float], attempts: int) -> None:
    api.replies = [status(429)] * 20
    with pytest.raises(EmbedderError, match=f"attempts: {attempts}") as raised:
        VoyageEmbedder(KEY, base_url=api.base_url, attempts=attempts)(["a fox"])
    assert len(api.bodies) == attempts == len(pauses) + 1
    assert max(pauses, default=0) <= 16
    for part in ("HTTP 429", "as ordered", "payment method"):
        assert part in str(raised.value)


def test_a_server_that_is_not_there_is_an_error_of_this_library(api: FakeVoyage) -> None:
    nobody = VoyageEmbedder(KEY, base_url=f"http://127.0.0.1:{unused_port()}/v1")
    with pytest.raises(EmbedderError, match="attempts: 3"):
        nobody(["a fox"])
    assert api.bodies == []


def unused_port() -> int:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        return server.server_port


@pytest.mark.parametrize(
    ("code", "advice"),
    [(400, "check model="), (401, "check api_key"), (403, "check api_key"), (404, "base_url"), (422, "dimensions=")],
)
@pytest.mark.parametrize("body", [None, {"detail": [{"msg": "as ordered"}]}, {"error": "as ordered"}, "as ordered"])
def test_what_will_not_pass_is_said_at_once(
    api: FakeVoyage, embed: VoyageEmbedder, pauses: list[float], code: int, advice: str, body: Any
) -> None:
    api.replies = [status(code, body)]
    with pytest.raises(InvalidArgumentError, match="as ordered") as raised:
        embed(["a fox", "snow"])
    assert advice in str(raised.value)
    assert f"HTTP {code}" in str(raised.value)
    assert len(api.bodies) == 1
    assert pauses == []


@pytest.mark.parametrize("body", ["<html>Sign in</html>", {"hello": "there"}, {"data": None}, {"data": [{}]}, [], None])
def test_an_answer_of_somebody_else_is_refused(api: FakeVoyage, embed: VoyageEmbedder, body: Any) -> None:
    api.replies = [lambda handler: handler.answer(200, body)] * 9
    with pytest.raises(EmbedderError):
        embed(["a fox"])
    assert len(api.bodies) == 3


@pytest.mark.parametrize("error", [ImportError("torch is required"), OSError("no such certificates")], ids=repr)
def test_what_this_machine_lacks_is_an_error_of_this_library(
    embed: VoyageEmbedder, pauses: list[float], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(Client, "embed", fail)
    with pytest.raises(InvalidArgumentError, match=f"for voyage-3.5 .{type(error).__name__}: {error}"):
        embed(["a fox"])
    assert pauses == []


def test_an_error_stays_short(api: FakeVoyage, embed: VoyageEmbedder) -> None:
    api.replies = [status(403, "<html>" + "no entry " * 1000)]
    with pytest.raises(InvalidArgumentError) as raised:
        embed(["a fox"])
    assert len(str(raised.value)) < 600


# The key


def test_the_key_comes_from_the_argument_or_the_variable(api: FakeVoyage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", f"{KEY}\n")
    for embed in (VoyageEmbedder(base_url=api.base_url), VoyageEmbedder("", base_url=api.base_url)):
        assert embed(["a fox"]) == [vector_of("a fox")]
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-another")
    for key in (KEY, f" {KEY}\n", SecretStr(KEY)):
        assert VoyageEmbedder(key, base_url=api.base_url)(["a fox"]) == [vector_of("a fox")]


@pytest.mark.parametrize("value", [None, "", " "])
def test_without_a_key_none_is_built(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is not None:
        monkeypatch.setenv("VOYAGE_API_KEY", value)
    with pytest.raises(InvalidArgumentError, match="set VOYAGE_API_KEY, or pass api_key"):
        VoyageEmbedder()


@pytest.mark.parametrize("key", ["pa-secret two", "pa-secret\nX: y", "pa-sécret"])
def test_a_key_that_no_header_holds_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(InvalidArgumentError, match="api_key") as raised:
        VoyageEmbedder(key)
    assert "cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("key", "base_url", "base"),
    [
        ("pa-1", None, "https://api.voyageai.com/v1"),
        ("al-1", None, "https://ai.mongodb.com/v1"),
        ("al-1", "https://proxy.example/v1/", "https://proxy.example/v1"),
    ],
)
def test_the_key_says_where_the_api_is_unless_told(key: str, base_url: str | None, base: str) -> None:
    assert base_of(VoyageEmbedder(key, base_url=base_url)) == base


@pytest.mark.parametrize("order", ["argument", "variable"])
def test_nothing_shows_the_key(api: FakeVoyage, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-wrong-secret")
    wrong = VoyageEmbedder("pa-wrong-secret" if order == "argument" else None, base_url=api.base_url)
    with pytest.raises(InvalidArgumentError, match="does not accept the key") as raised:
        wrong(["a fox"])  # the stand-in repeats the key in its answer
    shown = [repr(wrong), str(wrong), str(vars(wrong)), repr(raised.value), *traceback.format_exception(raised.value)]
    assert "***" in repr(raised.value)
    assert "wrong-secret" not in "".join(shown)


def test_a_dump_holds_a_name_without_the_key(embed: VoyageEmbedder, backend: MongoStorageBackend) -> None:
    for embedder, name in (
        (embed, "VoyageEmbedder(model='voyage-3.5', dimensions=1024)"),
        (
            VoyageEmbedder(KEY, input_type="query"),
            "VoyageEmbedder(model='voyage-3.5', dimensions=1024, input_type='query')",
        ),
        (OfflineEmbedder(), "OfflineEmbedder()"),
    ):
        memory = Memory(embedder=embedder, storage=backend, llm=ScriptedLLM())
        fields = {"embedder", "storage"}  # CrewAI's dump of a model's own class warns
        assert memory.model_dump(mode="json", include=fields)["embedder"] == name == repr(embedder)
        assert KEY not in memory.model_dump_json(include=fields) + str(memory.model_dump(include=fields))


# Copies


def test_a_copy_is_the_same(embed: VoyageEmbedder) -> None:
    offline = OfflineEmbedder()
    assert copy.copy(embed) is copy.deepcopy(embed) is copy.deepcopy([embed])[0] is embed
    assert copy.deepcopy(offline) is offline


def test_a_pickle_embeds_alike(api: FakeVoyage) -> None:
    made = VoyageEmbedder(KEY, base_url=api.base_url, model="voyage-4", dimensions=256, input_type="query", attempts=2)
    again = pickle.loads(pickle.dumps(made))
    assert repr(again) == repr(made)
    assert again(["a fox"]) == made(["a fox"]) == [vector_of("a fox", 256)]
    assert api.bodies[0] == api.bodies[1]
    api.replies = [status(500)] * 9
    with pytest.raises(EmbedderError, match="attempts: 2"):
        again(["a fox"])


def test_a_pickle_holds_a_key_that_was_given_and_none_from_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEY.encode() in pickle.dumps(VoyageEmbedder(KEY))
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    pickled = pickle.dumps(VoyageEmbedder())
    assert KEY.encode() not in pickled
    monkeypatch.setenv("VOYAGE_API_KEY", "al-of-the-other-process")
    assert base_of(pickle.loads(pickled)) == "https://ai.mongodb.com/v1"
    monkeypatch.delenv("VOYAGE_API_KEY")
    with pytest.raises(InvalidArgumentError, match="VOYAGE_API_KEY"):
        pickle.loads(pickled)


# Arguments, imports, CrewAI


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "voyageai.client", None)
    embed = VoyageEmbedder(KEY)
    assert embed([]) == []
    with pytest.raises(InvalidArgumentError, match=r"pip install 'crewai-mongodb-memory\[voyage\]'") as raised:
        embed(["a fox"])
    assert "voyageai" in str(raised.value)


def test_the_client_is_not_imported_with_this_library() -> None:
    assert not {"voyageai", "Client", "VoyageError"} & vars(voyage).keys()


def test_importing_the_client_gives_no_warning() -> None:
    command = [sys.executable, "-W", "error", "-c", "import voyageai.client"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_no_tokenizer_is_asked_for(embed: VoyageEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the tokenizer is downloaded")

    for name in ("tokenizer", "tokenize", "count_tokens"):
        monkeypatch.setattr(Client, name, refuse)
    assert embed(["a fox"]) == [vector_of("a fox")]


def test_crewai_takes_it(embed: VoyageEmbedder, backend: MongoStorageBackend) -> None:
    assert embed_texts(embed, ["a fox", " ", "snow"]) == [vector_of("a fox"), [], vector_of("snow")]
    memory = Memory(embedder=embed, storage=backend, llm=ScriptedLLM())
    for fact in ("Ada drinks tea", "Bob plays chess"):
        memory.remember(fact, scope="/team", categories=["c"], importance=0.5, metadata={"by": "test"})
    assert memory.recall("Bob plays chess", limit=1, depth="shallow")[0].record.content == "Bob plays chess"
    memory.close()


def remember_in_background(memory: Memory, contents: list[str]) -> list[str]:
    """Have CrewAI remember texts in the background; return the errors that its events tell of."""
    told: list[str] = []
    with crewai_event_bus.scoped_handlers():
        crewai_event_bus.on(MemorySaveFailedEvent)(lambda _, event: told.append(event.error))
        memory.remember_many(contents, scope="/team", categories=["c"], importance=0.5)
        memory._save_pool.submit(int).result()  # its one thread tells of an error after the save is over
        crewai_event_bus.flush()
    return told


@pytest.mark.parametrize("kind", ["offline", "voyage"])
def test_a_text_that_cannot_be_stored_is_named_in_the_log_and_the_event(
    api: FakeVoyage, backend: MongoStorageBackend, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    api.change = lambda vectors: np.eye(1024)[: len(vectors)].tolist()  # CrewAI drops near-duplicates
    embed = OfflineEmbedder() if kind == "offline" else VoyageEmbedder(KEY, base_url=api.base_url)
    memory = Memory(embedder=embed, storage=backend, llm=ScriptedLLM())
    (told,) = remember_in_background(memory, ["Ada drinks tea", "half a pair \ud83d", "Bob plays chess"])
    for said in (told, caplog.text):
        assert "content: holds the lone surrogate '\\ud83d' at position 12" in said
    assert remember_in_background(memory, ["Ada drinks tea", "Bob plays chess"]) == []
    assert sorted(record.content for record in memory.list_records()) == ["Ada drinks tea", "Bob plays chess"]
    memory.close()


def test_a_failure_in_the_background_is_in_the_log_and_the_event(
    api: FakeVoyage, embed: VoyageEmbedder, backend: MongoStorageBackend, caplog: pytest.LogCaptureFixture
) -> None:
    memory = Memory(embedder=embed, storage=backend, llm=ScriptedLLM())
    api.replies = [status(400)]
    (told,) = remember_in_background(memory, ["Ada drinks tea", "Bob plays chess"])
    for said in (told, caplog.text):
        assert "Voyage AI rejected the request" in said
        assert "as ordered: 400" in said
    assert f"{embed!r} embedded nothing: InvalidArgumentError" in caplog.text
    assert memory.list_records() == []
    memory.close()
