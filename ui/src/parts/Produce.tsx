// Rows written by a person, or like a record that is there.

import { useState } from "react";
import { path, send } from "../api/gateway";
import type { LogRecord, Thing } from "../api/model";
import { useAct, useAsked, useReadOnly } from "../api/use";
import { Badge, Told, useAddress } from "./parts";
import { count, laidOut } from "./text";

export function Produce({ to }: { to: Thing }) {
  const [like] = useAddress("like");
  const [partition, offset] = like.split("/");
  const asked = offset === undefined ? null : `${path`/v1/topics/${to.topic}/records`}?partition=${partition}&offset=${offset}&limit=1`;
  const { data, problem } = useAsked<{ records: LogRecord[] }>(asked);
  if (asked !== null && data === undefined) return <Told problem={problem} />;
  const found = data?.records[0];
  const model = found && String(found.offset) === offset ? found : undefined;
  return (
    <>
      {asked !== null && (
        <p className="quiet">
          {model === undefined ? `The record ${like} is there no more.` : model.value === undefined || model.value === null ? `The record ${like} has no value that is text.` : `As the record ${like} has it; the key comes from its columns.`}
        </p>
      )}
      <Form to={to} begin={model?.value === undefined || model.value === null ? empty(to) : laidOut(model.value)} key={like} />
    </>
  );
}

function empty(to: Thing): string {
  return JSON.stringify(Object.fromEntries(to.columns.map((column) => [column.name, null])), null, 2);
}

/** The rows that a person has written. */
function read(text: string): { value: unknown }[] {
  const rows: unknown = JSON.parse(text);
  return (Array.isArray(rows) ? rows : [rows]).map((value: unknown) => ({ value }));
}

function Form({ to, begin }: { to: Thing; begin: string }) {
  const readOnly = useReadOnly();
  const [text, setText] = useState(begin);
  const { act, busy, problem, done } = useAct(async (text: string) => send<{ written: number }>("POST", path`/v1/streams/${to.name}/records`, { records: read(text) }));
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
        {done !== undefined && (
          <span role="status">
            <Badge text="written" tone="good" /> <span className="quiet">{count(done.written, "record")}</span>
          </span>
        )}
      </div>
      <Told problem={problem} />
    </form>
  );
}
