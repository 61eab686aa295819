"""Connectors: systems outside that streams and tables come from, or are written to.

`mainstem.connect()` makes a client. Once this package is imported, that name is the package: so it
can be called, too, and a program need not know who has imported what.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *args: Any, **named: Any) -> Any:
        from mainstem.client import connect

        return connect(*args, **named)


sys.modules[__name__].__class__ = _Callable
