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
  const text = await response.text();
  const said: unknown = text ? JSON.parse(text) : null;
  if (!response.ok) throw new Refused(said as Problem);
  return said as T;
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
