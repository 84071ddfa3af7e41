"""An HTTP server in threads that writes nothing about clients that have gone."""

from __future__ import annotations

import sys
from http.server import ThreadingHTTPServer
from typing import Any


class QuietServer(ThreadingHTTPServer):
    """A server on a socket.

    A traceback in its thread would be in what another test finds on standard error.
    """

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong, unless the client closed its connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
