// Where data comes from and where it goes, left to right, with what moves on each way.

import dagre from "@dagrejs/dagre";
import { Background, Controls, Handle, Position, ReactFlow, type Edge, type Node, type NodeProps } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useMemo } from "react";
import { Link, useLocation } from "wouter";
import { hrefOf } from "../api/health";
import type { LineageColumn, Status, Thing } from "../api/model";
import { useObjects, useStatus } from "../api/use";
import { Columns, useColumns } from "../parts/Columns";
import { Badge, Empty, Head, Same, useAddress } from "../parts/parts";
import { number, seconds } from "../parts/text";
import { useTheme } from "../parts/theme";

const WIDTH = 210;
const HEIGHT = 62;
const FRESH_SECONDS = 5;
const LATE_SECONDS = 30;

type Look = { thing: Thing; kind: string; state: string; rate: number | null; age: number | null; faded: boolean; chosen: boolean; columns: string[] };
type ThingNode = Node<Look, "thing">;

export default function Lineage() {
  const objects = useObjects();
  const status = useStatus();
  const [, go] = useLocation();
  const [search, setSearch] = useAddress("search");
  const [focus] = useAddress("focus");
  const [column, setColumn] = useAddress("column");
  const [theme] = useTheme();
  const asked = useColumns(focus);
  const placed = useMemo(() => place(objects ?? []), [objects]);
  if (objects === undefined || status === undefined) return <Head title="Lineage" />;
  if (objects.length === 0) return <Empty title="Nothing to draw yet">Definitions appear here as soon as they are applied.</Empty>;
  const look = (name: string) => {
    const next = new URLSearchParams({ ...(search && { search }), ...(name && { focus: name }) });
    go(next.size > 0 ? `/lineage?${next}` : "/lineage");
  };
  const focused = objects.find((thing) => thing.name === focus);
  const chosen = asked.columns.find((each) => each.name === column);
  const on = chosen && focused ? columnsOn(focused.name, chosen) : null;
  const kept = on ? new Set(on.keys()) : focused ? around(objects, focused.name) : null;
  const nodes: ThingNode[] = objects.map((thing) => {
    const faded = (kept !== null && !kept.has(thing.name)) || (search !== "" && !thing.name.toLowerCase().includes(search.toLowerCase()));
    return {
      id: thing.name,
      type: "thing",
      position: placed.get(thing.name) ?? { x: 0, y: 0 },
      data: { ...moving(thing, status), thing, faded, chosen: thing === focused, columns: on?.get(thing.name) ?? [] },
    };
  });
  const known = new Set(objects.map((thing) => thing.name));
  const edges: Edge[] = objects.flatMap((thing) =>
    upstream(thing).filter((from) => known.has(from)).map((from) => {
      const { rate, age } = moving(thing, status);
      const colour = age === null ? "var(--line-strong)" : age > LATE_SECONDS ? "var(--bad)" : age > FRESH_SECONDS ? "var(--warn)" : "var(--good)";
      return {
        id: `${from} ${thing.name}`,
        source: from,
        target: thing.name,
        animated: (rate ?? 0) > 0,
        label: rate ? `${number(rate)}/s` : undefined,
        style: { stroke: colour, opacity: kept !== null && !(kept.has(from) && kept.has(thing.name)) ? 0.2 : 1 },
      };
    }),
  );
  return (
    <>
      <Head title="Lineage">
        <span className="fill" />
        <input type="search" aria-label="search" placeholder="search" value={search} onChange={(event) => setSearch(event.target.value)} />
        <label>
          around{" "}
          <select value={focused?.name ?? ""} onChange={(event) => look(event.target.value)}>
            <option value="">all</option>
            {objects.map((thing) => <option key={thing.name}>{thing.name}</option>)}
          </select>
        </label>
        {focused && <Link href={hrefOf(focused)} className="button">Open</Link>}
      </Head>
      {focus && !focused && <p className="quiet">There is nothing that is called “{focus}”.</p>}
      <div
        className={focused ? "graph short" : "graph"}
        onKeyDown={(event) => {
          const name = event.key === "Enter" ? (event.target as HTMLElement).closest<HTMLElement>(".react-flow__node")?.dataset.id : undefined;
          if (name) look(name === focus ? "" : name);
        }}
      >
        <ReactFlow<ThingNode>
          nodes={nodes}
          edges={edges}
          nodeTypes={NODES}
          colorMode={theme}
          fitView
          fitViewOptions={{ maxZoom: 1 }}
          minZoom={0.1}
          nodesDraggable={false}
          nodesConnectable={false}
          onNodeClick={(_, node) => look(node.id === focus ? "" : node.id)}
          onNodeDoubleClick={(_, node) => go(hrefOf(node.data.thing))}
        >
          <Background />
          <Controls showInteractive={false} />
        </ReactFlow>
      </div>
      {focused && <Columns of={focused.name} asked={asked} chosen={chosen} onChoose={setColumn} />}
      <p className="quiet">A click, or Enter, shows what is before and behind an object; a double click opens it. Green: fresh; amber: over {FRESH_SECONDS} s behind; red: over {LATE_SECONDS} s.</p>
      <Same ways={{ command: "mainstem sql -e 'SHOW STREAMS'", REST: "curl -s $GATEWAY/v1/objects", columns: `curl -s $GATEWAY/v1/objects/${encodeURIComponent(focus || "NAME")}/columns` }} />
    </>
  );
}

