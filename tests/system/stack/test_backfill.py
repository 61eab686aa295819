"""`mainstem backfill` with the engine killed in the middle of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from mainstem.log.producer import Outgoing
from mainstem.testing.waiting import eventually

SECONDS = 300


def test_a_backfill_goes_on_after_a_kill_and_hands_over_exactly(shop, tmp_path):
    counted: Counter[str] = Counter()

    def write(*keys: str) -> None:
        records = [Outgoing(key.encode(), json.dumps({"k": key}).encode()) for key in keys]
        shop.produce("hits", *records)
        counted.update(keys)

    def expected() -> list[list[object]]:
        return [[key, number] for key, number in counted.items()]

    shop.do("CREATE STREAM hits (k STRING) WITH (key = 'k', partitions = 2)")
    try:
        write(*(f"k{n % 7}" for n in range(2000)))
        bounded = "SELECT count(*) FROM hits WHERE _partition > 1"
        reads = "0 of 2,000 records of hits"
        explained = shop.do(f"EXPLAIN {bounded}")["message"]
        assert explained.splitlines() == [
            f"history query: Spark reads {reads} in the log",
            "  of hits: _partition > 1",
        ]
        assert shop.do(bounded)["note"] == f"read {reads}"
        shop.do(
            "CREATE TABLE hit_counts WITH (start = 'latest') AS"
            " SELECT k, count(*) AS n FROM hits GROUP BY k"
        )
        eventually(lambda: write("live") or shop.rows("SELECT * FROM hit_counts"), SECONDS)
        [[key, before]] = shop.rows("SELECT * FROM hit_counts")
        assert key == "live" and before <= counted["live"]

        shop.refused("BACKFILL_NOT_POSSIBLE", "POST", "/v1/backfills/hits", json={})
        shop.refused("NO_BACKFILL", "GET", "/v1/backfills/hit_counts")
        shop.do("CREATE STREAM hit_copies WITH (start = 'latest') AS SELECT k FROM hits")
        copies = "SELECT count(*) FROM hit_copies"
        eventually(lambda: write("live") or shop.rows(copies) != [[0]], SECONDS, what="copies")
        files = tmp_path / "hits"
        shop.do(f"CREATE SINK hit_files FROM hits WITH (connector = 'files', folder = '{files}',"
                " format = 'jsonl')")  # fmt: skip
        eventually(lambda: _lines(files) >= Counter(counted), SECONDS, what="files")
        older = shop.cli("backfill", "start", "hit_copies", "--rate", 20, "-o", "json").ok().json
        assert older["appends"] and older["records"] >= 2000
        begun = shop.cli("backfill", "start", "hit_counts", "--rate", 20, "-o", "json").ok().json
        assert begun["records"] >= 2000 and begun["since"] == "beginning"
        shop.refused("BACKFILL_ON_ITS_WAY", "POST", "/v1/backfills/hit_counts", json={})

        def progress(name: str = "hit_counts") -> dict[str, object]:
            told: dict[str, object] = shop.http.get(f"/v1/backfills/{name}").json()
            return told

        eventually(lambda: 0 < (progress()["records_done"] or 0) < 2000, SECONDS, what="it reads")
        for lost in files.glob("*.jsonl"):
            lost.unlink()
        assert shop.cli("sink", "rebuild", "hit_files", "-o", "json").ok().json["records"] >= 2000
        shop.cli("sink", "rebuild", "hits").failed("REBUILD_NOT_POSSIBLE")
        shop.up.server("engine").kill()
        write(*(f"k{n % 3}" for n in range(50)))
        [[key, still]] = shop.rows("SELECT * FROM hit_counts")
        assert key == "live" and still >= before  # served as it was
        shop.cli("backfill", "resume", "hit_counts", "--rate", 100_000).ok()
        shop.cli("backfill", "resume", "hit_copies", "--rate", 100_000).ok()
        [told] = shop.cli("backfill", "list", "hit_counts", "-o", "json").ok().json
        assert told["rate"] == 100_000
        eventually(lambda: progress()["state"] == "done", SECONDS, what="it is handed over")
        write("live", "k1", "new")
        shop.wait_for_rows("SELECT * FROM hit_counts", expected(), SECONDS)
        eventually(lambda: progress("hit_copies")["state"] == "done", SECONDS, what="copied")
        by_key = "SELECT k, count(*) FROM hit_copies GROUP BY k"
        shop.wait_for_rows(by_key, expected(), SECONDS)
        shop.refused("NOTHING_TO_BACKFILL", "POST", "/v1/backfills/hit_copies", json={})
        eventually(lambda: progress("hit_files")["state"] == "done", SECONDS, what="files anew")
        eventually(lambda: _lines(files) == counted, SECONDS, what="all files")
        assert [path.name for path in tmp_path.iterdir()] == ["hits"]
        told = shop.http.get("/v1/objects/hit_counts").json()
        assert told["status"]["generation"] == told["generation"]
    finally:
        shop.do("DROP TABLE IF EXISTS hit_counts", "DROP STREAM IF EXISTS hit_copies")
        shop.do("DROP STREAM hits CASCADE")


def _lines(folder: Path) -> Counter[str]:
    """How often each key is in the files of a folder."""
    files = [file for file in folder.rglob("*.jsonl") if not file.name.startswith(".")]
    return Counter(json.loads(line)["k"] for file in files for line in file.open())
