// What is wrong with the data, worst first, each with the way to its cause.

import type { Status, Thing } from "./model";

export interface Trouble {
  what: "failing" | "late" | "quarantined" | "restarting" | "down";
  tone: "bad" | "warn";
  name: string;
  text: string;
  hint?: string;
  href: string;
}

const LATE_SECONDS = 30;
const ORDER = ["down", "failing", "restarting", "late", "quarantined"];

export function hrefOf(thing: Pick<Thing, "name" | "kind" | "sink" | "derived">): string {
  const name = encodeURIComponent(thing.name);
  if (thing.kind === "source" || thing.sink) return `/connectors/${name}`;
  return thing.kind === "table" ? `/tables/${name}` : `/streams/${name}`;
}

export function troubles(status: Status, objects: readonly Thing[]): Trouble[] {
  const found: Trouble[] = [];
  const known = new Map(objects.map((thing) => [thing.name, thing]));
  const { log, postgres } = status.checks;
  if (!log.ok) found.push(down("Kafka", log.problem));
  if (!postgres.ok) found.push(down("PostgreSQL", postgres.problem));
  if (status.engine.state !== "running" && status.flows.length > 0) found.push(down("engine", status.engine.state));
  for (const flow of status.flows) {
    const href = `/flows/${encodeURIComponent(flow.flow)}`;
    if (flow.error) {
      const restarting = flow.state === "restarting";
      found.push({
        what: restarting ? "restarting" : "failing",
        tone: restarting ? "warn" : "bad",
        name: flow.flow,
        text: `${flow.error.title}: ${flow.error.detail}`,
        hint: flow.error.hint,
        href,
      });
    } else if ((flow.lag_seconds ?? 0) > LATE_SECONDS && flow.state === "running") {
      const text = `${Math.round(flow.lag_seconds ?? 0)} s behind, ${flow.lag_records ?? "?"} records to go`;
      found.push({ what: "late", tone: "warn", name: flow.flow, text, href });
    }
  }
  for (const connector of status.connectors) {
    if (!connector.error) continue;
    const href = `/connectors/${encodeURIComponent(connector.name)}`;
    const text = `${connector.error.title}: ${connector.error.detail}`;
    found.push({ what: "failing", tone: "bad", name: connector.name, text, hint: connector.error.hint, href });
  }
  for (const view of status.views) {
    if (!view.error) continue;
    const href = `/tables/${encodeURIComponent(view.name)}`;
    found.push({ what: "failing", tone: "bad", name: view.name, text: view.error.detail, hint: view.error.hint, href });
  }
  for (const [name, count] of Object.entries(status.quarantine.objects)) {
    const text = `${count.toLocaleString()} ${count === 1 ? "record" : "records"} held`;
    const href = `/quarantine?stream=${encodeURIComponent(known.get(name)?.name ?? name)}`;
    found.push({ what: "quarantined", tone: "warn", name, text, href });
  }
  return found.sort((a, b) => ORDER.indexOf(a.what) - ORDER.indexOf(b.what));
}

function down(name: string, problem: string | undefined): Trouble {
  return { what: "down", tone: "bad", name, text: problem ?? "does not answer", hint: "mainstem doctor", href: "/" };
}
