"""Voyage AI's embedding models, through its client."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Final, Literal, get_args

from pydantic import SecretStr

from crewai_mongodb_memory.errors import EmbedderError, InvalidArgumentError, MongoMemoryError
from crewai_mongodb_memory.lifecycle.copies import SharedByCopies

if TYPE_CHECKING:
    from voyageai.client import Client
    from voyageai.error import VoyageError

__all__ = ["InputType", "VoyageEmbedder"]

InputType = Literal["query", "document"]

_KEY_VARIABLE = "VOYAGE_API_KEY"
_TEXTS_A_CALL = 128
_TOKENS_A_CALL = {
    "voyage-2": 320_000,
    "voyage-3.5": 320_000,
    "voyage-3.5-lite": 1_000_000,
    "voyage-4": 320_000,
    "voyage-4-lite": 1_000_000,
}
_TOKENS_A_CALL_OF_OTHERS = 120_000
_TOKENS_OF_A_PROMPT = 32
# Older models have one size each and take no wish for another; newer ones all take one.
_MODELS_OF_ONE_SIZE = {
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
_LONGEST_PAUSE = 16.0
_TOO_MANY_REQUESTS = 429
_ADVICE_ON_RATES = (
    "; an account without a payment method has 3 requests and 10,000 tokens a minute: add one, or wait that long with "
    "attempts=10"
)
_LONGEST_DETAIL = 300

_pause = time.sleep


class VoyageEmbedder(SharedByCopies):
    """A Voyage AI model: pass it as ``Memory(embedder=…)``.

    It comes with the extra ``voyage``. Building one needs a key, and neither imports the client nor connects; the
    first text does both. It is safe to share among threads.

    Texts go out in calls of up to 128, and of no more bytes than the model takes tokens; a text that is longer than
    that goes alone, and Voyage AI cuts it at the model's context (32,000 tokens). What may pass (too many requests,
    timeouts, broken connections, faults of the server) is tried again after a pause: 2 s at most, then 4, 8, and 16
    from there on. A call that is rejected as too large all the same is halved. A text without a character in it
    (empty, blank) is not sent and gets zeros: similar to nothing.

    Args:
        api_key: of Voyage AI or, starting with ``al-``, of Atlas; None takes ``$VOYAGE_API_KEY``. No text and no dump
            shows it. A pickle holds a key that was given here, and none that came from the variable.
        model: its name. Never mix the vectors of two models: the lengths may fit, and the scores mean nothing.
        dimensions: of each vector; what the store has.
        input_type: what a plain call says of its texts, which is what ``Memory`` makes for queries and documents
            alike: ``"query"``, ``"document"``, or nothing. The three kinds of vectors can be compared.
        attempts: how often one call is tried; 1 is once.
        timeout: seconds that one attempt waits for a connection, and then for the answer.
        base_url: where the API is; None takes the one that the key belongs to.

    Raises:
        InvalidArgumentError: here, when there is no key or an argument cannot be used; at a call, when the extra is
            not installed, when Voyage AI rejects the key or the request, or when the model gives vectors of another
            length.
        EmbedderError: at a call, when no attempt brought an answer, or one that cannot be used.
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
        if not (dimensions >= 1 and attempts >= 1 and timeout > 0):
            raise InvalidArgumentError("dimensions and attempts are at least 1, and timeout is more than 0 seconds")
        if input_type not in (None, *get_args(InputType)):
            raise InvalidArgumentError(f"input_type is 'query', 'document' or None, not {input_type!r}")
        if base_url is not None and not base_url.startswith(("https://", "http://")):
            raise InvalidArgumentError("base_url starts with https:// or http://")
        given = SecretStr(api_key) if isinstance(api_key, str) else api_key
        self.model: Final = model
        self.dimensions: Final = dimensions
        self.input_type: Final = input_type
        self._attempts = attempts
        self._timeout = timeout
        self._base_url = base_url.rstrip("/") if base_url else None
        self._key = _checked_key(given)
        self._arguments = {
            "api_key": given,
            "model": model,
            "dimensions": dimensions,
            "input_type": input_type,
            "attempts": attempts,
            "timeout": timeout,
            "base_url": base_url,
        }

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts: one vector each, in the order given; an empty list calls nobody."""
        return self._embed(texts, self.input_type)

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts to store, in the order given; Voyage AI is told that they are documents."""
        return self._embed(texts, "document")

    def embed_query(self, text: str) -> list[float]:
        """Embed one text to search with; Voyage AI is told that it is a query."""
        return self._embed([text], "query")[0]

    @property
    def _json_name(self) -> str:
        """The model, its dimensions, and the input type if one is set."""
        kind = f", input_type={self.input_type!r}" if self.input_type else ""
        return f"VoyageEmbedder(model={self.model!r}, dimensions={self.dimensions}{kind})"

    def __repr__(self) -> str:
        return self._json_name

    def _embed(self, texts: Sequence[str], input_type: InputType | None) -> list[list[float]]:
        if isinstance(texts, str):
            raise InvalidArgumentError("an embedder takes a list of texts; embed_query(text) takes a single one")
        sent = [text for text in texts if text.strip()]  # the API rejects a whole list for one empty text
        batches = _batches(sent, _TOKENS_A_CALL.get(self.model, _TOKENS_A_CALL_OF_OTHERS))
        vectors = iter([vector for batch in batches for vector in self._embed_batch(batch, input_type)])
        return [next(vectors) if text.strip() else [0.0] * self.dimensions for text in texts]

    def _embed_batch(self, texts: list[str], input_type: InputType | None) -> list[list[float]]:
        client, voyage_error = self._client()
        try:
            return self._checked(self._patiently_asked(client, voyage_error, texts, input_type), len(texts))
        except voyage_error as error:
            if not _is_too_large(error) or len(texts) == 1:
                raise self._explained(error) from None  # the client's own text may repeat what it was sent
        half = len(texts) // 2
        return [*self._embed_batch(texts[:half], input_type), *self._embed_batch(texts[half:], input_type)]

    def _client(self) -> tuple[Client, type[VoyageError]]:
        """The client, which is a record of its arguments and costs nothing, and the class of its errors."""
        try:
            from voyageai.client import Client
            from voyageai.error import VoyageError
        except ImportError as missing:
            raise InvalidArgumentError(
                f"VoyageEmbedder needs its extra ({missing}): pip install 'crewai-mongodb-memory[voyage]'"
            ) from missing
        # The client's own retries leave out HTTP 500 and broken connections, so it is told to try once.
        key = self._key.get_secret_value()
        return Client(key, max_retries=1, timeout=self._timeout, base_url=self._base_url), VoyageError

    def _patiently_asked(
        self, client: Client, voyage_error: type[VoyageError], texts: list[str], input_type: InputType | None
    ) -> list[list[float]]:
        for attempt in range(1, self._attempts):
            try:
                return self._asked(client, texts, input_type)
            except EmbedderError:
                pass  # the client does not see all that a gateway may say while its service is down
            except voyage_error as error:
                if not _may_pass(error):
                    raise
            _pause(min(_LONGEST_PAUSE, 2.0**attempt) * random.uniform(0.5, 1))
        return self._asked(client, texts, input_type)

    def _asked(self, client: Client, texts: list[str], input_type: InputType | None) -> list[list[float]]:
        size = None if self.model in _MODELS_OF_ONE_SIZE else self.dimensions
        try:
            answer = client.embed(texts, self.model, input_type, truncation=True, output_dimension=size)
            return [[*map(float, vector)] for vector in answer.embeddings]
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # what the client makes of other answers
            found = self._shown(f"{type(error).__name__}: {error}")
            raise EmbedderError(f"the answer is not one of Voyage AI's ({found}): is base_url right?") from None

    def _checked(self, vectors: list[list[float]], texts: int) -> list[list[float]]:
        if len(vectors) != texts:
            raise EmbedderError(f"Voyage AI gave {len(vectors)} vectors for {texts} texts")
        for vector in vectors:
            if len(vector) != self.dimensions:
                raise InvalidArgumentError(
                    f"{self.model} gives {len(vector)} dimensions, not {self.dimensions}: use another model, or "
                    f"VoyageEmbedder(dimensions={len(vector)}) with a store of as many"
                )
        return vectors

    def _explained(self, error: VoyageError) -> MongoMemoryError:
        status = error.http_status
        found = self._shown(f"{type(error).__name__}{f', HTTP {status}' if status else ''}: {_detail(error)}")
        if _may_pass(error):
            advice = _ADVICE_ON_RATES if status == _TOO_MANY_REQUESTS else ""
            return EmbedderError(f"Voyage AI gave no embeddings ({found}; attempts: {self._attempts}){advice}")
        if status in (401, 403):
            return InvalidArgumentError(
                f"Voyage AI does not accept the key ({found}): check api_key or ${_KEY_VARIABLE}, and that the key "
                f"may use {self.model}"
            )
        return InvalidArgumentError(
            f"Voyage AI rejected the request ({found}): check model={self.model!r}, dimensions={self.dimensions} "
            f"and base_url"
        )

    def _shown(self, text: str) -> str:
        return shorten(text.replace(self._key.get_secret_value(), "***"), _LONGEST_DETAIL, placeholder=" …")


