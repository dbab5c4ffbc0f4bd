"""Records and documents: a ``MemoryRecord`` of CrewAI as a document of ``memories``, and back.

The fields are those of EDD.md. Nothing of ours goes into ``metadata``: CrewAI prints every key of it into the
prompt (``crewai/memory/types.py``, ``MemoryMatch.format``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import bson
import numpy as np
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from crewai.memory.types import MemoryRecord
from numpy.typing import NDArray
from pydantic import ValidationError

from crewai_mongodb_memory.errors import InvalidRecordError
from crewai_mongodb_memory.pure import metadata, scopes, vectors
from crewai_mongodb_memory.pure.times import to_utc
from crewai_mongodb_memory.pure.vectors import VectorFormat

__all__ = [
    "CODEC_OPTIONS",
    "MalformedDocumentError",
    "checked_embedding",
    "to_document",
    "to_fields",
    "to_record",
]

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
FIELDS = tuple(name for name in MemoryRecord.model_fields if name != "id")

# Whatever the client was told: dates come back naive (CrewAI fails on aware ones), a date that Python cannot
# hold spoils its own document only, and UUIDs keep their standard form.
CODEC_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(
    document_class=dict,
    tz_aware=False,
    uuid_representation=UuidRepresentation.STANDARD,
    unicode_decode_error_handler="replace",
    datetime_conversion=DatetimeConversion.DATETIME_AUTO,
)


class MalformedDocumentError(ValueError):
    """A document is not one of ours, or only half of one."""


def to_document(record: MemoryRecord, vector_format: VectorFormat, tenant: str | None = None) -> dict[str, Any]:
    """Return the whole document that stores a record; without an embedding it has no such field.

    Raises:
        InvalidRecordError: a field has no BSON form, or the document would be over 16 MB.
    """
    return to_fields(record, ("id", *FIELDS), vector_format, tenant)


def to_fields(
    record: MemoryRecord, names: Iterable[str], vector_format: VectorFormat, tenant: str | None = None
) -> dict[str, Any]:
    """Return the document's fields that follow from some fields of a record, by their names in the record.

    An embedding that is None or empty gives no field.

    Args:
        tenant: whose record it is; it counts for the size as well.

    Raises:
        InvalidRecordError: a field has no BSON form, or the fields are over 16 MB.
    """
    fields: dict[str, Any] = {} if tenant is None else {"tenant": tenant}
    for name in names:
        if name in CONVERSIONS:
            try:
                fields |= CONVERSIONS[name](getattr(record, name))
            except metadata.UnstorableError as error:
                raise InvalidRecordError(record.id, error.key, error.reason) from error
            except (TypeError, ValueError, OverflowError) as error:
                raise InvalidRecordError(record.id, name, str(error)) from error
    if "embedding" in names:
        array = checked_embedding(record)
        if array is not None:
            fields["embedding"] = vectors.encode(array, vector_format)
    _check_size(record.id, fields)
    return fields


def checked_embedding(record: MemoryRecord) -> NDArray[np.float64] | None:
    """Return a record's embedding as an array, or None if it has none.

    Raises:
        InvalidRecordError: it is no flat list of finite numbers.
    """
    if record.embedding is None:
        return None
    try:
        array = vectors.check(record.embedding)
    except ValueError as error:
        raise InvalidRecordError(record.id, "embedding", str(error)) from error
    return array if array.size else None


def to_record(document: Mapping[str, Any]) -> MemoryRecord:
    """Return the record that a document stores; its embedding only if the document was read with it.

    Raises:
        MalformedDocumentError: the document lacks ``content``, ``scope`` or ``created_at``, or a field is of
            another type than it should be.
    """
    embedding = vectors.decode(document.get("embedding"))
    fields = {name: document[name] for name in FIELDS if name in document and name != "embedding"}
    missing = {"content", "scope", "created_at"} - fields.keys()
    if missing or not isinstance(document["_id"], str):
        raise MalformedDocumentError(f"no {', '.join(sorted(missing)) or 'text _id'}")
    fields.setdefault("last_accessed", fields["created_at"])
    try:
        for name in ("created_at", "last_accessed"):
            fields[name] = _moment(fields[name])
        fields["metadata"] = metadata.decode(fields.get("metadata") or {})
        record = MemoryRecord(id=document["_id"], **fields)
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors())
        raise MalformedDocumentError(faults) from error
    except (TypeError, ValueError) as error:
        raise MalformedDocumentError(str(error)) from error
    if embedding is not None:
        record.embedding = embedding.tolist()
    return record


def _check_size(record_id: str, fields: dict[str, Any]) -> None:
    try:
        size = len(bson.encode(fields, codec_options=CODEC_OPTIONS))
    except (BSONError, OverflowError, UnicodeError) as error:
        raise InvalidRecordError(record_id, "record", str(error)) from error
    if size > MAX_DOCUMENT_BYTES:
        largest = max(fields, key=lambda name: len(bson.encode({name: fields[name]}, codec_options=CODEC_OPTIONS)))
        raise InvalidRecordError(
            record_id,
            largest,
            f"the document would be {size:,} bytes; MongoDB stores at most {MAX_DOCUMENT_BYTES:,}: "
            f"shorten it, or split it over several records",
        )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"is {value!r}; it has to be text")
    return value


def _moment(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError(f"is {value!r}; it has to be a datetime")
    try:
        return to_utc(value)
    except OverflowError:
        raise ValueError(f"is {value!r}; it has to lie in the years 1 to 9999 in UTC") from None


def _number(value: Any) -> float:
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"is {number}; it has to lie in [0, 1]")
    return number


def _truth(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"is {value!r}; it has to be True or False")
    return bool(value)


def _scope_fields(value: Any) -> dict[str, Any]:
    scope = scopes.normalize(_checked(value, "scope"))
    return {"scope": scope, "scope_ancestors": scopes.ancestors(scope)}


def _categories(value: Any) -> list[str]:
    if isinstance(value, str):
        raise TypeError(f"is the text {value!r}; it has to be a list of texts")
    return [_checked(category, "categories") for category in value]


def _metadata_fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"is {value!r}; it has to be a mapping")
    encoded = metadata.encode(value)
    return {"metadata": encoded, "metadata_tokens": metadata.tokens(encoded)}


def _checked(value: Any, key: str) -> str:
    text = _text(value)
    metadata.check_text(text, key)
    return text


CONVERSIONS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "id": lambda value: {"_id": _checked(value, "id")},
    "content": lambda value: {"content": _checked(value, "content")},
    "scope": _scope_fields,
    "categories": lambda value: {"categories": _categories(value)},
    "metadata": _metadata_fields,
    "importance": lambda value: {"importance": _number(value)},
    "created_at": lambda value: {"created_at": _moment(value)},
    "last_accessed": lambda value: {"last_accessed": _moment(value)},
    "source": lambda value: {"source": None if value is None else _checked(value, "source")},
    "private": lambda value: {"private": _truth(value)},
}
