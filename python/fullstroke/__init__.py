"""fullstroke from Python: see python/README.md."""

from ._fullstroke import Stack, Trace, __version__, compare, read_trace, run

__all__ = ["Stack", "Trace", "__version__", "compare", "read_trace", "run"]
