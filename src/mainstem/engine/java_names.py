"""Java's classes by name: Python asks for each of them once, not at each mention.

py4j asks the JVM anew whenever PySpark says `jvm.functions` or `jvm.org.apache...`, for each part
of the name. The JVM then tries it in every package that PySpark imports, which is a look into 250
jars for each. A batch of a small flow has hundreds of such mentions. What a name stands for never
changes: jars come with the session.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView


@cache
def remember_names() -> None:
    """From now on, what was found is kept with the object that was asked for it."""
    _remember(JVMView, (JavaPackage, JavaClass))
    _remember(JavaPackage, (JavaPackage, JavaClass))
    # not what static fields hold: that may change
    _remember(JavaClass, (JavaMember, JavaClass))


def _remember(kind: Any, kept: tuple[type, ...]) -> None:
    ask = kind.__getattr__

    def __getattr__(self: Any, name: str) -> Any:
        found = ask(self, name)
        if isinstance(found, kept):
            self.__dict__[name] = found  # Python looks there first
        return found

    kind.__getattr__ = __getattr__
