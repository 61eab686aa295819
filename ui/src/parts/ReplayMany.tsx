// All held records of a stream or a cause: mend them with a query, try, then replay.

import { useState } from "react";
import { send } from "../api/gateway";
import { useAct, useReadOnly } from "../api/use";
import { Badge, Copy, Told } from "./parts";
import { count } from "./text";

const EXAMPLE = "SELECT replace(value, 'seven', '7') AS value FROM quarantine";
const MOST_SHOWN = 5;

interface Part {
  replayed: number;
  refused: number;
  skipped: number;
  records: { id: number; outcome: string; problem: string | null }[];
  next: number | null;
  until: number;
}

interface Total {
  tried: boolean;
  replayed: number;
  refused: number;
  problems: { id: number; problem: string | null }[];
}

/** Each request is a transaction of its own; one after the other, until there are no more. */
async function replayed(chosen: Record<string, string>, dry_run: boolean): Promise<Total> {
  const total: Total = { tried: dry_run, replayed: 0, refused: 0, problems: [] };
  let place: { after?: number; until?: number } = {};
  for (;;) {
    const part = await send<Part>("POST", "/v1/quarantine/replay", { ...chosen, ...place, dry_run });
    total.replayed += part.replayed;
    total.refused += part.refused;
    const refused = part.records.filter((record) => record.outcome === "refused");
    total.problems = [...total.problems, ...refused].slice(0, MOST_SHOWN);
    if (part.next === null) return total;
    place = { after: part.next, until: part.until };
  }
}

export function ReplayMany({ stream, cause }: { stream: string; cause: string }) {
  const readOnly = useReadOnly();
  const [sql, setSql] = useState("");
  const chosen = { ...(stream && { stream }), ...(cause && { cause }), ...(sql.trim() && { sql: sql.trim() }) };
  const { act, busy, problem, done } = useAct((dry: boolean) => replayed(chosen, dry));
  const flags = [stream && `--stream ${stream}`, cause && `--cause '${cause.replaceAll("'", "'\\''")}'`, sql.trim() && `--sql "${sql.trim().replaceAll('"', '\\"')}"`];
  return (
    <details className="card">
      <summary>Replay all that are held of {[stream, cause].filter(Boolean).join(": ")}</summary>
      <p className="quiet">
        Mended by a query, or as they are; <code>key</code>, <code>value</code> and <code>cause</code> are texts:
      </p>
      <textarea rows={3} aria-label="query" spellCheck={false} value={sql} placeholder={EXAMPLE} onChange={(event) => setSql(event.target.value)} />
      <div className="tools" style={{ marginTop: 8 }}>
        <button type="button" disabled={busy} onClick={() => act(true)}>
          Would they fit now?
        </button>
        <button type="button" className="main" disabled={readOnly || busy} onClick={() => act(false)}>
          Replay those that fit
        </button>
        <Copy text={["mainstem quarantine replay", ...flags.filter(Boolean)].join(" ")} label="as command" />
        {done && (
          <span role="status">
            <Badge text={done.tried ? "tried" : "done"} tone="good" /> {count(done.replayed, "record")} {done.tried ? "would be" : "were"} replayed, {count(done.refused, "record")} {done.tried ? "would stay" : "stayed"}
          </span>
        )}
      </div>
      {done?.problems.map((each) => (
        <div className="quiet" key={each.id}>
          {each.id}: {each.problem}
        </div>
      ))}
      <Told problem={problem} />
    </details>
  );
}
