// The same plan as on the command line: what the project's files would change, then apply.

import { useEffect, useState } from "react";
import { ask, send } from "../api/gateway";
import { useAct, useReadOnly } from "../api/use";
import { Confirm, Empty, Head, Same, Told, useAddress } from "../parts/parts";
import { count } from "../parts/text";

interface File {
  path: string;
  text: string;
}

interface Step {
  step: string;
  entry?: { definition: { name: string } };
  name?: string;
}

interface Planned {
  plan: { steps: Step[] };
  digest: string;
  revision: number;
  text: string;
  changes: number;
  /** What it was made of. */
  files: File[];
}

const LOSES = new Set(["drop", "rebuild"]);

async function made(): Promise<Planned> {
  const { files } = await ask<{ files: File[] }>("/v1/project/files");
  return { ...(await send<Planned>("POST", "/v1/plan", { files })), files };
}

export default function Plan() {
  const readOnly = useReadOnly();
  const [open, setOpen] = useAddress("file");
  const [asking, setAsking] = useState(false);
  const plan = useAct(made);
  const apply = useAct(({ files, digest, revision }: Planned) => send<{ applied: number }>("POST", "/v1/apply", { files, digest, revision }));
  const { act } = plan;
  useEffect(() => act(undefined), [act]);
  const planned = plan.done;
  const lost = planned?.plan.steps.filter((step) => LOSES.has(step.step)).map(nameOf) ?? [];
  const go = () => planned && apply.act(planned);
  const chosen = planned?.files.find((file) => file.path === open);
  return (
    <>
      <Head title="Plan">
        <span className="quiet">{planned && count(planned.files.length, "file")}</span>
        <span className="fill" />
        <button type="button" disabled={plan.busy} onClick={() => (apply.reset(), plan.act(undefined))}>
          Plan again
        </button>
        <button
          type="button"
          className="main"
          disabled={readOnly || apply.busy || apply.done !== undefined || !planned?.changes}
          onClick={() => (lost.length > 0 ? setAsking(true) : go())}
        >
          {apply.busy ? "Applying …" : "Apply"}
        </button>
      </Head>
      <Told problem={plan.problem ?? apply.problem} />
      {plan.busy && <p className="quiet">The files are compared with what runs …</p>}
      {apply.done && (
        <div className="note" role="status">
          applied: {count(apply.done.applied, "change")}
        </div>
      )}
      {planned?.files.length === 0 ? (
        <Empty title="No files here">
          This gateway runs without the project's folder: <code>mainstem plan</code> shows the plan where the files are.
        </Empty>
      ) : (
        planned && (
          <>
            <div className="card">
              <h2>What would change</h2>
              <pre className="code" tabIndex={0}>
                {planned.text.trim() || "no changes"}
              </pre>
            </div>
            <div className="card">
              <h2>Files</h2>
              <div className="tools">
                {planned.files.map(({ path }) => (
                  <button type="button" key={path} aria-pressed={path === open} onClick={() => setOpen(path === open ? "" : path)}>
                    {path}
                  </button>
                ))}
              </div>
              {chosen && (
                <pre className="code" tabIndex={0}>
                  {chosen.text}
                </pre>
              )}
            </div>
          </>
        )
      )}
      <Confirm
        name={lost[0] ?? ""}
        what={`Apply: ${lost.join(", ")} will be dropped or built anew`}
        effect={<pre className="code">{planned?.text}</pre>}
        open={asking}
        onClose={() => setAsking(false)}
        onConfirm={go}
      />
      <Same ways={{ plan: "mainstem plan", apply: "mainstem apply", REST: "curl -s $GATEWAY/v1/project/files" }} />
    </>
  );
}

function nameOf(step: Step): string {
  return step.entry?.definition.name ?? step.name ?? "";
}
