"""The texts given to an embedder, checked before any of them is embedded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crewai_mongodb_memory.errors import InvalidArgumentError

__all__ = ["checked_text", "checked_texts"]


def checked_texts(texts: Any) -> list[str]:
    """Return the texts of a list, a tuple, an array, a generator or any other iterable, each ready to be embedded.

    >>> checked_texts(text for text in ("a fox", "snow"))
    ['a fox', 'snow']
    >>> checked_texts(["a fox", None])
    Traceback (most recent call last):
    crewai_mongodb_memory.errors.InvalidArgumentError: texts[1] has to be a str, not None: convert it or leave it out
    """
    if isinstance(texts, str):
        raise InvalidArgumentError("an embedder takes a list of texts; embed_query(text) takes a single one")
    try:
        items = None if isinstance(texts, (bytes, bytearray, memoryview, Mapping)) else iter(texts)
    except TypeError:
        items = None
    if items is None:
        raise InvalidArgumentError(f"an embedder takes a list of texts (str), not {_type_name(texts)}")
    return [_checked(f"texts[{index}]", item, "convert it or leave it out") for index, item in enumerate(items)]


def checked_text(text: Any) -> str:
    """Return a single text, ready to be embedded."""
    return _checked("the text of embed_query", text, "a list of texts goes to embed_documents")


def _checked(name: str, value: Any, advice: str) -> str:
    """Return a plain str that UTF-8 can encode.

    A surrogate pair becomes its character, and a lone surrogate becomes U+FFFD, so that one broken character does
    not cost a whole batch of memories its vectors.
    """
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} has to be a str, not {_type_name(value)}: {advice}")
    plain = str.__str__(value)  # of numpy.str_ or a str Enum, the text alone
    try:
        plain.encode()
    except UnicodeEncodeError:
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


def _type_name(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
