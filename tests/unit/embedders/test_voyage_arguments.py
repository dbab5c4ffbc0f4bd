"""The arguments of ``VoyageEmbedder``: each is taken, or refused by name and value when it is built."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pydantic import SecretBytes, SecretStr

from crewai_mongodb_memory.embedders.voyage import VoyageEmbedder
from crewai_mongodb_memory.errors import InvalidArgumentError

KEY = "pa-secret-0123456789"
NO_NUMBERS = [None, True, np.True_, "3", b"3", math.nan, math.inf, -math.inf, 0, -1, 10**400, [3], {}, object(), 1j]
NO_TEXTS = [True, 3, b"text", ["text"], {"text": 1}, np.array(["a", "b"]), object(), str]
REFUSED = {
    "dimensions": [*NO_NUMBERS, 2.5, 3.0, np.float64(3), Decimal(3), 8193, 10**12],
    "attempts": [*NO_NUMBERS, 2.5, 3.0, np.float64(3), Decimal(3), 1001, 10**12],
    "timeout": [*NO_NUMBERS, -0.5, Decimal(3), np.float32("nan"), 86_401, Fraction(10**400)],
    "model": [*NO_TEXTS, None, "", " ", "\n", "voyage 3.5", " voyage-3.5", "voyage-3.5\n", "voyage\x00", "v\ud800"],
    "input_type": [*NO_TEXTS, "", "passage", "Query", "query ", ("query", "document")],
    "base_url": [
        *NO_TEXTS,
        "",
        " ",
        "ai.mongodb.com/v1",
        "ftp://ai.mongodb.com/v1",
        "https:",
        "https://",
        "https:///v1",
        "https://:443/v1",
        "https://ai.mongodb.com:port/v1",
        "https://ai.mongodb.com:99999/v1",
        "https://[::1/v1",
        "https://ai mongodb.com/v1",
        "https://ai.mongodb.com/v 1",
        " https://ai.mongodb.com/v1",
        "https://ai.mongodb.com/v1\n",
        "https://ai.mongodb.com/v1?key=1",
        "https://ai.mongodb.com/v1#top",
        "https://\ud800.com",
    ],
}


@pytest.mark.parametrize(
    ("argument", "value"),
    [(argument, value) for argument, values in REFUSED.items() for value in values],
    ids=lambda value: f"{value!a:.30}",
)
def test_an_argument_that_cannot_be_used_is_refused_by_name_and_value(argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{argument} has to be ") as raised:
        VoyageEmbedder(KEY, **{argument: value})
    assert repr(value)[:9] in str(raised.value)
    assert len(str(raised.value)) < 600
    assert "secret" not in str(raised.value)
    assert str(raised.value).encode()  # any log can show it


@pytest.mark.parametrize(
    ("argument", "value", "taken"),
    [
        ("dimensions", np.int64(256), 256),
        ("dimensions", 8192, 8192),
        ("attempts", np.uint8(5), 5),
        ("attempts", 1000, 1000),
        ("model", np.str_("voyage-4"), "voyage-4"),
        ("timeout", 7, 7.0),
        ("timeout", np.int64(7), 7.0),
        ("timeout", np.float32(0.5), 0.5),
        ("timeout", Fraction(1, 2), 0.5),
        ("timeout", 86_400, 86_400.0),
        ("input_type", None, None),
        ("input_type", np.str_("query"), "query"),
        ("base_url", None, None),
        ("base_url", "HTTPS://ai.mongodb.com/v1/", "HTTPS://ai.mongodb.com/v1"),
        ("base_url", "http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_argument_is_taken_as_a_plain_value(argument: str, value: Any, taken: Any) -> None:
    made = VoyageEmbedder(KEY, **{argument: value})
    for embedder in (made, pickle.loads(pickle.dumps(made))):
        found = embedder._arguments[argument]
        assert found == taken
        assert type(found) is type(taken)


@pytest.mark.parametrize("value", [3, True, KEY.encode(), [KEY], {"key": KEY}, SecretBytes(KEY.encode()), object()])
def test_a_key_of_another_type_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    for given in (value, SecretStr(value)):  # pydantic does not check what a SecretStr is made of
        with pytest.raises(InvalidArgumentError, match=f"^api_key has to be .*{type(value).__name__}$") as raised:
            VoyageEmbedder(given)
        assert "secret-" not in str(raised.value)


def test_a_password_in_the_url_is_refused_without_being_shown() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^base_url must not hold a user name or a password") as raised:
        VoyageEmbedder(KEY, base_url="https://ada:hidden@ai.mongodb.com/v1")
    assert "hidden" not in str(raised.value)
