// The page: polls /v1/status and /v1/objects, subscribes to one object, runs pull queries.
// Everything that comes from the server enters the document as text, never as markup.
"use strict";

const EVERY_MS = 1000;
const MOST_ROWS = 100;
const byId = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = String(text);
  if (className) made.className = className;
  return made;
}

function badge(target, text, tone) {
  target.textContent = text;
  target.className = tone ? `badge ${tone}` : "badge";
}

async function getJson(path, options) {
  const response = await fetch(path, { headers: { Accept: "application/json" }, ...options });
  const document_ = await response.json();
  if (!response.ok) throw Object.assign(new Error(document_.detail), { problem: document_ });
  return document_;
}

// -- the overview

const TONES = { running: "good", idle: "good", served: "good", starting: "warn", restarting: "warn", paused: "warn", failed: "bad", waiting: "warn", retrying: "warn", removing: "warn" };

function shownSeconds(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${number.format(seconds)} s`;
  return `${number.format(seconds / 60)} min`;
}

const shownNumber = (value) => (value === null || value === undefined ? "–" : number.format(value));

function objectRow(object, view, quarantined, connector) {
  const status = object.status || connector || {};
  const row = element("tr");
  const problem = status.error || (view && view.error);
  const kind = object.sink ? "sink" : object.kind;
  const runs = object.derived || object.kind === "source";
  const state = problem && !runs ? "failed" : runs ? status.state || "starting" : view ? "served" : "declared";
  const lag = object.derived ? status.lag_records : view ? view.lag_records : null;
  row.append(element("td", object.name, "name"), element("td", kind));
  const cell = element("td");
  const mark = element("span");
  badge(mark, state, TONES[state]);
  cell.append(mark);
  row.append(cell);
  row.append(
    element("td", object.derived ? shownNumber(status.input_rate) : "–", "number"),
    element("td", shownNumber(lag), "number"),
    element("td", object.derived ? shownSeconds(status.lag_seconds) : "–", "number"),
    element("td", view ? shownNumber(view.rows) : "–", "number"),
    element("td", shownNumber(quarantined || 0), "number"),
  );
  const told = element("td", problem ? `${problem.title}: ${problem.detail}` : "", "error");
  if (problem && problem.hint) told.title = problem.hint;
  row.append(told);
  return row;
}

function showHealth(status) {
  const parts = [
    ["Kafka", status.checks.log.ok, status.checks.log.problem],
    ["PostgreSQL", status.checks.postgres.ok, status.checks.postgres.problem],
    ["Engine", status.engine.state === "running", status.engine.state],
  ];
  byId("health").replaceChildren(
    ...parts.map(([name, good, problem]) => {
      const item = element("li");
      item.append(element("span", "", good ? "dot good" : "dot bad"), element("span", name));
      item.title = good ? "answers" : problem || "does not answer";
      return item;
    }),
  );
}

function showObjects(objects, status) {
  const views = new Map(status.views.map((view) => [view.name, view]));
  const connectors = new Map(status.connectors.map((connector) => [connector.name, connector]));
  const rows = objects.map((object) =>
    objectRow(object, views.get(object.name), status.quarantine.objects[object.name], connectors.get(object.name)));
  byId("objects").tBodies[0].replaceChildren(...rows);
  byId("objects").hidden = objects.length === 0;
  byId("no-objects").hidden = objects.length !== 0;
  const select = byId("table");
  const readable = objects.filter((object) => object.kind !== "source");
  const names = readable.map((object) => object.name);
  const present = [...select.options].slice(1).map((option) => option.value);
  if (select.options.length && names.join("\n") === present.join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(element("option", "choose …"));
  select.options[0].value = "";
  for (const object of readable) {
    const option = element("option", `${object.name} (${object.kind})`);
    option.value = object.name;
    select.append(option);
  }
  select.value = names.includes(chosen) ? chosen : "";
  if (!chosen) {
    const first = objects.find((object) => object.kind === "table");
    if (first) select.value = first.name;
  }
  if (select.value !== chosen) live.follow(select.value);
}

async function refresh() {
  try {
    const status = await getJson("/v1/status");
    showHealth(status);
    byId("project").textContent = status.project;
    document.title = `${status.project} · Mainstem`;
    const { objects } = await getJson("/v1/objects");
    showObjects(objects, status);
    badge(byId("connection"), "live", "good");
  } catch (error) {
    badge(byId("connection"), error.problem ? "waiting" : "reconnecting", "warn");
    byId("connection").title = error.message;
  }
  setTimeout(refresh, EVERY_MS);
}

// -- live rows: snapshot, then changes; the browser resumes by itself with Last-Event-ID

const quoted = (name) => name.split(".").map((part) => "`" + part.replaceAll("`", "``") + "`").join(".");

class Live {
  constructor() {
    this.source = null;
    this.rows = new Map();
    this.columns = [];
    this.waiting = false;
    this.changed = new Set();
    this.count = 0;
  }

  follow(name) {
    if (this.source) this.source.close();
    this.source = null;
    this.clear();
    byId("no-rows").hidden = false;
    if (!name) {
      badge(byId("live-state"), "idle");
      byId("live-note").textContent = "";
      return;
    }
    badge(byId("live-state"), "connecting", "warn");
    const sql = `SELECT * FROM ${quoted(name)} EMIT CHANGES`;
    const source = new EventSource(`/v1/subscribe?sql=${encodeURIComponent(sql)}`);
    this.source = source;
    const on = (kind, work) => source.addEventListener(kind, (event) => {
      if (this.source === source && event.data) work(JSON.parse(event.data));
    });
    on("columns", (columns) => { this.columns = columns; this.draw(); });
    on("snapshot", () => { this.rows.clear(); this.draw(); });
    on("upsert", (data) => this.put(JSON.stringify(data.key), data.row));
    on("append", (data) => this.put(`${(this.count += 1)}`, data.row));
    on("delete", (data) => { this.rows.delete(JSON.stringify(data.key)); this.draw(); });
    on("progress", () => badge(byId("live-state"), "live", "good"));
    on("error", (problem) => {
      badge(byId("live-state"), problem.title || "reconnecting", "warn");
      source.close();
      setTimeout(() => { if (this.source === source) this.follow(name); }, EVERY_MS);
    });
    source.onopen = () => badge(byId("live-state"), "live", "good");
    source.onerror = () => {
      if (this.source !== source) return;
      badge(byId("live-state"), "reconnecting", "warn");
      // an answer that is no event stream ends an EventSource for good
      if (source.readyState === EventSource.CLOSED) {
        setTimeout(() => { if (this.source === source) this.follow(name); }, EVERY_MS);
      }
    };
  }

  clear() {
    this.rows.clear();
    this.changed.clear();
    this.columns = [];
    this.count = 0;
    byId("rows").tHead.replaceChildren();
    byId("rows").tBodies[0].replaceChildren();
  }

  put(key, row) {
    this.rows.delete(key);
    this.rows.set(key, row);
    this.changed.add(key);
    // the newest stay: a map keeps its order
    for (const oldest of this.rows.keys()) {
      if (this.rows.size <= MOST_ROWS) break;
      this.rows.delete(oldest);
    }
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const columns = this.columns;
      drawHead(byId("rows"), columns);
      const rows = [...this.rows].reverse().map(([key, row]) => {
        const made = dataRow(columns, columns.map((column) => row[column.name]));
        if (this.changed.has(key)) made.className = "changed";
        return made;
      });
      this.changed.clear();
      byId("rows").tBodies[0].replaceChildren(...rows);
      byId("no-rows").hidden = rows.length > 0;
      if (!rows.length) byId("no-rows").textContent = "No rows yet; they appear here as they come.";
      byId("live-note").textContent = rows.length ? `newest ${rows.length}` : "";
    });
  }
}

