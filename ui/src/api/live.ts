// One connection for all that a tab watches. A channel is named by what it asks for; whoever watches
// the same shares it. After a cut, each goes on behind the last event that it saw.

export type Channel =
  | { kind: "status" }
  | { kind: "query"; sql: string; snapshot?: boolean; since?: string }
  | { kind: "records"; topic: string; partition?: number; filter?: string; sample?: number };

export interface LiveEvent {
  name: string;
  data: unknown;
}

export type State = "live" | "paused" | "reconnecting" | "connecting";
type Listener = (event: LiveEvent) => void;

interface Watched {
  channel: Channel;
  after: string | null;
  listeners: Set<Listener>;
}

const SETTLE_MS = 20;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;
const AGAIN_MS = 1000;
/** Of a problem: the log no longer has what the token names; a server is away for a moment. */
const GONE = 410;
const AWAY = 503;

export class Live {
  private readonly watched = new Map<string, Watched>();
  private readonly told = new Set<() => void>();
  private opening: ReturnType<typeof setTimeout> | undefined;
  private current: AbortController | undefined;
  private failures = 0;
  state: State = "connecting";

  /** Calls `listener` with each event until the function that it gives is called. */
  watch(channel: Channel, listener: Listener): () => void {
    const id = JSON.stringify(channel);
    let entry = this.watched.get(id);
    if (entry === undefined) {
      entry = { channel, after: null, listeners: new Set() };
      this.watched.set(id, entry);
      this.reopen(SETTLE_MS);
    }
    entry.listeners.add(listener);
    const mine = entry;
    return () => {
      mine.listeners.delete(listener);
      if (mine.listeners.size === 0 && this.watched.get(id) === mine) {
        this.watched.delete(id);
        this.reopen(SETTLE_MS);
      }
    };
  }

  pause(): void {
    clearTimeout(this.opening);
    this.current?.abort();
    this.current = undefined;
    this.say("paused");
  }

  resume(): void {
    this.say("connecting");
    this.reopen(0);
  }

  onState = (listener: () => void): (() => void) => {
    this.told.add(listener);
    return () => this.told.delete(listener);
  };

  private say(state: State): void {
    if (state === this.state) return;
    this.state = state;
    for (const listener of this.told) listener();
  }

  private reopen(wait: number): void {
    if (this.state === "paused") return;
    clearTimeout(this.opening);
    this.opening = setTimeout(() => void this.open(), wait);
  }

  private async open(): Promise<void> {
    this.current?.abort();
    const mine = new AbortController();
    this.current = mine;
    if (this.watched.size === 0) return;
    try {
      await this.read(mine.signal);
    } catch {
      // cut off, refused or ended: it is tried again below
    }
    if (mine.signal.aborted) return;
    this.say("reconnecting");
    this.failures += 1;
    this.reopen(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.failures));
  }

  private async read(signal: AbortSignal): Promise<void> {
    const channels = Object.fromEntries(
      [...this.watched].map(([id, { channel, after }]) => [id, after === null ? channel : { ...channel, after }]),
    );
    const response = await fetch("/v1/live", {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
      body: JSON.stringify({ channels }),
      signal,
    });
    if (!response.ok || response.body === null) throw new Error(`${response.status}`);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    this.failures = 0;
    this.say("live");
    let held = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      held += value;
      for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
        this.take(held.slice(0, end));
        held = held.slice(end + 2);
      }
    }
  }

  /** What goes by itself is tried again; a place that the log no longer has is given up. */
  private failed(entry: Watched, problem: { status?: number }): void {
    if (problem.status === GONE) entry.after = null;
    if (problem.status === GONE || problem.status === AWAY) this.reopen(AGAIN_MS);
  }

  private take(block: string): void {
    const data = block.split("\n").find((line) => line.startsWith("data: "));
    if (data === undefined) return;
    const said = JSON.parse(data.slice(6)) as { channel: string; event: string; id?: string; data: unknown };
    const entry = this.watched.get(said.channel);
    if (entry === undefined) return;
    if (said.id) entry.after = said.id;
    if (said.event === "error") this.failed(entry, said.data as { status?: number });
    for (const listener of entry.listeners) listener({ name: said.event, data: said.data });
  }
}

export const live = new Live();
