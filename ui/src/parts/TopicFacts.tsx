// A topic as Kafka has it: partitions, settings, and who reads it, how far behind.

import { path } from "../api/gateway";
import type { Group, TopicParts } from "../api/model";
import { useAsked } from "../api/use";
import { Badge, Told } from "./parts";
import { number } from "./text";

const MOST_GROUPS = 20;

export function TopicFacts({ topic }: { topic: string }) {
  const { data, problem } = useAsked<TopicParts>(path`/v1/topics/${topic}`, 5000);
  if (data === undefined) return <Told problem={problem} />;
  const settings = Object.entries(data.config).sort(([a], [b]) => a.localeCompare(b));
  return (
    <>
      <Told problem={problem} />
      <div className="card wide">
        <h2>Partitions</h2>
        <table>
          <thead>
            <tr>
              <th className="number">partition</th>
              <th className="number">first offset</th>
              <th className="number">end</th>
              <th className="number">records, about</th>
              <th className="number">leader</th>
              <th>replicas</th>
              <th>in sync</th>
            </tr>
          </thead>
          <tbody>
            {data.by_partition.map((part) => (
              <tr key={part.partition}>
                <td className="number">{part.partition}</td>
                <td className="number">{part.begin}</td>
                <td className="number">{part.end}</td>
                <td className="number">{number(part.end - part.begin)}</td>
                <td className="number">{part.leader}</td>
                <td>{part.replicas.join(", ")}</td>
                <td>{part.in_sync.length < part.replicas.length ? <Badge text={part.in_sync.join(", ") || "none"} tone="bad" /> : part.in_sync.join(", ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Groups topic={topic} />
      <div className="card wide">
        <h2>Settings</h2>
        {settings.length === 0 ? (
          <p className="quiet">All as the broker has them.</p>
        ) : (
          <table>
            <tbody>
              {settings.map(([name, value]) => (
                <tr key={name}>
                  <td className="mono">{name}</td>
                  <td className="mono">{value}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </>
  );
}

function Groups({ topic }: { topic: string }) {
  const { data, problem } = useAsked<{ groups: string[]; not_asked: number }>(`${path`/v1/topics/${topic}`}/groups`, 10_000);
  const groups = data?.groups ?? [];
  return (
    <div className="card wide">
      <h2>Consumer groups of other programs</h2>
      <Told problem={problem} />
      {data && groups.length === 0 && <p className="quiet">None has committed an offset of it. The flows that read it are on the Lineage page.</p>}
      {groups.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>group</th>
              <th>state</th>
              <th className="number">members</th>
              <th className="number">to go</th>
              <th>by partition</th>
            </tr>
          </thead>
          <tbody>
            {groups.slice(0, MOST_GROUPS).map((group) => (
              <GroupRow key={group} group={group} topic={topic} />
            ))}
          </tbody>
        </table>
      )}
      {groups.length > MOST_GROUPS && <p className="quiet">and {groups.slice(MOST_GROUPS).join(", ")}</p>}
      {data !== undefined && data.not_asked > 0 && <p className="quiet">{number(data.not_asked)} more groups of the cluster were not asked.</p>}
    </div>
  );
}

function GroupRow({ group, topic }: { group: string; topic: string }) {
  const { data, problem } = useAsked<Group>(path`/v1/groups/${group}`, 5000);
  const mine = data?.offsets.filter((each) => each.topic === topic) ?? [];
  return (
    <tr>
      <td className="mono">{group}</td>
      <td>{problem ? <span title={problem.detail}>{problem.title}</span> : data && <Badge text={data.state.toLowerCase()} />}</td>
      <td className="number">{number(data?.members.length)}</td>
      <td className="number">{number(data && mine.reduce((sum, each) => sum + each.lag, 0))}</td>
      <td className="mono">{mine.map((each) => `${each.partition}: ${number(each.lag)}`).join(", ")}</td>
    </tr>
  );
}
