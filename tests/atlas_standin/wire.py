"""MongoDB's wire protocol: bytes to messages, messages to commands, and replies back to bytes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

OP_REPLY: Final = 1
OP_QUERY: Final = 2004
OP_MSG: Final = 2013

CHECKSUM_PRESENT: Final = 1
MORE_TO_COME: Final = 1 << 1
EXHAUST_ALLOWED: Final = 1 << 16

_HEADER: Final = struct.Struct("<iiii")
_UINT32: Final = struct.Struct("<I")
_INT32: Final = struct.Struct("<i")
_REPLY_FIELDS: Final = struct.Struct("<iqii")

# Dates as plain milliseconds and binaries with their subtype: what is read must be written back unchanged.
CODEC: Final[CodecOptions[dict[str, Any]]] = CodecOptions(
    document_class=dict,
    datetime_conversion=DatetimeConversion.DATETIME_MS,
    unicode_decode_error_handler="replace",
)


@dataclass(frozen=True)
class Message:
    """One wire message: who it answers, what kind it is, and everything after the header."""

    request_id: int
    response_to: int
    opcode: int
    payload: bytes

    @property
    def flags(self) -> int:
        return int(_UINT32.unpack_from(self.payload)[0]) if self.opcode == OP_MSG else 0

    def framed(self) -> bytes:
        size = _HEADER.size + len(self.payload)
        return _HEADER.pack(size, self.request_id, self.response_to, self.opcode) + self.payload

    def asking_for_one_plain_reply(self) -> Message:
        """The same request without checksum, exhaust or fire-and-forget, so that one reply follows it."""
        flags = self.flags
        if not flags:
            return self
        body = self.payload[4:-4] if flags & CHECKSUM_PRESENT else self.payload[4:]
        cleared = flags & ~(CHECKSUM_PRESENT | MORE_TO_COME | EXHAUST_ALLOWED)
        return Message(self.request_id, self.response_to, self.opcode, _UINT32.pack(cleared) + body)


def read_message(source: socket.socket) -> Message | None:
    """The next message, or None when the peer has closed."""
    header = _read_exactly(source, _HEADER.size)
    if header is None:
        return None
    size, request_id, response_to, opcode = _HEADER.unpack(header)
    payload = _read_exactly(source, size - _HEADER.size)
    return None if payload is None else Message(request_id, response_to, opcode, payload)


def _read_exactly(source: socket.socket, size: int) -> bytes | None:
    buffer = bytearray(size)
    view = memoryview(buffer)
    filled = 0
    while filled < size:
        try:
            received = source.recv_into(view[filled:])
        except OSError:
            return None
        if not received:
            return None
        filled += received
    return bytes(buffer)


def decode_command(message: Message) -> dict[str, Any]:
    """A request's command as one document, document sequences folded into their fields."""
    if message.opcode == OP_QUERY:
        return _decode_query(message.payload)
    if message.opcode != OP_MSG:
        raise ValueError(f"the stand-in does not speak opcode {message.opcode}")
    end = len(message.payload) - (4 if message.flags & CHECKSUM_PRESENT else 0)
    body: dict[str, Any] = {}
    sequences: dict[str, list[dict[str, Any]]] = {}
    position = 4
    while position < end:
        kind = message.payload[position]
        position += 1
        size = int(_INT32.unpack_from(message.payload, position)[0])
        section = message.payload[position : position + size]
        if kind == 0:
            body = bson.decode(section, CODEC)
        else:
            name_end = section.index(b"\0", 4)
            sequences[section[4:name_end].decode()] = bson.decode_all(section[name_end + 1 :], CODEC)
        position += size
    return body | sequences


def _decode_query(payload: bytes) -> dict[str, Any]:
    namespace_end = payload.index(b"\0", 4)
    document = payload[namespace_end + 1 + 8 :]
    size = int(_INT32.unpack_from(document)[0])
    body = bson.decode(document[:size], CODEC)
    database = payload[4:namespace_end].decode().partition(".")[0]
    return {**body.get("$query", body), "$db": database}


def decode_reply(message: Message) -> dict[str, Any]:
    if message.opcode == OP_REPLY:
        return bson.decode(message.payload[_REPLY_FIELDS.size :], CODEC)
    return decode_command(message)


def command_message(body: Mapping[str, Any], request_id: int) -> Message:
    return Message(request_id, 0, OP_MSG, _UINT32.pack(0) + b"\0" + bson.encode(body, codec_options=CODEC))


def reply_message(body: Mapping[str, Any], request: Message) -> Message:
    """A reply in the dialect its request was asked in."""
    document = bson.encode(body, codec_options=CODEC)
    if request.opcode == OP_QUERY:
        payload = _REPLY_FIELDS.pack(8, 0, 0, 1) + document
        return Message(0, request.request_id, OP_REPLY, payload)
    return Message(0, request.request_id, OP_MSG, _UINT32.pack(0) + b"\0" + document)
