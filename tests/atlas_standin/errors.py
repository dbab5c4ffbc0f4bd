"""The two voices that refuse: mongod, with a code of its own, and mongot, with nothing but a text."""

from __future__ import annotations

from typing import Any, Final

BAD_VALUE: Final = 2
UNKNOWN_ERROR: Final = 8
FAILED_TO_PARSE: Final = 9
UNAUTHORIZED: Final = 13
ILLEGAL_OPERATION: Final = 20
NAMESPACE_NOT_FOUND: Final = 26
INDEX_NOT_FOUND: Final = 27
COMMAND_NOT_FOUND: Final = 59
INDEX_ALREADY_EXISTS: Final = 68
INVALID_OPTIONS: Final = 72
COMMAND_NOT_SUPPORTED: Final = 115
COMMAND_FAILED: Final = 125
NO_VIEW_SUPPORT: Final = 166
INVALID_INDEX_SPECIFICATION_OPTION: Final = 197
NOT_IMPLEMENTED: Final = 238
NOT_IN_TRANSACTION: Final = 263
API_STRICT: Final = 323

_NAMES: Final = {
    1: "InternalError",
    BAD_VALUE: "BadValue",
    6: "HostUnreachable",
    UNKNOWN_ERROR: "UnknownError",
    FAILED_TO_PARSE: "FailedToParse",
    UNAUTHORIZED: "Unauthorized",
    18: "AuthenticationFailed",
    ILLEGAL_OPERATION: "IllegalOperation",
    NAMESPACE_NOT_FOUND: "NamespaceNotFound",
    INDEX_NOT_FOUND: "IndexNotFound",
    50: "MaxTimeMSExpired",
    COMMAND_NOT_FOUND: "CommandNotFound",
    INDEX_ALREADY_EXISTS: "IndexAlreadyExists",
    INVALID_OPTIONS: "InvalidOptions",
    91: "ShutdownInProgress",
    112: "WriteConflict",
    COMMAND_NOT_SUPPORTED: "CommandNotSupported",
    COMMAND_FAILED: "CommandFailed",
    NO_VIEW_SUPPORT: "CommandNotSupportedOnView",
    167: "OptionNotSupportedOnView",
    189: "PrimarySteppedDown",
    INVALID_INDEX_SPECIFICATION_OPTION: "InvalidIndexSpecificationOption",
    NOT_IMPLEMENTED: "NotImplemented",
    NOT_IN_TRANSACTION: "OperationNotSupportedInTransaction",
    API_STRICT: "APIStrictError",
    10107: "NotWritablePrimary",
    11600: "InterruptedAtShutdown",
    13435: "NotPrimaryNoSecondaryOk",
    31082: "SearchNotEnabled",
}


class CommandError(Exception):
    """An error reply of the server: a code, a text, and the code's name.

    `labels` become the reply's `errorLabels`, which drivers read to decide on a retry.
    """

    def __init__(self, code: int, text: str, labels: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.labels = labels

    def reply(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "ok": 0.0,
            "errmsg": self.text,
            "code": self.code,
            "codeName": _NAMES.get(self.code, f"Location{self.code}"),
        }
        if self.labels:
            body["errorLabels"] = list(self.labels)
        return body


class MongotError(Exception):
    """What mongot answers: a text without a code; who relays it decides the code and the prefix."""


def not_simulated(what: str) -> CommandError:
    """The refusal for what a server would answer and this tool cannot: loud, so no test rests on it."""
    return CommandError(NOT_IMPLEMENTED, f"The Atlas stand-in does not simulate {what}.")


def relayed(error: MongotError, prefix: str, database: str, collection: str) -> CommandError:
    """mongot's error as an aggregation's client sees it, in the wording of server 8.x or 7.x."""
    if prefix == "7.x":
        opening = "PlanExecutor error during aggregation"
    else:
        opening = f"Executor error during aggregate command on namespace: {database}.{collection}"
    return CommandError(UNKNOWN_ERROR, f"{opening} :: caused by :: {error}")
