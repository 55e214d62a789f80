"""fullstroke from Python: see python/README.md."""

from collections.abc import Iterable, Mapping
from typing import Any

from . import _fullstroke
from ._fullstroke import (
    Access, Device, Own, Pull, Push, Request, Seen, Site, Stack, Storage, Trace, __version__, compare, read_trace, run,
)
from ._sweep import sweep

__all__ = [
    "Access", "Device", "Own", "Pull", "Push", "Request", "Seen", "Site", "Stack", "Storage", "Trace", "__version__",
    "compare", "read_trace", "run", "sweep", "tune",
]


def tune(stack: Any, vary: Mapping[str, Iterable[Any]], **search: Any) -> dict[str, Any]:
    keys = [(key, [spelt(value) for value in values]) for key, values in vary.items()]
    return _fullstroke.tune(stack, keys, **search)


def spelt(value: Any) -> str:
    """As TOML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
