"""The `$vectorSearch` stage itself: what mongod checks of it, and then what mongot makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bson import Decimal128

from .errors import FAILED_TO_PARSE, CommandError, MongotError
from .filters import Clause, parse_filter
from .mql import check_filter
from .parsing import (
    Fields,
    Location,
    anything,
    boolean,
    bson_type,
    document,
    nonempty_list_of,
    nonempty_string,
    positive,
    string,
    within,
)
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
    candidates: int | None
    filter: Clause | None
    parent_filter: Clause | None
    stored_source: bool
    explain: bool
    score_mode: str | None

    @property
    def exact(self) -> bool:
        """Whether every vector is compared, not only as many as there are candidates."""
        return self.candidates is None


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
    exact = stage.optional("exact", boolean) or False
    candidates = stage.optional("numCandidates", within(1, 10_000))
    limit = None if exact else _approximate_limit(stage, candidates)
    if exact and candidates is not None:
        raise MongotError('"numCandidates" must be omitted when "exact" is set to true')
    vector = _vector(stage)
    clause = stage.optional("filter", parse_filter)
    parent_clause = stage.optional("parentFilter", parse_filter)
    explain = not exact and stage.optional("explainOptions", _explain_options) is not None
    if limit is None:
        limit = stage.required("limit", positive)
    stored_source = stage.optional("returnStoredSource", boolean) or False
    score_mode = stage.optional("nestedOptions", _score_mode)
    return Criteria(index, path, vector, limit, candidates, clause, parent_clause, stored_source, explain, score_mode)


def _score_mode(value: Any, at: Location) -> str:
    options = Fields(document(value, at), at)
    mode = options.optional("scoreMode", string)
    if mode not in (None, "max", "avg"):
        raise MongotError(f'scoreMode: "{mode}" is not supported. Accepted values are "max" or "avg"')
    options.refuse_others()
    return mode or "max"


def _explain_options(value: Any, at: Location) -> list[Any]:
    options = Fields(document(value, at), at)
    ids = options.optional("traceDocumentIds", nonempty_list_of(anything))
    options.refuse_others()
    return ids or []


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
    query = _has_query(stage)
    if (vector is not None) == query:
        raise MongotError("Exactly one and only one of query and queryVector can be present")
    if vector is None:
        return None
    position = vector.first_non_finite
    if position is not None:
        raise MongotError(
            f"'queryVector' contains a non-finite value (Infinity or NaN) at position [{position}]. "
            'All values in "queryVector" must be finite.'
        )
    return vector


def _has_query(stage: Fields) -> bool:
    """Whether the stage asks for automatic embedding; text and model of it may still be missing."""
    query = stage.optional("query", anything)
    model = stage.optional("model", nonempty_string)
    if model is not None and query is None:
        raise MongotError("model can only be specified when using 'query' for auto-embedding, not with 'queryVector'")
    if isinstance(query, dict):
        body = Fields(query, stage.at)
        body.optional("text", string)
        body.refuse_others()
    elif query is not None and bson_type(query) != "STRING":
        raise MongotError(f"query must be a string or document, but got {bson_type(query)}")
    return query is not None
