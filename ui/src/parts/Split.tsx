// What the time of a flow's last batch went into.

import type { FlowStatus } from "../api/model";
import { seconds } from "./text";

const PARTS: [string, string, string][] = [
  ["look", "look for records", "--source"],
  ["plan", "plan", "--sink"],
  ["run", "compute and write", "--stream"],
  ["note", "note how far it is", "--table"],
];

export function Split({ flow }: { flow: FlowStatus }) {
  const split = flow.batch_split ?? {};
  const known = Object.values(split).reduce((sum, part) => sum + part, 0);
  const whole = Math.max(flow.batch_seconds ?? 0, known);
  if (known === 0) return null;
  const parts = PARTS.map(([part, text, colour]) => [text, split[part] ?? 0, `var(${colour})`] as const);
  const shown = whole - known > 0.001 ? [...parts, ["everything else", whole - known, "var(--line-strong)"] as const] : parts;
  return (
    <div className="card">
      <h2>The last batch: {seconds(whole)}</h2>
      <div className="split" role="img" aria-label={shown.map(([text, took]) => `${text} ${seconds(took)}`).join(", ")}>
        {shown.map(([text, took, colour]) => (
          <span key={text} style={{ width: `${(100 * took) / whole}%`, background: colour }} />
        ))}
      </div>
      <ul className="legend">
        {shown.map(([text, took, colour]) => (
          <li key={text} style={{ "--of-kind": colour } as React.CSSProperties}>
            {text} <strong>{seconds(took)}</strong>
          </li>
        ))}
      </ul>
    </div>
  );
}
