"""Small charts of counts, as SVG: bars of what succeeded, and of what failed above them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_HEIGHT, _STEP, _GAP = 40, 12, 2


def spark(counts: Sequence[Mapping[str, Any]], *, title: str) -> str:
    """Return the SVG of a chart; every number in it was made by the service.

    Args:
        counts: What `stats` has for hours or days: ``succeeded`` and ``failed``.
        title: What the chart shows, for those who do not see it: not escaped.
    """
    most = max((one["succeeded"] + one["failed"] for one in counts), default=0) or 1
    width = len(counts) * _STEP
    bars = "".join(
        _bar(place, one["succeeded"], one["failed"], most) for place, one in enumerate(counts)
    )
    return (
        f'<svg class="spark" viewBox="0 0 {width} {_HEIGHT + 1}" preserveAspectRatio="none" '
        f'role="img" aria-label="{title}">{bars}'
        f'<line x1="0" x2="{width}" y1="{_HEIGHT}.5" y2="{_HEIGHT}.5"/></svg>'
    )


def _bar(place: int, succeeded: int, failed: int, most: int) -> str:
    left = place * _STEP + _GAP // 2
    good, bad = succeeded * _HEIGHT / most, failed * _HEIGHT / most
    parts = (("ok", _HEIGHT - good, good), ("failed", _HEIGHT - good - bad, bad))
    return "".join(
        f'<rect class="{name}" x="{left}" y="{top:.1f}" '
        f'width="{_STEP - _GAP}" height="{size:.1f}"/>'
        for name, top, size in parts
        if size
    )
