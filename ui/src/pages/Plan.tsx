// The same plan as on the command line: what files would change, then apply.

import { useState } from "react";
import { send } from "../api/gateway";
import { useAct } from "../api/use";
import { Confirm, Head, Same, Told } from "../parts/parts";
import { count } from "../parts/text";

interface File {
  path: string;
  text: string;
}

interface Planned {
  plan: { steps?: { kind: string; name: string }[] };
  digest: string;
  revision: number;
  text: string;
  changes: number | boolean;
}

export default function Plan() {
  const [files, setFiles] = useState<File[]>([]);
  const [asking, setAsking] = useState(false);
  const plan = useAct((given: File[]) => send<Planned>("POST", "/v1/plan", { files: given }));
  const apply = useAct((planned: Planned) => send<{ text: string }>("POST", "/v1/apply", { files, digest: planned.digest, revision: planned.revision }));
  const choose = async (chosen: FileList | null) => {
    const read = await Promise.all([...(chosen ?? [])].filter((file) => file.name.endsWith(".sql")).map(async (file) => ({ path: file.webkitRelativePath || file.name, text: await file.text() })));
    setFiles(read);
    apply.reset();
    if (read.length > 0) plan.act(read);
  };
  const planned = plan.done;
  const drops = planned ? /^\s*[-!]/m.test(planned.text) : false;
  const go = () => planned && apply.act(planned);
  return (
    <>
      <Head title="Plan" />
      <div className="card">
        <h2>The files of the project</h2>
        <div className="tools">
          <input type="file" multiple accept=".sql" aria-label="SQL files" onChange={(event) => void choose(event.target.files)} />
          <span className="quiet">{count(files.length, "file")}: all definitions of the project; what is not among them is dropped.</span>
        </div>
        <Told problem={plan.problem} />
        {planned && (
          <>
            <pre className="code" tabIndex={0}>{planned.text || "no changes"}</pre>
            <div className="tools" style={{ marginTop: 8 }}>
              <button type="button" className="main" disabled={apply.busy || !planned.changes} onClick={() => (drops ? setAsking(true) : go())}>
                Apply
              </button>
            </div>
          </>
        )}
        <Told problem={apply.problem} />
        {apply.done && <div className="note" role="status">applied</div>}
      </div>
      <Confirm name="apply" what="Apply a plan that drops or rebuilds" effect={<pre className="code">{planned?.text}</pre>} open={asking} onClose={() => setAsking(false)} onConfirm={go} />
      <Same ways={{ plan: "mainstem plan", apply: "mainstem apply" }} />
    </>
  );
}
