"""An Atlas stand-in for tests: vector search by Atlas's rules, on any MongoDB-compatible server.

    with AtlasStandin("mongodb://127.0.0.1:27017") as standin, MongoClient(standin.uri) as client:
        client.app.memories.create_search_index(model)

It is stricter than convenient on purpose: it refuses what Atlas refuses, is silent where Atlas is silent, and says
so where it does not simulate something.
"""

from .cluster import Flavour, Knobs, Prefix, SearchServiceKind
from .errors import CommandError
from .faults import CutMoment
from .lifecycle import STATES
from .standin import AtlasStandin

__all__ = [
    "STATES",
    "AtlasStandin",
    "CommandError",
    "CutMoment",
    "Flavour",
    "Knobs",
    "Prefix",
    "SearchServiceKind",
]
