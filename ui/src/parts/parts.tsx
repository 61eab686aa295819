// Small parts that every page is made of.

import { useEffect, useRef, useState, type ReactNode } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import type { Problem } from "../api/model";
import { time, utc } from "./text";

const TONES: Record<string, string> = {
  running: "good", idle: "good", served: "good", live: "good", held: "warn", starting: "warn", restarting: "warn",
  paused: "warn", pausing: "warn", waiting: "warn", retrying: "warn", removing: "warn", reconnecting: "warn",
  connecting: "warn", failed: "bad", down: "bad", failing: "bad", late: "warn", quarantined: "warn", refused: "bad",
};

export function Badge({ text, tone }: { text: string; tone?: string }) {
  return <span className={`badge ${tone ?? TONES[text] ?? ""}`}>{text}</span>;
}

export function Head({ title, children }: { title: string; children?: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Mainstem`;
  }, [title]);
  return (
    <div className="head">
      <h1>{title}</h1>
      {children}
    </div>
  );
}

export function Told({ problem }: { problem: Problem | null | undefined }) {
  if (!problem) return null;
  const place = problem.location;
  return (
    <div className="problem" role="alert">
      <strong>{problem.title}</strong>: {problem.detail}
      {place && (
        <pre>
          {place.file}:{place.line}:{place.column}
          {place.snippet && `\n${place.snippet}\n${" ".repeat(Math.max(0, place.column - 1))}^`}
        </pre>
      )}
      {problem.hint && <div className="quiet">{problem.hint}</div>}
    </div>
  );
}

export function Time({ at }: { at: string | number | null | undefined }) {
  return <time title={utc(at)}>{time(at)}</time>;
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="card">
      <h2>{title}</h2>
      <div className="quiet">{children}</div>
    </div>
  );
}

export function Copy({ text, label = "copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  return (
    <button
      type="button"
      className="plain"
      aria-label={`copy ${label}`}
      onClick={() => void navigator.clipboard.writeText(text).then(() => setDone(true))}
    >
      {done ? "copied" : label}
    </button>
  );
}

/** The same thing elsewhere: as SQL, curl, psql or a command, each to be copied. */
export function Same({ ways }: { ways: Record<string, string> }) {
  return (
    <details className="card">
      <summary>The same as a command, as SQL or in Python</summary>
      <div className="same" style={{ marginTop: 10 }}>
        {Object.entries(ways).map(([name, text]) => (
          <Way key={name} name={name} text={text} />
        ))}
      </div>
    </details>
  );
}

function Way({ name, text }: { name: string; text: string }) {
  return (
    <>
      <span className="quiet">{name}</span>
      <code tabIndex={0}>{text}</code>
      <Copy text={text} />
    </>
  );
}

export function Facts({ of }: { of: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** The tabs of a page; which one is open stands in the address. */
export function Tabs({ of, chosen }: { of: readonly string[]; chosen: string }) {
  const [place] = useLocation();
  return (
    <div className="tabs" role="navigation" aria-label="parts of this page">
      {of.map((name) => (
        <Link key={name} href={`${place}?tab=${encodeURIComponent(name)}`} aria-current={name === chosen ? "page" : undefined}>
          {name}
        </Link>
      ))}
    </div>
  );
}

/** A part of the address, as a state. */
export function useAddress(name: string, otherwise = ""): [string, (value: string) => void] {
  const [search, setSearch] = useSearchParams();
  const value = search.get(name) ?? otherwise;
  return [
    value,
    (next) =>
      setSearch(
        () => {
          // as it is now: another part may have been set since this was drawn
          const after = new URLSearchParams(location.search);
          if (next === otherwise) after.delete(name);
          else after.set(name, next);
          return after;
        },
        { replace: true },
      ),
  ];
}

/** Asks for the name to be typed before something is lost. */
export function Confirm(props: {
  name: string;
  what: string;
  effect?: ReactNode;
  open: boolean;
  onClose: () => void;
  onConfirm: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  useEffect(() => {
    if (props.open && !dialog.current?.open) {
      setTyped("");
      dialog.current?.showModal();
    }
    if (!props.open) dialog.current?.close();
  }, [props.open]);
  return (
    <dialog ref={dialog} onClose={props.onClose} aria-label={props.what}>
      <h2>{props.what}</h2>
      {props.effect}
      <p>
        Type <code>{props.name}</code> to go on.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed !== props.name) return;
          props.onConfirm();
          props.onClose();
        }}
      >
        <div className="tools">
          <input aria-label="name" value={typed} onChange={(event) => setTyped(event.target.value)} autoFocus />
          <button className="danger" disabled={typed !== props.name}>
            {props.what}
          </button>
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
        </div>
      </form>
    </dialog>
  );
}
