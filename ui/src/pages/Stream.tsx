// One stream, or a topic without a definition: its records, its topic, and who reads it.

import { Link } from "wouter";
import { path, quoted } from "../api/gateway";
import type { Thing } from "../api/model";
import { useAsked, useObjects, useStatus } from "../api/use";
import { Definition } from "../parts/Definition";
import { Filter } from "../parts/Filter";
import { Produce } from "../parts/Produce";
import { Records } from "../parts/Records";
import { TopicFacts } from "../parts/TopicFacts";
import { Badge, Empty, Head, Same, Tabs, Told, useAddress } from "../parts/parts";
import { number, seconds } from "../parts/text";

export default function Stream({ name, topic }: { name?: string; topic?: string }) {
  const objects = useObjects();
  const status = useStatus();
  const [tab] = useAddress("tab", "records");
  const [chosen, setChosen] = useAddress("topic");
  const stream = objects?.find((thing) => (name ? thing.name === name : thing.topic === topic && thing.kind !== "source"));
  const { data: whole } = useAsked<Thing>(name && stream?.wildcard ? path`/v1/objects/${name}` : null);
  if (objects === undefined) return <Head title={name ?? topic ?? ""} />;
  if (name && stream === undefined) {
    return <Empty title={`There is no stream “${name}”`}><Link href="/streams">All streams</Link></Empty>;
  }
  const flow = status?.flows.find((each) => each.flow === name);
  const title = name ?? topic ?? "";
  const many = stream?.wildcard ? (whole?.topics ?? []) : null;
  const read = many ? chosen || many[0] : (topic ?? stream?.topic ?? title);
  const writable = stream !== undefined && !stream.derived && !stream.wildcard && stream.kind === "stream";
  const tabs = ["records", "topic", ...(name ? ["filter", "definition"] : []), ...(name && writable ? ["produce"] : [])];
  return (
    <>
      <Head title={title}>
        <Badge text={name ? "stream" : "topic"} tone="accent" />
        {flow && <Badge text={flow.state} />}
        {flow && <span className="quiet">{number(flow.input_rate)}/s in, {seconds(flow.lag_seconds)} behind</span>}
        <span className="fill" />
        {!name && stream && <span className="quiet">{stream.kind} <strong>{stream.name}</strong></span>}
        {stream?.derived && <Link href={`/flows/${encodeURIComponent(stream.name)}`} className="button">Flow</Link>}
        {stream && <Link href={`/lineage?focus=${encodeURIComponent(stream.name)}`} className="button">Lineage</Link>}
      </Head>
      <Told problem={flow?.error} />
      <Tabs of={tabs} chosen={tab} />
      {many && (tab === "records" || tab === "topic") && (
        <div className="tools">
          <label>
            topic{" "}
            <select value={read ?? ""} onChange={(event) => setChosen(event.target.value)}>
              {many.map((each) => <option key={each}>{each}</option>)}
            </select>
          </label>
          <span className="quiet">that fits {stream?.topic}</span>
        </div>
      )}
      {tab === "filter" && stream && <Filter of={stream} />}
      {tab === "records" && (read ? <Records topic={read} key={read} writable={writable ? stream : null} /> : <Empty title="No topic fits yet">One that fits the pattern is read as soon as it is there.</Empty>)}
      {tab === "topic" && read && <TopicFacts topic={read} />}
      {tab === "definition" && stream && <Definition of={stream} />}
      {tab === "produce" && stream && writable && <Produce to={stream} />}
      <Same
        ways={{
          command: `mainstem consume ${read ?? title} --last 100`,
          live: name ? `mainstem sql -e "SELECT * FROM ${quoted(name)} EMIT CHANGES"` : `mainstem consume ${read} --follow`,
          curl: `curl -s "$GATEWAY/v1/topics/${encodeURIComponent(read ?? title)}/records?last=100"`,
          kcat: `kcat -b $BROKER -t ${read ?? title} -o -100 -e`,
        }}
      />
    </>
  );
}
