// What the gateway says, as far as the page reads it.

export interface Problem {
  title: string;
  detail: string;
  hint?: string;
  status?: number;
  location?: { file: string; line: number; column: number; snippet: string };
}

export interface Column {
  name: string;
  type: string;
  pii?: string | null;
}

export interface FlowStatus {
  flow: string;
  generation: number;
  lane?: string;
  state: string;
  input_rate?: number;
  process_rate?: number;
  batch_id?: number | null;
  batch_seconds?: number | null;
  batch_split?: Record<string, number>;
  rows_in_total?: number;
  rows_out_total?: number;
  lag_records?: number | null;
  lag_seconds?: number | null;
  watermark?: string | null;
  event_time?: string | null;
  state_rows?: number;
  state_bytes?: number;
  quarantined?: number;
  late_dropped?: number;
  late_waiting?: number;
  restarts?: number;
  error?: Problem | null;
  next_retry?: string | null;
  updated_at?: string;
  backfill?: Record<string, unknown> | null;
  positions?: Record<string, Record<string, number>>;
}

export interface Rule {
  name: string;
  condition: string;
  on_violation: string;
  records: number | null;
}

export type Kind = "stream" | "table" | "source";

export interface Thing {
  name: string;
  kind: Kind;
  sink: boolean;
  function: string | null;
  topic: string;
  wildcard: boolean;
  derived: boolean;
  format: string;
  subject: string | null;
  key: string[];
  columns: Column[];
  rules: Rule[];
  generation: number;
  paused: boolean;
  origin: string;
  event_time: string | null;
  watermark: string | null;
  lane: string | null;
  comment: string | null;
  status: FlowStatus | null;
  inputs: string[];
  source: string | null;
  connector: string | null;
  options: Record<string, unknown>;
  transforms: string[];
  sql: string;
  file: string;
  line: number;
  topics?: string[];
}

export interface View {
  name: string;
  topic?: string;
  lag_records: number | null;
  rows: number | null;
  quarantined?: number;
  updated_at?: string | null;
  error: Problem | null;
}

export interface Task {
  id: number;
  state: string;
  worker: string;
  trace: string | null;
}

export interface Connector {
  name: string;
  connector: string | null;
  runs_in?: string;
  state: string;
  tables: string[];
  stream?: string | null;
  tasks: Task[];
  restarts: number;
  position: unknown;
  held_bytes: number | null;
  records?: number;
  error: Problem | null;
  last_error: Problem | null;
  last_error_at: string | null;
  next_retry?: string | null;
}

export interface Project {
  name: string;
  environment: string;
  colour: string;
  read_only: boolean;
  version: string;
}

export interface Check {
  ok: boolean;
  problem?: string;
}

export interface Status {
  project: string;
  at: string;
  checks: { log: Check; postgres: Check };
  engine: { state: string; updated_at: string | null };
  flows: FlowStatus[];
  connectors: Connector[];
  views: View[];
  quarantine: { records: number; objects: Record<string, number>; replayed: number; discarded: number };
  schemas: { registry: string; subjects: number | null };
  subscriptions: number;
}

export interface Objects {
  revision: number;
  objects: Thing[];
}

export interface Topic {
  name: string;
  partitions: number;
  replication_factor: number;
  records: number | null;
  config: Record<string, string>;
}

export interface TopicParts extends Topic {
  by_partition: { partition: number; begin: number; end: number; leader: number; replicas: number[]; in_sync: number[] }[];
}

export interface Group {
  group: string;
  state: string;
  members: { id: string; client: string; host: string }[];
  offsets: { topic: string; partition: number; committed: number; end: number; lag: number }[];
  lag: number;
}

export interface ReachedColumn {
  object: string;
  column: string;
  copied: boolean;
  steps: number;
}

export interface LineageColumn {
  name: string;
  type: string;
  made_of: ReachedColumn[];
  goes_into: ReachedColumn[];
}

export interface LogRecord {
  topic: string;
  partition: number;
  offset: number;
  timestamp: number;
  key?: unknown;
  key_base64?: string;
  key_schema_id?: number;
  value?: unknown;
  value_base64?: string;
  schema_id?: number;
  headers: { name: string; value?: string | null; value_base64?: string }[];
}

export interface Rows {
  kind: "rows";
  columns: Column[];
  rows: unknown[][];
  truncated: boolean;
  freshness: Record<string, unknown> | null;
  note?: string;
  warnings?: string[];
}

export interface Message {
  kind: "message";
  message: string;
  detail?: Record<string, unknown>;
}

export type Answer = Rows | Message;
