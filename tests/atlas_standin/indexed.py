"""The index's own copy of a collection: vectors and declared filter fields, nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .definitions import VectorDefinition, VectorField
from .entries import Entry, SeenDocument
from .errors import MongotError, not_simulated
from .filters import Clause, check_query
from .stage import Criteria
from .vectors import BIT, Vector, scores


@dataclass(frozen=True)
class Hit:
    """A found document: its `_id` and the score it was found with."""

    id: Any
    score: float


@dataclass(frozen=True)
class Leniency:
    """How an approximate search may differ from an exact one: the true neighbours it finds, the order of ties."""

    recall: float = 1.0
    shuffle_ties: bool = False


@dataclass(frozen=True, eq=False)
class Row:
    """Something that holds a vector, and the document it belongs to, which is itself unless it is nested."""

    holder: Entry
    document: Entry


class IndexedCopy:
    """What one index definition holds of one state of a collection."""

    def __init__(self, definition: VectorDefinition, documents: Iterable[SeenDocument]) -> None:
        self.definition = definition
        self.entries = [document.entry(definition) for document in documents]
        self._matrices: dict[tuple[str, str], tuple[list[Row], NDArray[Any]]] = {}

    def search(self, criteria: Criteria, leniency: Leniency, dice: random.Random) -> list[Hit]:
        """The nearest documents under the filter, best first, or mongot's complaint about the query.

        Raises:
            MongotError: the query does not fit the definition.
        """
        vector = self._check(criteria)
        rows, matrix = self._rows(criteria.path, vector.kind)
        wanted = criteria.filter
        chosen = [n for n, row in enumerate(rows) if wanted is None or wanted.matches(row.holder.fields)]
        if not chosen:
            return []
        compared = matrix if len(chosen) == len(rows) else matrix[chosen]
        found = scores(vector, compared, self.definition.vectors[criteria.path].similarity)
        scored = [(rows[n], float(score)) for n, score in zip(chosen, found, strict=True)]
        if not criteria.exact and leniency.recall < 1:
            scored = [pair for pair in scored if dice.random() < leniency.recall]
        if leniency.shuffle_ties:
            dice.shuffle(scored)
        nearest = sorted(scored, key=lambda pair: -pair[1])[: criteria.candidates]
        return _documents(nearest, criteria.parent_filter)[: criteria.limit]

    def _check(self, criteria: Criteria) -> Vector:
        """The query's vector, once everything about the query fits this index."""
        if criteria.stored_source and self.definition.stored_source is None:
            raise MongotError("storedSource is not configured for this index.")
        if criteria.vector is None:
            raise MongotError("queryVector must be present")
        nested = self.definition.is_nested(criteria.path)
        if criteria.score_mode is not None and not nested:
            raise MongotError(
                '"nestedOptions" requires a vector path within the index\'s nested root, '
                f"but '{criteria.path}' is outside it"
            )
        searched = self.definition.vectors.get(criteria.path)
        if searched is None:
            raise MongotError(f"{criteria.path} is not indexed as vector")
        _check_dimensions(searched, criteria.vector)
        for clause in (criteria.filter, criteria.parent_filter):
            if clause is not None:
                check_query(clause, self.definition.filters)
        _check_similarity(searched, criteria.vector)
        if criteria.explain:
            raise MongotError("Query must be run in explain mode, because 'explainOptions' are present.")
        if criteria.stored_source:
            raise not_simulated("returnStoredSource")
        if criteria.score_mode == "avg":
            raise not_simulated("nestedOptions with scoreMode avg")
        return criteria.vector

    def _rows(self, path: str, kind: str) -> tuple[list[Row], NDArray[Any]]:
        """Whatever has a vector of the query's kind; of the other kinds the query sees nothing."""
        known = self._matrices.get((path, kind))
        if known is None:
            nested = self.definition.is_nested(path)
            holders = [
                Row(holder, entry) for entry in self.entries for holder in (entry.nested if nested else (entry,))
            ]
            rows = [row for row in holders if path in row.holder.vectors and row.holder.vectors[path].kind == kind]
            values = [row.holder.vectors[path].values for row in rows]
            known = self._matrices[path, kind] = (rows, np.stack(values) if values else np.empty((0, 0)))
        return known


def _documents(nearest: Iterable[tuple[Row, float]], wanted: Clause | None) -> list[Hit]:
    """The documents of what was found, best first and each once, that pass the parentFilter."""
    hits: dict[int, Hit] = {}
    for row, score in nearest:
        if wanted is None or wanted.matches(row.document.fields):
            hits.setdefault(id(row.document), Hit(row.document.id, score))
    return list(hits.values())


def _check_dimensions(searched: VectorField, vector: Vector) -> None:
    if vector.dimensions != searched.dimensions:
        raise MongotError(
            f"vector field is indexed with {searched.dimensions} dimensions but queried with {vector.dimensions}"
        )


def _check_similarity(searched: VectorField, vector: Vector) -> None:
    if searched.similarity == "cosine" and vector.is_zero:
        raise MongotError("Cosine similarity cannot be calculated against a zero vector.")
    if vector.kind == BIT and searched.similarity != "euclidean":
        named = {"cosine": "COSINE", "dotProduct": "DOT_PRODUCT"}[searched.similarity]
        raise MongotError(
            "Binary vectors can only be used with fields indexed with Euclidean similarity "
            f"but indexed similarity is {named}"
        )
