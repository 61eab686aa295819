// One flow: what it does, whether it keeps up, what it waits for, and its switches.

import { useState } from "react";
import { Link } from "wouter";
import { hrefOf } from "../api/health";
import { path, quoted, send } from "../api/gateway";
import type { Answer } from "../api/model";
import { useAct, useObjects, useReadOnly, useStatus } from "../api/use";
import { Backfill } from "../parts/Backfill";
import { Answered } from "../parts/Answered";
import { Badge, Confirm, Empty, Facts, Head, Same, Time, Told } from "../parts/parts";
import { bytes, number, seconds } from "../parts/text";
import { Trend } from "../parts/Trend";

export default function Flow({ name }: { name: string }) {
  const status = useStatus();
  const thing = useObjects()?.find((each) => each.name === name);
  const flow = status?.flows.find((each) => each.flow === name);
  const readOnly = useReadOnly();
  const [dropping, setDropping] = useState(false);
  const turn = useAct((way: "pause" | "resume") => send<{ message: string }>("POST", `${path`/v1/objects/${name}`}/${way}`));
  const drop = useAct(() => send<{ message: string }>("DELETE", path`/v1/objects/${name}`));
  const explain = useAct(() => send<Answer>("POST", "/v1/sql", { sql: `EXPLAIN ${quoted(name)}` }));
  if (status === undefined) return <Head title={name} />;
  if (flow === undefined || thing === undefined) return <Empty title={`There is no flow “${name}”`}><Link href="/flows">All flows</Link></Empty>;
  const paused = flow.state === "paused" || thing.paused;
  return (
    <>
      <Head title={name}>
        <Badge text="flow" tone="accent" />
        <Badge text={flow.state} />
        <span className="fill" />
        <Link href={hrefOf(thing)} className="button">{thing.sink ? "Sink" : thing.kind === "table" ? "Rows" : "Records"}</Link>
        <button type="button" disabled={readOnly || turn.busy} onClick={() => turn.act(paused ? "resume" : "pause")}>{paused ? "Resume" : "Pause"}</button>
        <button type="button" disabled={explain.busy} onClick={() => explain.act(undefined)}>Explain</button>
        <button type="button" className="danger" disabled={readOnly} onClick={() => setDropping(true)}>Drop</button>
      </Head>
      <Told problem={flow.error} />
      <Told problem={turn.problem ?? drop.problem ?? explain.problem} />
      {flow.next_retry && <p className="quiet">it begins again at <Time at={flow.next_retry} /></p>}
      <div className="cards">
        <Trend name="records in a second" value={flow.input_rate} format={number} />
        <Trend name="behind" value={flow.lag_seconds} format={seconds} />
        <Trend name="time of a batch" value={flow.batch_seconds} format={seconds} />
      </div>
      <div className="card">
        <Facts
          of={[
            ["lane", flow.lane],
            ["read", `${number(flow.rows_in_total)} rows`],
            ["written", `${number(flow.rows_out_total)} rows`],
            ["to go", flow.lag_records !== null && `${number(flow.lag_records)} records`],
            ["done a second", number(flow.process_rate)],
            ["watermark", flow.watermark && <Time at={flow.watermark} />],
            ["newest event", flow.event_time && <Time at={flow.event_time} />],
            ["state", `${number(flow.state_rows)} rows, ${bytes(flow.state_bytes)}`],
            ["late", flow.late_waiting ? <>{number(flow.late_waiting)} records wait for <code>APPLY LATE {name}</code></> : null],
            ["quarantined", flow.quarantined ? <Link href={`/quarantine?stream=${encodeURIComponent(name)}`}>{number(flow.quarantined)}</Link> : null],
            ["restarts", number(flow.restarts)],
            ["last word", <Time at={flow.updated_at} />],
          ]}
        />
      </div>
      {explain.done && (
        <div className="card">
          <h2>Explained</h2>
          <Answered answer={explain.done} label="plan" />
        </div>
      )}
      {!thing.sink && <Backfill name={name} />}
      <div className="card">
        <h2>Definition</h2>
        <pre className="code" tabIndex={0}>{thing.sql}</pre>
        <p className="quiet">{thing.file}:{thing.line}</p>
      </div>
      <Confirm
        name={name}
        what={`Drop ${name}`}
        effect={<p>Its flow, its view, and its topic if Mainstem made that, are removed.</p>}
        open={dropping}
        onClose={() => setDropping(false)}
        onConfirm={() => drop.act(undefined)}
      />
      <Same
        ways={{
          pause: `mainstem pause ${name}`,
          resume: `mainstem resume ${name}`,
          explain: `mainstem sql -e "EXPLAIN ${quoted(name)}"`,
          drop: `mainstem drop ${name}`,
        }}
      />
    </>
  );
}
