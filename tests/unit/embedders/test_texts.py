"""The texts given to an embedder: what it takes, and what it refuses by position and type."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crewai_mongodb_memory.embedders.offline import OfflineEmbedder
from crewai_mongodb_memory.embedders.texts import checked_text, checked_texts
from crewai_mongodb_memory.embedders.voyage import VoyageEmbedder
from crewai_mongodb_memory.errors import InvalidArgumentError

PAIR = ["a fox", "snow"]
NOT_TEXTS = [
    (None, "None"),
    (7, "int"),
    (0, "int"),
    (0.5, "float"),
    (True, "bool"),
    (b"a fox", "bytes"),
    (bytearray(b"a fox"), "bytearray"),
    (memoryview(b"a fox"), "memoryview"),
    (b"", "bytes"),
    ({"text": "a fox"}, "dict"),
    ({}, "dict"),
    (object(), "object"),
    (str, "type"),
    (np.array("a fox"), "ndarray"),
]


class Animal(str, enum.Enum):
    FOX = "a fox"


@pytest.fixture(params=["offline", "voyage"])
def embedder(request: pytest.FixtureRequest) -> OfflineEmbedder | VoyageEmbedder:
    return OfflineEmbedder() if request.param == "offline" else VoyageEmbedder("pa-1", base_url="http://127.0.0.1:9")


@pytest.mark.parametrize(
    "texts",
    [
        list(PAIR),
        tuple(PAIR),
        deque(PAIR),
        iter(PAIR),
        (text for text in PAIR),
        map(str, PAIR),
        dict.fromkeys(PAIR).keys(),
        np.array(PAIR),
        np.array(PAIR, object),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_any_iterable_of_texts_is_taken_in_its_order(texts: Any) -> None:
    assert checked_texts(texts) == PAIR


@pytest.mark.parametrize("empty", [[], (), iter(()), np.array([], str)], ids=lambda empty: type(empty).__name__)
def test_no_texts_give_no_vectors(embedder: Any, empty: Any) -> None:
    assert embedder(empty) == embedder.embed_documents(empty) == []


@pytest.mark.parametrize("text", [np.str_("a fox"), Animal.FOX, "a fox"], ids=lambda text: type(text).__name__)
def test_a_text_becomes_a_plain_str(text: str) -> None:
    for checked in (checked_text(text), *checked_texts([text])):
        assert checked == "a fox"
        assert type(checked) is str


@pytest.mark.parametrize(
    ("text", "embedded"),
    [
        ("half \ud83d", "half \ufffd"),
        ("\udc4b half", "\ufffd half"),
        ("\udc4b\ud83d", "\ufffd\ufffd"),
        ("\ud83d\udc4b", "👋"),
        ("Grüße, 世界! 👋\x00", "Grüße, 世界! 👋\x00"),
    ],
    ids=ascii,
)
def test_a_surrogate_is_joined_with_its_other_half_or_replaced(text: str, embedded: str) -> None:
    assert checked_text(text) == embedded
    assert checked_texts(["a fox", text]) == ["a fox", embedded]


@pytest.mark.parametrize(("value", "kind"), NOT_TEXTS, ids=[f"{value!r:.12}" for value, _ in NOT_TEXTS])
def test_what_is_no_text_is_refused_by_position_and_type(
    embedder: Any, value: Any, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: embedder([value]), "texts[0] has to be a str"),
        (lambda: embedder(["a", "", value]), "texts[2] has to be a str"),
        (lambda: embedder.embed_documents(iter(["a", value, "b"])), "texts[1] has to be a str"),
        (lambda: embedder(value), "takes a list of texts"),
        (lambda: embedder.embed_documents(value), "takes a list of texts"),
        (lambda: embedder.embed_query(value), "the text of embed_query has to be a str"),
    ]
    for call, start in calls:
        caplog.clear()
        with pytest.raises(InvalidArgumentError) as raised:
            call()
        assert start in str(raised.value)
        assert kind in str(raised.value)
        (record,) = caplog.records
        assert (record.name, record.levelname) == ("crewai_mongodb_memory", "ERROR")
        assert f"{embedder!r} embedded nothing: InvalidArgumentError: {raised.value}" in record.getMessage()


@pytest.mark.parametrize(
    ("texts", "index", "kind"),
    [
        ([PAIR], 0, "list"),
        ([np.array(PAIR)], 0, "ndarray"),
        (np.array([PAIR]), 0, "ndarray"),
        (np.array([0.5]), 0, "float64"),
        (np.array(["a fox", None], object), 1, "None"),
        (deque(["a fox", ("snow",)]), 1, "tuple"),
    ],
    ids=str,
)
def test_lists_in_lists_and_arrays_of_others_are_refused(embedder: Any, texts: Any, index: int, kind: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"texts\[{index}\] has to be a str, not .*{kind}: convert it"):
        embedder(texts)


def test_a_list_in_place_of_a_query_is_refused(embedder: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="list: a list of texts goes to embed_documents"):
        embedder.embed_query(PAIR)


def test_an_error_of_a_generator_is_logged_and_stays_what_it_is(
    embedder: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def texts() -> Any:
        yield "a fox"
        raise KeyError("the file ended")

    with pytest.raises(KeyError, match="the file ended"):
        embedder(texts())
    assert "KeyError: 'the file ended'" in caplog.text
