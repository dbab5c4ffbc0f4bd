"""CrewAI's Memory on this storage: real Memory objects, a model by script, a server over the wire."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from crewai import Memory
from crewai.memory.analyze import ConsolidationAction, ConsolidationPlan, MemoryAnalysis, QueryAnalysis

from crewai_mongodb_memory import MongoStorageBackend
from tests.scripted import ScriptedLLM
from tests.stores import MakeBackend
from tests.team import MakeMemory

FACTS = ["Ada drinks green tea every morning", "The release train leaves on Thursday", "Bob plays chess on Sundays"]


@pytest.fixture
def memory(make_memory: MakeMemory) -> Memory:
    """A memory of all scopes."""
    return make_memory()


def contents(matches: Any) -> list[str]:
    return [match.record.content for match in matches]


@pytest.mark.parametrize("depth", ["shallow", "deep"])
def test_what_was_remembered_is_recalled(memory: Memory, depth: Any) -> None:
    for fact in FACTS:
        assert memory.remember(fact) is not None
    for fact in FACTS:
        assert contents(memory.recall(fact, depth=depth))[0] == fact


def test_a_recall_touches_what_it_finds(memory: Memory, backend: MongoStorageBackend) -> None:
    saved = memory.remember(FACTS[0])
    assert saved is not None
    before = backend.get_record(saved.id)
    memory.recall(FACTS[0], depth="shallow")
    after = backend.get_record(saved.id)
    assert before is not None
    assert after is not None
    assert after.last_accessed > before.last_accessed
    assert after.model_copy(update={"last_accessed": before.last_accessed}) == before


def test_background_saves_are_there_for_the_next_recall(memory: Memory) -> None:
    memory.remember_many(FACTS)
    assert sorted(contents(memory.recall("Thursday Sundays morning", depth="shallow"))) == sorted(FACTS)


def test_scopes_come_as_a_tree_and_as_info(memory: Memory) -> None:
    for number, scope in enumerate(["/team", "/team/ada", "/team/ada/tea", "/plans"]):
        memory.remember(FACTS[number % 3] + f" {number}", scope=scope, categories=[f"c{number}"], importance=0.5)
    assert memory.tree().splitlines() == [
        "/ (4 records)",
        "  /plans (1 records)",
        "  /team (3 records)",
        "    /team/ada (2 records)",
        "      /team/ada/tea (1 records)",
    ]
    info = memory.info("/team")
    assert (info.record_count, info.categories, info.child_scopes) == (3, ["c0", "c1", "c2"], ["/team/ada"])
    assert memory.list_categories("/team") == {"c0": 1, "c1": 1, "c2": 1}
    assert memory.list_scopes() == ["/plans", "/team"]
    assert len(memory.list_records("/team", limit=2)) == 2


def test_a_scoped_view_stays_in_its_scope(memory: Memory) -> None:
    ada, bob = memory.scope("/team/ada"), memory.scope("/team/bob")
    ada.remember(FACTS[0], categories=["x"], importance=0.5)
    bob.remember(FACTS[2], categories=["x"], importance=0.5)
    assert contents(ada.recall("Ada Bob tea chess", depth="shallow")) == [FACTS[0]]
    assert contents(bob.recall("Ada Bob tea chess", depth="shallow")) == [FACTS[2]]


def test_a_slice_sees_its_scopes_only(memory: Memory) -> None:
    for scope, fact in zip(["/a", "/b", "/c"], FACTS, strict=True):
        memory.remember(fact, scope=scope, categories=["x"], importance=0.5)
    view = memory.slice(["/a", "/b"])
    assert sorted(contents(view.recall("tea release chess", depth="shallow"))) == sorted(FACTS[:2])


def test_a_root_scope_confines_forgetting_and_reset(make_memory: MakeMemory) -> None:
    one, two = make_memory(root_scope="/crew/one"), make_memory(root_scope="/crew/two")
    one.remember(FACTS[0])
    two.remember(FACTS[1])
    assert one.forget() == 1
    assert contents(two.recall(FACTS[1], depth="shallow")) == [FACTS[1]]
    two.reset()
    assert two.recall(FACTS[1], depth="shallow") == []


def test_forgetting_by_each_criterion(memory: Memory) -> None:
    for number, fact in enumerate(FACTS):
        memory.remember(fact, scope=f"/s{number}", categories=[f"c{number}"], metadata={"n": number}, importance=0.5)
    assert memory.forget(metadata_filter={"n": 0}) == 1
    assert memory.forget(categories=["c1"], scope="/s2") == 0
    assert memory.forget(categories=["c1"]) == 1
    assert [record.content for record in memory.list_records()] == [FACTS[2]]


def test_an_update_by_hand_is_found_by_its_new_content(memory: Memory) -> None:
    saved = memory.remember(FACTS[0], source="ada", private=True, metadata={"k": 1})
    assert saved is not None
    memory.update(saved.id, content="Ada now drinks black coffee", scope="/new")
    (match, *_) = memory.recall("coffee", depth="shallow", source="ada")
    assert match.record.content == "Ada now drinks black coffee"
    assert (match.record.scope, match.record.private, match.record.source) == ("/new", True, "ada")
    memory.update(saved.id, importance=0.9)
    assert contents(memory.recall("black coffee", depth="shallow", source="ada"))[0] == "Ada now drinks black coffee"


def test_consolidation_keeps_a_private_memory_private(make_memory: MakeMemory) -> None:
    plans: list[ConsolidationPlan] = []
    memory = make_memory(llm=ScriptedLLM({ConsolidationPlan: lambda _: plans[-1]}))
    private = memory.remember("Alice earns 90000 a year", source="alice", private=True)
    assert private is not None
    merged = ConsolidationAction(action="update", record_id=private.id, new_content="Alice earns 90000 a year, gross")
    plans.append(ConsolidationPlan(actions=[merged], insert_new=False))
    memory.remember("Alice earns 90000 a year gross", source="bob")
    assert memory.recall("Alice earns", depth="shallow", source="bob") == []
    (match,) = memory.recall("Alice earns", depth="shallow", source="alice")
    assert (match.record.content, match.record.private) == ("Alice earns 90000 a year, gross", True)


def test_an_invented_id_in_a_plan_deletes_nothing_else(make_memory: MakeMemory, make_backend: MakeBackend) -> None:
    mine, theirs = make_backend(tenant="mine"), make_backend(tenant="theirs")
    other = make_memory(storage=theirs).remember(FACTS[0])
    assert other is not None
    deletes = [ConsolidationAction(action="delete", record_id=one) for one in (other.id, "invented")]
    memory = make_memory(
        llm=ScriptedLLM({ConsolidationPlan: ConsolidationPlan(actions=deletes, insert_new=True)}), storage=mine
    )
    memory.remember(FACTS[1])
    memory.remember(FACTS[1] + " again")
    assert theirs.get_record(other.id) is not None
    assert mine.count() == 2


def test_a_scope_suggested_by_a_model_opens_no_other_tenant(make_memory: MakeMemory, make_backend: MakeBackend) -> None:
    escape = QueryAnalysis(keywords=[], suggested_scopes=["/b"], complexity="simple", recall_queries=["tea"])
    a = make_memory(
        llm=ScriptedLLM({QueryAnalysis: escape}), storage=make_backend(tenant="a"), query_analysis_threshold=0
    )
    b = make_memory(storage=make_backend(tenant="b"))
    b.remember(FACTS[0], scope="/b", categories=["x"], importance=0.5)
    assert contents(b.recall("tea", depth="shallow")) == [FACTS[0]]
    assert a.recall("Who drinks tea in the morning?", depth="deep") == []


def test_a_raw_scope_of_a_model_is_stored_in_one_spelling(make_memory: MakeMemory) -> None:
    analysis = MemoryAnalysis(suggested_scope="Sales//EU/ ", categories=["deal"], importance=0.5)
    memory = make_memory(llm=ScriptedLLM({MemoryAnalysis: analysis}))
    memory.remember(FACTS[0])
    assert memory.list_scopes() == ["/Sales"]
    assert contents(memory.recall("tea", scope="/Sales/EU", depth="shallow")) == [FACTS[0]]


def test_blank_content_is_kept_without_an_embedding(memory: Memory, backend: MongoStorageBackend) -> None:
    saved = memory.remember("   ")
    assert saved is not None
    stored = backend.get_record(saved.id)
    assert stored is not None
    assert stored.embedding is None


def test_reset_all_spares_other_tenants(make_memory: MakeMemory, make_backend: MakeBackend) -> None:
    one, two = (make_memory(storage=make_backend(tenant=tenant)) for tenant in ("one", "two"))
    one.remember_many([f"{fact} {number}" for fact in FACTS for number in range(10)])
    two.remember(FACTS[0])
    one.reset_all()
    assert one.list_records() == []
    assert contents(two.recall("tea", depth="shallow")) == [FACTS[0]]


def test_closing_a_memory_leaves_another_on_the_same_storage_working(make_memory: MakeMemory) -> None:
    one, two = make_memory(), make_memory()
    one.remember(FACTS[0])
    one.close()
    assert contents(two.recall("tea", depth="shallow")) == [FACTS[0]]
    one.remember(FACTS[1])
    assert len(two.list_records()) == 2


def test_another_process_finds_the_same_memories(server: str, memory: Memory, backend: MongoStorageBackend) -> None:
    memory.remember(FACTS[0])
    database_name = backend._store.settings.database
    program = (
        "from crewai_mongodb_memory import MongoStorageBackend as B\n"
        f"with B({server!r}, database_name={database_name!r}) as b: print(b.list_records()[0].content)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == FACTS[0]
    assert answer.stderr == ""
