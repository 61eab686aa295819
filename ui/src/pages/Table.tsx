// One table: its rows as they change, a look-up by key, and the events behind a row.

import { useMemo, useState } from "react";
import { Link } from "wouter";
import { path, quoted } from "../api/gateway";
import type { Answer, Thing } from "../api/model";
import { useAsked, useObjects, useStatus } from "../api/use";
import { AsOf } from "../parts/AsOf";
import { Definition } from "../parts/Definition";
import { Grid, type GridRow } from "../parts/Grid";
import { Badge, Empty, Facts, Head, Same, Tabs, Told, useAddress } from "../parts/parts";
import { useRows } from "../parts/rows";
import { Answered } from "../parts/Answered";
import { Origins } from "../parts/RowTree";
import { count, number, seconds } from "../parts/text";

const TABS = ["live", "look-up", "as of", "definition"] as const;

export default function Table({ name }: { name: string }) {
  const table = useObjects()?.find((thing) => thing.name === name && thing.kind === "table");
  const loaded = useObjects() !== undefined;
  const status = useStatus();
  const [tab] = useAddress("tab", TABS[0]);
  if (table === undefined) {
    return loaded ? <Empty title={`There is no table “${name}”`}><Link href="/tables">All tables</Link></Empty> : <Head title={name} />;
  }
  const view = status?.views.find((each) => each.name === name);
  const flow = status?.flows.find((each) => each.flow === name);
  return (
    <>
      <Head title={name}>
        <Badge text="table" tone="accent" />
        <Badge text={view?.error ? "failed" : (flow?.state ?? "served")} />
        <span className="quiet">
          {number(view?.rows)} rows{flow && <>, {seconds(flow.lag_seconds)} behind</>}
        </span>
        <span className="fill" />
        {table.derived && <Link href={`/flows/${encodeURIComponent(name)}`} className="button">Flow</Link>}
        <Link href={`/lineage?focus=${encodeURIComponent(name)}`} className="button">Lineage</Link>
      </Head>
      <Told problem={view?.error ?? flow?.error} />
      <Tabs of={TABS} chosen={tab} />
      {tab === "live" && <LiveTable table={table} />}
      {tab === "look-up" && <LookUp table={table} />}
      {tab === "as of" && <AsOf table={table} />}
      {tab === "definition" && <Definition of={table} />}
      <Same
        ways={{
          SQL: `SELECT * FROM ${quoted(name)} LIMIT 100`,
          live: `mainstem sql -e "SELECT * FROM ${quoted(name)} EMIT CHANGES"`,
          curl: `curl -s "$GATEWAY/v1/tables/${encodeURIComponent(name)}/rows?${table.key[0] ?? "id"}=..."`,
          psql: `psql "$MAINSTEM_POSTGRES" -c 'SELECT * FROM "${name}" LIMIT 100'`,
          Python: `Client(gateway).sql("SELECT * FROM ${quoted(name)}")`,
        }}
      />
    </>
  );
}

function LiveTable({ table }: { table: Thing }) {
  const [search, setSearch] = useAddress("filter");
  const { columns, rows, changes, full, problem } = useRows(`SELECT * FROM ${quoted(table.name)} EMIT CHANGES`);
  const [chosen, setChosen] = useState<GridRow | null>(null);
  const wanted = search.toLowerCase();
  const found = useMemo(
    () => (wanted ? rows.filter((row) => row.cells.some((value) => String(value).toLowerCase().includes(wanted))) : rows),
    [rows, wanted],
  );
  return (
    <>
      <div className="tools">
        <input type="search" aria-label="rows that contain" placeholder="rows that contain" value={search} onChange={(event) => setSearch(event.target.value)} />
        <span className="quiet" role="status">
          {count(found.length, "row")}
          {full && ", the first 20,000"}, {count(changes, "change")} since this page opened
        </span>
      </div>
      <Told problem={problem} />
      {found.length === 0 ? (
        <Empty title={rows.length === 0 ? "No rows yet" : "No row has that in it"}>They appear here as they come.</Empty>
      ) : (
        <Grid label={`rows of ${table.name}`} columns={columns} rows={found} height={460} chosen={chosen?.id} onPick={setChosen} />
      )}
      {chosen && (
        <div className="card" style={{ marginTop: 14 }}>
          <h2>One row</h2>
          <Facts of={columns.map((column, index) => [column.name, <code>{JSON.stringify(chosen.cells[index])}</code>])} />
          <Origins table={table} row={Object.fromEntries(columns.map((column, index) => [column.name, chosen.cells[index]]))} key={chosen.id} />
        </div>
      )}
    </>
  );
}

/** What the address says; a person may have changed it. */
function parsed(text: string): Record<string, string> {
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === "object" && read !== null ? (read as Record<string, string>) : {};
  } catch {
    return {};
  }
}

function LookUp({ table }: { table: Thing }) {
  const [text, setText] = useAddress("key");
  const values = parsed(text);
  const complete = table.key.every((column) => values[column]);
  const asked = complete ? `${path`/v1/tables/${table.name}/rows`}?${new URLSearchParams(values)}` : null;
  const { data, problem } = useAsked<Answer>(asked, 1000);
  return (
    <div className="card">
      <div className="tools">
        {table.key.map((column) => (
          <label key={column}>
            {column} <input value={values[column] ?? ""} onChange={(event) => setText(JSON.stringify({ ...values, [column]: event.target.value }))} />
          </label>
        ))}
      </div>
      {!complete && <p className="quiet">The row shows when {table.key.length > 1 ? "all columns of the key have" : "the key has"} a value, and then each change of it.</p>}
      <Told problem={problem} />
      {data && <Answered answer={data} label="found" />}
    </div>
  );
}
