"""The index's own copy of a collection: vectors and declared filter fields, nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .definitions import VectorDefinition, VectorField
from .errors import MongotError, not_simulated
from .filters import check_query
from .stage import Criteria
from .values import FieldValues, found_at
from .vectors import BIT, Vector, is_indexable, scores, stored_vectors


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
class Entry:
    """One document as the index holds it."""

    id: Any
    vectors: Mapping[str, Vector]
    fields: Mapping[str, FieldValues]


@dataclass(eq=False)
class SeenDocument:
    """A document the search service has read, and its entries, made once for each definition."""

    body: Mapping[str, Any]
    _entries: dict[int, tuple[VectorDefinition, Entry]] = field(default_factory=dict)

    def entry(self, definition: VectorDefinition) -> Entry:
        known = self._entries.get(id(definition))
        if known is None:
            known = self._entries[id(definition)] = (definition, _entry(self.body, definition))
        return known[1]


def _entry(body: Mapping[str, Any], definition: VectorDefinition) -> Entry:
    declared = definition.vectors
    vectors: dict[str, Vector] = {}
    decided: set[str] = set()
    fields: dict[str, FieldValues] = {}
    for path, value in found_at(body, [*declared, *definition.filters]):
        if path not in declared:
            fields.setdefault(path, FieldValues()).add(value)
            continue
        first = next(stored_vectors(value), None)
        if first is not None and path not in decided:
            decided.add(path)
            if is_indexable(first, declared[path]):
                vectors[path] = first
    return Entry(body.get("_id"), vectors, fields)


class IndexedCopy:
    """What one index definition holds of one state of a collection."""

    def __init__(self, definition: VectorDefinition, documents: Iterable[SeenDocument]) -> None:
        self.definition = definition
        self.entries = [document.entry(definition) for document in documents]
        self._matrices: dict[tuple[str, str], tuple[list[Entry], NDArray[Any]]] = {}

    def search(self, criteria: Criteria, leniency: Leniency, dice: random.Random) -> list[Hit]:
        """The nearest documents under the filter, best first, or mongot's complaint about the query.

        Raises:
            MongotError: the query does not fit the definition.
        """
        vector = self._check(criteria)
        entries, matrix = self._rows(criteria.path, vector.kind)
        wanted = criteria.filter
        chosen = [n for n, entry in enumerate(entries) if wanted is None or wanted.matches(entry.fields)]
        if not chosen:
            return []
        rows = matrix if len(chosen) == len(entries) else matrix[chosen]
        found = scores(vector, rows, self.definition.vectors[criteria.path].similarity)
        hits = [Hit(entries[row].id, float(score)) for row, score in zip(chosen, found, strict=True)]
        if not criteria.exact and leniency.recall < 1:
            hits = [hit for hit in hits if dice.random() < leniency.recall]
        if leniency.shuffle_ties:
            dice.shuffle(hits)
        return sorted(hits, key=lambda hit: -hit.score)[: criteria.limit]

    def _check(self, criteria: Criteria) -> Vector:
        """The query's vector, once everything about the query fits this index."""
        if criteria.stored_source:
            if not self.definition.stored_source:
                raise MongotError("storedSource is not configured for this index.")
            raise not_simulated("returnStoredSource")
        if self.definition.nested_root is not None:
            raise not_simulated("searches of an index with nestedRoot")
        if criteria.nested:
            raise MongotError(
                '"nestedOptions" requires a vector path within the index\'s nested root, '
                f"but '{criteria.path}' is outside it"
            )
        if criteria.vector is None:
            raise MongotError("queryVector must be present")
        searched = self.definition.vectors.get(criteria.path)
        if searched is None:
            raise MongotError(f"{criteria.path} is not indexed as vector")
        _check_dimensions(searched, criteria.vector)
        if criteria.filter is not None:
            check_query(criteria.filter, self.definition.filters)
        _check_similarity(searched, criteria.vector)
        if criteria.explain:
            raise MongotError("Query must be run in explain mode, because 'explainOptions' are present.")
        return criteria.vector

    def _rows(self, path: str, kind: str) -> tuple[list[Entry], NDArray[Any]]:
        """The entries with a vector of the query's kind; of the other kinds the query sees nothing."""
        known = self._matrices.get((path, kind))
        if known is None:
            entries = [e for e in self.entries if path in e.vectors and e.vectors[path].kind == kind]
            rows = [entry.vectors[path].values for entry in entries]
            known = self._matrices[path, kind] = (entries, np.stack(rows) if rows else np.empty((0, 0)))
        return known


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
