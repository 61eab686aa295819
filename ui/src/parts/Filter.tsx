// Records of a stream that meet a condition: the gateway looks, from a time on, until Stop.

import { useState } from "react";
import { quoted } from "../api/gateway";
import type { Thing } from "../api/model";
import { Grid } from "./Grid";
import { Badge, Told, useAddress } from "./parts";
import { useRows } from "./rows";
import { count, number } from "./text";

const SINCE = { beginning: "the beginning", "600": "10 minutes ago", "3600": "an hour ago", "86400": "a day ago", "": "now" };

export function Filter({ of }: { of: Thing }) {
  const [where, setWhere] = useAddress("where");
  const [since, setSince] = useAddress("since", "beginning");
  const [asked, setAsked] = useState<{ sql: string; since?: string } | null>(null);
  const look = () => {
    const sql = `SELECT _timestamp, _partition, _offset, * FROM ${quoted(of.name)}${where ? ` WHERE ${where}` : ""} EMIT CHANGES`;
    setAsked({ sql, ...(since ? { since: since === "beginning" ? since : new Date(Date.now() - Number(since) * 1000).toISOString() } : {}) });
  };
  return (
    <>
      <form
        className="tools"
        onSubmit={(event) => {
          event.preventDefault();
          look();
        }}
      >
        <label style={{ flex: 1, display: "flex", gap: 8, alignItems: "center" }}>
          WHERE
          <input className="mono" style={{ flex: 1 }} value={where} placeholder={`${of.columns[0]?.name ?? "id"} = …`} onChange={(event) => setWhere(event.target.value)} />
        </label>
        <label>
          since{" "}
          <select value={since} onChange={(event) => setSince(event.target.value)}>
            {Object.entries(SINCE).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <button className="main">Look</button>
        {asked && (
          <button type="button" className="danger" onClick={() => setAsked(null)}>
            Stop
          </button>
        )}
      </form>
      {asked && <Found asked={asked} key={JSON.stringify(asked)} label={`records of ${of.name} that match`} />}
    </>
  );
}

function Found({ asked, label }: { asked: { sql: string; since?: string }; label: string }) {
  const { columns, rows, changes, full, leftOut, scanned, problem } = useRows(asked.sql, asked.since);
  return (
    <>
      <div className="tools">
        <Badge text={problem ? "failed" : "live"} />
        <span className="quiet" role="status">
          {scanned === null ? "looking" : `${number(scanned)} offsets looked at`}, {count(changes, "record")} found
          {full && ", the newest 20,000 are shown"}
          {leftOut > 0 && `, ${number(leftOut)} passed over`}
        </span>
      </div>
      <Told problem={problem} />
      {rows.length > 0 && <Grid label={label} columns={columns} rows={rows.toReversed()} height={440} />}
    </>
  );
}
