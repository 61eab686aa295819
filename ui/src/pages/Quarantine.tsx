// Records that could not be taken in: why, from where; mend, try and replay them.

import { useState } from "react";
import { path, send } from "../api/gateway";
import { useAct, useAsked, useReadOnly } from "../api/use";
import { Bars } from "../parts/Bars";
import { Grid } from "../parts/Grid";
import { ReplayMany } from "../parts/ReplayMany";
import { Badge, Empty, Facts, Head, Same, Time, Told, useAddress } from "../parts/parts";
import { count, laidOut, number, time } from "../parts/text";

interface Listed {
  id: number;
  object: string;
  stage: string;
  code: string;
  cause: string;
  at: string;
  origin: string;
  state: string;
  key: string | null;
  value: string | null;
  size: number;
}

interface Counted {
  object: string;
  stage: string;
  code: string;
  cause: string;
  held: number;
  replayed: number;
  discarded: number;
}

interface Settled {
  dry_run: boolean;
  replayed?: number;
  discarded?: number;
  refused: number;
  records: { id: number; outcome: string; problem: string | null; value?: string | null }[];
}

interface One extends Listed {
  record: { value?: string | null; value_base64?: string; headers: unknown[] };
}

export default function Quarantine() {
  const [stream, setStream] = useAddress("stream");
  const [cause, setCause] = useAddress("cause");
  const [chosen, setChosen] = useAddress("id");
  const { data: summary } = useAsked<{ counts: Counted[] }>("/v1/quarantine/summary", 2000);
  const asked = new URLSearchParams({ limit: "200", state: "held" });
  if (stream) asked.set("stream", stream);
  if (cause) asked.set("cause", cause);
  const { data, problem } = useAsked<{ records: Listed[] }>(`/v1/quarantine?${asked}`, 2000);
  const held = (summary?.counts ?? []).filter((each) => each.held > 0);
  const records = data?.records ?? [];
  return (
    <>
      <Head title="Quarantine">
        {(stream || cause) && (
          <button type="button" onClick={() => (setStream(""), setCause(""))}>
            show all
          </button>
        )}
      </Head>
      <Told problem={problem} />
      <OverTime stream={stream} />
      {summary && held.length === 0 ? (
        <Empty title="The quarantine is empty">Every record was taken in, was mended and replayed, or was given up by a person.</Empty>
      ) : (
        <>
          <div className="card wide">
            <h2>Reasons</h2>
            <table>
              <thead>
                <tr>
                  <th>object</th>
                  <th>stage</th>
                  <th>cause</th>
                  <th className="number">held</th>
                  <th className="number">replayed</th>
                  <th className="number">given up</th>
                </tr>
              </thead>
              <tbody>
                {held.map((each) => (
                  <tr key={`${each.object} ${each.stage} ${each.cause}`}>
                    <td>
                      <button type="button" className="plain" onClick={() => setStream(each.object)}>
                        {each.object}
                      </button>
                    </td>
                    <td>{each.stage}</td>
                    <td>
                      <button type="button" className="plain" style={{ textAlign: "left" }} onClick={() => setCause(each.cause)}>
                        {each.cause}
                      </button>
                    </td>
                    <td className="number">{number(each.held)}</td>
                    <td className="number">{number(each.replayed)}</td>
                    <td className="number">{number(each.discarded)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <Grid
            label="held records"
            columns={["id", "since", "object", "stage", "cause", "origin", "value"]}
            widths="70px 170px 120px 80px minmax(200px, 2fr) 140px minmax(160px, 2fr)"
            rows={records.map((each) => ({ id: String(each.id), cells: [each.id, time(each.at), each.object, each.stage, each.cause, each.origin, each.value] }))}
            chosen={chosen}
            onPick={(row) => setChosen(row.id)}
          />
          {(stream || cause) && <ReplayMany stream={stream} cause={cause} key={`${stream} ${cause}`} />}
        </>
      )}
      {chosen && <OneHeld id={chosen} key={chosen} />}
      <Same ways={{ list: `mainstem quarantine list${stream ? ` --stream ${stream}` : ""}`, show: `mainstem quarantine show ${chosen || "ID"}`, replay: `mainstem quarantine replay ${chosen || "ID"}` }} />
    </>
  );
}

const SPANS = {
  minute: { text: "the last hour, by minute", seconds: 60, steps: 60 },
  hour: { text: "the last day, by hour", seconds: 3600, steps: 24 },
};

/** What came in, whatever became of it. */
function OverTime({ stream }: { stream: string }) {
  const [span, setSpan] = useAddress("by", "hour");
  const { seconds, steps } = span === "minute" ? SPANS.minute : SPANS.hour;
  const asked = new URLSearchParams({ step: span === "minute" ? "minute" : "hour", ...(stream ? { stream } : {}) });
  const { data, problem } = useAsked<{ counts: { at: number; object: string; records: number }[] }>(`/v1/quarantine/arrivals?${asked}`, 5000);
  const first = (Math.floor(Date.now() / 1000 / seconds) - steps + 1) * seconds;
  const counts = (data?.counts ?? []).filter(({ at }) => at >= first).map(({ at, object, records }) => ({ at, name: object, count: records }));
  return (
    <div className="card">
      <div className="head">
        <h2>Put into quarantine</h2>
        <select aria-label="time" value={span} onChange={(event) => setSpan(event.target.value)}>
          {Object.entries(SPANS).map(([value, { text }]) => (
            <option key={value} value={value}>{text}</option>
          ))}
        </select>
      </div>
      <Told problem={problem} />
      {data && counts.length === 0 ? <p className="quiet">Nothing in this time.</p> : <Bars label="records put into quarantine" counts={counts} step={seconds} steps={steps} />}
    </div>
  );
}

function OneHeld({ id }: { id: string }) {
  const { data, problem } = useAsked<One>(path`/v1/quarantine/${id}`);
  const readOnly = useReadOnly();
  const original = data?.record.value ?? "";
  const [text, setText] = useState<string | null>(null);
  const mended = text !== null && text !== original ? { value: text } : {};
  const settle = useAct((request: { way: "replay" | "discard"; dry_run: boolean }) =>
    send<Settled>("POST", `/v1/quarantine/${request.way}`, {
      ids: [Number(id)],
      dry_run: request.dry_run,
      ...(request.way === "replay" ? mended : {}),
    }),
  );
  if (data === undefined) return <Told problem={problem} />;
  const outcome = settle.done?.records[0];
  return (
    <div className="card" style={{ marginTop: 14 }}>
      <div className="head">
        <h2>Record {id}</h2>
        <Badge text={data.state} />
      </div>
      <Facts of={[["object", data.object], ["cause", data.cause], ["code", data.code], ["origin", data.origin], ["since", <Time at={data.at} />]]} />
      <h2 style={{ marginTop: 12 }}>Value</h2>
      <textarea rows={8} aria-label="value" spellCheck={false} value={text ?? laidOut(original)} onChange={(event) => setText(event.target.value)} />
      <div className="tools" style={{ marginTop: 8 }}>
        <button type="button" disabled={settle.busy} onClick={() => settle.act({ way: "replay", dry_run: true })}>
          Would it fit now?
        </button>
        <button type="button" className="main" disabled={readOnly || settle.busy || data.state !== "held"} onClick={() => settle.act({ way: "replay", dry_run: false })}>
          Replay
        </button>
        <button type="button" className="danger" disabled={readOnly || settle.busy || data.state !== "held"} onClick={() => settle.act({ way: "discard", dry_run: false })}>
          Give up
        </button>
        {outcome && (
          <span role="status">
            <Badge text={settle.done?.dry_run ? `would be ${outcome.outcome}` : outcome.outcome} tone={outcome.outcome === "refused" ? "bad" : "good"} /> {outcome.problem}
          </span>
        )}
        {settle.done && <span className="quiet">{count(settle.done.records.length, "record")}</span>}
      </div>
      <Told problem={settle.problem} />
    </div>
  );
}
