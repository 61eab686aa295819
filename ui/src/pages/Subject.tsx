// One subject: its versions, what changed between two of them, and whether a new one would break.

import { useState } from "react";
import { Link } from "wouter";
import { hrefOf } from "../api/health";
import { path, send } from "../api/gateway";
import type { Problem } from "../api/model";
import { useAct, useAsked, useObjects, useStatus } from "../api/use";
import { Badge, Facts, Head, Same, Told, useAddress } from "../parts/parts";
import { laidOut } from "../parts/text";

interface Version {
  subject: string;
  version: number;
  id: number;
  schemaType?: string;
  schema: string;
  references?: unknown[];
}

interface Diff {
  changes: { path: string; action: string; what: string; before: unknown; after: unknown; breaking: boolean; backward: string[]; forward: string[] }[];
  compatible: boolean;
  level: string;
}

export default function Subject({ name }: { name: string }) {
  const registry = useStatus()?.schemas.registry;
  const users = (useObjects() ?? []).filter((thing) => thing.subject === name);
  const at = registry ? `${registry}${path`/subjects/${name}`}` : null;
  const { data: versions, problem } = useAsked<number[]>(at && `${at}/versions`);
  const newest = versions?.at(-1);
  const [chosen, setChosen] = useAddress("version", newest ? String(newest) : "");
  const [other, setOther] = useAddress("against");
  const { data: version } = useAsked<Version>(at && chosen ? `${at}/versions/${chosen}` : null);
  const { data: diff, problem: undiffed } = useAsked<Diff>(
    chosen && other ? `${path`/v1/schemas/${name}/diff`}?from=${other}&to=${chosen}` : null,
  );
  const { data: config } = useAsked<{ compatibilityLevel: string }>(registry ? `${registry}${path`/config/${name}`}?defaultToGlobal=true` : null);
  return (
    <>
      <Head title={name}>
        <Badge text="subject" tone="accent" />
        <span className="quiet">{config?.compatibilityLevel}</span>
      </Head>
      <Told problem={problem} />
      <div className="tools">
        <label>
          version{" "}
          <select value={chosen} onChange={(event) => setChosen(event.target.value)}>
            {(versions ?? []).map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          against{" "}
          <select value={other} onChange={(event) => setOther(event.target.value)}>
            <option value="">none</option>
            {(versions ?? []).filter((each) => String(each) !== chosen).map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </div>
      <Told problem={undiffed} />
      {diff && <Differences diff={diff} />}
      {version && (
        <div className="card">
          <Facts of={[["id", version.id], ["type", version.schemaType ?? "AVRO"], ["used by", users.map((thing) => <Link key={thing.name} href={hrefOf(thing)}>{thing.name} </Link>)]]} />
          <pre className="code" tabIndex={0} style={{ marginTop: 10 }}>{laidOut(version.schema)}</pre>
        </div>
      )}
      {version && at && registry && <WouldItBreak registry={registry} name={name} version={version} key={version.id} />}
      <Same
        ways={{
          command: `mainstem schema show ${name}`,
          diff: `mainstem schema diff ${name} ${other || 1} ${chosen || 2}`,
          REST: `curl -s "$GATEWAY${registry ?? "/registry"}/subjects/${encodeURIComponent(name)}/versions/latest"`,
        }}
      />
    </>
  );
}

function Differences({ diff }: { diff: Diff }) {
  return (
    <div className="card wide">
      <div className="head">
        <h2>What changed</h2>
        <Badge text={diff.compatible ? "compatible" : "breaking"} tone={diff.compatible ? "good" : "bad"} />
        <span className="quiet">under {diff.level}</span>
      </div>
      <table>
        <tbody>
          {diff.changes.map((change) => (
            <tr key={`${change.path} ${change.what} ${change.action}`}>
              <td className="mono">{change.path}</td>
              <td>
                {change.what} {change.action}
              </td>
              <td>
                <code>{change.before === null ? "" : JSON.stringify(change.before)}</code>
                {change.before !== null && change.after !== null && " → "}
                <code>{change.after === null ? "" : JSON.stringify(change.after)}</code>
                {[...change.backward, ...change.forward].map((reason) => (
                  <div className="quiet" key={reason}>{reason}</div>
                ))}
              </td>
              <td><Badge text={change.breaking ? "breaking" : "compatible"} tone={change.breaking ? "bad" : "good"} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Verdict {
  is_compatible: boolean;
  messages?: string[];
}

function WouldItBreak({ registry, name, version }: { registry: string; name: string; version: Version }) {
  const [text, setText] = useState(laidOut(version.schema));
  const check = useAct((schema: string) =>
    send<Verdict>("POST", `${registry}${path`/compatibility/subjects/${name}/versions`}?verbose=true`, { schema, schemaType: version.schemaType ?? "AVRO" }),
  );
  const told: Problem | null = check.problem;
  return (
    <div className="card">
      <h2>Would this break?</h2>
      <textarea rows={10} aria-label="a new version" spellCheck={false} value={text} onChange={(event) => setText(event.target.value)} />
      <div className="tools" style={{ marginTop: 8 }}>
        <button type="button" className="main" disabled={check.busy} onClick={() => check.act(text)}>
          Check
        </button>
        {check.done && <Badge text={check.done.is_compatible ? "it would not" : "it would"} tone={check.done.is_compatible ? "good" : "bad"} />}
      </div>
      {check.done?.messages?.map((message) => <pre className="code" key={message}>{message}</pre>)}
      <Told problem={told} />
    </div>
  );
}
