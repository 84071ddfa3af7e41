"""Messages in frames of MLLP (HL7 Transport Specification: MLLP, release 1): VT … FS CR."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

START, END = b"\x0b", b"\x1c\r"
_CHUNK = 65_536
_BETWEEN = b"\r\n"


class NotMllp(Exception):
    """What a peer sends is not MLLP."""


class TooLarge(Exception):
    """A message is larger than allowed, or there is no memory for it now."""

    def __init__(self, begin: bytes, text: str) -> None:
        super().__init__(text)
        self.begin = begin
        """The first bytes of the message, with its header."""


@dataclass(slots=True)
class Memory:
    """The bytes of messages that all connections may hold at a time."""

    free: int

    def take(self, size: int) -> bool:
        """Take memory; false if there is not enough."""
        if size > self.free:
            return False
        self.free -= size
        return True

    def give_back(self, size: int) -> None:
        """Return memory."""
        self.free += size


@dataclass(slots=True)
class Frames:
    """The frames of one connection. A message has at most ``limit`` bytes.

    What a message holds beyond one read is taken from ``memory`` as it arrives.
    """

    reader: asyncio.StreamReader
    memory: Memory
    limit: int
    _rest: bytearray = field(default_factory=bytearray, init=False)
    taken: int = field(default=0, init=False)

    async def begins(self) -> bool:
        """Wait for the start of a message; false if the peer has closed the connection.

        Raises NotMllp.
        """
        while not self._rest:
            chunk = await self.reader.read(_CHUNK)
            if not chunk:
                return False
            self._rest += chunk.lstrip(_BETWEEN)  # some senders end a frame with more
        if self._rest[:1] != START:
            raise NotMllp
        return True

    async def message(self) -> bytes:
        """Return the message that has begun; call :meth:`release` when it is done with.

        Raises TooLarge, and NotMllp if the connection was closed within the message.
        """
        searched = 1
        while (end := self._rest.find(END, searched)) < 0:
            searched = max(1, len(self._rest) - 1)
            self._hold(searched - 1)
            chunk = await self.reader.read(_CHUNK)
            if not chunk:
                raise NotMllp
            self._rest += chunk
        self._hold(end - 1)
        message = bytes(self._rest[1:end])
        self._rest = self._rest[end + len(END) :].lstrip(_BETWEEN)
        return message

    def _hold(self, size: int) -> None:
        """Take memory for the bytes of a message so far. Raises TooLarge."""
        if size > self.limit:
            raise TooLarge(self._begin(), f"is larger than {self.limit} bytes")
        needed = max(0, size - _CHUNK) - self.taken
        if not self.memory.take(needed):
            raise TooLarge(self._begin(), "too many large messages at a time")
        self.taken += needed

    def _begin(self) -> bytes:
        return bytes(self._rest[1:_CHUNK])

    def release(self) -> None:
        """Return the memory of a message."""
        self.memory.give_back(self.taken)
        self.taken = 0
