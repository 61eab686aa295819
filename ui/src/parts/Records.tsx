// The records of a topic: newest first, from any place, or as they come.

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { path } from "../api/gateway";
import type { LogRecord, Problem, Thing } from "../api/model";
import { useAsked, useLive } from "../api/use";
import { Export } from "./Export";
import { Grid, type GridRow } from "./Grid";
import { Copy, Empty, Facts, Time, Told, useAddress } from "./parts";
import { count, laidOut, moment, number } from "./text";

const STARTS = { newest: "newest", oldest: "oldest", minutes: "the last minutes", time: "a time", offset: "an offset", live: "live" };
const HINTS: Record<string, string> = { minutes: "10", offset: "0", time: "2026-11-15T09:00:00Z" };
const MOST = 500;
const MOST_LIVE = 2000;

interface Page {
  records: LogRecord[];
  next: Record<string, number>;
  end: Record<string, number>;
}

export function Records({ topic, writable }: { topic: string; writable: Thing | null }) {
  const [start, setStart] = useAddress("from", "newest");
  const [partition, setPartition] = useAddress("partition");
  const [at, setAt] = useAddress("at");
  const [permalink, setPermalink] = useAddress("record");
  // a time that is counted from now stands still until another one is asked for
  const asked = useMemo(() => (start === "live" ? null : recordsPath(topic, start, partition, at)), [topic, start, partition, at]);
  const { data, problem } = useAsked<Page>(asked, start === "newest" ? 2000 : undefined);
  const tail = useTail(start === "live" ? topic : null, partition);
  const newestFirst = start === "newest" || start === "live";
  const records = start === "live" ? tail.records : newestFirst ? [...(data?.records ?? [])].reverse() : (data?.records ?? []);
  const headers = records.some((record) => record.headers.length > 0);
  const rows = records.map((record) => rowOf(record, headers));
  const cut = start !== "live" && start !== "newest" && records.length >= MOST;
  const chosen = useOne(topic, permalink, records);
  return (
    <>
      <div className="tools">
        <label>
          from{" "}
          <select value={start} onChange={(event) => (setStart(event.target.value), setAt(""))}>
            {Object.entries(STARTS).map(([value, text]) => (
              <option key={value} value={value}>{text}</option>
            ))}
          </select>
        </label>
        {start in HINTS && <input aria-label={start} size={start === "time" ? 26 : 8} value={at} placeholder={HINTS[start]} onChange={(event) => setAt(event.target.value.trim())} />}
        <label>
          partition <input size={4} value={partition} placeholder="all" onChange={(event) => setPartition(event.target.value.replace(/\D/g, ""))} />
        </label>
        <span className="quiet" role="status">
          {count(records.length, "record")}
          {cut && ", the first of them"}
          {start === "live" && tail.skipped > 0 && `, showing 1 in ${number(tail.oneIn)}`}
        </span>
        <span className="fill" />
        <Export records={records} topic={topic} />
      </div>
      <Told problem={problem ?? tail.problem} />
      {rows.length === 0 && asked !== null && data === undefined ? (
        <p className="quiet">{problem ? "" : "…"}</p>
      ) : rows.length === 0 ? (
        <Empty title="No records here">{start === "live" ? "They appear as they are written." : "Choose another place to start, or produce one."}</Empty>
      ) : (
        <Grid
          label={`records of ${topic}`}
          columns={["time", "partition", "offset", "key", "value", "schema", ...(headers ? ["headers"] : [])]}
          widths={`170px 84px 100px minmax(100px, 1fr) minmax(260px, 4fr) 84px${headers ? " minmax(120px, 1fr)" : ""}`}
          rows={rows}
          height={460}
          chosen={permalink}
          onPick={(row) => setPermalink(row.id)}
        />
      )}
      {chosen && <OneRecord record={chosen} writable={writable} />}
      {permalink && chosen === null && <p className="quiet">The record {permalink} is there no more.</p>}
    </>
  );
}

/** The record that the address names, though others may have pushed it out of sight; null: it is gone. */
function useOne(topic: string, id: string, records: readonly LogRecord[]): LogRecord | null | undefined {
  const inSight = records.find((record) => idOf(record) === id);
  const [partition, offset] = id.split("/");
  const asked = !inSight && offset ? `${path`/v1/topics/${topic}/records`}?${new URLSearchParams({ partition: partition ?? "0", offset, limit: "1" })}` : null;
  const { data } = useAsked<Page>(asked);
  if (inSight || data === undefined) return inSight;
  return data.records.find((record) => idOf(record) === id) ?? null;
}

