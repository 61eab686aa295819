// Every flow, and whether it keeps up.

import { Link } from "wouter";
import { useStatus } from "../api/use";
import { Badge, Empty, Head, Same } from "../parts/parts";
import { bytes, number, seconds } from "../parts/text";

export default function Flows() {
  const status = useStatus();
  const flows = status?.flows ?? [];
  return (
    <>
      <Head title="Flows">
        <span className="quiet">{number(flows.length)}</span>
      </Head>
      {flows.length === 0 ? (
        <Empty title="No flows yet">A flow keeps a stream or a table AS SELECT up to date.</Empty>
      ) : (
        <div className="card wide">
          <table>
            <thead>
              <tr>
                <th>name</th>
                <th>state</th>
                <th>lane</th>
                <th className="number">in/s</th>
                <th className="number">done/s</th>
                <th className="number">batch</th>
                <th className="number">behind</th>
                <th className="number">to go</th>
                <th className="number">state rows</th>
                <th className="number">state size</th>
                <th className="number">restarts</th>
              </tr>
            </thead>
            <tbody>
              {flows.map((flow) => (
                <tr key={flow.flow}>
                  <td>
                    <Link href={`/flows/${encodeURIComponent(flow.flow)}`}>{flow.flow}</Link>
                  </td>
                  <td>
                    <Badge text={flow.state} />
                  </td>
                  <td>{flow.lane}</td>
                  <td className="number">{number(flow.input_rate)}</td>
                  <td className="number">{number(flow.process_rate)}</td>
                  <td className="number">{seconds(flow.batch_seconds)}</td>
                  <td className="number">{seconds(flow.lag_seconds)}</td>
                  <td className="number">{number(flow.lag_records)}</td>
                  <td className="number">{number(flow.state_rows)}</td>
                  <td className="number">{bytes(flow.state_bytes)}</td>
                  <td className="number">{number(flow.restarts)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Same ways={{ command: "mainstem status", SQL: "SHOW FLOWS" }} />
    </>
  );
}
