// The events that a row is made of, back to where they came in.

import { Link } from "wouter";
import { quoted, send } from "../api/gateway";
import type { Thing } from "../api/model";
import { useAct } from "../api/use";
import { Badge, Copy, Time, Told } from "./parts";
import { cell } from "./text";

interface Origin {
  object: string;
  kind: string;
  topic: string;
  partition: number;
  offset: number;
  time: string;
  schema_id: number | null;
  payload: unknown;
  note: string | null;
  inputs: Origin[];
}

interface Explained {
  kind: "message";
  message: string;
  detail: { tree: Origin; exact: boolean };
}

export function Origins({ table, row }: { table: Thing; row: Record<string, unknown> }) {
  const sql = `EXPLAIN ROW ${quoted(table.name)} WHERE ${table.key.map((column) => `${quoted(column)} = ${literal(row[column], typeOf(table, column))}`).join(" AND ")}`;
  const explain = useAct(() => send<Explained>("POST", "/v1/sql", { sql }));
  return (
    <>
      <div className="tools" style={{ marginTop: 10 }}>
        <button type="button" disabled={explain.busy} onClick={() => explain.act(undefined)}>
          {explain.busy ? "Asking the log …" : "Which events made this row?"}
        </button>
        <Copy text={sql} label="as SQL" />
        {explain.done && <Badge text={explain.done.detail.exact ? "exact" : "not exact"} tone={explain.done.detail.exact ? "good" : "warn"} />}
      </div>
      <Told problem={explain.problem} />
      {explain.done && (
        <ul className="tree" aria-label="events behind the row">
          <Branch of={explain.done.detail.tree} />
        </ul>
      )}
    </>
  );
}

function Branch({ of }: { of: Origin }) {
  const href = `/topics/${encodeURIComponent(of.topic)}?from=offset&partition=${of.partition}&at=${of.offset}&record=${of.partition}/${of.offset}`;
  return (
    <li>
      <strong>{of.object}</strong> <span className="quiet">{of.kind}</span>{" "}
      <Link href={href}>
        {of.topic} {of.partition}:{of.offset}
      </Link>{" "}
      <span className="quiet">
        <Time at={of.time} />
        {of.schema_id !== null && ` schema ${of.schema_id}`}
      </span>
      <div>
        <code>{cell(of.payload).slice(0, 2000)}</code>
      </div>
      {of.note && <div className="quiet">! {of.note}</div>}
      {of.inputs.length > 0 && (
        <ul>
          {of.inputs.map((input) => (
            <Branch key={`${input.topic} ${input.partition} ${input.offset}`} of={input} />
          ))}
        </ul>
      )}
    </li>
  );
}

function typeOf(table: Thing, column: string): string {
  return table.columns.find((each) => each.name === column)?.type.toLowerCase() ?? "string";
}

function literal(value: unknown, type: string): string {
  if (value === null || value === undefined) return "NULL";
  const text = `'${cell(value).replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  if (type === "string") return text;
  return type.startsWith("timestamp") || type === "date" ? `CAST(${text} AS ${type.toUpperCase()})` : cell(value);
}