/** An address that shows the record whatever comes after it. */
function linkTo(record: LogRecord): string {
  const place = new URLSearchParams(location.search);
  const at = { from: "offset", partition: String(record.partition), at: String(record.offset), record: idOf(record) };
  for (const [name, value] of Object.entries(at)) place.set(name, value);
  return `${location.origin}${location.pathname}?${place}`;
}

function recordsPath(topic: string, start: string, partition: string, at: string): string | null {
  const asked = new URLSearchParams();
  if (partition) asked.set("partition", partition);
  if (start === "newest") asked.set("last", "200");
  if (start === "minutes") asked.set("time", minutesAgo(Number(at) || 10));
  if (start === "time") asked.set("time", at || minutesAgo(10));
  if (start === "offset") {
    asked.set("offset", at || "0");
    if (!partition) asked.set("partition", "0");
  }
  if (start !== "newest") asked.set("limit", String(MOST));
  return `${path`/v1/topics/${topic}/records`}?${asked}`;
}

function minutesAgo(minutes: number): string {
  return new Date(Date.now() - minutes * 60_000).toISOString();
}

function idOf(record: LogRecord): string {
  return `${record.partition}/${record.offset}`;
}

function rowOf(record: LogRecord, headers: boolean): GridRow {
  const key = record.key ?? (record.key_base64 ? `base64:${record.key_base64}` : null);
  const value = record.value ?? (record.value_base64 ? `base64:${record.value_base64}` : null);
  const cells = [moment(record.timestamp), record.partition, record.offset, key, value, record.schema_id ?? ""];
  if (headers) cells.push(record.headers.map((header) => `${header.name}=${header.value ?? header.value_base64 ?? ""}`).join(" "));
  return { id: idOf(record), cells };
}

interface Tail {
  records: LogRecord[];
  skipped: number;
  oneIn: number;
  problem: Problem | null;
}

const NONE: Tail = { records: [], skipped: 0, oneIn: 1, problem: null };

/** The newest records as they come, drawn once a frame. */
function useTail(topic: string | null, partition: string): Tail {
  const held = useRef<LogRecord[]>([]);
  const drawing = useRef(0);
  const [shown, setShown] = useState(NONE);
  useEffect(() => {
    held.current = [];
    setShown(NONE);
  }, [topic, partition]);
  const take = useCallback(({ name, data }: { name: string; data: unknown }) => {
    if (name === "error") setShown((before) => ({ ...before, problem: data as Problem }));
    if (name !== "records") return;
    const said = data as { records: LogRecord[]; skipped: number; one_in: number };
    held.current = [...said.records.toReversed(), ...held.current].slice(0, MOST_LIVE);
    if (drawing.current) return;
    drawing.current = requestAnimationFrame(() => {
      drawing.current = 0;
      setShown({ records: held.current, skipped: said.skipped, oneIn: said.one_in, problem: null });
    });
  }, []);
  const channel = topic === null ? null : { kind: "records" as const, topic, ...(partition ? { partition: Number(partition) } : {}) };
  useLive(channel, take);
  return shown;
}

function OneRecord({ record, writable }: { record: LogRecord; writable: Thing | null }) {
  const value = laidOut(record.value ?? record.value_base64 ?? null);
  return (
    <div className="card" style={{ marginTop: 14 }}>
      <div className="head">
        <h2>
          Record {record.topic}/{record.partition}/{record.offset}
        </h2>
        <span className="fill" />
        {writable && (
          <Link href={`/streams/${encodeURIComponent(writable.name)}?tab=produce&like=${record.partition}/${record.offset}`} className="button">
            Produce again
          </Link>
        )}
        <Copy text={linkTo(record)} label="link" />
        <Copy text={value} label="value" />
      </div>
      <Facts
        of={[
          ["time", <Time at={record.timestamp} />],
          ["key", <code>{laidOut(record.key ?? record.key_base64 ?? null)}</code>],
          ["schema", record.schema_id && <Link href={`/schemas?id=${record.schema_id}`}>{record.schema_id}</Link>],
          ...record.headers.map((header, place): [string, React.ReactNode] => [`header ${place + 1}: ${header.name}`, <code>{header.value ?? header.value_base64}</code>]),
        ]}
      />
      <pre className="code" tabIndex={0} style={{ marginTop: 10 }}>
        {value.length > 200_000 ? `${value.slice(0, 200_000)}\n… ${number(value.length - 200_000)} more characters: copy or export shows all` : value}
      </pre>
    </div>
  );
}