const isNumber = (column) => /^(tinyint|smallint|int|bigint|float|double|decimal)/.test(column.type);

function drawHead(table, columns) {
  const row = element("tr");
  row.append(...columns.map((column) => element("th", column.name, isNumber(column) ? "number" : "")));
  table.tHead.replaceChildren(row);
}

function dataRow(columns, values) {
  const row = element("tr");
  for (const [index, value] of values.entries()) {
    const text = value !== null && typeof value === "object" ? JSON.stringify(value) : value;
    const cell = element("td", value === null || value === undefined ? "null" : text, "data");
    if (value === null || value === undefined) cell.classList.add("null");
    if (isNumber(columns[index])) cell.classList.add("number");
    row.append(cell);
  }
  return row;
}

const live = new Live();
byId("table").addEventListener("change", (event) => live.follow(event.target.value));

// -- ask

async function ask() {
  const sql = byId("sql").value.trim();
  if (!sql) return;
  const button = byId("ask").querySelector("button");
  button.disabled = true;
  byId("problem").hidden = true;
  byId("answer-note").textContent = "running …";
  const began = performance.now();
  try {
    const answer = await getJson("/v1/sql", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ sql, parameters: [] }),
    });
    const took = `${Math.round(performance.now() - began)} ms`;
    const rows = answer.kind === "rows" ? answer.rows : [];
    const columns = answer.columns || [];
    drawHead(byId("answer"), columns);
    byId("answer").tBodies[0].replaceChildren(...rows.map((row) => dataRow(columns, row)));
    byId("answer-note").textContent = answer.kind === "message"
      ? answer.message
      : `${number.format(rows.length)} rows in ${took}${answer.truncated ? ", cut off" : ""}`;
  } catch (error) {
    byId("answer").tBodies[0].replaceChildren();
    byId("answer-note").textContent = "";
    byId("problem").hidden = false;
    byId("problem").textContent = shownProblem(error);
  } finally {
    button.disabled = false;
  }
}

function shownProblem(error) {
  const problem = error.problem;
  if (!problem) return "The gateway does not answer.";
  const lines = [`${problem.title}: ${problem.detail}`];
  if (problem.location && problem.location.snippet) {
    lines.push(`  ${problem.location.snippet}`, `  ${" ".repeat(problem.location.column - 1)}^`);
  }
  if (problem.hint) lines.push(problem.hint);
  return lines.join("\n");
}

byId("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
byId("sql").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); ask(); }
});
refresh();
