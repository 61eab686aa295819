// A number over the last minutes, as this page has seen it.

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { live } from "../api/live";
import { useTheme } from "./theme";

const MOST_POINTS = 600;

export function Trend({ name, value, format }: { name: string; value: number | null | undefined; format: (value: number) => string }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const points = useRef<[number[], (number | null)[]]>([[], []]);
  const latest = useRef(value);
  latest.current = value;
  const [theme] = useTheme();
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const styles = getComputedStyle(document.documentElement);
    const line = styles.getPropertyValue("--accent");
    const quiet = styles.getPropertyValue("--quiet");
    const axis = { stroke: quiet, grid: { stroke: styles.getPropertyValue("--line"), width: 1 } };
    plot.current = new uPlot(
      {
        width: element.clientWidth,
        height: 130,
        legend: { show: false },
        cursor: { y: false },
        axes: [axis, { ...axis, size: 60, values: (_, ticks) => ticks.map((tick) => format(tick)) }],
        scales: { y: { range: (_, __, most) => [0, Math.max(most, 0.001) * 1.1] } },
        series: [{}, { stroke: line, width: 1.5, fill: `${line}22` }],
      },
      points.current,
      element,
    );
    const timer = setInterval(() => {
      if (live.state === "paused") return;
      const [times, values] = points.current;
      times.push(Date.now() / 1000);
      values.push(latest.current ?? null);
      if (times.length > MOST_POINTS) {
        times.shift();
        values.shift();
      }
      plot.current?.setData([times, values]);
    }, 1000);
    const sized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: 130 }));
    sized.observe(element);
    return () => {
      clearInterval(timer);
      sized.disconnect();
      plot.current?.destroy();
    };
  }, [format, theme]);
  return (
    <figure className="card" style={{ margin: 0 }}>
      <figcaption className="quiet">
        {name} <strong style={{ color: "var(--text)" }}>{value === null || value === undefined ? "–" : format(value)}</strong>
      </figcaption>
      <div ref={place} role="img" aria-label={`${name} over time`} />
    </figure>
  );
}
