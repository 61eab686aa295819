// What a statement answers: rows or a message.

import type { Answer } from "../api/model";
import { Grid } from "./Grid";
import { count } from "./text";

export function Answered({ answer, label }: { answer: Answer; label: string }) {
  if (answer.kind === "message") return <pre className="code">{answer.message}</pre>;
  const rows = answer.rows.map((cells, index) => ({ id: String(index), cells }));
  return (
    <>
      <p className="quiet" role="status">
        {count(rows.length, "row")}
        {answer.truncated && ", there are more: add a LIMIT or a WHERE"}
        {answer.note && `, ${answer.note}`}
      </p>
      {answer.warnings?.map((warning) => (
        <div className="note" key={warning}>
          {warning}
        </div>
      ))}
      {rows.length > 0 && <Grid label={label} columns={answer.columns} rows={rows} />}
    </>
  );
}
