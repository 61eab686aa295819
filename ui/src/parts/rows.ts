// The rows of a subscription as they are now: a snapshot, then each change.

import { useCallback, useRef, useState } from "react";
import type { Column, Problem } from "../api/model";
import type { LiveEvent } from "../api/live";
import { useLive } from "../api/use";
import type { GridRow } from "./Grid";

const MOST_ROWS = 20_000;

export interface LiveRows {
  columns: Column[];
  rows: GridRow[];
  /** How many changes came since the beginning. */
  changes: number;
  full: boolean;
  /** Changes that were passed over because this tab was too slow for them. */
  leftOut: number;
  /** The sum of the offsets that were reached, once it is known. */
  scanned: number | null;
  problem: Problem | null;
  clear: () => void;
}

interface Held {
  columns: Column[];
  rows: Map<string, GridRow>;
  changes: number;
  /** The snapshot is over: what comes now is a change. */
  begun: boolean;
  full: boolean;
  leftOut: number;
  scanned: number | null;
  problem: Problem | null;
}

const nothing = (): Held => ({ columns: [], rows: new Map(), changes: 0, begun: false, full: false, leftOut: 0, scanned: null, problem: null });

/** Follows `SELECT ... EMIT CHANGES`; a table's rows are replaced by key, those of a stream come on top. */
export function useRows(sql: string | null, since?: string): LiveRows {
  const held = useRef<Held>(nothing());
  const drawing = useRef(0);
  const [shown, setShown] = useState<Held>(held.current);
  const draw = useCallback(() => {
    if (drawing.current) return;
    // many changes a second are one picture
    drawing.current = requestAnimationFrame(() => {
      drawing.current = 0;
      setShown({ ...held.current });
    });
  }, []);
  const take = useCallback(
    ({ name, data }: LiveEvent) => {
      apply(held.current, name, data);
      draw();
    },
    [draw],
  );
  useLive(sql === null ? null : { kind: "query", sql, ...(since === undefined ? {} : { since }) }, take);
  const clear = useCallback(() => {
    held.current = nothing();
    draw();
  }, [draw]);
  return { ...shown, rows: [...shown.rows.values()], clear };
}

function apply(held: Held, name: string, data: unknown): void {
  switch (name) {
    case "columns":
      held.columns = data as Column[];
      held.problem = null;
      return;
    case "snapshot":
      held.rows.clear();
      held.begun = false;
      return;
    case "progress":
      held.begun = true;
      held.scanned = reached(data as { offsets?: Record<string, Record<string, number>> });
      return;
    case "sampled":
      held.leftOut += (data as { left_out: number }).left_out;
      return;
    case "error":
      held.problem = data as Problem;
      return;
    case "upsert":
    case "delete": {
      const { key, row } = data as { key: unknown; row?: Record<string, unknown> };
      const id = JSON.stringify(key);
      if (held.begun) held.changes += 1;
      if (row === undefined) held.rows.delete(id);
      else if (held.rows.has(id) || held.rows.size < MOST_ROWS) {
        held.rows.set(id, { id, cells: cellsOf(held, row), changes: held.begun ? held.changes : 0 });
      } else held.full = true;
      return;
    }
    case "append": {
      const { row } = data as { row: Record<string, unknown> };
      held.changes += 1;
      const id = String(held.changes);
      held.rows.set(id, { id, cells: cellsOf(held, row), changes: held.changes });
      if (held.rows.size > MOST_ROWS) {
        const [oldest] = held.rows.keys();
        if (oldest !== undefined) held.rows.delete(oldest);
        held.full = true;
      }
    }
  }
}

function reached({ offsets }: { offsets?: Record<string, Record<string, number>> }): number {
  return Object.values(offsets ?? {}).flatMap((at) => Object.values(at)).reduce((sum, offset) => sum + offset, 0);
}

function cellsOf(held: Held, row: Record<string, unknown>): unknown[] {
  return held.columns.map((column) => row[column.name]);
}
