"""An OpenID Connect provider of third-party code: oidc-provider, from npm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.node.packages import Scripts


class Provider:
    """oidc-provider, in a process of its own."""

    def __init__(self, scripts: Scripts, given: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            ["node", "issuer.mjs"],
            cwd=scripts.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdin as written:
            json.dump(given, written)
        self.url = self._process.stdout.readline().strip()
        assert self.url, "oidc-provider has not started"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
