// One stream, or a topic without a definition: its records, newest first, from any place, or as they come.

import { useCallback, useRef, useState } from "react";
import { Link } from "wouter";
import { path, quoted, send } from "../api/gateway";
import type { LogRecord, Thing } from "../api/model";
import { useAct, useAsked, useLive, useObjects, useReadOnly, useStatus } from "../api/use";
import { Filter } from "../parts/Filter";
import { Definition } from "../parts/Definition";
import { Grid, type GridRow } from "../parts/Grid";
import { Badge, Copy, Empty, Facts, Head, Same, Tabs, Time, Told, useAddress } from "../parts/parts";
import { count, laidOut, moment, number, seconds } from "../parts/text";

const TABS = ["records", "filter", "definition", "produce"] as const;
const STARTS = { newest: "newest", oldest: "oldest", time: "a time", offset: "an offset", live: "live" };
const MOST_LIVE = 2000;

interface Page {
  records: LogRecord[];
  next: Record<string, number>;
  end: Record<string, number>;
}

export default function Stream({ name, topic }: { name?: string; topic?: string }) {
  const objects = useObjects();
  const status = useStatus();
  const [tab] = useAddress("tab", TABS[0]);
  const stream = objects?.find((thing) => (name ? thing.name === name : thing.topic === topic && thing.kind !== "source"));
  if (objects === undefined) return <Head title={name ?? topic ?? ""} />;
  if (name && stream === undefined) {
    return <Empty title={`There is no stream “${name}”`}><Link href="/streams">All streams</Link></Empty>;
  }
  const flow = status?.flows.find((each) => each.flow === name);
  const title = name ?? topic ?? "";
  const read = topic ?? stream?.topic ?? title;
  return (
    <>
      <Head title={title}>
        <Badge text={name ? "stream" : "topic"} tone="accent" />
        {flow && <Badge text={flow.state} />}
        {flow && <span className="quiet">{number(flow.input_rate)}/s in, {seconds(flow.lag_seconds)} behind</span>}
        <span className="fill" />
        {stream?.derived && <Link href={`/flows/${encodeURIComponent(stream.name)}`} className="button">Flow</Link>}
        {stream && <Link href={`/lineage?focus=${encodeURIComponent(stream.name)}`} className="button">Lineage</Link>}
      </Head>
      <Told problem={flow?.error} />
      <Tabs of={name && !stream?.derived ? TABS : TABS.slice(0, name ? 3 : 1)} chosen={tab} />
      {tab === "filter" && stream && <Filter of={stream} />}
      {tab === "records" && <Records topic={read} />}
      {tab === "definition" && stream && <Definition of={stream} />}
      {tab === "produce" && stream && <Produce to={stream} />}
      <Same
        ways={{
          command: `mainstem consume ${read} --last 100`,
          live: name ? `mainstem sql -e "SELECT * FROM ${quoted(name)} EMIT CHANGES"` : `mainstem consume ${read} --follow`,
          curl: `curl -s "$GATEWAY/v1/topics/${encodeURIComponent(read)}/records?last=100"`,
          kcat: `kcat -b $BROKER -t ${read} -o -100 -e`,
        }}
      />
    </>
  );
}

function Records({ topic }: { topic: string }) {
  const [start, setStart] = useAddress("from", "newest");
  const [partition, setPartition] = useAddress("partition");
  const [at, setAt] = useAddress("at");
  const [permalink, setPermalink] = useAddress("record");
  const asked = start === "live" ? null : recordsPath(topic, start, partition, at);
  const { data, problem } = useAsked<Page>(asked, start === "newest" ? 2000 : undefined);
  const tail = useTail(start === "live" ? topic : null, partition);
  const newestFirst = start === "newest" || start === "live";
  const records = start === "live" ? tail.records : newestFirst ? [...(data?.records ?? [])].reverse() : (data?.records ?? []);
  const rows = records.map(rowOf);
  const chosen = records.find((record) => idOf(record) === permalink);
  return (
    <>
      <div className="tools">
        <label>
          from{" "}
          <select value={start} onChange={(event) => setStart(event.target.value)}>
            {Object.entries(STARTS).map(([value, text]) => (
              <option key={value} value={value}>{text}</option>
            ))}
          </select>
        </label>
        {(start === "time" || start === "offset") && (
          <input aria-label={start} value={at} placeholder={start === "time" ? new Date().toISOString() : "0"} onChange={(event) => setAt(event.target.value)} />
        )}
        <label>
          partition <input size={4} value={partition} placeholder="all" onChange={(event) => setPartition(event.target.value.replace(/\D/g, ""))} />
        </label>
        <span className="quiet" role="status">
          {count(records.length, "record")}
          {start === "live" && tail.skipped > 0 && `, showing 1 in ${number(tail.oneIn)}`}
        </span>
        <span className="fill" />
        <Export records={records} topic={topic} />
      </div>
      <Told problem={problem ?? tail.problem} />
      {rows.length === 0 ? (
        <Empty title="No records here">{start === "live" ? "They appear as they are written." : "Choose another place to start, or produce one."}</Empty>
      ) : (
        <Grid
          label={`records of ${topic}`}
          columns={["time", "partition", "offset", "key", "value", "schema"]}
          widths="170px 84px 100px minmax(100px, 1fr) minmax(260px, 4fr) 84px"
          rows={rows}
          height={460}
          chosen={permalink}
          onPick={(row) => setPermalink(row.id)}
        />
      )}
      {chosen && <OneRecord record={chosen} />}
    </>
  );
}