const NODES = { thing: ThingBox };

function ThingBox({ data }: NodeProps<ThingNode>) {
  const { thing, kind, state, rate, age, faded, chosen, columns } = data;
  return (
    <div className={`node ${faded ? "faded" : ""} ${chosen ? "chosen" : ""}`} style={{ "--of-kind": `var(--${kind})` } as React.CSSProperties}>
      <Handle type="target" position={Position.Left} />
      <div className="name" title={thing.name}>
        {thing.name}
      </div>
      <div className="line">
        <span>{kind}</span>
        {state && <Badge text={state} />}
      </div>
      {columns.length > 0 && (
        <div className="columns" title={columns.join(", ")}>
          {columns.join(", ")}
        </div>
      )}
      <div className="line">
        <span>{rate === null ? "" : `${number(rate)}/s`}</span>
        <span>{age === null ? "" : `${seconds(age)} behind`}</span>
      </div>
      <Handle type="source" position={Position.Right} />
    </div>
  );
}

function moving(thing: Thing, status: Status): Pick<Look, "kind" | "state" | "rate" | "age"> {
  const kind = thing.sink ? "sink" : thing.kind;
  const connector = status.connectors.find((each) => each.name === thing.name);
  if (thing.kind === "source") return { kind, state: connector?.state ?? "", rate: null, age: null };
  const flow = status.flows.find((each) => each.flow === thing.name);
  const view = status.views.find((each) => each.name === thing.name);
  if (flow === undefined) return { kind, state: view ? "served" : "", rate: null, age: null };
  return { kind, state: flow.state, rate: flow.input_rate ?? null, age: flow.lag_seconds ?? null };
}

function upstream(thing: Thing): string[] {
  return thing.source ? [thing.source, ...thing.inputs] : thing.inputs;
}

function place(objects: readonly Thing[]): Map<string, { x: number; y: number }> {
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir: "LR", nodesep: 30, ranksep: 90 }).setDefaultEdgeLabel(() => ({}));
  const known = new Set(objects.map((thing) => thing.name));
  for (const thing of objects) graph.setNode(thing.name, { width: WIDTH, height: HEIGHT });
  for (const thing of objects) for (const from of upstream(thing)) if (known.has(from)) graph.setEdge(from, thing.name);
  dagre.layout(graph);
  return new Map(objects.map(({ name }) => [name, { x: graph.node(name).x - WIDTH / 2, y: graph.node(name).y - HEIGHT / 2 }]));
}

/** The objects that a column comes through, each with its columns. */
function columnsOn(name: string, column: LineageColumn): Map<string, string[]> {
  const found = new Map([[name, [column.name]]]);
  for (const each of [...column.made_of, ...column.goes_into]) found.set(each.object, [...(found.get(each.object) ?? []), each.column]);
  return found;
}

/** All that is before and behind one of them. */
function around(objects: readonly Thing[], name: string): Set<string> {
  const before = new Map(objects.map((thing) => [thing.name, upstream(thing)]));
  const behind = new Map<string, string[]>();
  for (const [to, froms] of before) for (const from of froms) behind.set(from, [...(behind.get(from) ?? []), to]);
  const found = new Set([name]);
  for (const ways of [before, behind]) {
    const open = [name];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      for (const other of ways.get(next) ?? []) {
        if (found.has(other)) continue;
        found.add(other);
        open.push(other);
      }
    }
  }
  return found;
}
