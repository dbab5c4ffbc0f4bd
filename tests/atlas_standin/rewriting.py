"""Search pipelines as pipelines an ordinary server can run: found ids looked up, scores in a temporary field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from .errors import CommandError, not_simulated
from .indexed import Hit

SCORE: Final = "__atlas_standin_score"

_META: Final = {"$meta": "vectorSearchScore"}
# These make new documents, which have no metadata.
_FORGETTING: Final = ("$group", "$bucket", "$bucketAuto", "$count", "$sortByCount", "$facet")
_ROOT_WITHOUT_SCORE: Final = {
    "$arrayToObject": {"$filter": {"input": {"$objectToArray": "$$ROOT"}, "cond": {"$ne": ["$$this.k", SCORE]}}}
}

Stage = dict[str, Any]
Search = Callable[[str, dict[str, Any]], list[Hit]]


def asks_for_score(expression: Any) -> bool:
    """Whether the score's metadata is mentioned anywhere in it."""
    if expression == _META:
        return True
    if isinstance(expression, dict):
        return any(asks_for_score(value) for key, value in expression.items() if key != "$literal")
    return isinstance(expression, list) and any(map(asks_for_score, expression))


def score_unavailable() -> CommandError:
    return CommandError(40218, "query requires vectorSearchScore metadata, but it is not available")


class Rewriter:
    """Rewrites one aggregation, running each `$vectorSearch` in it by `search`."""

    def __init__(self, search: Search) -> None:
        self._search = search

    def top_level(self, collection: str, pipeline: Sequence[Stage]) -> list[Stage]:
        """A pipeline that begins with `$vectorSearch`, to be run on the database, not on a collection.

        Every document that is found and still exists comes in its current form, best score first.
        """
        hits = self._search(collection, pipeline[0]["$vectorSearch"])
        rest, carried = self._rest(pipeline[1:], has_score=True, keep_score=False)
        rows = [{"$literal": {"id": hit.id, "score": hit.score}} for hit in hits]
        return [{"$documents": rows}, *_looked_up(collection, "", carried=carried), *rest]

    def ordinary(self, pipeline: Sequence[Stage]) -> list[Stage]:
        """A pipeline that only has searches inside its `$unionWith` stages."""
        return self._rest(pipeline, has_score=False, keep_score=False)[0]

    def _united(self, spec: Mapping[str, Any], *, keep_score: bool) -> dict[str, Any]:
        pipeline = spec.get("pipeline") or []
        if not _begins_with_search(pipeline):
            return {**spec, "pipeline": self.ordinary(pipeline)}
        if "coll" not in spec:
            raise not_simulated("$vectorSearch in a $unionWith without a collection")
        hits = self._search(spec["coll"], pipeline[0]["$vectorSearch"])
        rest, carried = self._rest(pipeline[1:], has_score=True, keep_score=keep_score)
        rows = [{"id": hit.id, "score": hit.score} for hit in hits]
        # A sub-pipeline starts from its collection, whatever it makes of it: one document serves as the peg.
        peg: list[Stage] = [
            {"$limit": 1},
            {"$project": {"_id": 0, "hit": {"$literal": rows}}},
            {"$unwind": "$hit"},
        ]
        return {**spec, "pipeline": [*peg, *_looked_up(spec["coll"], "hit.", carried=carried), *rest]}

    def _rest(self, stages: Sequence[Stage], *, has_score: bool, keep_score: bool) -> tuple[list[Stage], bool]:
        """The stages with the score in a field, and whether they need that field at all."""
        mentions = [n for n, stage in enumerate(stages) if _mentions(stage)]
        last = len(stages) if keep_score else max(mentions, default=-1)
        rewritten: list[Stage] = []
        for position, stage in enumerate(stages):
            name, spec = next(iter(stage.items()), ("", None))
            if name == "$unionWith" and isinstance(spec, dict):
                rewritten.append({name: self._united(spec, keep_score=position < last)})
                has_score = has_score or _begins_with_search(spec.get("pipeline"))
                continue
            if position in mentions and not has_score:
                raise score_unavailable()
            within = position <= last and has_score
            rewritten.append(_carrying(name, spec, kept=position < last) if within else stage)
            has_score = has_score and name not in _FORGETTING
            if position == last and has_score:
                rewritten.append({"$unset": SCORE})
        return rewritten, last >= 0


def _looked_up(collection: str, prefix: str, *, carried: bool) -> list[Stage]:
    """mongod's id lookup: what has been deleted since drops out, and nothing takes its place."""
    found: Any = "$found"
    if carried:
        found = {"$mergeObjects": ["$found", {SCORE: f"${prefix}score"}]}
    return [
        {"$lookup": {"from": collection, "localField": f"{prefix}id", "foreignField": "_id", "as": "found"}},
        {"$unwind": "$found"},
        {"$replaceRoot": {"newRoot": found}},
    ]


def _begins_with_search(pipeline: Any) -> bool:
    return bool(pipeline) and "$vectorSearch" in pipeline[0]


def _mentions(stage: Stage) -> bool:
    name, spec = next(iter(stage.items()), ("", None))
    if name in ("$lookup", "$unionWith") and isinstance(spec, dict):
        return asks_for_score({key: value for key, value in spec.items() if key != "pipeline"})
    return asks_for_score(spec)


def _carrying(name: str, spec: Any, *, kept: bool) -> Stage:
    """One stage that reads the score from its field and, if it is `kept`, passes it on."""
    if not isinstance(spec, dict):
        return {name: _replaced(spec)}
    if name == "$sort":
        return {name: dict((SCORE, -1) if order == _META else (key, order) for key, order in spec.items())}
    if name == "$facet":
        return {name: {key: _facet(stages) for key, stages in spec.items()}}
    replaced = _replaced(spec)
    if kept and name == "$project" and _is_inclusion(spec):
        replaced = {**replaced, SCORE: 1}
    if kept and name in ("$replaceRoot", "$replaceWith"):
        root = replaced["newRoot"] if name == "$replaceRoot" else replaced
        merged = {"$mergeObjects": [root, {SCORE: f"${SCORE}"}]}
        replaced = {"newRoot": merged} if name == "$replaceRoot" else merged
    return {name: replaced}


def _facet(stages: Sequence[Stage]) -> list[Stage]:
    names = [next(iter(stage.items()), ("", None)) for stage in stages]
    return [*(_carrying(name, spec, kept=True) for name, spec in names), {"$unset": SCORE}]


def _replaced(expression: Any) -> Any:
    if expression == _META:
        return f"${SCORE}"
    if expression == "$$ROOT":
        return _ROOT_WITHOUT_SCORE
    if isinstance(expression, dict):
        return {
            key: value if key in ("$literal", "pipeline") else _replaced(value) for key, value in expression.items()
        }
    return [_replaced(item) for item in expression] if isinstance(expression, list) else expression


def _is_inclusion(projection: Mapping[str, Any]) -> bool:
    """Whether a `$project` names what to keep; by what it says of any field but `_id`."""
    for key, value in projection.items():
        if key == "_id":
            continue
        if isinstance(value, dict) and value and not next(iter(value)).startswith("$"):
            return _is_inclusion(value)
        return value not in (0, False)
    return bool(projection.get("_id"))
