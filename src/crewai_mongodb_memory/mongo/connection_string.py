"""Connection strings: which are usable, and what may be shown of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from pymongo.errors import PyMongoError
from pymongo.uri_parser import parse_uri

from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.local.server import local_folder, readable

__all__ = ["check_acknowledged", "checked_connection_string", "is_local", "public_name"]

SCHEMES = ("mongodb://", "mongodb+srv://")
ONLY_WITH_DNS = re.compile(r"(?<=[?&])srv(MaxHosts|ServiceName)=[^&]*&?", re.IGNORECASE)
ZERO = re.compile(r"\s*[+-]?0+\s*")


def checked_connection_string(connection_string: str | None) -> str:
    """Return a usable connection string: the given one, else ``$MONGODB_URI``, else ``$ATLAS_URI``.

    A folder of the embedded server is made absolute, so that it stays what it is when the working directory changes.

    Raises:
        InvalidArgumentError: none is given, or it is malformed; the text repeats nothing of it.
    """
    if connection_string is None:
        connection_string = os.environ.get("MONGODB_URI") or os.environ.get("ATLAS_URI")
    choices = "'mongodb+srv://…' (Atlas), 'mongodb://…' (any server), or 'local' (an embedded one)"
    if not connection_string:
        raise InvalidArgumentError(f"no connection string: pass {choices}, or set MONGODB_URI")
    if not isinstance(connection_string, str):
        raise InvalidArgumentError(f"a connection string has to be text, not a {type(connection_string).__name__}")
    if "\x00" in connection_string:
        raise InvalidArgumentError("the connection string holds the character NUL; remove it")
    if is_local(connection_string):
        return f"local:{readable(local_folder(connection_string))}"
    if not connection_string.startswith(SCHEMES):
        raise InvalidArgumentError(f"the connection string has none of the known forms: {choices}")
    without_dns = ONLY_WITH_DNS.sub("", connection_string.replace("mongodb+srv://", "mongodb://", 1))
    try:
        options = parse_uri(without_dns, warn=False)["options"]
    except (PyMongoError, ValueError):
        raise InvalidArgumentError(
            "the connection string is malformed. The usual reason is a user name or a password with a special "
            "character: write it with urllib.parse.quote_plus"
        ) from None
    check_acknowledged(options)
    return connection_string


def check_acknowledged(options: Mapping[str, Any]) -> None:
    """Raise :class:`InvalidArgumentError` if options of a client say that no write is to be acknowledged."""
    for name, value in options.items():
        if name.lower() == "w" and ZERO.fullmatch(str(value)):
            raise InvalidArgumentError(f"w={value}: a memory that no server acknowledges may be lost")


def is_local(connection_string: str) -> bool:
    """Tell whether a connection string means the embedded server."""
    return connection_string == "local" or connection_string.startswith("local:")


def public_name(connection_string: str) -> str:
    """Return what may be shown of a connection string: scheme and hosts, no credentials, no options.

    >>> public_name("mongodb+srv://ann:secret@cluster0.example.net/?authSource=admin")
    'mongodb+srv://cluster0.example.net'
    """
    if is_local(connection_string):
        return connection_string.encode("utf-8", "backslashreplace").decode("utf-8")
    scheme, _, rest = connection_string.partition("://")
    return f"{scheme}://{re.split('[/?]', rest, maxsplit=1)[0].rpartition('@')[2]}"
