"""The arguments of ``VoyageEmbedder``, checked when it is built; no error shows the key."""

from __future__ import annotations

import math
import os
from numbers import Real
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import SecretStr

from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.pure.checks import shown, whole_number

__all__ = [
    "KEY_VARIABLE",
    "InputType",
    "checked_attempts",
    "checked_base_url",
    "checked_dimensions",
    "checked_input_type",
    "checked_model",
    "checked_timeout",
    "given_key",
    "key_in_use",
]

InputType = Literal["query", "document"]

KEY_VARIABLE = "VOYAGE_API_KEY"
_MAX_DIMENSIONS = 8192  # of a vector search index in MongoDB
_MAX_ATTEMPTS = 1000
_MAX_TIMEOUT = 86_400.0  # a day


def given_key(api_key: Any) -> SecretStr | None:
    """Return the argument ``api_key`` as a secret."""
    if api_key is None:
        return None
    key = api_key.get_secret_value() if isinstance(api_key, SecretStr) else api_key
    if not isinstance(key, str):
        raise InvalidArgumentError(f"api_key has to be a str, a SecretStr or None, not of type {type(key).__name__}")
    return SecretStr(key)


def key_in_use(given: SecretStr | None) -> SecretStr:
    """Return the given key or, without one, that of the environment.

    A missing key is an error when the embedder is built, since CrewAI hides the errors of its background saves.
    """
    key = ((given.get_secret_value() if given else "") or os.environ.get(KEY_VARIABLE, "")).strip()
    if not key:
        raise InvalidArgumentError(
            f"VoyageEmbedder needs a key: set {KEY_VARIABLE}, or pass api_key; OfflineEmbedder() needs none"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        # An HTTP header cannot hold it, and the error of the HTTP library would show it.
        raise InvalidArgumentError(f"the key in api_key or ${KEY_VARIABLE} has characters that no key has")
    return SecretStr(key)


def checked_model(value: Any) -> str:
    """Return the name of a model."""
    if not isinstance(value, str) or not value or not value.isprintable() or " " in value:
        raise InvalidArgumentError(
            f"model has to be the name of a model such as 'voyage-3.5', without spaces, not {shown(value)}"
        )
    return str.__str__(value)  # of numpy.str_ or a str Enum, the text alone


def checked_dimensions(value: Any) -> int:
    """Return a number of dimensions."""
    return whole_number("dimensions", value, 1, _MAX_DIMENSIONS)


def checked_input_type(value: Any) -> InputType | None:
    """Return an input type, or None."""
    if value is None:
        return None
    for known in get_args(InputType):
        if isinstance(value, str) and value == known:
            input_type: InputType = known
            return input_type
    raise InvalidArgumentError(f"input_type has to be 'query', 'document' or None, not {shown(value)}")


def checked_attempts(value: Any) -> int:
    """Return a number of attempts."""
    return whole_number("attempts", value, 1, _MAX_ATTEMPTS)


def checked_timeout(value: Any) -> float:
    """Return a number of seconds."""
    try:
        timeout = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        timeout = math.inf
    if not 0 < timeout <= _MAX_TIMEOUT:
        raise InvalidArgumentError(
            f"timeout has to be a number of seconds, more than 0 and at most {_MAX_TIMEOUT:,.0f}, not {shown(value)}"
        )
    return timeout


def checked_base_url(value: Any) -> str | None:
    """Return a URL to which the client can append the path of an endpoint, or None."""
    if value is None:
        return None
    if isinstance(value, str) and "@" in value:  # HTTP authentication would replace the key; the value is secret
        raise InvalidArgumentError("base_url must not hold a user name or a password: the key goes to api_key")
    if not (isinstance(value, str) and value.isprintable() and " " not in value and _is_base_url(value)):
        raise InvalidArgumentError(
            f"base_url has to be a URL such as 'https://api.voyageai.com/v1', with https:// or http:// and a host, "
            f"without spaces, query or fragment, not {shown(value)}"
        )
    return value.rstrip("/")


def _is_base_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises where it is not a number
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "?" not in text and "#" not in text
