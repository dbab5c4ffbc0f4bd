"""The `$vectorSearch` stage itself: what mongod checks of it, and then what mongot makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bson import Decimal128

from .errors import FAILED_TO_PARSE, CommandError, MongotError
from .filters import Clause, parse_filter
from .mql import check_filter
from .parsing import Fields, Location, bson_type, document, nonempty_string, one_of, positive, string, within
from .parsing import boolean as boolean_field
from .vectors import Vector, query_vector

LIMIT_NOT_A_NUMBER: Final = 8575100
LIMIT_NOT_POSITIVE: Final = 7912700


@dataclass(frozen=True)
class Criteria:
    """A stage that both servers have accepted; without a vector it asks for automatic embedding."""

    index: str
    path: str
    vector: Vector | None
    limit: int
    exact: bool
    filter: Clause | None
    stored_source: bool
    explain: bool
    nested: bool


def check_as_mongod(spec: Any) -> None:
    """What the server checks before it asks mongot: the limit, and that the filter is MQL."""
    if not isinstance(spec, dict):
        raise CommandError(
            FAILED_TO_PARSE,
            f"$vectorSearch value must be an object. Found: {bson_type(spec).lower()}",
        )
    if "limit" in spec:
        limit = spec["limit"]
        if isinstance(limit, bool) or not isinstance(limit, int | float | Decimal128):
            raise CommandError(LIMIT_NOT_A_NUMBER, "Expected limit field to be a number in $vectorSearch")
        if _as_integer(limit) <= 0:
            raise CommandError(LIMIT_NOT_POSITIVE, "Expected limit to be positive")
    if isinstance(spec.get("filter"), dict):
        check_filter(spec["filter"])


def _as_integer(number: float | Decimal128) -> int:
    """mongod's safeNumberLong: towards zero, and NaN is 0."""
    as_float = float(number.to_decimal()) if isinstance(number, Decimal128) else float(number)
    if as_float != as_float:
        return 0
    return int(max(-(2.0**63), min(2.0**63, as_float)))


def parse_as_mongot(spec: dict[str, Any]) -> Criteria:
    """Read the stage in mongot's order; fields it does not know are ignored.

    Raises:
        MongotError: the first thing wrong with it.
    """
    stage = Fields(spec, Location())
    stage.optional("searchNodePreference", _node_preference)
    index = stage.required("index", nonempty_string)
    path = stage.required("path", string)
    exact = stage.optional("exact", boolean_field) or False
    candidates = stage.optional("numCandidates", within(1, 10_000))
    limit = None if exact else _approximate_limit(stage, candidates)
    if exact and candidates is not None:
        raise MongotError('"numCandidates" must be omitted when "exact" is set to true')
    vector = _vector(stage)
    clause = stage.optional("filter", parse_filter)
    explain = not exact and stage.optional("explainOptions", document) is not None
    if limit is None:
        limit = stage.required("limit", positive)
    stored_source = stage.optional("returnStoredSource", boolean_field) or False
    nested = stage.optional("nestedOptions", _nested_options) is not None
    return Criteria(index, path, vector, limit, exact, clause, stored_source, explain, nested)


def _nested_options(value: Any, at: Location) -> str:
    return Fields(document(value, at), at).required("scoreMode", one_of("max", "avg"))


def _node_preference(value: Any, at: Location) -> None:
    Fields(document(value, at), at).required("key", nonempty_string)


def _approximate_limit(stage: Fields, candidates: int | None) -> int:
    if candidates is None:
        raise MongotError("numCandidates is required for approximate vector search")
    limit = stage.required("limit", positive)
    if limit > candidates:
        raise MongotError("limit should be less than or equal to numCandidates")
    return limit


def _vector(stage: Fields) -> Vector | None:
    """The query vector; None when the stage asks for automatic embedding instead."""
    vector = stage.optional("queryVector", query_vector)
    text = stage.optional("query", _query_text)
    model = stage.optional("model", string)
    if (vector is None) == (text is None):
        raise MongotError("Exactly one and only one of query and queryVector can be present")
    if vector is None:
        return None
    if model is not None:
        raise MongotError("model can only be specified when using 'query' for auto-embedding, not with 'queryVector'")
    position = vector.first_non_finite
    if position is not None:
        raise MongotError(
            f"'queryVector' contains a non-finite value (Infinity or NaN) at position [{position}]. "
            'All values in "queryVector" must be finite.'
        )
    return vector


def _query_text(value: Any, at: Location) -> str:
    if isinstance(value, dict):
        return Fields(value, at).required("text", string)
    if not isinstance(value, str):
        raise MongotError("query must be a string or document")
    return value
