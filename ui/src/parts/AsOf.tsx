// A table as it was: a slider over the last hours, or any moment.

import { useState } from "react";
import { quoted, send } from "../api/gateway";
import type { Answer, Thing } from "../api/model";
import { useAct } from "../api/use";
import { Answered } from "./Answered";
import { Copy, Told, useAddress } from "./parts";
import { seconds } from "./text";

const MOST_SECONDS = 24 * 3600;

/** Finer near to now: a quarter of the way is a few minutes. */
function secondsAgo(place: number): number {
  return Math.round(MOST_SECONDS * (place / 100) ** 3);
}

export function AsOf({ table }: { table: Thing }) {
  const [moment, setMoment] = useAddress("moment");
  const [place, setPlace] = useState(10);
  const ask = useAct((at: string) => send<Answer>("POST", "/v1/sql", { sql: statement(at) }));
  const statement = (at: string) => `SELECT * FROM ${quoted(table.name)} AS OF TIMESTAMP '${at.replaceAll("'", "''")}' LIMIT 1000`;
  const look = (at: string) => {
    setMoment(at);
    ask.act(at);
  };
  return (
    <div className="card">
      <div className="tools">
        <label style={{ flex: 1, display: "flex", gap: 10, alignItems: "center" }}>
          {seconds(secondsAgo(place))} ago
          <input
            type="range"
            min={0}
            max={100}
            value={100 - place}
            style={{ flex: 1 }}
            aria-label="how long ago"
            onChange={(event) => setPlace(100 - Number(event.target.value))}
            onPointerUp={() => look(new Date(Date.now() - secondsAgo(place) * 1000).toISOString())}
            onKeyUp={() => look(new Date(Date.now() - secondsAgo(place) * 1000).toISOString())}
          />
          now
        </label>
        <input size={26} aria-label="moment" value={moment} placeholder={new Date().toISOString()} onChange={(event) => setMoment(event.target.value)} />
        <button type="button" disabled={!moment || ask.busy} onClick={() => ask.act(moment)}>
          {ask.busy ? "Asking the log …" : "Look"}
        </button>
        {moment && <Copy text={statement(moment)} label="as SQL" />}
      </div>
      <Told problem={ask.problem} />
      {ask.done && <Answered answer={ask.done} label={`${table.name} as it was`} />}
    </div>
  );
}
