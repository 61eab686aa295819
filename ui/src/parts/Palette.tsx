// Ctrl-K: every page and every object, by a few letters of its name.

import { useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { hrefOf } from "../api/health";
import { useObjects } from "../api/use";
import { PLACES } from "../App";

const MOST = 50;

interface Place {
  name: string;
  kind: string;
  href: string;
}

export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const [, go] = useLocation();
  const objects = useObjects();
  const places = useMemo<Place[]>(() => {
    const pages = PLACES.map(([href, name]) => ({ name, kind: "page", href }));
    const things = (objects ?? []).flatMap((thing) => {
      const kind = thing.sink ? "sink" : thing.kind;
      const own = { name: thing.name, kind, href: hrefOf(thing) };
      const flow = { name: thing.name, kind: "flow", href: `/flows/${encodeURIComponent(thing.name)}` };
      return thing.derived ? [own, flow] : [own];
    });
    return [...pages, ...things];
  }, [objects]);
  const wanted = typed.toLowerCase();
  const found = places.filter((place) => `${place.name} ${place.kind}`.toLowerCase().includes(wanted)).slice(0, MOST);
  useEffect(() => {
    if (open && !dialog.current?.open) {
      setTyped("");
      setChosen(0);
      dialog.current?.showModal();
    }
    if (!open) dialog.current?.close();
  }, [open]);
  useEffect(() => {
    void document.getElementById(`found-${chosen}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const visit = (place: Place | undefined) => {
    if (place === undefined) return;
    onClose();
    go(place.href);
  };
  return (
    <dialog ref={dialog} className="palette" onClose={onClose} aria-label="search">
      <input
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={found[chosen] ? `found-${chosen}` : undefined}
        aria-label="page, stream, table, flow, connector"
        placeholder="page, stream, table, flow, connector"
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setChosen(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setChosen(Math.min(found.length - 1, chosen + 1));
          else if (event.key === "ArrowUp") setChosen(Math.max(0, chosen - 1));
          else if (event.key === "Enter") visit(found[chosen]);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="found" role="listbox" aria-label="found">
        {found.map((place, index) => (
          <li
            key={place.href}
            id={`found-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => visit(place)}
          >
            <span>{place.name}</span>
            <span className="quiet">{place.kind}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="quiet">nothing has “{typed}” in its name</p>}
    </dialog>
  );
}
