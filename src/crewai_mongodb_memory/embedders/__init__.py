"""Embedders: callables from a list of texts to one vector each, as ``Memory(embedder=…)`` takes them."""

from crewai_mongodb_memory.embedders.offline import OfflineEmbedder
from crewai_mongodb_memory.embedders.voyage import VoyageEmbedder

__all__ = ["OfflineEmbedder", "VoyageEmbedder"]
