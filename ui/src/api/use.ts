// The gateway's answers as React sees them.

import { QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { ask, Refused } from "./gateway";
import { live, type Channel, type LiveEvent, type State } from "./live";
import type { Objects, Problem, Project, Status, Thing } from "./model";

export const queries = new QueryClient({
  defaultOptions: { queries: { retry: false, refetchOnWindowFocus: false, staleTime: 1000 } },
});

/** The state of the tab's connection. */
export function useLiveState(): State {
  return useSyncExternalStore(live.onState, () => live.state);
}

/** Hands over the events of a channel while the component is there. */
export function useLive(channel: Channel | null, onEvent: (event: LiveEvent) => void): void {
  const latest = useRef(onEvent);
  latest.current = onEvent;
  const id = channel === null ? null : JSON.stringify(channel);
  useEffect(() => {
    if (id === null) return;
    return live.watch(JSON.parse(id) as Channel, (event) => latest.current(event));
  }, [id]);
}

/** Keeps the status and the objects up to date; the layout calls it, once. */
export function useStatusFeed(): void {
  const client = useQueryClient();
  useLive({ kind: "status" }, ({ name, data }) => {
    if (name === "status") client.setQueryData(["status"], data);
    if (name === "objects") client.setQueryData(["objects"], data);
  });
}

export function useProject(): Project | undefined {
  return useQuery({ queryKey: ["project"], queryFn: () => ask<Project>("/v1/project"), staleTime: Infinity, retry: 10 }).data;
}

/** Whether this gateway refuses all that would change something. */
export function useReadOnly(): boolean {
  return useProject()?.read_only ?? false;
}

export function useStatus(): Status | undefined {
  return useQuery({ queryKey: ["status"], queryFn: () => ask<Status>("/v1/status"), staleTime: Infinity }).data;
}

export function useObjects(): Thing[] | undefined {
  return useQuery({ queryKey: ["objects"], queryFn: () => ask<Objects>("/v1/objects"), staleTime: Infinity }).data
    ?.objects;
}

/** What is asked again each `every` milliseconds, while the tab is not paused, or only once. */
export function useAsked<T>(path: string | null, every?: number): { data: T | undefined; problem: Problem | null } {
  const paused = useLiveState() === "paused";
  const { data, error } = useQuery<T>({
    queryKey: ["asked", path],
    queryFn: () => ask<T>(path as string),
    enabled: path !== null,
    refetchInterval: (!paused && every) || false,
  });
  return { data, problem: problemOf(error) };
}

/** Something that a person does; what it changed is asked for anew. */
export function useAct<I, T>(act: (input: I) => Promise<T>) {
  const client = useQueryClient();
  const { mutate, isPending, error, data, reset } = useMutation<T, Error, I>({
    mutationFn: act,
    onSuccess: () => client.invalidateQueries({ queryKey: ["asked"] }),
  });
  return { act: mutate, busy: isPending, problem: problemOf(error), done: data, reset };
}

export function problemOf(error: unknown): Problem | null {
  if (error === null || error === undefined) return null;
  if (error instanceof Refused) return error.problem;
  return { title: "PAGE", detail: error instanceof Error ? error.message : String(error) };
}
