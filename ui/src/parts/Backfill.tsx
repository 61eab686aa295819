// A flow once more over history: begin, watch, slow down, give up.

import { useState } from "react";
import { path, send } from "../api/gateway";
import { useAct, useAsked, useReadOnly } from "../api/use";
import { Badge, Facts, Told } from "./parts";
import { number, seconds } from "./text";

interface Progress {
  name: string;
  state: string;
  since?: unknown;
  rate?: number | null;
  records_total?: number | null;
  records_done?: number | null;
  eta_seconds?: number | null;
}

const OPEN = new Set(["running", "paused"]);

export function Backfill({ name }: { name: string }) {
  const readOnly = useReadOnly();
  const { data } = useAsked<{ backfills: Progress[] }>("/v1/backfills", 2000);
  const last = data?.backfills.find((each) => each.name === name);
  const [since, setSince] = useState("beginning");
  const [rate, setRate] = useState("");
  const at = path`/v1/backfills/${name}`;
  const act = useAct(({ method, way, body }: { method: "POST" | "DELETE"; way: string; body?: unknown }) => send<{ records?: number }>(method, at + way, body));
  const open = last !== undefined && OPEN.has(last.state);
  const wanted = { since, ...(rate ? { rate: Number(rate) } : {}) };
  return (
    <div className="card">
      <div className="head">
        <h2>Backfill</h2>
        {last && <Badge text={last.state} />}
      </div>
      {last && (
        <>
          <Facts of={[["since", typeof last.since === "string" ? last.since : JSON.stringify(last.since)], ["read", last.records_total ? `${number(last.records_done)} of ${number(last.records_total)} records` : null], ["done in", last.eta_seconds ? seconds(last.eta_seconds) : null], ["at most", last.rate ? `${number(last.rate)} records a second` : null]]} />
          {open && last.records_total ? <progress max={last.records_total} value={last.records_done ?? 0} aria-label="backfill" style={{ width: "100%" }} /> : null}
        </>
      )}
      <div className="tools" style={{ marginTop: 8 }}>
        {open ? (
          <>
            <button type="button" disabled={readOnly || act.busy} onClick={() => act.act({ method: "POST", way: last.state === "paused" ? "/resume" : "/pause", body: last.state === "paused" ? {} : undefined })}>
              {last.state === "paused" ? "Go on" : "Hold"}
            </button>
            <button type="button" className="danger" disabled={readOnly || act.busy} onClick={() => act.act({ method: "DELETE", way: "" })}>
              Give up
            </button>
          </>
        ) : (
          <>
            <label>
              since <input value={since} onChange={(event) => setSince(event.target.value)} />
            </label>
            <label>
              at most <input size={8} value={rate} placeholder="all" onChange={(event) => setRate(event.target.value.replace(/\D/g, ""))} /> records a second
            </label>
            <button type="button" disabled={readOnly || act.busy} onClick={() => act.act({ method: "POST", way: "", body: { ...wanted, dry_run: true } })}>
              What would be read?
            </button>
            <button type="button" disabled={readOnly || act.busy} onClick={() => act.act({ method: "POST", way: "", body: wanted })}>
              Compute anew
            </button>
          </>
        )}
        {act.done?.records !== undefined && <span className="quiet">{number(act.done.records)} records</span>}
      </div>
      <Told problem={act.problem} />
    </div>
  );
}
