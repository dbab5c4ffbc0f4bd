"""Index definitions: what a search index may declare, and what mongot or Atlas says of everything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from .errors import not_simulated
from .parsing import (
    Fields,
    Location,
    document,
    integer,
    list_of,
    nonblank_string,
    nonempty_list_of,
    one_of,
    string,
    within,
)

Similarity = Literal["cosine", "dotProduct", "euclidean"]

_PARTITIONS: Final = (1, 2, 4, 8, 16, 32, 64)
_FIELD_TYPES: Final = ("vector", "filter", "text", "autoEmbed")


@dataclass(frozen=True)
class VectorField:
    path: str
    dimensions: int
    similarity: str
    quantization: str = "none"
    method: str = "hnsw"
    max_edges: int = 16
    edge_candidates: int = 100

    def listed(self) -> dict[str, Any]:
        """The field as a listing shows it, without what is a default."""
        options = _without_defaults(maxEdges=(self.max_edges, 16), numEdgeCandidates=(self.edge_candidates, 100))
        return {
            "type": "vector",
            "path": self.path,
            "numDimensions": self.dimensions,
            **_without_defaults(indexingMethod=(self.method, "hnsw"), hnswOptions=(options, {})),
            "similarity": self.similarity,
            **_without_defaults(quantization=(self.quantization, "none")),
        }


@dataclass(frozen=True)
class FilterField:
    path: str

    def listed(self) -> dict[str, Any]:
        return {"type": "filter", "path": self.path}


@dataclass(frozen=True)
class StoredSource:
    """Which fields of a document an index keeps: those of an include list, or all but those of an exclude list."""

    mode: str
    paths: tuple[str, ...]

    def listed(self) -> dict[str, Any]:
        return {self.mode: list(self.paths)}


@dataclass(frozen=True)
class VectorDefinition:
    """A vectorSearch index: its fields in the order given, which is part of their identity."""

    fields: tuple[VectorField | FilterField, ...]
    partitions: int = 1
    nested_root: str | None = None
    stored_source: StoredSource | None = None

    @property
    def vectors(self) -> dict[str, VectorField]:
        return {field.path: field for field in self.fields if isinstance(field, VectorField)}

    @property
    def filters(self) -> frozenset[str]:
        return frozenset(field.path for field in self.fields if isinstance(field, FilterField))

    def is_nested(self, path: str) -> bool:
        """Whether a path lies within the nestedRoot, which has to have a vector in it to be one."""
        return (
            self.nested_root is not None
            and any(_within(vector, self.nested_root) for vector in self.vectors)
            and _within(path, self.nested_root)
        )

    def listed(self) -> dict[str, Any]:
        """The definition as a listing shows it, whatever was left out or written in full when it was given."""
        source = None if self.stored_source is None else self.stored_source.listed()
        return {
            "fields": [field.listed() for field in self.fields],
            **_without_defaults(
                numPartitions=(self.partitions, 1), storedSource=(source, None), nestedRoot=(self.nested_root, None)
            ),
        }

    def equivalent(self, other: VectorDefinition) -> bool:
        """mongot's idea of the same definition; nestedRoot and storedSource do not count."""
        return (self.fields, self.partitions) == (other.fields, other.partitions)


def parse_search(given: Mapping[str, Any], at: Location) -> None:
    """A definition of type "search": all that matters here is that forgetting the type is an error."""
    Fields(given, at).required("mappings", document)


def parse_vector(given: Mapping[str, Any], at: Location, *, atlas: bool, closed: bool) -> VectorDefinition:
    """Read a vectorSearch definition, or raise mongot's complaint about it.

    `atlas` adds what only Atlas demands, a vector field; `closed` refuses properties that do not belong there,
    which mongot does not do at creation.
    """
    body = Fields(given, at)
    fields = tuple(body.required("fields", list_of(_field)))
    if len({field.path for field in fields}) < len(fields):
        at.child("fields").refuse("Vector and filter fields should have distinct paths")
    vectors = [field.path for field in fields if isinstance(field, VectorField)]
    if atlas and not vectors:
        at.child("fields").refuse("must have at least one vector field")
    partitions = body.optional("numPartitions", _partitions) or 1
    stored_source = body.optional("storedSource", _stored_source)
    nested_root = body.optional("nestedRoot", string)
    if nested_root is not None and not any(_within(f"{field.path}.", nested_root) for field in fields):
        at.refuse(f'nestedRoot "{nested_root}" does not match any vector field path in the index definition')
    definition = VectorDefinition(fields, partitions, nested_root, stored_source)
    if closed:
        body.refuse_others()
    return definition


def _field(value: Any, at: Location) -> VectorField | FilterField:
    field = Fields(document(value, at), at)
    kind = field.required("type", one_of(*_FIELD_TYPES))
    if kind in ("text", "autoEmbed"):
        raise not_simulated("automatic embedding")
    path = field.required("path", string)
    parsed = FilterField(path) if kind == "filter" else _vector_field(field, path)
    field.refuse_others()
    return parsed


def _vector_field(field: Fields, path: str) -> VectorField:
    dimensions = field.required("numDimensions", within(1, 8192))
    quantization = field.optional("quantization", one_of("none", "scalar", "binary")) or "none"
    if quantization == "binary" and dimensions % 8:
        field.at.refuse(f"numDimensions {dimensions} must be a multiple of 8 for binary quantization")
    options = field.optional("hnswOptions", _hnsw_options)
    method = field.optional("indexingMethod", one_of("hnsw", "flat")) or "hnsw"
    if options is not None and method != "hnsw":
        field.at.refuse('hnswOptions is only supported with "indexingMethod: hnsw".')
    similarity = field.required("similarity", one_of("cosine", "dotProduct", "euclidean"))
    edges, candidates = options or (16, 100)
    return VectorField(path, dimensions, similarity, quantization, method, edges, candidates)


def _hnsw_options(value: Any, at: Location) -> tuple[int, int]:
    options = Fields(document(value, at), at)
    edges = options.optional("maxEdges", within(16, 64))
    candidates = options.optional("numEdgeCandidates", within(100, 3200))
    options.refuse_others()
    return (edges or 16, candidates or 100)


def _partitions(value: Any, at: Location) -> int:
    number = integer(value, at)
    if number not in _PARTITIONS:
        at.refuse(f"numPartitions {number} must be of 1, 2, 4, 8, 16, 32, or 64.")
    return number


def _stored_source(value: Any, at: Location) -> StoredSource | None:
    if isinstance(value, bool):
        if value:
            at.refuse(
                "storedSource: true is not supported for vector indexes. "
                "Accepted values are include, exclude, or false."
            )
        return None
    if not isinstance(value, dict):
        at.refuse_type("boolean or document", value)
    source = Fields(value, at)
    lists = {mode: source.optional(mode, nonempty_list_of(nonblank_string)) for mode in ("include", "exclude")}
    given = [StoredSource(mode, tuple(sorted(set(paths)))) for mode, paths in lists.items() if paths is not None]
    if not given:
        at.refuse("one of [include, exclude] must be present")
    if len(given) > 1:
        at.refuse("only one of [include, exclude] may be present")
    if any(_within(path, other) for path in given[0].paths for other in given[0].paths):
        at.refuse("path collision is not allowed")
    source.refuse_others()
    return given[0]


def _within(path: str, root: str) -> bool:
    return path.startswith(f"{root}.")


def _without_defaults(**values: tuple[Any, Any]) -> dict[str, Any]:
    """The fields whose value is not the default that comes with it."""
    return {name: value for name, (value, default) in values.items() if value != default}
