// All tables, and how fresh each one is.

import { Link } from "wouter";
import { useObjects, useStatus } from "../api/use";
import { Badge, Empty, Head, Same, useAddress } from "../parts/parts";
import { number, seconds } from "../parts/text";

export default function Tables() {
  const objects = useObjects();
  const status = useStatus();
  const [search, setSearch] = useAddress("search");
  const tables = (objects ?? []).filter((thing) => thing.kind === "table" && !thing.sink);
  const found = tables.filter((table) => table.name.toLowerCase().includes(search.toLowerCase()));
  return (
    <>
      <Head title="Tables">
        <span className="quiet">{number(found.length)}</span>
        <span className="fill" />
        <input type="search" aria-label="search" placeholder="search" value={search} onChange={(event) => setSearch(event.target.value)} />
      </Head>
      {found.length === 0 ? (
        <Empty title={tables.length === 0 ? "No tables yet" : `Nothing has “${search}” in its name`}>
          A table is the latest row for each key: <code>CREATE TABLE sales AS SELECT …</code> on the <Link href="/sql">SQL page</Link>.
        </Empty>
      ) : (
        <div className="card wide">
          <table>
            <thead>
              <tr>
                <th>name</th>
                <th>state</th>
                <th>key</th>
                <th className="number">rows</th>
                <th className="number">flow behind</th>
                <th className="number">view to go</th>
                <th>from</th>
              </tr>
            </thead>
            <tbody>
              {found.map((table) => {
                const view = status?.views.find((each) => each.name === table.name);
                const flow = status?.flows.find((each) => each.flow === table.name);
                return (
                  <tr key={table.name}>
                    <td>
                      <Link href={`/tables/${encodeURIComponent(table.name)}`}>{table.name}</Link>
                    </td>
                    <td>
                      <Badge text={view?.error ? "failed" : (flow?.state ?? (view ? "served" : "waiting"))} />
                    </td>
                    <td className="mono">{table.key.join(", ")}</td>
                    <td className="number">{number(view?.rows)}</td>
                    <td className="number">{table.derived ? seconds(flow?.lag_seconds) : "–"}</td>
                    <td className="number">{number(view?.lag_records)}</td>
                    <td>{table.source ?? table.inputs.join(", ")}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      <Same ways={{ command: "mainstem status", SQL: "SHOW TABLES", REST: "curl -s $GATEWAY/v1/objects" }} />
    </>
  );
}