function recordsPath(topic: string, start: string, partition: string, at: string): string | null {
  const asked = new URLSearchParams();
  if (partition) asked.set("partition", partition);
  if (start === "newest") asked.set("last", "200");
  if (start === "time") asked.set("time", at || new Date(Date.now() - 600_000).toISOString());
  if (start === "offset") {
    asked.set("offset", at || "0");
    if (!partition) asked.set("partition", "0");
  }
  if (start !== "newest") asked.set("limit", "500");
  return `${path`/v1/topics/${topic}/records`}?${asked}`;
}

function idOf(record: LogRecord): string {
  return `${record.partition}/${record.offset}`;
}

function rowOf(record: LogRecord): GridRow {
  const key = record.key ?? (record.key_base64 ? `base64:${record.key_base64}` : null);
  const value = record.value ?? (record.value_base64 ? `base64:${record.value_base64}` : null);
  return { id: idOf(record), cells: [moment(record.timestamp), record.partition, record.offset, key, value, record.schema_id ?? ""] };
}

interface Tail {
  records: LogRecord[];
  skipped: number;
  oneIn: number;
  problem: null;
}

/** The newest records as they come, drawn once a frame. */
function useTail(topic: string | null, partition: string): Tail {
  const held = useRef<LogRecord[]>([]);
  const drawing = useRef(0);
  const [shown, setShown] = useState<Omit<Tail, "problem">>({ records: [], skipped: 0, oneIn: 1 });
  const take = useCallback(({ name, data }: { name: string; data: unknown }) => {
    if (name !== "records") return;
    const said = data as { records: LogRecord[]; skipped: number; one_in: number };
    held.current = [...said.records.toReversed(), ...held.current].slice(0, MOST_LIVE);
    if (drawing.current) return;
    drawing.current = requestAnimationFrame(() => {
      drawing.current = 0;
      setShown({ records: held.current, skipped: said.skipped, oneIn: said.one_in });
    });
  }, []);
  const channel = topic === null ? null : { kind: "records" as const, topic, ...(partition ? { partition: Number(partition) } : {}) };
  useLive(channel, take);
  return { ...shown, problem: null };
}

function OneRecord({ record }: { record: LogRecord }) {
  const value = laidOut(record.value ?? record.value_base64 ?? null);
  return (
    <div className="card" style={{ marginTop: 14 }}>
      <div className="head">
        <h2>
          Record {record.topic}/{record.partition}/{record.offset}
        </h2>
        <span className="fill" />
        <Copy text={location.href} label="link" />
        <Copy text={value} label="value" />
      </div>
      <Facts
        of={[
          ["time", <Time at={record.timestamp} />],
          ["key", <code>{laidOut(record.key ?? record.key_base64 ?? null)}</code>],
          ["schema", record.schema_id && <Link href={`/schemas?id=${record.schema_id}`}>{record.schema_id}</Link>],
          ...record.headers.map((header): [string, React.ReactNode] => [`header ${header.name}`, <code>{header.value ?? header.value_base64}</code>]),
        ]}
      />
      <pre className="code" tabIndex={0} style={{ marginTop: 10 }}>
        {value.length > 200_000 ? `${value.slice(0, 200_000)}\n… ${number(value.length - 200_000)} more characters: copy or export shows all` : value}
      </pre>
    </div>
  );
}

function Export({ records, topic }: { records: readonly LogRecord[]; topic: string }) {
  const save = () => {
    const text = records.map((record) => JSON.stringify(record)).join("\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
    link.download = `${topic}.jsonl`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <button type="button" onClick={save} disabled={records.length === 0}>
      Export
    </button>
  );
}

/** The rows that a person has written. */
function read(text: string): { value: unknown }[] {
  const rows: unknown = JSON.parse(text);
  return (Array.isArray(rows) ? rows : [rows]).map((value: unknown) => ({ value }));
}

function Produce({ to }: { to: Thing }) {
  const readOnly = useReadOnly();
  const empty = JSON.stringify(Object.fromEntries(to.columns.map((column) => [column.name, null])), null, 2);
  const [text, setText] = useState(empty);
  const { act, busy, problem, done } = useAct(async (text: string) => send<unknown>("POST", path`/v1/streams/${to.name}/records`, { records: read(text) }));
  return (
    <form
      className="card"
      onSubmit={(event) => {
        event.preventDefault();
        act(text);
      }}
    >
      <h2>One row, or a list of rows, as JSON</h2>
      <textarea rows={12} value={text} aria-label="rows" spellCheck={false} onChange={(event) => setText(event.target.value)} />
      <div className="tools" style={{ marginTop: 8 }}>
        <button className="main" disabled={readOnly || busy}>Produce</button>
        {done !== undefined && <Badge text="written" tone="good" />}
      </div>
      <Told problem={problem} />
    </form>
  );
}
