"""The gateway as a program meets it: description, errors, who may ask, numbers."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mainstem.errors import catalogue

ROUTES = {
    "/v1/sql",
    "/v1/subscribe",
    "/v1/plan",
    "/v1/apply",
    "/v1/objects",
    "/v1/objects/{name}",
    "/v1/objects/{name}/pause",
    "/v1/objects/{name}/resume",
    "/v1/streams/{name}/records",
    "/v1/tables/{name}/rows",
    "/v1/topics",
    "/v1/topics/{topic}/records",
    "/v1/status",
    "/healthz",
    "/readyz",
    "/metrics",
}
BAD = [
    # method, path, request, error
    ("GET", "/v1/nothing", {}, "NO_SUCH_PATH"),
    ("GET", "/v1/sql", {}, "METHOD_NOT_ALLOWED"),
    ("POST", "/v1/sql", {"content": b"{"}, "BAD_REQUEST"),
    ("POST", "/v1/sql", {"json": {}}, "BAD_REQUEST"),
    ("POST", "/v1/sql", {"json": {"sql": "SHOW TABLES", "extra": 1}}, "BAD_REQUEST"),
    ("POST", "/v1/sql", {"json": {"sql": ["SHOW TABLES"]}}, "BAD_REQUEST"),
    ("GET", "/v1/objects/nothing", {}, "UNKNOWN_RELATION"),
    ("DELETE", "/v1/objects/orders", {}, "HAS_DEPENDENTS"),
    ("POST", "/v1/objects/orders/pause", {}, "NO_FLOW"),
    ("POST", "/v1/streams/nothing/records", {"json": {"records": []}}, "UNKNOWN_RELATION"),
    ("POST", "/v1/streams/orders/records", {"content": b"[]"}, "BAD_REQUEST"),
    ("GET", "/v1/tables/nothing/rows", {}, "UNKNOWN_RELATION"),
    ("GET", "/v1/tables/orders/rows", {}, "WRONG_KIND"),
    ("GET", "/v1/tables/sales_by_product/rows?colour=red", {}, "UNKNOWN_COLUMN"),
    ("GET", "/v1/topics/nothing/records", {}, "UNKNOWN_TOPIC"),
    ("GET", "/v1/topics/orders/records?offset=1&last=1", {}, "BAD_REQUEST"),
    ("GET", "/v1/topics/orders/records?limit=none", {}, "BAD_REQUEST"),
    ("GET", "/v1/subscribe", {}, "BAD_REQUEST"),
    ("POST", "/v1/plan", {"json": {"files": [{"path": "a.sql", "text": "SELEC"}]}}, "SQL_SYNTAX"),
]


def test_the_description_lists_every_route_and_is_whole(shop):
    document = shop.http.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    assert set(document["paths"]) >= ROUTES
    parts = ("/v1/", "/registry/", "/kafka/")
    assert all(path.startswith(parts) or path in ROUTES for path in document["paths"])
    identities = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            identities.append(operation["operationId"])
            assert operation["responses"], (method, path)
            described = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
            assert described == set(re.findall(r"{(\w+)}", path)), path
    assert len(set(identities)) == len(identities)
    text = shop.http.get("/openapi.json").text
    for reference in set(re.findall(r'"\$ref":\s*"#/components/schemas/(\w+)"', text)):
        assert reference in document["components"]["schemas"]
    page = shop.http.get("/docs")
    assert page.status_code == 200 and "://" not in re.sub(r"http://www\.w3\.org", "", page.text)


@pytest.mark.parametrize(("method", "path", "request_", "code"), BAD, ids=lambda v: str(v)[:40])
def test_errors_are_problem_documents_of_the_catalogue(shop, method, path, request_, code):
    problem = shop.refused(code, method, path, **request_)
    entry = catalogue()[code]
    assert problem["status"] == entry.status
    assert problem["type"] == f"urn:mainstem:error:{code}"
    assert problem["request_id"]


def test_other_sites_are_kept_out(shop):
    sql = {"json": {"sql": "SHOW TABLES"}}
    shop.refused("FOREIGN_REQUEST", "GET", "/v1/status", headers={"Host": "evil.example"})
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        shop.refused("FOREIGN_REQUEST", "POST", "/v1/sql", headers=headers, **sql)
    own = shop.http.post("/v1/sql", headers={"Origin": shop.url}, **sql)
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers


def test_metrics_can_be_read_by_prometheus(shop):
    families = list(text_string_to_metric_families(shop.http.get("/metrics").text))
    names = {sample.name for family in families for sample in family.samples}
    assert len(names) > 10 and all(name.startswith("mainstem_") for name in names), names
    flows = {
        sample.labels["flow"]
        for family in families
        for sample in family.samples
        if "flow" in sample.labels
    }
    assert {"big_orders", "page_visits", "sales_by_product"} <= flows


def test_health_and_readiness(shop):
    assert shop.http.get("/healthz").json() == {"status": "alive"}
    ready = shop.http.get("/readyz").json()
    assert ready["status"] == "ready"
    assert all(check["ok"] for check in ready["checks"].values())


def test_records_are_read_from_a_place_or_waited_for(shop):
    shop.do("CREATE STREAM posts (id BIGINT)")
    try:
        path = "/v1/topics/posts/records"
        assert shop.http.get(path).json()["records"] == []
        shop.write("posts", {"id": 1})
        read = shop.http.get(path, params={"wait_seconds": 10}).json()
        assert [r["value"] for r in read["records"]] == ['{"id":1}']
        [record] = shop.http.get(path, params={"last": 1}).json()["records"]
        place = {"partition": record["partition"], "offset": record["offset"]}
        assert shop.http.get(path, params=place).json()["records"] == [record]
    finally:
        shop.do("DROP STREAM posts")
