// The frame around every page: where one is, whether what one sees is live, and the ways to elsewhere.

import { lazy, Suspense, useEffect, useState } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { live } from "./api/live";
import { useLiveState, useProject, useStatus, useStatusFeed } from "./api/use";
import { Broken } from "./parts/Broken";
import { Palette } from "./parts/Palette";
import { Badge, Empty, Head } from "./parts/parts";
import { number } from "./parts/text";
import { useTheme } from "./parts/theme";
import { Home } from "./pages/Home";

const Lineage = lazy(() => import("./pages/Lineage"));
const Streams = lazy(() => import("./pages/Streams"));
const Stream = lazy(() => import("./pages/Stream"));
const Tables = lazy(() => import("./pages/Tables"));
const Table = lazy(() => import("./pages/Table"));
const Flows = lazy(() => import("./pages/Flows"));
const Flow = lazy(() => import("./pages/Flow"));
const Sql = lazy(() => import("./pages/Sql"));
const Schemas = lazy(() => import("./pages/Schemas"));
const Subject = lazy(() => import("./pages/Subject"));
const Connectors = lazy(() => import("./pages/Connectors"));
const NewConnector = lazy(() => import("./pages/NewConnector"));
const Connector = lazy(() => import("./pages/Connector"));
const Quarantine = lazy(() => import("./pages/Quarantine"));
const Plan = lazy(() => import("./pages/Plan"));

export const PLACES = [
  ["/", "Home"],
  ["/lineage", "Lineage"],
  ["/streams", "Streams"],
  ["/tables", "Tables"],
  ["/flows", "Flows"],
  ["/sql", "SQL"],
  ["/schemas", "Schemas"],
  ["/connectors", "Connectors"],
  ["/quarantine", "Quarantine"],
  ["/plan", "Plan"],
] as const;

export function App() {
  useStatusFeed();
  const [place] = useLocation();
  const [palette, setPalette] = useState(false);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        setPalette(true);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  return (
    <div className="frame">
      <Top onSearch={() => setPalette(true)} />
      <nav aria-label="pages">
        {PLACES.map(([path, name]) => {
          const here = path === "/" ? place === "/" : place.startsWith(path);
          return (
            <Link key={path} href={path} aria-current={here ? "page" : undefined}>
              {name}
              <Count of={name} />
            </Link>
          );
        })}
      </nav>
      <main id="main" tabIndex={-1}>
        <Unanswered />
        <Broken key={place}>
          <Suspense fallback={<p className="quiet">…</p>}>
            <Switch>
              <Route path="/" component={Home} />
              <Route path="/lineage" component={Lineage} />
              <Route path="/streams" component={Streams} />
              <Route path="/streams/:name">{({ name }) => <Stream name={decodeURIComponent(name)} key={name} />}</Route>
              <Route path="/topics/:name">{({ name }) => <Stream topic={decodeURIComponent(name)} key={name} />}</Route>
              <Route path="/tables" component={Tables} />
              <Route path="/tables/:name">{({ name }) => <Table name={decodeURIComponent(name)} key={name} />}</Route>
              <Route path="/flows" component={Flows} />
              <Route path="/flows/:name">{({ name }) => <Flow name={decodeURIComponent(name)} key={name} />}</Route>
              <Route path="/sql" component={Sql} />
              <Route path="/schemas" component={Schemas} />
              <Route path="/schemas/:name">{({ name }) => <Subject name={decodeURIComponent(name)} key={name} />}</Route>
              <Route path="/connectors" component={Connectors} />
              <Route path="/new-connector" component={NewConnector} />
              <Route path="/connectors/:name">{({ name }) => <Connector name={decodeURIComponent(name)} key={name} />}</Route>
              <Route path="/quarantine" component={Quarantine} />
              <Route path="/plan" component={Plan} />
              <Route>
                <Head title="Not here" />
                <Empty title="There is no page at this address">
                  <Link href="/">Home</Link> has the way to everything; Ctrl-K searches.
                </Empty>
              </Route>
            </Switch>
          </Suspense>
        </Broken>
      </main>
      <Palette open={palette} onClose={() => setPalette(false)} />
    </div>
  );
}

function Top({ onSearch }: { onSearch: () => void }) {
  const project = useProject();
  const state = useLiveState();
  const [theme, turn] = useTheme();
  const paused = state === "paused";
  return (
    <header style={project?.colour ? ({ "--environment": project.colour } as React.CSSProperties) : undefined}>
      <a className="skip" href="#main">
        to the content
      </a>
      <Link href="/" className="brand">
        Mainstem
      </Link>
      <span className="which" title="the project that this gateway serves, and where">
        <strong>{project?.name ?? "…"}</strong> <Badge text={project?.environment ?? "…"} tone="accent" />
      </span>
      {project?.read_only && <Badge text="read-only" tone="warn" />}
      <span className="fill" />
      <button type="button" onClick={onSearch}>
        Search <span className="quiet">Ctrl-K</span>
      </button>
      <span role="status">
        <Badge text={state} />
      </span>
      <button type="button" aria-pressed={paused} onClick={() => (paused ? live.resume() : live.pause())}>
        {paused ? "Resume" : "Pause"}
      </button>
      <button type="button" onClick={turn} aria-label={`use the ${theme === "dark" ? "light" : "dark"} colours`}>
        {theme === "dark" ? "Light" : "Dark"}
      </button>
    </header>
  );
}

/** Nothing is known yet, and nobody answers. */
function Unanswered() {
  const state = useLiveState();
  if (useStatus() !== undefined || state !== "reconnecting") return null;
  return <div className="note">The gateway does not answer. This page goes on by itself when it is back; is <code>mainstem up</code> still running?</div>;
}

function Count({ of }: { of: string }) {
  const held = useStatus()?.quarantine.records;
  if (of !== "Quarantine" || !held) return null;
  return <Badge text={number(held)} tone="warn" />;
}
