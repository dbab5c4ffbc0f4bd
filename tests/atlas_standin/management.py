"""`createSearchIndexes`, `updateSearchIndex`, `dropSearchIndex` and `$listSearchIndexes`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bson import ObjectId

from .catalog import Catalog
from .cluster import Knobs
from .definitions import VectorDefinition, parse_search, parse_vector
from .errors import (
    BAD_VALUE,
    COMMAND_FAILED,
    FAILED_TO_PARSE,
    ILLEGAL_OPERATION,
    INDEX_ALREADY_EXISTS,
    INDEX_NOT_FOUND,
    INVALID_INDEX_SPECIFICATION_OPTION,
    INVALID_OPTIONS,
    NAMESPACE_NOT_FOUND,
    NO_VIEW_SUPPORT,
    UNKNOWN_ERROR,
    CommandError,
    MongotError,
)
from .lifecycle import SearchIndex
from .parsing import Fields, Location, document, list_of, one_of, string
from .replica import Namespace

COMMANDS: Final = ("createSearchIndexes", "updateSearchIndex", "dropSearchIndex")

VECTOR_SEARCH: Final = "vectorSearch"
_ANY_TYPE: Final = one_of("search", VECTOR_SEARCH)

Identify = Callable[[Namespace], "Collection | None"]
Command = Mapping[str, Any]


@dataclass(frozen=True)
class Collection:
    """What the server knows of a collection: its UUID, and whether it is a view or a timeseries."""

    uuid: bytes
    kind: str


class Wanted:
    """One index that createSearchIndexes asks for."""

    def __init__(self, value: Any, at: Location, *, atlas: bool) -> None:
        body = Fields(document(value, at), at)
        self.type = body.optional("type", _ANY_TYPE) or "search"
        self.given = body.required("definition", document)
        self.name = body.optional("name", string) or "default"
        self.definition = parse_definition(self.type, self.given, at, atlas=atlas, closed=atlas)
        body.refuse_others()

    def conflicts_with(self, existing: SearchIndex) -> bool:
        known = existing.latest.definition
        if self.definition is None or known is None:
            return self.type != existing.type or self.given != existing.latest.given
        return not self.definition.equivalent(known)


def parse_definition(
    type_: str, given: Mapping[str, Any], at: Location, *, atlas: bool, closed: bool
) -> VectorDefinition | None:
    """Read a definition of either type; one of type "search" leaves nothing worth keeping."""
    if type_ == VECTOR_SEARCH:
        return parse_vector(given, at, atlas=atlas, closed=closed)
    parse_search(given, at)
    return None


class IndexManagement:
    """Answers the management commands by the rules of Atlas or of mongot community."""

    def __init__(self, catalog: Catalog, knobs: Knobs, identify: Identify) -> None:
        self._catalog = catalog
        self._knobs = knobs
        self._identify = identify

    @property
    def _on_atlas(self) -> bool:
        return self._knobs.flavour == "atlas"

    def run(self, name: str, body: Command) -> dict[str, Any]:
        """Answer one of `COMMANDS`.

        Raises:
            CommandError: the server's error reply.
        """
        answer = {
            "createSearchIndexes": self._create,
            "updateSearchIndex": self._update,
            "dropSearchIndex": self._drop,
        }[name]
        if name != "createSearchIndexes":
            _require_one_selector(body)
        namespace = (str(body["$db"]), str(body[name]))
        return answer(namespace, self._collection(namespace), body)

    def listed(self, namespace: Namespace, spec: Any) -> list[dict[str, Any]]:
        """The documents of a `$listSearchIndexes` stage; none if the collection does not exist."""
        name, id_ = check_list_stage(spec)
        collection = self._identify(namespace)
        if collection is None:
            return []
        return [
            index.listed(with_type=self._on_atlas)
            for index in self._catalog.of(collection.uuid)
            if name in (None, index.name) and id_ in (None, str(index.id))
        ]

    def _collection(self, namespace: Namespace) -> Collection:
        collection = self._identify(namespace)
        if collection is None:
            raise CommandError(NAMESPACE_NOT_FOUND, f"Collection '{'.'.join(namespace)}' does not exist.")
        if collection.kind == "timeseries":
            raise CommandError(10840701, "Search indexes are not supported on timeseries collections")
        if collection.kind == "view":
            raise CommandError(NO_VIEW_SUPPORT, "The Atlas stand-in does not index views.")
        return collection

    def _create(self, namespace: Namespace, collection: Collection, body: Command) -> dict[str, Any]:
        parse = list_of(lambda value, at: Wanted(value, at, atlas=self._on_atlas))
        try:
            wanted = Fields(body, Location("userCommand")).required("indexes", parse)
        except MongotError as error:
            raise self._invalid(error, UNKNOWN_ERROR) from error
        fresh: dict[str, Wanted] = {}
        for index in wanted:
            known = self._catalog.find(collection.uuid, name=index.name)
            if known is None and index.name not in fresh:
                fresh[index.name] = index
            elif self._on_atlas:
                raise CommandError(INDEX_ALREADY_EXISTS, "Duplicate Index")
            elif known is not None and index.conflicts_with(known):
                raise CommandError(
                    INDEX_ALREADY_EXISTS,
                    f"Index {index.name} already exists with a different definition. Drop it first if needed.",
                )
        self._require_room(len(fresh))
        ids = {name: self._add(namespace, collection, index) for name, index in fresh.items()}
        # Of an index that was there already community's mongot answers an id it has just made up.
        created = [{"id": str(ids.get(index.name, ObjectId())), "name": index.name} for index in wanted]
        return {"ok": 1.0, "indexesCreated": created}

    def _add(self, namespace: Namespace, collection: Collection, wanted: Wanted) -> ObjectId:
        generation = self._catalog.generation(wanted.given, wanted.definition, 0)
        index = SearchIndex(wanted.name, wanted.type, namespace, collection.uuid, generation)
        self._catalog.add(index)
        return index.id

    def _require_room(self, more: int) -> None:
        most = self._knobs.max_indexes
        if most is not None and more and len(self._catalog) + more > most:
            raise CommandError(
                ILLEGAL_OPERATION,
                "The maximum number of FTS indexes has been reached for this instance size.",
            )

    def _update(self, namespace: Namespace, collection: Collection, body: Command) -> dict[str, Any]:
        index = self._selected(namespace, collection, body)
        try:
            definition, given = self._updated(index, body)
        except MongotError as error:
            raise self._invalid(error, COMMAND_FAILED) from error
        self._catalog.stage(index, self._catalog.generation(given, definition, index.latest.version + 1))
        return {"ok": 1.0}

    def _updated(self, index: SearchIndex, body: Command) -> tuple[VectorDefinition | None, Mapping[str, Any]]:
        command = Fields(body, Location())
        type_ = command.optional("type", _ANY_TYPE) or index.type
        given = command.required("definition", document)
        definition = parse_definition(type_, given, Location(), atlas=self._on_atlas, closed=True)
        if type_ != index.type:
            raise CommandError(INVALID_INDEX_SPECIFICATION_OPTION, "An index's type cannot be changed")
        return definition, given

    def _drop(self, namespace: Namespace, collection: Collection, body: Command) -> dict[str, Any]:
        # Atlas takes its time over a drop; community's mongot strikes the index from its catalog at once.
        self._catalog.drop(self._selected(namespace, collection, body), at_once=not self._on_atlas)
        return {"ok": 1.0}

    def _selected(self, namespace: Namespace, collection: Collection, body: Command) -> SearchIndex:
        name, id_ = body.get("name"), body.get("id")
        index = self._catalog.find(collection.uuid, name=name, id_=id_)
        if index is None:
            sought = f"name {name}" if name is not None else f"id {id_}"
            raise CommandError(INDEX_NOT_FOUND, f"No index with {sought} exists in namespace {'.'.join(namespace)}")
        if index.dropped:
            raise CommandError(ILLEGAL_OPERATION, "Index already requested to be deleted")
        return index

    def _invalid(self, error: MongotError, code: int) -> CommandError:
        if self._on_atlas:
            forgotten_type = str(error).endswith('mappings" is required')
            text = "Attribute mappings missing" if forgotten_type else "Invalid search index definition"
            return CommandError(BAD_VALUE, text)
        return CommandError(code, str(error))


def check_list_stage(spec: Any) -> tuple[str | None, str | None]:
    """The name or the id a `$listSearchIndexes` stage asks for."""
    if not isinstance(spec, dict):
        raise CommandError(FAILED_TO_PARSE, "The $listSearchIndexes stage specification must be an object.")
    for stranger in spec.keys() - {"name", "id"}:
        raise CommandError(40415, f"BSON field '$listSearchIndexes.{stranger}' is an unknown field.")
    if len(spec) > 1:
        raise CommandError(INVALID_OPTIONS, "Cannot set both 'name' and 'id' for $listSearchIndexes.")
    return spec.get("name"), spec.get("id")


def _require_one_selector(body: Command) -> None:
    if "name" in body and "id" in body:
        raise CommandError(INVALID_OPTIONS, "Cannot set both 'name' and 'id'.")
    if "name" not in body and "id" not in body:
        raise CommandError(INVALID_OPTIONS, "Must set either 'name' or 'id'.")
