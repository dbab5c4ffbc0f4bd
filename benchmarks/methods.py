"""The methods of CrewAI's storage protocol, each as it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from crewai.memory.types import MemoryRecord

from benchmarks.records import CATEGORIES, SCOPES, question, record, record_id, records

Storage = Any  # the stores share a protocol, of which the earlier package has only a part
BATCH = 1000
SCOPE = SCOPES[3]
NEW_SCOPE = "/initech/sales/a"


@dataclass(frozen=True)
class Call:
    """One call of a method.

    Attributes:
        number: of this call, from 0; new records and new questions follow from it.
        size: how many records the store holds.
    """

    storage: Storage
    number: int
    size: int

    def new_records(self, count: int) -> range:
        first = self.size + self.number * count
        return range(first, first + count)

    @property
    def known_record(self) -> int:
        return self.number * 37 % self.size

    @property
    def scope_records(self) -> range:
        return range(SCOPES.index(SCOPE), self.size, len(SCOPES))


def nothing(_: Call) -> None: ...


@dataclass(frozen=True)
class Method:
    """A method with arguments.

    Attributes:
        name: in the storage protocol.
        title: in the tables.
        run: what is measured; it is given what ``prepare`` returned.
        most_calls: of which the median is taken.
        prepare: makes the arguments before the clock starts.
        undo: brings back what a call changed, after the clock has stopped.
    """

    name: str
    title: str
    run: Callable[[Storage, Any], Any]
    most_calls: int = field(default=100, kw_only=True)
    prepare: Callable[[Call], Any] = field(default=nothing, kw_only=True)
    undo: Callable[[Call], None] = field(default=nothing, kw_only=True)


def fill(storage: Storage, size: int) -> None:
    """Save ``size`` records, a thousand a call."""
    for first in range(0, size, BATCH):
        storage.save(records(range(first, min(first + BATCH, size))))


def _search(title: str, **filters: Any) -> Method:
    return Method(
        "search",
        title,
        lambda storage, query: storage.search(query, limit=10, **filters),
        prepare=lambda call: question(call.number),
    )


def _save(title: str, count: int) -> Method:
    return Method(
        "save",
        title,
        lambda storage, new: storage.save(new),
        prepare=lambda call: [_in_new_scope(number) for number in call.new_records(count)],
        undo=lambda call: call.storage.delete(scope_prefix=NEW_SCOPE),
    )


def _in_new_scope(number: int) -> MemoryRecord:
    return record(number).model_copy(update={"scope": NEW_SCOPE})


def _changed_record(call: Call) -> MemoryRecord:
    changes = {"content": f"Since call {call.number} this is settled otherwise.", "embedding": question(call.number)}
    return record(call.known_record).model_copy(update=changes)


# What a process pays once: saving comes last, so that the store is all set up for what follows.
FIRST_CALLS = (_search("open, and search"), _save("open, and save one record", 1))

# Reading comes first, because deleting and saving in turn leaves a LanceDB table in pieces.
METHODS = (
    _search("search"),
    _search("search, one scope of 20", scope_prefix=SCOPE),
    _search("search, one category of 8", categories=[CATEGORIES[2]]),
    _search("search, metadata of 1 in 97", metadata_filter={"customer": 7}),
    Method(
        "get_record",
        "get_record",
        lambda storage, known: storage.get_record(known),
        prepare=lambda call: record_id(call.known_record),
    ),
    Method("list_records", "list_records, newest 50", lambda storage, _: storage.list_records(limit=50)),
    Method("get_scope_info", "get_scope_info, half of all", lambda storage, _: storage.get_scope_info("/acme")),
    Method("list_scopes", "list_scopes", lambda storage, _: storage.list_scopes("/acme")),
    Method("list_categories", "list_categories", lambda storage, _: storage.list_categories()),
    Method("count", "count", lambda storage, _: storage.count()),
    Method(
        "touch_records",
        "touch_records, 10",
        lambda storage, ids: storage.touch_records(ids),
        prepare=lambda call: [record_id((call.known_record + step) % call.size) for step in range(10)],
    ),
    Method(
        "update",
        "update, new text and embedding",
        lambda storage, changed: storage.update(changed),
        prepare=_changed_record,
    ),
    _save("save, one record", 1),
    _save(f"save, {BATCH:,} records at once", BATCH),
    Method(
        "delete",
        "delete, one scope of 20",
        lambda storage, _: storage.delete(scope_prefix=SCOPE),
        undo=lambda call: call.storage.save([record(number) for number in call.scope_records]),
    ),
    # Last and once: filling the store again would take many times longer.
    Method("reset", "reset", lambda storage, _: storage.reset(), most_calls=1),
)
