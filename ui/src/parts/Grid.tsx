// Rows and columns, of which only those in sight are in the document.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, type ReactNode } from "react";
import { cell } from "./text";

const ROW_PIXELS = 28;
const NUMBER = /^(tinyint|smallint|int|bigint|float|double|decimal|numeric|real)/i;

export interface GridRow {
  id: string;
  cells: readonly unknown[];
  /** Counts up with each change of the row: a new number flashes. */
  changes?: number;
}

export function Grid(props: {
  columns: readonly (string | { name: string; type: string })[];
  rows: readonly GridRow[];
  height?: number;
  widths?: string;
  chosen?: string | null;
  label: string;
  onPick?: (row: GridRow) => void;
  render?: (value: unknown, column: number, row: GridRow) => ReactNode;
}) {
  const { columns, rows, onPick } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PIXELS,
    overscan: 12,
    getItemKey: (index) => rows[index]?.id ?? index,
  });
  const heads = columns.map((column) => (typeof column === "string" ? { name: column, type: "" } : column));
  const template = props.widths ?? `repeat(${Math.max(1, columns.length)}, minmax(90px, 1fr))`;
  const width = Math.max(0, columns.length * 110);
  return (
    <div
      className="grid"
      ref={scroll}
      style={{ height: props.height ?? Math.min(520, 36 + rows.length * ROW_PIXELS) }}
      role="table"
      aria-label={props.label}
      aria-rowcount={rows.length}
      tabIndex={0}
    >
      <div className="row heads" role="row" style={{ gridTemplateColumns: template, minWidth: width }}>
        {heads.map(({ name, type }) => (
          <span key={name} role="columnheader" title={`${name} ${type}`} className={NUMBER.test(type) ? "number" : ""}>
            {name}
          </span>
        ))}
      </div>
      <div className="body" role="rowgroup" style={{ height: virtual.getTotalSize(), minWidth: width }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          return (
            <div
              key={row.id}
              role="row"
              aria-rowindex={item.index + 1}
              tabIndex={onPick ? 0 : undefined}
              className={["row", row.changes ? `changed${row.changes % 2}` : "", onPick ? "pick" : "", row.id === props.chosen ? "chosen" : ""].join(" ")}
              style={{ gridTemplateColumns: template, transform: `translateY(${item.start}px)`, height: ROW_PIXELS }}
              onClick={() => onPick?.(row)}
              onKeyDown={(event) => {
                const beside = event.key === "ArrowDown" ? "nextElementSibling" : event.key === "ArrowUp" ? "previousElementSibling" : null;
                if (event.key === "Enter" || event.key === " ") onPick?.(row);
                else if (beside) (event.currentTarget[beside] as HTMLElement | null)?.focus();
                else return;
                event.preventDefault();
              }}
            >
              {row.cells.map((value, index) => (
                <span role="cell" key={index} className={`${value === null || value === undefined ? "null" : ""} ${NUMBER.test(heads[index]?.type ?? "") ? "number" : ""}`} title={cell(value).slice(0, 500)}>
                  {props.render?.(value, index, row) ?? cell(value).slice(0, 300)}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}
