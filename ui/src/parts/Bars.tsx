// Counts over time as bars, those of several names one on top of the other.

import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "./theme";
import { number } from "./text";

const COLOURS = ["--stream", "--sink", "--table", "--source", "--line-strong"];
const MOST_NAMES = COLOURS.length - 1;
const HEIGHT = 150;

export interface Counted {
  /** When the step begins, in seconds since the epoch. */
  at: number;
  name: string;
  count: number;
}

export function Bars({ label, counts, step, steps }: { label: string; counts: readonly Counted[]; step: number; steps: number }) {
  const place = useRef<HTMLDivElement>(null);
  const [theme] = useTheme();
  const last = useLast(step);
  const totals = new Map<string, number>();
  for (const { name, count } of counts) totals.set(name, (totals.get(name) ?? 0) + count);
  const names = [...totals].sort(([, a], [, b]) => b - a).map(([name]) => name);
  const shown = names.length > MOST_NAMES + 1 ? [...names.slice(0, MOST_NAMES), "others"] : names;
  const known = JSON.stringify([counts, shown]);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const styles = getComputedStyle(document.documentElement);
    const colour = (name: string) => styles.getPropertyValue(name).trim();
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 } };
    const paths = uPlot.paths.bars?.({ size: [0.8, 60], align: 1 });
    const [times, ...stacked] = stack(counts, shown, step, steps, last);
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false },
        axes: [axis, { ...axis, size: 60, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? number(tick) : "")) }],
        scales: { x: { range: (_, first, last) => [first, last + step] }, y: { range: (_, __, most) => [0, Math.max(most, 1) * 1.1] } },
        // the highest is drawn first, those in front of it hide what is not theirs
        series: [{}, ...shown.map((_, at) => ({ stroke: colour(COLOURS[at] ?? ""), fill: colour(COLOURS[at] ?? ""), width: 0, ...(paths ? { paths } : {}), points: { show: false } })).reverse()],
      },
      [times ?? [], ...stacked.reverse()],
      element,
    );
    const sized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    sized.observe(element);
    return () => {
      sized.disconnect();
      plot.destroy();
    };
    // `known` stands for the counts: they are others each time they are asked for
  }, [known, step, steps, last, theme]);
  const all = counts.reduce((sum, each) => sum + each.count, 0);
  return (
    <>
      <div ref={place} role="img" aria-label={`${label}: ${number(all)}`} />
      <ul className="legend">
        {shown.map((name, at) => (
          <li key={name} style={{ "--of-kind": `var(${COLOURS[at]})`, overflowWrap: "anywhere" } as React.CSSProperties}>
            {name} <strong>{number(name === "others" ? all - shown.reduce((sum, each) => sum + (totals.get(each) ?? 0), 0) : totals.get(name))}</strong>
          </li>
        ))}
      </ul>
    </>
  );
}

/** When the step begins that is on its way. */
function useLast(step: number): number {
  const now = () => Math.floor(Date.now() / 1000 / step) * step;
  const [last, setLast] = useState(now);
  useEffect(() => {
    setLast(now());
    const timer = setInterval(() => setLast(now()), 5000);
    return () => clearInterval(timer);
  }, [step]);
  return last;
}

/** The times of all steps up to the last, then for each name the height of its bars with those below. */
function stack(counts: readonly Counted[], names: readonly string[], step: number, steps: number, last: number): number[][] {
  const times = Array.from({ length: steps }, (_, at) => last - (steps - 1 - at) * step);
  const heights = names.map(() => times.map(() => 0));
  for (const { at, name, count } of counts) {
    const column = Math.round((at - (times[0] ?? 0)) / step);
    const row = names.includes(name) ? names.indexOf(name) : names.length - 1;
    const bars = heights[row];
    if (bars?.[column] !== undefined) bars[column] += count;
  }
  for (let row = 1; row < heights.length; row += 1) {
    heights[row] = (heights[row] ?? []).map((height, at) => height + (heights[row - 1]?.[at] ?? 0));
  }
  return [times, ...heights];
}
