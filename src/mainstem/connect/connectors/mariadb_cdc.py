"""The source connector `mariadb-cdc`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.connectors.mysql_cdc import spec

SPEC = spec("mariadb-cdc", "MariaDB", "MySQL", ("disabled", "required"))
