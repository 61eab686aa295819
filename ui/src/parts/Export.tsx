// The records in sight as a file.

import type { LogRecord } from "../api/model";

export function Export({ records, topic }: { records: readonly LogRecord[]; topic: string }) {
  const save = (text: string, type: string, end: string) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = `${topic}.${end}`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const lines = () => save(records.map((record) => JSON.stringify(record)).join("\n"), "application/x-ndjson", "jsonl");
  const table = () => save(csv(records), "text/csv", "csv");
  return (
    <>
      <button type="button" onClick={lines} disabled={records.length === 0}>
        Export JSON
      </button>
      <button type="button" onClick={table} disabled={records.length === 0}>
        Export CSV
      </button>
    </>
  );
}

const PLACE = ["timestamp", "partition", "offset", "key"] as const;

/** A column for each field when all values are objects, else one for the value. */
function csv(records: readonly LogRecord[]): string {
  const values = records.map((record) => fields(record.value));
  const flat = values.every((value) => value !== null);
  const names = flat ? [...new Set(values.flatMap((value) => Object.keys(value ?? {})))] : ["value"];
  const lines = records.map((record, at) => {
    const place = [new Date(record.timestamp).toISOString(), record.partition, record.offset, record.key ?? record.key_base64];
    const cells = flat ? names.map((name) => values[at]?.[name]) : [record.value ?? record.value_base64];
    return [...place, ...cells].map(quoted).join(",");
  });
  return [[...PLACE.map((name) => (names.includes(name) ? `_${name}` : name)), ...names].map(quoted).join(","), ...lines, ""].join("\r\n");
}

function fields(value: unknown): Record<string, unknown> | null {
  try {
    const read: unknown = typeof value === "string" ? JSON.parse(value) : value;
    return typeof read === "object" && read !== null && !Array.isArray(read) ? (read as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function quoted(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
