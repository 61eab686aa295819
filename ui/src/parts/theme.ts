// Dark or light: as the system says, until a person chooses.

import { useSyncExternalStore } from "react";

const KEY = "mainstem.theme";
export type Theme = "dark" | "light";

let theme: Theme = first();
const told = new Set<() => void>();
document.documentElement.dataset.theme = theme;

export function useTheme(): [Theme, () => void] {
  return [useSyncExternalStore(listen, () => theme), turn];
}

function listen(listener: () => void): () => void {
  told.add(listener);
  return () => told.delete(listener);
}

function turn(): void {
  theme = theme === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, theme);
  document.documentElement.dataset.theme = theme;
  for (const listener of told) listener();
}

function first(): Theme {
  const kept = localStorage.getItem(KEY);
  if (kept === "dark" || kept === "light") return kept;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
