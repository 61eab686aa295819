// Requests to the gateway that the page came from; what it refuses is thrown as a problem.

import type { Problem } from "./model";

export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

export async function ask<T>(path: string, options?: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { ...options, headers: { Accept: "application/json", ...options?.headers } });
  } catch {
    throw new Refused({
      title: "GATEWAY_UNREACHABLE",
      detail: "the gateway does not answer",
      hint: "Is `mainstem up` still running? This page goes on by itself when it is back.",
    });
  }
  const said = read(await response.text());
  if (!response.ok || said === undefined) throw new Refused(problemIn(said, response));
  return said as T;
}

/** JSON; undefined: it is none. */
function read(text: string): unknown {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return undefined;
  }
}

/** The registry has words of its own, and what stands between may answer with a page. */
function problemIn(said: unknown, { status, statusText }: Response): Problem {
  const { title, detail, message } = (said ?? {}) as Partial<Problem> & { message?: string };
  if (title && detail) return said as Problem;
  return { title: `HTTP ${status}`, detail: message ?? detail ?? (statusText || "the answer is not JSON"), status };
}

export function send<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> {
  const options: RequestInit = { method };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  return ask<T>(path, options);
}

/** A path with its variable parts made safe: path`/v1/objects/${name}`. */
export function path(strings: TemplateStringsArray, ...parts: (string | number)[]): string {
  return String.raw({ raw: strings }, ...parts.map((part) => encodeURIComponent(part)));
}

/** A name as SQL takes it, part by part. */
export function quoted(name: string): string {
  return name
    .split(".")
    .map((part) => (/^[a-z_][a-z0-9_]*$/i.test(part) ? part : "`" + part.replaceAll("`", "``") + "`"))
    .join(".");
}