def _checked_key(given: SecretStr | None) -> SecretStr:
    """The key; here and not at the first text, since CrewAI embeds in the background and keeps errors to itself."""
    key = ((given.get_secret_value() if given else "") or os.environ.get(_KEY_VARIABLE, "")).strip()
    if not key:
        raise InvalidArgumentError(
            f"VoyageEmbedder needs a key: set {_KEY_VARIABLE}, or pass api_key; OfflineEmbedder() needs none"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        # A header cannot hold it, and the error of the HTTP library would show it.
        raise InvalidArgumentError(f"the key in api_key or ${_KEY_VARIABLE} has characters that no key has")
    return SecretStr(key)


def _batches(texts: Sequence[str], most_tokens: int) -> Iterator[list[str]]:
    """Cut texts into calls, by bytes: a token is one at least, and no tokenizer has to be downloaded."""
    batch: list[str] = []
    tokens = 0
    for text in texts:
        size = len(text.encode("utf-8", "surrogatepass")) + _TOKENS_OF_A_PROMPT
        if batch and (len(batch) == _TEXTS_A_CALL or tokens + size > most_tokens):
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += size
    if batch:
        yield batch


def _may_pass(error: VoyageError) -> bool:
    """Tell by number: an answer without the usual body comes as another class, and a broken connection has none."""
    status = error.http_status
    return status is None or status in (408, _TOO_MANY_REQUESTS) or not 400 <= status < 500


def _is_too_large(error: VoyageError) -> bool:
    return error.http_status == 413 or (error.http_status == 400 and "batch" in _detail(error).lower())


def _detail(error: VoyageError) -> str:
    """What the API said; ``str(error)`` would fail where that is a list, and repeat all headers where it is rare."""
    body = error.json_body
    return str(body["detail"] if isinstance(body, dict) and "detail" in body else error.user_message)
