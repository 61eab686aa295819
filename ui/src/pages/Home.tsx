// How the data is: what is late, failing, quarantined or restarting, each with the way to its cause.

import { Link } from "wouter";
import { troubles } from "../api/health";
import { useObjects, useStatus } from "../api/use";
import { Badge, Empty, Head, Same } from "../parts/parts";
import { number, seconds } from "../parts/text";

export function Home() {
  const status = useStatus();
  const objects = useObjects();
  if (status === undefined || objects === undefined) return <Head title="Home" />;
  if (objects.length === 0) return <FirstRun />;
  const found = troubles(status, objects);
  const flows = status.flows;
  const rate = flows.reduce((sum, flow) => sum + (flow.input_rate ?? 0), 0);
  const oldest = Math.max(0, ...flows.map((flow) => flow.lag_seconds ?? 0));
  const running = flows.filter((flow) => flow.state === "running" || flow.state === "idle").length;
  const served = status.views.reduce((sum, view) => sum + (view.rows ?? 0), 0);
  return (
    <>
      <Head title="Home">
        {found.length === 0 ? <Badge text="all is well" tone="good" /> : <Badge text={`${found.length} to look at`} tone={found.some((t) => t.tone === "bad") ? "bad" : "warn"} />}
      </Head>
      <div className="cards">
        <Figure name="records a second" value={number(rate)} href="/flows" />
        <Figure name="longest delay" value={seconds(oldest)} href="/flows" />
        <Figure name="flows running" value={`${running} of ${flows.length}`} href="/flows" />
        <Figure name="rows served" value={number(served)} href="/tables" />
        <Figure name="in quarantine" value={number(status.quarantine.records)} href="/quarantine" />
        <Figure name="live subscriptions" value={number(status.subscriptions)} href="/tables" />
      </div>
      {found.length > 0 && (
        <div className="card wide">
          <h2>To look at</h2>
          <table>
            <tbody>
              {found.map((trouble) => (
                <tr key={`${trouble.what} ${trouble.name}`}>
                  <td>
                    <Badge text={trouble.what} tone={trouble.tone} />
                  </td>
                  <td>
                    <Link href={trouble.href}>{trouble.name}</Link>
                  </td>
                  <td style={{ overflowWrap: "anywhere" }}>
                    {trouble.text}
                    {trouble.hint && <div className="quiet">{trouble.hint}</div>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div className="card wide">
        <h2>Flows</h2>
        <table>
          <thead>
            <tr>
              <th>name</th>
              <th>state</th>
              <th className="number">records/s</th>
              <th className="number">behind</th>
              <th className="number">to go</th>
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
                <td className="number">{number(flow.input_rate)}</td>
                <td className="number">{seconds(flow.lag_seconds)}</td>
                <td className="number">{number(flow.lag_records)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Same ways={{ command: "mainstem status", "again and again": "mainstem status --watch", REST: "curl -s $GATEWAY/v1/status" }} />
    </>
  );
}

function Figure({ name, value, href }: { name: string; value: string; href: string }) {
  return (
    <div className="card">
      <div className="quiet">{name}</div>
      <Link href={href} className="figure">
        {value}
      </Link>
    </div>
  );
}

function FirstRun() {
  return (
    <>
      <Head title="Home" />
      <Empty title="Nothing runs here yet">
        <p>Write a definition into a file of the project, or into the SQL page:</p>
        <pre className="code">
          {"CREATE STREAM orders (id STRING, product STRING, amount DECIMAL(10, 2), at TIMESTAMP)\n  WITH (key = 'id', event_time = 'at', watermark = '10 minutes');\n\nCREATE TABLE sales AS SELECT product, sum(amount) AS total FROM orders GROUP BY product;"}
        </pre>
        <p>
          then <code>mainstem plan</code> and <code>mainstem apply</code>, or <Link href="/sql">open the SQL page</Link>. <code>make demo</code> runs a shop with live events.
        </p>
      </Empty>
    </>
  );
}
