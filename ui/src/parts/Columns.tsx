// The columns of an object: what each is made of, and what is made of it.

import { Link } from "wouter";
import { path } from "../api/gateway";
import type { LineageColumn, Problem, ReachedColumn } from "../api/model";
import { useAsked } from "../api/use";
import { Badge, Told } from "./parts";
import { count } from "./text";

interface Asked {
  columns: LineageColumn[];
  notFollowed: string[];
  problem: Problem | null;
}

export function useColumns(name: string): Asked {
  const { data, problem } = useAsked<{ columns: LineageColumn[]; not_followed: string[] }>(name ? `${path`/v1/objects/${name}`}/columns` : null);
  return { columns: data?.columns ?? [], notFollowed: data?.not_followed ?? [], problem };
}

export function Columns(props: { of: string; asked: Asked; chosen: LineageColumn | undefined; onChoose: (column: string) => void }) {
  const { of, asked, chosen, onChoose } = props;
  return (
    <div className="card" role="region" aria-label={`columns of ${of}`}>
      <h2>Columns of {of}</h2>
      <Told problem={asked.problem} />
      <div className="tools" role="group" aria-label="columns">
        {asked.columns.map((column) => {
          const here = column === chosen;
          return (
            <button type="button" key={column.name} aria-pressed={here} className={here ? "main" : ""} title={column.type} onClick={() => onChoose(here ? "" : column.name)}>
              {column.name}
            </button>
          );
        })}
        {asked.columns.length === 0 && !asked.problem && <span className="quiet">none are known</span>}
      </div>
      {chosen ? (
        <div className="sides">
          <Side title="is made of" reached={chosen.made_of} none="Of no column that is here: it comes in with the records, is counted, or is a constant." />
          <Side title="goes into" reached={chosen.goes_into} none="Into no other column." />
        </div>
      ) : (
        <p className="quiet">Choose a column to see where it comes from and what is made of it. Columns that only decide which rows there are (WHERE, ON, GROUP BY) do not count.</p>
      )}
      {asked.notFollowed.length > 0 && <p className="quiet">Python makes {asked.notFollowed.join(", ")}: what their columns are made of is not known.</p>}
    </div>
  );
}

function Side({ title, reached, none }: { title: string; reached: readonly ReachedColumn[]; none: string }) {
  return (
    <div>
      <h2>{title}</h2>
      {reached.length === 0 && <p className="quiet">{none}</p>}
      <ul className="reached">
        {reached.map((each) => (
          <li key={`${each.object} ${each.column}`}>
            <Link href={`/lineage?focus=${encodeURIComponent(each.object)}&column=${encodeURIComponent(each.column)}`} className="mono">
              {each.object}.{each.column}
            </Link>{" "}
            <Badge text={each.copied ? "copy" : "computed"} tone={each.copied ? "good" : "accent"} />{" "}
            {each.steps > 1 && <span className="quiet">{count(each.steps, "step")} away</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}
