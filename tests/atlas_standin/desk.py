"""Where every command is looked at: answered here, refused, or passed on to the backing server."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from typing import Any, Final

from .backing import Backing
from .catalog import Catalog
from .cluster import Knobs, Upstream
from .errors import CommandError, not_simulated
from .faults import CutMoment, Faults
from .management import COMMANDS, IndexManagement, check_list_stage
from .placement import (
    check_aggregate_options,
    check_management_options,
    check_other_command,
    check_positions,
    check_search_meta,
    search_stages,
    stages_of,
)
from .replica import Namespace, Replica
from .rewriting import Rewriter, asks_for_score, score_unavailable
from .service import SearchService
from .stage import check_as_mongod
from .writes import written_by

Command = dict[str, Any]

_INVALID_NAMESPACE: Final = 73
_OTHER_SEARCHES: Final = {"$search", "$searchMeta", "$rankFusion", "$scoreFusion"}


class SearchDesk:
    """Answers what concerns search, and keeps an eye on the writes that pass."""

    def __init__(self, backing: Backing, replica: Replica, catalog: Catalog, knobs: Knobs, dice: random.Random) -> None:
        self.lock = threading.RLock()
        self.commands: list[tuple[str, Command]] = []
        self.faults = Faults()
        self._backing = backing
        self._replica = replica
        self._catalog = catalog
        self._knobs = knobs
        self._management = IndexManagement(catalog, knobs, backing.identify)
        self._service = SearchService(catalog, replica, knobs, backing.identify, dice)

    def cut(self, name: str, body: Command) -> CutMoment | None:
        with self.lock:
            moment = self.faults.cut(_names(name, body))
            if moment == "before":
                self.commands.append((name, body))
            return moment

    def answer(self, name: str, body: Command, upstream: Upstream) -> Command | None:
        with self.lock:
            self.commands.append((name, body))
            failure = self.faults.failure(_names(name, body))
            if failure is not None:
                raise failure
            holds = [hold for hold in self.faults.holds if hold.command in _names(name, body)]
        for hold in holds:
            hold.wait()
        with self.lock:
            # What is due has to be built from the collection as it is before this command changes it.
            self._catalog.settle()
        if name in COMMANDS:
            return self._manage(name, body, upstream)
        if name == "aggregate":
            return self._aggregate(body, upstream)
        check_other_command(name, body)
        return None

    def forwarded(self, name: str, body: Command) -> None:
        with self.lock:
            if name in ("drop", "dropDatabase"):
                self._prune(str(body["$db"]))
            elif name == "renameCollection":
                self._rename(_split(body["renameCollection"]), _split(body["to"]))
            written = written_by(name, body)
            if written is None:
                self._replica.changed_somewhere()
            for namespace, ids in written or ():
                self._replica.changed(namespace, ids)

    def _manage(self, name: str, body: Command, upstream: Upstream) -> Command:
        self._knobs.require_search_service(name)
        check_management_options(name, body)
        namespace = (str(body["$db"]), str(body[name]))
        self._knobs.require_permission(name, namespace)
        self._knobs.require_management_service()
        seen = upstream.ask(
            {"find": namespace[1], "filter": {}, "projection": {"_id": 1}, "limit": 1, "$db": namespace[0]}
        )
        if not seen["ok"]:
            return seen
        with self.lock:
            return self._management.run(name, body)

    def _aggregate(self, body: Command, upstream: Upstream) -> Command | None:
        pipeline = body.get("pipeline")
        searches = list(search_stages(pipeline))
        if not searches:
            if asks_for_score(pipeline):
                raise score_unavailable()
            self._refuse_other_searches(pipeline)
            return None
        for stage, _ in searches:
            self._knobs.require_search_service(stage)
        check_positions(pipeline)
        check_search_meta(pipeline)
        for stage, spec in searches:
            self._check_stage(stage, spec, body)
        with self.lock:
            rewritten = self._rewritten(body, pipeline or [])
        return upstream.ask(rewritten)

    def _refuse_other_searches(self, pipeline: Any) -> None:
        for stage in stages_of(pipeline):
            for name in _OTHER_SEARCHES & stage.keys():
                if self._knobs.search_service == "mongot":
                    raise not_simulated(name)

    def _check_stage(self, stage: str, spec: Any, body: Command) -> None:
        check_aggregate_options(stage, body)
        if not isinstance(body["aggregate"], str):
            raise CommandError(
                _INVALID_NAMESPACE, f"{{aggregate: 1}} is not valid for '{stage}'; a collection is required."
            )
        self._knobs.require_permission(stage, (str(body["$db"]), body["aggregate"]))
        if stage == "$vectorSearch":
            check_as_mongod(spec)
        else:
            check_list_stage(spec)

    def _rewritten(self, body: Command, pipeline: list[dict[str, Any]]) -> Command:
        """The aggregation as the backing server can run it.

        It runs there as the client, so that whoever may not read the collection is refused.
        """
        database, collection = str(body["$db"]), str(body["aggregate"])
        rewriter = Rewriter(lambda name, spec: self._service.search((database, name), spec))
        first = next(iter(pipeline[0]))
        if any(stage == "$listSearchIndexes" for stage, _ in search_stages(pipeline[1:])):
            raise not_simulated("$listSearchIndexes in a sub-pipeline")
        if first == "$vectorSearch":
            return body | {"aggregate": 1, "pipeline": rewriter.top_level(collection, pipeline)}
        if first != "$listSearchIndexes":
            return body | {"pipeline": rewriter.ordinary(pipeline)}
        self._knobs.require_management_service()
        listed = self._management.listed((database, collection), pipeline[0][first])
        documents = {"$documents": [{"$literal": document} for document in listed]}
        return body | {"aggregate": 1, "pipeline": [documents, *rewriter.ordinary(pipeline[1:])]}

    def _prune(self, database: str) -> None:
        for namespace in self._catalog.namespaces(database):
            collection = self._backing.identify(namespace)
            if collection is None:
                self._catalog.forget(namespace)

    def _rename(self, source: Namespace, target: Namespace) -> None:
        collection = self._backing.identify(target)
        if collection is not None and self._backing.identify(source) is None:
            self._catalog.rename(source, target, collection.uuid)


def _names(name: str, body: Mapping[str, Any]) -> list[str]:
    """A command's name, and those of the search stages it carries: faults may be armed for either."""
    return [name, *(stage for stage, _ in search_stages(body.get("pipeline")))]


def _split(full: str) -> Namespace:
    database, _, collection = str(full).partition(".")
    return database, collection
