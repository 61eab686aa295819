// Dark or light: as the system says, until a person chooses.

import { useEffect, useState } from "react";

const KEY = "mainstem.theme";
type Theme = "dark" | "light";

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(first);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  const turn = () => {
    const next = theme === "dark" ? "light" : "dark";
    localStorage.setItem(KEY, next);
    setTheme(next);
  };
  return [theme, turn];
}

function first(): Theme {
  const kept = localStorage.getItem(KEY);
  if (kept === "dark" || kept === "light") return kept;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
