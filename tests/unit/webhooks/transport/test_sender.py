"""What a sender loads, and when; its attempts are those of the HTTP client."""

from __future__ import annotations

import subprocess
import sys


def test_a_process_that_sends_nothing_loads_no_http_client() -> None:
    script = "import sys, fhirpub.app.services; sys.exit('aiohttp' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], check=False)

    assert done.returncode == 0
