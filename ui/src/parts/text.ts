// Numbers, times and values as a person reads them.

const plain = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export const NOTHING = "–";

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  return Math.abs(value) < 100_000 ? plain.format(value) : short.format(value);
}

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 120) return `${plain.format(value)} s`;
  if (value < 7200) return `${plain.format(value / 60)} min`;
  return value < 172_800 ? `${plain.format(value / 3600)} h` : `${plain.format(value / 86_400)} d`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${plain.format(size)} ${units[unit]}`;
}

/** In the zone of whoever reads it; of a record, to the millisecond. */
export function moment(value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  const at = new Date(value);
  const day = at.toDateString() === new Date().toDateString() ? "" : `${at.toLocaleDateString()} `;
  return `${day}${at.toLocaleTimeString(undefined, { hour12: false })}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** In the zone of whoever reads it. */
export function time(value: string | number | Date | null | undefined): string {
  if (value === null || value === undefined || value === "") return NOTHING;
  const moment = new Date(value);
  return Number.isNaN(moment.getTime()) ? String(value) : clock.format(moment);
}

export function utc(value: string | number | Date | null | undefined): string {
  if (value === null || value === undefined || value === "") return "";
  const moment = new Date(value);
  return Number.isNaN(moment.getTime()) ? "" : moment.toISOString().replace("T", " ").replace("Z", " UTC");
}

/** A value in a cell: one line. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A value on its own: JSON is laid out. */
export function laidOut(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  try {
    const read: unknown = JSON.parse(value);
    return typeof read === "object" ? JSON.stringify(read, null, 2) : value;
  } catch {
    return value;
  }
}

export function count(n: number, noun: string): string {
  return `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
}
