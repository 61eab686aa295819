// One source or sink: its tasks, what is wrong with them, and its switches.

import { useState } from "react";
import { Link } from "wouter";
import { path, send } from "../api/gateway";
import { useAct, useAsked, useObjects, useReadOnly, useStatus } from "../api/use";
import { Definition } from "../parts/Definition";
import { Badge, Confirm, Empty, Facts, Head, Same, Time, Told } from "../parts/parts";
import { bytes, laidOut, number } from "../parts/text";

export default function Connector({ name }: { name: string }) {
  const status = useStatus();
  const objects = useObjects();
  const thing = objects?.find((each) => each.name === name);
  const connector = status?.connectors.find((each) => each.name === name);
  const flow = status?.flows.find((each) => each.flow === name);
  const readOnly = useReadOnly();
  const [resetting, setResetting] = useState(false);
  const inConnect = thing?.kind === "source" && connector?.runs_in !== "engine";
  const { data: offsets, problem } = useAsked<Record<string, unknown>>(inConnect ? `${path`/v1/connectors/${name}`}/offsets` : null, 5000);
  const act = useAct((way: string) => send<{ message?: string }>("POST", `${inConnect ? path`/v1/connectors/${name}` : path`/v1/objects/${name}`}/${way}`));
  const reset = useAct(() => send<{ message?: string }>("DELETE", `${path`/v1/connectors/${name}`}/offsets`));
  if (objects === undefined || status === undefined) return <Head title={name} />;
  if (thing === undefined) return <Empty title={`There is no source or sink “${name}”`}><Link href="/connectors">All of them</Link></Empty>;
  const state = connector?.state ?? flow?.state ?? "starting";
  const paused = state === "paused";
  return (
    <>
      <Head title={name}>
        <Badge text={thing.sink ? "sink" : "source"} tone="accent" />
        <Badge text={state} />
        <span className="quiet">{thing.connector ?? connector?.connector}</span>
        <span className="fill" />
        <button type="button" disabled={readOnly || act.busy} onClick={() => act.act(paused ? "resume" : "pause")}>{paused ? "Resume" : "Pause"}</button>
        {inConnect && <button type="button" disabled={readOnly || act.busy} onClick={() => act.act("restart?failed=true")}>Restart failed</button>}
        {inConnect && <button type="button" disabled={readOnly || act.busy} onClick={() => act.act("restart")}>Restart all</button>}
        <Link href={`/lineage?focus=${encodeURIComponent(name)}`} className="button">Lineage</Link>
      </Head>
      <Told problem={connector?.error ?? flow?.error} />
      <Told problem={act.problem ?? reset.problem} />
      {act.done?.message && <div className="note" role="status">{act.done.message}</div>}
      {connector && (
        <div className="card">
          <Facts
            of={[
              ["tables", connector.tables.join(", ")],
              ["stream", connector.stream],
              ["restarts", number(connector.restarts)],
              ["position", connector.position ? <code>{JSON.stringify(connector.position)}</code> : null],
              ["held in the source", connector.held_bytes !== null && bytes(connector.held_bytes)],
              ["last error", connector.last_error && <>{connector.last_error.title}: {connector.last_error.detail} <Time at={connector.last_error_at} /></>],
            ]}
          />
        </div>
      )}
      {connector?.tasks.map((task) => (
        <div className="card" key={task.id}>
          <div className="head">
            <h2>Task {task.id}</h2>
            <Badge text={task.state} />
            <span className="quiet">{task.worker}</span>
          </div>
          {task.trace && <pre className="code" tabIndex={0}>{task.trace}</pre>}
        </div>
      ))}
      {inConnect && (
        <div className="card">
          <div className="head">
            <h2>Offsets</h2>
            <span className="fill" />
            <button type="button" className="danger" disabled={readOnly} onClick={() => setResetting(true)}>Reset</button>
          </div>
          <Told problem={problem} />
          <pre className="code" tabIndex={0}>{laidOut(offsets ?? {})}</pre>
        </div>
      )}
      <Definition of={thing} />
      <Confirm
        name={name}
        what={`Reset the offsets of ${name}`}
        effect={<p>The connector must be paused; it will read its source from the beginning.</p>}
        open={resetting}
        onClose={() => setResetting(false)}
        onConfirm={() => reset.act(undefined)}
      />
      <Same ways={{ show: `mainstem connector show ${name}`, restart: `mainstem connector restart ${name}`, pause: `mainstem pause ${name}` }} />
    </>
  );
}
