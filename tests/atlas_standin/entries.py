"""Documents as an index holds them: their vectors and declared filter fields, and those of nested documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .definitions import VectorDefinition
from .values import FieldValues, documents_at, found_at, holds_null
from .vectors import Vector, first_indexable, stored_vectors


@dataclass(frozen=True, eq=False)
class Entry:
    """One document as the index holds it; with a nestedRoot each document there is one of its own."""

    id: Any
    vectors: Mapping[str, Vector]
    fields: Mapping[str, FieldValues]
    nested: Sequence[Entry] = ()


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
    paths = [declared.path for declared in definition.fields]
    inside = {path for path in paths if definition.is_nested(path)}
    vectors, fields = _held(body, definition, paths, without=inside)
    if not inside or definition.nested_root is None:
        return Entry(body.get("_id"), vectors, fields)
    prefix = f"{definition.nested_root}."
    nested = [
        Entry(body.get("_id"), *_held(document, definition, inside, prefix))
        for document in documents_at(body, definition.nested_root)
    ]
    return Entry(body.get("_id"), vectors, fields, nested)


def _held(
    body: Mapping[str, Any],
    definition: VectorDefinition,
    paths: Collection[str],
    prefix: str = "",
    without: Collection[str] = (),
) -> tuple[dict[str, Vector], dict[str, FieldValues]]:
    declared = definition.vectors
    met: dict[str, list[Vector]] = {}
    fields: dict[str, FieldValues] = {}
    for path, value in found_at(body, paths, prefix):
        if path in without:
            continue
        if path in declared:
            met.setdefault(path, []).extend(stored_vectors(value))
        else:
            fields.setdefault(path, FieldValues()).add(value)
        # Nulls are indexed whatever the path is declared as.
        if path in declared and holds_null(value):
            fields.setdefault(path, FieldValues()).add(None)
    taken = {path: first_indexable(vectors, declared[path]) for path, vectors in met.items()}
    return {path: vector for path, vector in taken.items() if vector is not None}, fields
