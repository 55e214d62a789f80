"""fullstroke from Python: see python/README.md."""

from collections.abc import Iterable, Mapping
from typing import Any

from . import _fullstroke
from ._fullstroke import (
    Access, Device, Own, Pull, Push, Request, Seen, Site, Stack, Storage, Trace, __version__, compare, energy, predict,
    read_trace, run,
)
from ._policies import Elevator, Opportunity
from ._sweep import sweep

__all__ = [
    "Access", "Device", "Elevator", "Opportunity", "Own", "Pull", "Push", "Request", "Seen", "Site", "Stack", "Storage",
    "Trace", "__version__", "compare", "energy", "predict", "read_trace", "run", "sweep", "tune",
]


def tune(stack: Any, vary: Mapping[str, Iterable[Any]], **search: Any) -> dict[str, Any]:
    return _fullstroke.tune(stack, [(key, spelt_all(key, values)) for key, values in vary.items()], **search)


def spelt_all(key: str, values: Iterable[Any]) -> list[str]:
    if isinstance(values, str):
        raise TypeError(f"{key}: found {values!r}; expected several values, as in [{values!r}]")
    return [spelt(value) for value in values]


def spelt(value: Any) -> str:
    """Returns the value in TOML notation."""
    return str(value).lower() if isinstance(value, bool) else str(value)
