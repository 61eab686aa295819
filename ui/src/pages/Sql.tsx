// Statements: rows as a grid, subscriptions as a live grid, errors at their place.

import { useRef, useState } from "react";
import { send } from "../api/gateway";
import type { Answer, Problem } from "../api/model";
import { problemOf, useObjects } from "../api/use";
import { Answered } from "../parts/Answered";
import { Editor, type EditorHandle } from "../parts/Editor";
import { Grid } from "../parts/Grid";
import { Badge, Head, Same, Told } from "../parts/parts";
import { useRows } from "../parts/rows";
import { count } from "../parts/text";

const KEY = "mainstem.sql";
const MOST_KEPT = 100;

interface Sheet {
  id: number;
  text: string;
}

interface Kept {
  sheets: Sheet[];
  chosen: number;
  past: { text: string; at: string }[];
}

function kept(): Kept {
  try {
    const read = JSON.parse(localStorage.getItem(KEY) ?? "") as Kept;
    if (read.sheets.length > 0) return read;
  } catch {
    // nothing was kept, or not by this version
  }
  return { sheets: [{ id: 1, text: "SHOW TABLES" }], chosen: 1, past: [] };
}

const isPush = (sql: string) => /\bemit\s+changes\s*;?\s*$/i.test(sql);

export default function Sql() {
  const objects = useObjects() ?? [];
  const [state, setState] = useState<Kept>(kept);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState<{ told: Problem; from: number } | null>(null);
  const [busy, setBusy] = useState(false);
  const [took, setTook] = useState(0);
  const [pushed, setPushed] = useState<{ sql: string; run: number } | null>(null);
  const handle = useRef<EditorHandle | null>(null);
  const sheet = state.sheets.find((each) => each.id === state.chosen) ?? state.sheets[0];
  const change = (next: Kept) => {
    setState(next);
    localStorage.setItem(KEY, JSON.stringify(next));
  };
  const edit = (text: string) => change({ ...state, sheets: state.sheets.map((each) => (each.id === sheet?.id ? { ...each, text } : each)) });
  const run = async (before = "") => {
    const { text, from } = handle.current?.chosen() ?? { text: "", from: 0 };
    const asked = before + text.trim().replace(/;\s*$/, "");
    if (!text.trim() || busy) return;
    change({ ...state, past: [{ text: asked, at: new Date().toISOString() }, ...state.past].slice(0, MOST_KEPT) });
    setProblem(null);
    setAnswer(null);
    setPushed(null);
    if (!before && isPush(asked)) {
      setPushed({ sql: asked, run: Date.now() });
      return;
    }
    setBusy(true);
    const began = performance.now();
    try {
      setAnswer(await send<Answer>("POST", "/v1/sql", { sql: asked }));
    } catch (error) {
      const told = problemOf(error);
      if (told) setProblem({ told, from });
    }
    setTook(performance.now() - began);
    setBusy(false);
  };
  const add = () => {
    const id = Math.max(0, ...state.sheets.map((each) => each.id)) + 1;
    change({ ...state, sheets: [...state.sheets, { id, text: "" }], chosen: id });
  };
  const close = (id: number) => {
    const sheets = state.sheets.filter((each) => each.id !== id);
    if (sheets[0]) change({ ...state, sheets, chosen: state.chosen === id ? sheets[0].id : state.chosen });
  };
  return (
    <>
      <Head title="SQL">
        <span className="quiet">Ctrl-Enter runs what is selected, or all</span>
      </Head>
      <div className="tools" role="group" aria-label="sheets">
        {state.sheets.map((each) => (
          <span key={each.id}>
            <button type="button" aria-pressed={each.id === sheet?.id} className={each.id === sheet?.id ? "main" : ""} onClick={() => change({ ...state, chosen: each.id })}>
              {each.text.trim().split("\n")[0]?.slice(0, 24) || `sheet ${each.id}`}
            </button>
            {state.sheets.length > 1 && (
              <button type="button" className="plain" aria-label={`close sheet ${each.id}`} onClick={() => close(each.id)}>
                ×
              </button>
            )}
          </span>
        ))}
        <button type="button" aria-label="new sheet" onClick={add}>
          +
        </button>
      </div>
      <Editor text={sheet?.text ?? ""} objects={objects} problem={problem} onChange={edit} onRun={() => void run()} handle={handle} />
      <div className="tools" style={{ marginTop: 10 }}>
        <button type="button" className="main" disabled={busy} onClick={() => void run()}>
          {busy ? "Running …" : "Run"}
        </button>
        <button type="button" disabled={busy} onClick={() => void run("EXPLAIN ")}>
          Explain
        </button>
        {pushed !== null && (
          <button type="button" className="danger" onClick={() => setPushed(null)}>
            Stop
          </button>
        )}
        {answer && <span className="quiet">{Math.round(took)} ms</span>}
        <span className="fill" />
        <Past of={state.past} onPick={edit} />
      </div>
      <Told problem={problem?.told} />
      {answer && <Answered answer={answer} label="answer" />}
      {pushed !== null && <Pushed sql={pushed.sql} key={pushed.run} />}
      <Same ways={{ command: `mainstem sql -e "${(sheet?.text ?? "").replaceAll("\n", " ").replaceAll('"', '\\"')}"`, shell: "mainstem sql" }} />
    </>
  );
}

function Pushed({ sql }: { sql: string }) {
  const { columns, rows, changes, full, problem } = useRows(sql);
  return (
    <>
      <div className="tools">
        <Badge text="live" />
        <span className="quiet" role="status">
          {count(rows.length, "row")}
          {full && " (the oldest were let go)"}, {count(changes, "change")}
        </span>
      </div>
      <Told problem={problem} />
      <Grid label="changes" columns={columns} rows={rows.toReversed()} height={420} />
    </>
  );
}

function Past({ of, onPick }: { of: readonly { text: string; at: string }[]; onPick: (text: string) => void }) {
  return (
    <select aria-label="history" value="" onChange={(event) => onPick(of[Number(event.target.value)]?.text ?? "")}>
      <option value="">history</option>
      {of.map((each, index) => (
        <option key={`${each.at}${index}`} value={index}>
          {each.text.replace(/\s+/g, " ").slice(0, 80)}
        </option>
      ))}
    </select>
  );
}
