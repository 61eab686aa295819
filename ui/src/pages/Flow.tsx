// One flow: what it does, whether it keeps up, what it waits for, and its switches.

import { useState } from "react";
import { Link } from "wouter";
import { hrefOf } from "../api/health";
import { path, quoted, send } from "../api/gateway";
import type { Answer } from "../api/model";
import { useAct, useAsked, useObjects, useReadOnly, useStatus } from "../api/use";
import { Backfill } from "../parts/Backfill";
import { Answered } from "../parts/Answered";
import { Badge, Confirm, Empty, Facts, Head, Same, Time, Told } from "../parts/parts";
import { Split } from "../parts/Split";
import { bytes, count, number, seconds } from "../parts/text";
import { Trend } from "../parts/Trend";

export default function Flow({ name }: { name: string }) {
  const status = useStatus();
  const objects = useObjects();
  const thing = objects?.find((each) => each.name === name);
  const flow = status?.flows.find((each) => each.flow === name);
  const readOnly = useReadOnly();
  const [dropping, setDropping] = useState(false);
  const [applying, setApplying] = useState(false);
  const turn = useAct((way: "pause" | "resume") => send<{ message: string }>("POST", `${path`/v1/objects/${name}`}/${way}`));
  const drop = useAct(() => send<{ message: string }>("DELETE", path`/v1/objects/${name}`));
  const late = useAct(() => send<Answer>("POST", "/v1/sql", { sql: `APPLY LATE ${quoted(name)}` }));
  const { data: waiting } = useAsked<{ reasons: string[] }>(thing?.derived ? `${path`/v1/objects/${name}`}/waiting` : null, 5000);
  const explain = useAct(() => send<Answer>("POST", "/v1/sql", { sql: `EXPLAIN ${quoted(name)}` }));
  if (status === undefined || objects === undefined) return <Head title={name} />;
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
      <Told problem={turn.problem ?? drop.problem ?? late.problem ?? explain.problem} />
      {late.done?.kind === "message" && <div className="note" role="status">{late.done.message}</div>}
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
            ["dropped as late", flow.late_dropped ? `${count(flow.late_dropped, "row")} since the engine began` : null],
            [
              "late",
              flow.late_waiting ? (
                <>
                  {count(flow.late_waiting, "record")} missed {flow.late_waiting === 1 ? "its" : "their"} windows{" "}
                  <button type="button" disabled={readOnly || late.busy} onClick={() => setApplying(true)}>{late.busy ? "Computing …" : "Take them in"}</button>
                </>
              ) : null,
            ],
            ["quarantined", flow.quarantined ? <Link href={`/quarantine?stream=${encodeURIComponent(name)}`}>{number(flow.quarantined)}</Link> : null],
            ["restarts", number(flow.restarts)],
            ["last word", <Time at={flow.updated_at} />],
          ]}
        />
      </div>
      <Split flow={flow} />
      {waiting !== undefined && waiting.reasons.length > 0 && (
        <div className="card">
          <h2>What its windows wait for</h2>
          <ul style={{ margin: 0, paddingLeft: 18 }}>
            {waiting.reasons.map((reason) => (
              <li key={reason} style={{ overflowWrap: "anywhere" }}>{reason}</li>
            ))}
          </ul>
        </div>
      )}
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
      <Confirm
        name={name}
        what={`Take in what came late to ${name}`}
        effect={<p>The windows that these records missed are computed once more, and their rows are written anew: readers of {name} see other results than before.</p>}
        open={applying}
        onClose={() => setApplying(false)}
        onConfirm={() => late.act(undefined)}
      />
      <Same
        ways={{
          pause: `mainstem pause ${name}`,
          resume: `mainstem resume ${name}`,
          explain: `mainstem sql -e "EXPLAIN ${quoted(name)}"`,
          "late records": `mainstem sql -e "APPLY LATE ${quoted(name)}"`,
          drop: `mainstem drop ${name}`,
        }}
      />
    </>
  );
}
