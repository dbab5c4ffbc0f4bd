"""`AtlasStandin`: what a test holds in its hand."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from .backing import Backing
from .catalog import Catalog, Pace, Which
from .cluster import Flavour, Knobs, Prefix, SearchServiceKind
from .desk import SearchDesk
from .errors import CommandError
from .faults import CutMoment, Hold
from .proxy import Proxy
from .replica import Replica


class AtlasStandin:
    """A proxy before an ordinary MongoDB server that makes a cluster with vector search of it.

    Use it as a context manager and connect real drivers to `uri`. What concerns search it answers by the rules
    of Atlas or, with flavour "community", of mongot community; everything else the backing server answers. The
    knobs may be turned while it runs: `knobs`, `pace` and `lag`.

    Args:
        backing_uri: The server behind; credentials in it are what the stand-in reads collections with.
        flavour: Whose index management to play.
        lag: Seconds until a search sees a write; None for nothing until `flush`.
        recall: How likely an approximate search finds each true neighbour.
        shuffle_ties: Whether equal scores come in random order.
        prefix: The server version in whose words mongot's errors are relayed.
        search_service: "mongot", or which kind of server without one.
        build_seconds: How long building an index takes, at first and after an update.
        auto_ready: Whether builds finish by themselves; if not, `finish_builds` does it.
        drop_seconds: How long Atlas shows a dropped index as DELETING; None until `finish_drops`.
        max_indexes: How many search indexes the cluster may have.
        connection_errors: How many calls first find the index management service unreachable.
        denied: Commands and search stages the user has no privilege for.
        seed: Of everything that is random here.
        clock: Where the seconds above come from.
    """

    def __init__(
        self,
        backing_uri: str,
        *,
        flavour: Flavour = "atlas",
        lag: float | None = 0.0,
        recall: float = 1.0,
        shuffle_ties: bool = False,
        prefix: Prefix = "8.x",
        search_service: SearchServiceKind = "mongot",
        build_seconds: float = 0.0,
        auto_ready: bool = True,
        drop_seconds: float | None = 0.0,
        max_indexes: int | None = None,
        connection_errors: int = 0,
        denied: Collection[str] = (),
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.knobs = Knobs(
            flavour, prefix, search_service, recall, shuffle_ties, max_indexes, connection_errors, set(denied)
        )
        self.pace = Pace(build_seconds if auto_ready else None, drop_seconds)
        self._backing = Backing(backing_uri)
        self._replica = Replica(self._backing.read_all, self._backing.read_some, clock, lag)
        self._catalog = Catalog(self._replica, clock, self.pace)
        self._desk = SearchDesk(self._backing, self._replica, self._catalog, self.knobs, random.Random(seed))
        self._proxy: Proxy | None = None

    def __enter__(self) -> AtlasStandin:
        self._proxy = Proxy(self._backing.address, self._desk)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Close every connection; the backing server keeps running. Twice is fine."""
        if self._proxy is not None:
            self._proxy.stop()
            self._proxy = None
        self._backing.close()

    @property
    def uri(self) -> str:
        """Where drivers connect: the backing URI with this proxy's address in it."""
        if self._proxy is None:
            raise RuntimeError("the stand-in has an address only while it runs")
        return self._backing.uri_through(self._proxy.address)

    @property
    def commands(self) -> list[tuple[str, dict[str, Any]]]:
        """The commands seen, in order, without the drivers' handshakes; clear it to start anew."""
        return self._desk.commands

    @property
    def lag(self) -> float | None:
        """Seconds until a search sees a write. What searches see already they go on seeing when it is set."""
        return self._replica.lag

    @lag.setter
    def lag(self, seconds: float | None) -> None:
        with self._desk.lock:
            self._replica.lag = seconds

    def flush(self) -> None:
        """Let searches see every collection as it is now, also what was written past the proxy."""
        with self._desk.lock:
            self._replica.flush()

    def finish_builds(self) -> None:
        """Make every index ready that is pending or building; a staged definition takes over."""
        with self._desk.lock:
            self._catalog.finish_builds()

    def finish_drops(self) -> None:
        """Let every index go that is being deleted."""
        with self._desk.lock:
            self._catalog.finish_drops()

    def set_state(
        self,
        database: str,
        collection: str,
        index: str,
        state: str,
        *,
        message: str | None = None,
        queryable: bool | None = None,
        which: Which = "latest",
    ) -> None:
        """Put an index into one of `lifecycle.STATES`; it stays there until told otherwise.

        While an update builds this is about the staged definition, or about that of `which`: "main", or "staged",
        which without an update builds the main definition anew and waits for `finish_builds` to take its place.
        `queryable` is what the listing then says, by default what belongs to the state; UNSEEN and NOT_INITIALIZED
        are listed as PENDING.

        Raises:
            LookupError: there is no such index.
        """
        with self._desk.lock:
            for known in self._catalog.in_namespace((database, collection)):
                if known.name == index:
                    self._catalog.set_state(known, state, message, queryable, which)
                    return
        raise LookupError(f"no search index {index!r} on {database}.{collection}")

    def fail_next(self, command: str, code: int, errmsg: str, *, times: int = 1, labels: Collection[str] = ()) -> None:
        """Answer the next commands of this name with an error, and do nothing else.

        "$vectorSearch" and "$listSearchIndexes" are names too, of the aggregations that carry them.
        """
        with self._desk.lock:
            self._desk.faults.fail_next(command, lambda: CommandError(code, errmsg, tuple(labels)), times)

    @contextmanager
    def holding(self, command: str) -> Iterator[Hold]:
        """Let commands of this name wait for their answers, each on its connection, until the block ends."""
        hold = Hold(command)
        with self._desk.lock:
            self._desk.faults.holds.append(hold)
        try:
            yield hold
        finally:
            with self._desk.lock:
                self._desk.faults.holds.remove(hold)
            hold.release()

    def cut_connection_next(self, command: str, *, when: CutMoment = "before", times: int = 1) -> None:
        """Close the connection over the next commands of this name: before they are run, or before the reply."""
        with self._desk.lock:
            self._desk.faults.cut_next(command, when, times)
