// Sources and sinks.

import { Link } from "wouter";
import { useObjects, useStatus } from "../api/use";
import { Badge, Empty, Head, Same } from "../parts/parts";
import { number, seconds } from "../parts/text";

export default function Connectors() {
  const status = useStatus();
  const objects = useObjects() ?? [];
  const found = objects.filter((thing) => thing.kind === "source" || thing.sink);
  return (
    <>
      <Head title="Connectors">
        <span className="quiet">{number(found.length)}</span>
        <span className="fill" />
        <Link href="/new-connector" className="button">
          New connector
        </Link>
      </Head>
      {found.length === 0 ? (
        <Empty title="No sources or sinks yet">
          <code>CREATE SOURCE … WITH (connector = 'postgres-cdc', …)</code> brings data in, <code>CREATE SINK … FROM … WITH (…)</code> takes it out; <code>SHOW CONNECTORS</code> lists the kinds.
        </Empty>
      ) : (
        <div className="card wide">
          <table>
            <thead>
              <tr>
                <th>name</th>
                <th>kind</th>
                <th>connector</th>
                <th>state</th>
                <th className="number">records/s</th>
                <th className="number">behind</th>
                <th className="number">restarts</th>
                <th>error</th>
              </tr>
            </thead>
            <tbody>
              {found.map((thing) => {
                const flow = status?.flows.find((each) => each.flow === thing.name);
                const connector = status?.connectors.find((each) => each.name === thing.name);
                const error = connector?.error ?? flow?.error;
                return (
                  <tr key={thing.name}>
                    <td>
                      <Link href={`/connectors/${encodeURIComponent(thing.name)}`}>{thing.name}</Link>
                    </td>
                    <td>{thing.sink ? "sink" : "source"}</td>
                    <td>{thing.connector ?? connector?.connector}</td>
                    <td>
                      <Badge text={connector?.state ?? flow?.state ?? "starting"} />
                    </td>
                    <td className="number">{number(flow?.input_rate)}</td>
                    <td className="number">{seconds(flow?.lag_seconds)}</td>
                    <td className="number">{number(connector?.restarts ?? flow?.restarts)}</td>
                    <td>{error && `${error.title}: ${error.detail}`}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      <Same ways={{ command: "mainstem connector list", SQL: "SHOW CONNECTORS" }} />
    </>
  );
}
