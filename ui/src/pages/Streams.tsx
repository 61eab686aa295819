// All streams, and the topics of the log that no definition speaks of.

import { Link } from "wouter";
import type { Topic } from "../api/model";
import { useAsked, useObjects, useStatus } from "../api/use";
import { Grid, type GridRow } from "../parts/Grid";
import { Empty, Head, Same, Told, useAddress } from "../parts/parts";
import { number, seconds } from "../parts/text";

const COLUMNS = ["name", "kind", "topic", "partitions", "records", "in/s", "behind", "format", "quarantined"];

export default function Streams() {
  const objects = useObjects();
  const status = useStatus();
  const [search, setSearch] = useAddress("search");
  const { data, problem } = useAsked<{ topics: Topic[]; next: string | null }>("/v1/topics?limit=10000", 5000);
  const streams = (objects ?? []).filter((thing) => thing.kind === "stream" && !thing.sink);
  const topics = new Map((data?.topics ?? []).map((topic) => [topic.name, topic]));
  const defined = new Set((objects ?? []).map((thing) => thing.topic));
  const rows: GridRow[] = streams.map((stream) => {
    const topic = topics.get(stream.topic);
    const flow = status?.flows.find((each) => each.flow === stream.name);
    return {
      id: `/streams/${encodeURIComponent(stream.name)}`,
      cells: [
        stream.name, stream.derived ? "computed" : stream.wildcard ? "pattern" : stream.source ? "from a source" : "declared",
        stream.topic, number(topic?.partitions), number(topic?.records), number(flow?.input_rate), seconds(flow?.lag_seconds),
        stream.format, number(status?.quarantine.objects[stream.name] ?? 0),
      ],
    };
  });
  for (const topic of topics.values()) {
    if (defined.has(topic.name)) continue;
    rows.push({
      id: `/topics/${encodeURIComponent(topic.name)}`,
      cells: [topic.name, "topic only", topic.name, number(topic.partitions), number(topic.records), "–", "–", "–", "–"],
    });
  }
  const wanted = search.toLowerCase();
  const found = rows.filter((row) => String(row.cells[0]).toLowerCase().includes(wanted));
  return (
    <>
      <Head title="Streams">
        <span className="quiet">{number(found.length)}</span>
        <span className="fill" />
        <input type="search" aria-label="search" placeholder="search" value={search} onChange={(event) => setSearch(event.target.value)} />
      </Head>
      <Told problem={problem} />
      {data?.next && <p className="quiet">These are the first 10,000 topics.</p>}
      {found.length === 0 ? (
        <Empty title={rows.length === 0 ? "No streams yet" : `Nothing has “${search}” in its name`}>
          <Link href="/sql">CREATE STREAM</Link> makes one.
        </Empty>
      ) : (
        <Grid
          label="streams"
          columns={COLUMNS}
          rows={found}
          height={Math.min(680, 40 + found.length * 28)}
          widths="minmax(160px, 2fr) 110px minmax(140px, 2fr) 80px 90px 80px 90px 90px 100px"
          render={(value, column, row) => (column === 0 ? <Link href={row.id}>{String(value)}</Link> : undefined)}
        />
      )}
      <Same ways={{ command: "mainstem topics", SQL: "SHOW STREAMS", REST: "curl -s $GATEWAY/v1/topics" }} />
    </>
  );
}
