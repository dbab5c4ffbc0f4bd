"""Where the search stages may stand in a pipeline, and under which options a command may carry them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from .cluster import AGGREGATIONS
from .errors import API_STRICT, INVALID_OPTIONS, NOT_IN_TRANSACTION, CommandError, not_simulated

Stage = Mapping[str, Any]
Inside = Literal["pipeline", "facet", "lookup"]

_IN_FACET: Final = 40600
_NOT_FIRST: Final = 40602
_IN_LOOKUP: Final = 51047
_NOT_ONE_FIELD: Final = 40323
_OPTION_NOT_ON_VIEW: Final = 167


def stages_of(pipeline: Any) -> list[dict[str, Any]]:
    """The stages of a pipeline; whatever is not one is the server's to complain about."""
    return [stage for stage in pipeline if isinstance(stage, dict)] if isinstance(pipeline, list) else []


def search_stages(pipeline: Any) -> Iterator[tuple[str, Any]]:
    """Every search stage in the pipeline and its sub-pipelines, with its spec."""
    for stage in stages_of(pipeline):
        for name, spec in stage.items():
            if name in AGGREGATIONS:
                yield name, spec
            for _, nested in _nested(name, spec):
                yield from search_stages(nested)


def _nested(name: str, spec: Any) -> Iterator[tuple[Inside, Any]]:
    if not isinstance(spec, dict):
        return
    if name == "$facet":
        yield from (("facet", pipeline) for pipeline in spec.values())
    elif name == "$lookup" and "pipeline" in spec:
        yield "lookup", spec["pipeline"]
    elif name == "$unionWith" and "pipeline" in spec:
        yield "pipeline", spec["pipeline"]


def check_positions(pipeline: Any, inside: Inside = "pipeline") -> None:
    """Refuse a search stage that is not the first of its pipeline, or stands in `$facet` or `$lookup`."""
    for position, stage in enumerate(stages_of(pipeline)):
        for name, spec in stage.items():
            if name in AGGREGATIONS:
                _check_position(name, position, inside)
                if len(stage) > 1:
                    raise CommandError(
                        _NOT_ONE_FIELD, "A pipeline stage specification object must contain exactly one field."
                    )
            for where, nested in _nested(name, spec):
                check_positions(nested, inside if where == "pipeline" else where)


def _check_position(name: str, position: int, inside: Inside) -> None:
    if inside == "facet":
        raise CommandError(_IN_FACET, f"{name} is not allowed to be used within a $facet stage")
    if inside == "lookup" and name == "$vectorSearch":
        raise CommandError(_IN_LOOKUP, f"{name} is not allowed within a $lookup's sub-pipeline")
    if position > 0:
        raise CommandError(_NOT_FIRST, f"{name} is only valid as the first stage in a pipeline")


def check_search_meta(expression: Any) -> None:
    """Refuse `$$SEARCH_META`, which only `$search` sets."""
    if isinstance(expression, str) and expression.partition(".")[0] == "$$SEARCH_META":
        raise CommandError(6347902, "Can't access $$SEARCH_META without a $search stage")
    if isinstance(expression, dict | list):
        for part in expression.values() if isinstance(expression, dict) else expression:
            check_search_meta(part)


def check_aggregate_options(name: str, body: Mapping[str, Any]) -> None:
    """Refuse the transaction, the read concern and the strict API that no search stage runs under."""
    if body.get("apiStrict") is True:
        raise CommandError(API_STRICT, f"stage {name} is not allowed with 'apiStrict: true' in API Version 1")
    if body.get("autocommit") is False:
        raise CommandError(
            NOT_IN_TRANSACTION, f"Operation not permitted in transaction :: caused by :: Stage {name} is not allowed"
        )
    level = (body.get("readConcern") or {}).get("level")
    if level not in (None, "local"):
        raise CommandError(
            INVALID_OPTIONS,
            f"Aggregation stage {name} cannot run with a readConcern other than 'local', "
            f"or in a multi-document transaction. Current readConcern: {level}",
        )


def check_management_options(name: str, body: Mapping[str, Any]) -> None:
    if body.get("apiStrict") is True:
        raise CommandError(API_STRICT, f"Provided apiStrict:true, but the command {name} is not in API Version 1")
    if body.get("autocommit") is False:
        raise CommandError(NOT_IN_TRANSACTION, f"Cannot run '{name}' in a multi-document transaction.")
    for option in ("readConcern", "writeConcern"):
        if option in body:
            raise CommandError(INVALID_OPTIONS, f"Command does not support {option}")


def check_other_command(name: str, body: Mapping[str, Any]) -> None:
    """Refuse search stages where commands other than aggregate carry a pipeline."""
    for pipeline in _carried(name, body):
        for stage, _ in search_stages(pipeline):
            if name in ("create", "collMod"):
                raise CommandError(_OPTION_NOT_ON_VIEW, f"{stage} is not allowed in a view definition")
            if name == "explain":
                raise not_simulated(f"explain of {stage}")
            raise CommandError(INVALID_OPTIONS, f"{stage} is not allowed to be used within an update")


def _carried(name: str, body: Mapping[str, Any]) -> Iterator[Any]:
    if name == "update":
        yield from (statement.get("u") for statement in body.get("updates", []))
    elif name in ("findAndModify", "findandmodify"):
        yield body.get("update")
    elif name == "bulkWrite":
        yield from (operation.get("updateMods") for operation in body.get("ops", []))
    elif name in ("create", "collMod"):
        yield body.get("pipeline")
    elif name == "explain" and isinstance(body["explain"], dict):
        yield body["explain"].get("pipeline")
