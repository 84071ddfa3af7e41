"""The Chromium that the tests drive: a pinned one of npm, the same on each machine.

``python -m tests.browser.chromium`` downloads and unpacks it, and prints its path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Playwright

from fhirpub.config.loader import variable
from tests.cache import filling
from tests.node.packages import NoNode, NoPackages, packages_of

HERE = Path(__file__).parent
_PLATFORM = "linux-x86_64"
_PACKED = Path("node_modules", "@sparticuz", "chromium", "bin")
_FONTS = Path("node_modules", "dejavu-fonts-ttf", "ttf")
_OTHER_FONTS = shutil.ignore_patterns("*Math*", "*Condensed*", "*ExtraLight*")
# Chromium asks for these as sans-serif, serif and monospace.
_FONT_SETTINGS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <alias><family>Arial</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>Times New Roman</family><prefer><family>DejaVu Serif</family></prefer></alias>
  <alias><family>Monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""
# Nothing but this machine is ever connected to, whatever a page asks for.
_HERE_ONLY = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"


class NoChromium(NoNode):
    """There is no Chromium of npm for this platform; the text says what to do."""


def launch(playwright: Playwright) -> Browser:
    """Start a headless Chromium. Raises NoNode, NoPackages."""
    if other := variable("FHIRPUB_TEST_CHROMIUM"):
        packages_of(HERE)  # it is not the browser alone that comes from there
        return playwright.chromium.launch(executable_path=other, args=[_HERE_ONLY])
    home = unpacked()
    return playwright.chromium.launch(
        executable_path=home / "chromium",
        args=[_HERE_ONLY],
        env={
            # It needs libraries that a server does not have.
            "LD_LIBRARY_PATH": str(home / "lib"),
            # Text is as wide on every machine, so that a page fits on all or on none.
            "FONTCONFIG_FILE": str(home / "fonts.conf"),
        },
    )


def unpacked() -> Path:
    """Return the folder of Chromium, into which it is unpacked once. Raises NoNode, NoPackages."""
    if sysconfig.get_platform() != _PLATFORM:
        raise NoChromium(
            f"there is no Chromium for {sysconfig.get_platform()}; "
            "FHIRPUB_TEST_CHROMIUM may name an installed one"
        )
    packages = packages_of(HERE)
    home = packages.with_name(packages.name.replace("node-", "chromium-"))
    if not home.exists():
        with filling(home) as folder:
            _unpack(packages / _PACKED, folder)
            shutil.copytree(packages / _FONTS, folder / "fonts", ignore=_OTHER_FONTS)
            (folder / "fonts.conf").write_text(_FONT_SETTINGS)
    return home


def _unpack(packed: Path, folder: Path) -> None:
    _decompress(packed / "chromium.br", folder / "chromium")
    (folder / "chromium").chmod(0o755)
    with TemporaryDirectory() as name:
        libraries = Path(name, "libraries.tar")
        _decompress(packed / "al2023.tar.br", libraries)
        with tarfile.open(libraries) as archive:
            archive.extractall(folder, filter="data")


def _decompress(file: Path, target: Path) -> None:
    subprocess.run(["node", HERE / "unpack.mjs", file, target], check=True)


def main() -> None:
    """Have Chromium ready before several test processes ask for it at once."""
    try:
        sys.stderr.write(f"The tests start {unpacked() / 'chromium'}\n")
    except (NoNode, NoPackages) as reason:
        sys.stderr.write(f"No browser for the tests: {reason}\n")


if __name__ == "__main__":
    main()
