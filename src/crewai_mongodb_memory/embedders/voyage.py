"""Voyage AI's embedding models, through its client."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from textwrap import shorten
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from crewai_mongodb_memory.embedders.error_log import errors_logged
from crewai_mongodb_memory.embedders.texts import checked_text, checked_texts
from crewai_mongodb_memory.embedders.voyage_arguments import (
    KEY_VARIABLE,
    InputType,
    checked_attempts,
    checked_base_url,
    checked_dimensions,
    checked_input_type,
    checked_model,
    checked_timeout,
    given_key,
    key_in_use,
)
from crewai_mongodb_memory.embedders.voyage_errors import (
    TOO_MANY_REQUESTS,
    detail,
    is_batch_too_large,
    is_transient,
    retry_after,
)
from crewai_mongodb_memory.errors import EmbedderError, InvalidArgumentError
from crewai_mongodb_memory.lifecycle.copies import SharedByCopies

if TYPE_CHECKING:
    from voyageai.client import Client
    from voyageai.error import VoyageError

__all__ = ["InputType", "VoyageEmbedder"]

_MAX_TEXTS_PER_REQUEST = 128
_MAX_TOKENS_PER_REQUEST = {
    "voyage-2": 320_000,
    "voyage-3.5": 320_000,
    "voyage-3.5-lite": 1_000_000,
    "voyage-4": 320_000,
    "voyage-4-lite": 1_000_000,
}
_MAX_TOKENS_PER_REQUEST_OF_OTHERS = 120_000
_PROMPT_TOKENS = 32  # Voyage AI puts a prompt before each text, chosen by the input type
# Older models have one size each and reject ``output_dimension``.
_FIXED_SIZE_MODELS = {
    "voyage-2",
    "voyage-3",
    "voyage-3-lite",
    "voyage-code-2",
    "voyage-finance-2",
    "voyage-large-2",
    "voyage-large-2-instruct",
    "voyage-law-2",
    "voyage-multilingual-2",
}
_MAX_BACKOFF = 16.0  # seconds
_MAX_RETRY_AFTER = 60  # seconds
_RATE_LIMIT_ADVICE = (
    "; an account without a payment method has 3 requests and 10,000 tokens a minute: add one, or retry for longer "
    "with attempts=10"
)
_MAX_DETAIL = 300  # characters

_sleep = time.sleep


class VoyageEmbedder(SharedByCopies):
    """A Voyage AI model: pass it as ``Memory(embedder=…)``.

    It comes with the extra ``voyage``. Building one needs a key, but neither imports the client nor connects: the
    first text does both. Threads can share one.

    Texts are sent in batches: at most 128 texts, and at most as many bytes as the model takes tokens in one request.
    A longer text is sent alone, and Voyage AI truncates it to the model's context (32,000 tokens). If Voyage AI
    rejects a batch as too large nevertheless, its two halves are sent instead. An empty or blank text is not sent:
    its vector is all zeros, similar to nothing. A lone surrogate in a text is sent as U+FFFD.

    Transient errors (rate limits, timeouts, broken connections, HTTP 5xx) are retried with exponential backoff and
    jitter: the pauses are up to 2, 4, 8 and then always 16 seconds. If the answer has a ``Retry-After`` header, the
    pause is at least that long. If the header asks for more than 60 seconds, the call raises ``EmbedderError`` at
    once, and the error says how long to wait. Every error of a call is also logged to ``crewai_mongodb_memory``.

    Args:
        api_key: a key of Voyage AI, or one of Atlas, which starts with ``al-``. None takes ``$VOYAGE_API_KEY``.
            Neither an error nor a dump shows it. A pickle holds a key given here, but not one from the variable.
        model: the model's name. Never mix the vectors of two models: even where the lengths fit, the scores mean
            nothing.
        dimensions: the length of each vector, 1 to 8192: the same as the store's.
        input_type: what a plain call tells Voyage AI about its texts: ``"query"``, ``"document"`` or nothing.
            ``Memory`` makes plain calls for queries and documents alike. Vectors of all three kinds can be compared.
        attempts: how often a request is sent at most, 1 to 1000.
        timeout: seconds that each attempt waits for the connection, and again for the answer; at most a day.
        base_url: the URL of the API. None takes the one that fits the key.

    Raises:
        InvalidArgumentError: when it is built, if there is no key or an argument is wrong. At a call, if a text is
            not a str, if the extra is not installed, if Voyage AI rejects the key or the request, or if the model's
            vectors have another length.
        EmbedderError: at a call, if no attempt succeeded, or if the answer cannot be used.
    """

    def __init__(
        self,
        api_key: str | SecretStr | None = None,
        *,
        model: str = "voyage-3.5",
        dimensions: int = 1024,
        input_type: InputType | None = None,
        attempts: int = 3,
        timeout: float = 30.0,
        base_url: str | None = None,
    ) -> None:
        given = given_key(api_key)
        self._key = key_in_use(given)
        self.model: Final = checked_model(model)
        self.dimensions: Final = checked_dimensions(dimensions)
        self.input_type: Final = checked_input_type(input_type)
        self._attempts = checked_attempts(attempts)
        self._timeout = checked_timeout(timeout)
        self._base_url = checked_base_url(base_url)
        self._arguments = {
            "api_key": given,
            "model": self.model,
            "dimensions": self.dimensions,
            "input_type": self.input_type,
            "attempts": self._attempts,
            "timeout": self._timeout,
            "base_url": self._base_url,
        }

    def __call__(self, texts: Iterable[str]) -> list[list[float]]:
        """Embed texts: one vector each, in the order given; an empty list sends nothing."""
        with errors_logged(self):
            return self._embed(checked_texts(texts), self.input_type)

    def embed_documents(self, texts: Iterable[str]) -> list[list[float]]:
        """Embed texts to store, in the order given, with the input type ``"document"``."""
        with errors_logged(self):
            return self._embed(checked_texts(texts), "document")

    def embed_query(self, text: str) -> list[float]:
        """Embed one text to search with, with the input type ``"query"``."""
        with errors_logged(self):
            return self._embed([checked_text(text)], "query")[0]

    @property
    def _json_name(self) -> str:
        """The model, its dimensions, and the input type if one is set."""
        kind = f", input_type={self.input_type!r}" if self.input_type else ""
        return f"VoyageEmbedder(model={self.model!r}, dimensions={self.dimensions}{kind})"

    def __repr__(self) -> str:
        return self._json_name

    def _embed(self, texts: list[str], input_type: InputType | None) -> list[list[float]]:
        sent = [text for text in texts if text.strip()]  # one empty text makes the API reject the whole request
        batches = _batches(sent, _MAX_TOKENS_PER_REQUEST.get(self.model, _MAX_TOKENS_PER_REQUEST_OF_OTHERS))
        vectors = iter([vector for batch in batches for vector in self._embed_batch(batch, input_type)])
        return [next(vectors) if text.strip() else [0.0] * self.dimensions for text in texts]

    def _embed_batch(self, texts: list[str], input_type: InputType | None) -> list[list[float]]:
        client, voyage_error = self._client()
        try:
            vectors = self._embed_with_retries(client, voyage_error, texts, input_type)
        except voyage_error as error:
            if len(texts) == 1 or not is_batch_too_large(error):
                raise self._rejection(error) from None  # the client's own text may repeat the key
        else:
            self._check_vectors(vectors, len(texts))
            return vectors
        half = len(texts) // 2
        return [*self._embed_batch(texts[:half], input_type), *self._embed_batch(texts[half:], input_type)]

    def _client(self) -> tuple[Client, type[VoyageError]]:
        """Return a new client, which only holds its arguments and is cheap to make, and the class of its errors."""
        try:
            from voyageai.client import Client
            from voyageai.error import VoyageError
        except ImportError as missing:
            raise InvalidArgumentError(
                f"VoyageEmbedder needs its extra ({missing}): pip install 'crewai-mongodb-memory[voyage]'"
            ) from missing
        # The client's own retries do not cover HTTP 500 and broken connections, so they are switched off.
        key = self._key.get_secret_value()
        return Client(key, max_retries=1, timeout=self._timeout, base_url=self._base_url), VoyageError

    def _embed_with_retries(
        self, client: Client, voyage_error: type[VoyageError], texts: list[str], input_type: InputType | None
    ) -> list[list[float]]:
        attempt = 1
        while True:
            try:
                return self._embed_once(client, texts, input_type)
            except EmbedderError:  # such as the page that a gateway sends while the service behind it is down
                if attempt == self._attempts:
                    raise
                wait = 0
            except voyage_error as error:
                if not is_transient(error):
                    raise
                wait = retry_after(error)
                if attempt == self._attempts or wait > _MAX_RETRY_AFTER:
                    raise self._failure(error, attempt, wait) from None
            _sleep(_pause_after(attempt, wait))
            attempt += 1

    def _embed_once(self, client: Client, texts: list[str], input_type: InputType | None) -> list[list[float]]:
        size = None if self.model in _FIXED_SIZE_MODELS else self.dimensions
        try:
            answer = client.embed(texts, self.model, input_type, truncation=True, output_dimension=size)
            return [[*map(float, vector)] for vector in answer.embeddings]
        except (ImportError, OSError) as error:  # a model that the client runs itself, a missing file of certificates
            found = self._excerpt(f"{type(error).__name__}: {error}")
            raise InvalidArgumentError(
                f"Voyage AI's client cannot send the request for {self.model} ({found})"
            ) from None
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # the client checks no answer
            found = self._excerpt(f"{type(error).__name__}: {error}")
            raise EmbedderError(f"the answer is not one of Voyage AI's ({found}): is base_url right?") from None

    def _check_vectors(self, vectors: list[list[float]], texts: int) -> None:
        if len(vectors) != texts:
            raise EmbedderError(f"Voyage AI gave {len(vectors)} vectors for {texts} texts")
        for vector in vectors:
            if len(vector) != self.dimensions:
                raise InvalidArgumentError(
                    f"{self.model} gives {len(vector)} dimensions, not {self.dimensions}: use another model, or "
                    f"VoyageEmbedder(dimensions={len(vector)}) with a store of as many"
                )

    def _failure(self, error: VoyageError, attempts: int, wait: int) -> EmbedderError:
        """Return the error to raise for a transient one that is not retried any more."""
        advice = _RATE_LIMIT_ADVICE if error.http_status == TOO_MANY_REQUESTS else ""
        if wait:
            too_long = f", more than the {_MAX_RETRY_AFTER} s that a call waits" if wait > _MAX_RETRY_AFTER else ""
            advice = f": try again in {wait:,} s, as Voyage AI asks{too_long}{advice}"
        return EmbedderError(f"Voyage AI gave no embeddings ({self._summary(error)}; attempts: {attempts}){advice}")

    def _rejection(self, error: VoyageError) -> InvalidArgumentError:
        """Return the error to raise for one that a retry would meet again."""
        if error.http_status in (401, 403):
            return InvalidArgumentError(
                f"Voyage AI does not accept the key ({self._summary(error)}): check api_key or ${KEY_VARIABLE}, and "
                f"that the key may use {self.model}"
            )
        return InvalidArgumentError(
            f"Voyage AI rejected the request ({self._summary(error)}): check model={self.model!r}, "
            f"dimensions={self.dimensions} and base_url"
        )

    def _summary(self, error: VoyageError) -> str:
        status = f", HTTP {error.http_status}" if error.http_status else ""
        return self._excerpt(f"{type(error).__name__}{status}: {detail(error)}")

    def _excerpt(self, text: str) -> str:
        """Return the beginning of a text, without the key."""
        return shorten(text.replace(self._key.get_secret_value(), "***"), _MAX_DETAIL, placeholder=" …")


def _batches(texts: list[str], max_tokens: int) -> Iterator[list[str]]:
    """Cut texts into requests.

    Bytes are counted in place of tokens: no token is shorter than a byte, and no tokenizer has to be downloaded.
    """
    batch: list[str] = []
    tokens = 0
    for text in texts:
        size = len(text.encode()) + _PROMPT_TOKENS
        if batch and (len(batch) == _MAX_TEXTS_PER_REQUEST or tokens + size > max_tokens):
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += size
    if batch:
        yield batch


def _pause_after(attempt: int, wait: int) -> float:
    """Return the seconds to pause, random so that clients that failed together do not come back together."""
    backoff = min(_MAX_BACKOFF, 2.0 ** min(attempt, 10)) * random.uniform(0.5, 1)
    return max(backoff, wait + random.uniform(0, 1)) if wait else backoff
