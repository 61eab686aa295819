// All subjects of the registry.

import { Link } from "wouter";
import { useAsked, useObjects, useStatus } from "../api/use";
import { Empty, Head, Same, Told, useAddress } from "../parts/parts";
import { number } from "../parts/text";

export default function Schemas() {
  const registry = useStatus()?.schemas.registry;
  const objects = useObjects() ?? [];
  const [search, setSearch] = useAddress("search");
  const { data, problem } = useAsked<string[]>(registry ? `${registry}/subjects` : null, 5000);
  const found = (data ?? []).filter((name) => name.toLowerCase().includes(search.toLowerCase()));
  return (
    <>
      <Head title="Schemas">
        <span className="quiet">{number(found.length)}</span>
        <span className="fill" />
        <input type="search" aria-label="search" placeholder="search" value={search} onChange={(event) => setSearch(event.target.value)} />
      </Head>
      <Told problem={problem} />
      {data && found.length === 0 && (
        <Empty title="No subjects">
          A stream with <code>format = 'avro'</code>, <code>'json_schema'</code> or <code>'protobuf'</code> registers its schema; so does <code>mainstem schema register</code>.
        </Empty>
      )}
      {found.length > 0 && (
        <div className="card wide">
          <table>
            <thead>
              <tr>
                <th>subject</th>
                <th>used by</th>
              </tr>
            </thead>
            <tbody>
              {found.map((name) => (
                <tr key={name}>
                  <td>
                    <Link href={`/schemas/${encodeURIComponent(name)}`}>{name}</Link>
                  </td>
                  <td>{objects.filter((thing) => thing.subject === name).map((thing) => thing.name).join(", ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Same ways={{ command: "mainstem schema list", REST: `curl -s $GATEWAY${registry ?? "/registry"}/subjects` }} />
    </>
  );
}
