"""What the errors of Voyage AI's client tell."""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voyageai.error import VoyageError

__all__ = ["TOO_MANY_REQUESTS", "detail", "is_batch_too_large", "is_transient", "retry_after"]

TOO_MANY_REQUESTS = 429
_REQUEST_TIMEOUT = 408
_CONTENT_TOO_LARGE = 413
_MAX_SECONDS = 10**9


def is_transient(error: VoyageError) -> bool:
    """Tell whether the same request may succeed later.

    The status tells, not the class: the client raises another class for an answer without the usual body. An error
    without a status is a timeout or a broken connection.
    """
    status = error.http_status
    return status is None or status in (_REQUEST_TIMEOUT, TOO_MANY_REQUESTS) or not 400 <= status < 500


def is_batch_too_large(error: VoyageError) -> bool:
    """Tell whether a request with fewer texts may succeed."""
    status = error.http_status
    return status == _CONTENT_TOO_LARGE or (status == 400 and "batch" in detail(error).lower())


def detail(error: VoyageError) -> str:
    """Return what the API said.

    ``str(error)`` fails where that is a list, and repeats all headers for a status that the client does not know.
    """
    body = error.json_body
    return str(body["detail"] if isinstance(body, dict) and "detail" in body else error.user_message)


def retry_after(error: VoyageError) -> int:
    """Return the seconds that the header ``Retry-After`` asks to wait, rounded up; 0 where it asks for nothing.

    A date is compared with the server's own clock, where the answer has a ``Date``. The client drops the headers of an
    answer with a status from 400 to 499 whose body is JSON without ``detail``.
    """
    asked = (error.headers.get("retry-after") or "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?", asked):
        return math.ceil(min(float(asked), _MAX_SECONDS))
    until = _date(asked)
    if until is None:
        return 0
    now = _date(error.headers.get("date") or "") or datetime.now(timezone.utc)
    return max(0, math.ceil((until - now).total_seconds()))


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=timezone.utc)
