"""What a user of a MySQL or MariaDB has to be allowed, and the GRANT that is missing."""

from __future__ import annotations

import re

from mainstem.connect.mysql_connection import NOT_ALLOWED, Server
from mainstem.errors import MainstemError

# each right, the names that it goes by, and what it is for
_NEEDED = {
    "REPLICATION SLAVE": (("REPLICATION SLAVE", "REPLICATION REPLICA"), "read the binary log"),
    "REPLICATION CLIENT": (
        ("REPLICATION CLIENT", "BINLOG MONITOR"),
        "ask where the binary log ends",
    ),
    "RELOAD": (("RELOAD",), "hold changes back for the moment in which a snapshot begins"),
}
_GLOBAL = re.compile(r"GRANT (.+) ON \*\.\* TO ")
_ROLE = re.compile(r"GRANT (?:(?! ON ).)+ TO ")
_EVERYTHING = "ALL PRIVILEGES"


def check_rights(server: Server, user: str) -> None:
    """Refuse a user who may not read the log; of one with roles nobody can tell beforehand."""
    grants = [str(next(iter(row.values()))) for row in server.rows("SHOW GRANTS")]
    if any(_ROLE.match(grant) for grant in grants):
        return
    held = {
        right.strip()
        for grant in grants
        if (found := _GLOBAL.match(grant)) is not None
        for right in found[1].upper().split(",")
    }
    if _EVERYTHING in held:
        return
    missing = {right: why for right, (names, why) in _NEEDED.items() if held.isdisjoint(names)}
    if missing:
        who = _current_user(server)
        grant = f"GRANT {', '.join(missing)} ON *.* TO {who}"
        raise _not_allowed(user, " nor ".join(missing.values()), grant)


def check_table_rights(server: Server, user: str, table: tuple[str, str]) -> None:
    """Refuse a table that the user may not read, be it there or not."""
    full = ".".join("`" + part.replace("`", "``") + "`" for part in table)
    if server.refusal(f"SELECT 1 FROM {full} LIMIT 0") in NOT_ALLOWED:  # noqa: S608 - quoted
        grant = f"GRANT SELECT ON {full} TO {_current_user(server)}"
        raise _not_allowed(user, f"read {'.'.join(table)}", grant)


def _current_user(server: Server) -> str:
    """As GRANT takes it."""
    [row] = server.rows("SELECT CURRENT_USER() AS user")
    name, _, host = str(row["user"]).rpartition("@")
    return f"'{name}'@'{host}'"


def _not_allowed(user: str, what: str, grant: str) -> MainstemError:
    return MainstemError("SOURCE_NOT_ALLOWED", user=user, what=what, problem="", grant=grant)
