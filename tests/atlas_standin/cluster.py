"""The cluster one stand-in plays: its knobs, and what its parts know in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from .errors import COMMAND_FAILED, UNAUTHORIZED, CommandError
from .replica import Namespace

Flavour = Literal["atlas", "community"]
Prefix = Literal["8.x", "7.x"]
SearchServiceKind = Literal["mongot", "absent-8", "absent-7", "absent-6", "absent-5", "absent-115"]

AGGREGATIONS: Final = ("$vectorSearch", "$listSearchIndexes")

_NEEDS_ATLAS: Final = (
    "requires additional configuration. Please connect to Atlas or an AtlasCLI local deployment to enable. "
    "For more information on how to connect, see https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs"
)
_SEARCH: Final = f"Using $search and $vectorSearch aggregation stages {_NEEDS_ATLAS}"
_MANAGEMENT: Final = f"Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage {_NEEDS_ATLAS}"


class Upstream(Protocol):
    """The client's own connection to the backing server, with its authentication."""

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """Run a command there and return its reply, whether ok or not."""


@dataclass
class Knobs:
    """What a test may set; see `AtlasStandin` for what each means."""

    flavour: Flavour = "atlas"
    prefix: Prefix = "8.x"
    search_service: SearchServiceKind = "mongot"
    recall: float = 1.0
    shuffle_ties: bool = False
    max_indexes: int | None = None
    connection_errors: int = 0
    denied: set[str] = field(default_factory=set)

    def require_search_service(self, name: str) -> None:
        """Refuse a search stage or command as a server without mongot does.

        `name` is a stage with its dollar sign, or a command.
        """
        if self.search_service == "mongot":
            return
        is_command = not name.startswith("$")
        unknown_command = CommandError(59, f"no such command: '{name}'")
        if self.search_service == "absent-8":
            raise CommandError(31082, _SEARCH if name == "$vectorSearch" else _MANAGEMENT)
        if self.search_service == "absent-115":
            raise CommandError(115, _MANAGEMENT)
        if self.search_service == "absent-7":
            if not is_command:
                raise CommandError(6047401, f"{name} stage is only allowed on MongoDB Atlas")
            if self.flavour == "atlas":
                raise CommandError(115, "Search index commands are only supported with Atlas.")
            raise unknown_command
        if is_command:
            raise unknown_command
        if self.search_service == "absent-5" and name == "$vectorSearch":
            raise CommandError(7501001, "$search not enabled! Enable Search by setting serverParameter mongotHost")
        raise CommandError(40324, f"Unrecognized pipeline stage name: '{name}'")

    def require_permission(self, name: str, namespace: Namespace) -> None:
        if name in self.denied:
            database, collection = namespace
            command = f'aggregate: "{collection}"' if name in AGGREGATIONS else f'{name}: "{collection}"'
            raise CommandError(UNAUTHORIZED, f"not authorized on {database} to execute command {{ {command} }}")

    def require_management_service(self) -> None:
        """Refuse the first calls that need the index management service, as while it starts up."""
        if self.connection_errors > 0:
            self.connection_errors -= 1
            raise CommandError(COMMAND_FAILED, "Error connecting to Search Index Management service.")
