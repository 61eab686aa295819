// A form for a new source or sink, drawn from the connector's own description; it ends in a statement.

import { useState } from "react";
import { Link } from "wouter";
import { quoted, send } from "../api/gateway";
import type { Answer } from "../api/model";
import { useAct, useAsked, useObjects, useReadOnly } from "../api/use";
import { Copy, Head, Told, useAddress } from "../parts/parts";

interface Option {
  name: string;
  kind: string;
  doc: string;
  example: string;
  default: string | null;
  required: boolean;
  secret: boolean;
  choices: string[];
}

interface Kind {
  name: string;
  role: "source" | "sink";
  about: string;
  options: Option[];
}

export default function NewConnector() {
  const { data: kinds, problem } = useAsked<Kind[]>("/v1/connector-kinds");
  const objects = useObjects() ?? [];
  const readOnly = useReadOnly();
  const [chosen, setChosen] = useAddress("connector");
  const [name, setName] = useState("");
  const [from, setFrom] = useState("");
  const [values, setValues] = useState<Record<string, string>>({});
  const create = useAct((sql: string) => send<Answer>("POST", "/v1/sql", { sql }));
  const kind = kinds?.find((each) => `${each.role} ${each.name}` === chosen);
  const readable = objects.filter((thing) => thing.kind !== "source" && !thing.sink);
  const statement = kind ? written(kind, name, from, values) : "";
  return (
    <>
      <Head title="New connector" />
      <Told problem={problem} />
      <div className="tools">
        <label>
          connector{" "}
          <select aria-label="connector" value={chosen} onChange={(event) => (setChosen(event.target.value), setValues({}), create.reset())}>
            <option value="">choose</option>
            {["source", "sink"].map((role) => (
              <optgroup key={role} label={role === "source" ? "sources: data in" : "sinks: data out"}>
                {(kinds ?? []).filter((each) => each.role === role).map((each) => (
                  <option key={each.name} value={`${role} ${each.name}`}>{each.name}</option>
                ))}
              </optgroup>
            ))}
          </select>
        </label>
        {kind && <span className="quiet">{kind.about}</span>}
      </div>
      {kind && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            create.act(statement);
          }}
        >
          <div className="card form">
            <label htmlFor="name">name</label>
            <input id="name" required value={name} placeholder={kind.role === "source" ? "shop" : "orders_out"} onChange={(event) => setName(event.target.value)} />
            <span className="quiet">What it is called here.</span>
            {kind.role === "sink" && (
              <>
                <label htmlFor="from">from</label>
                <select id="from" required value={from} onChange={(event) => setFrom(event.target.value)}>
                  <option value="">choose</option>
                  {readable.map((thing) => <option key={thing.name}>{thing.name}</option>)}
                </select>
                <span className="quiet">The stream or table whose records go out.</span>
              </>
            )}
            {kind.options.map((option) => (
              <OptionField key={option.name} option={option} value={values[option.name] ?? ""} onChange={(value) => setValues({ ...values, [option.name]: value })} />
            ))}
          </div>
          <div className="card">
            <div className="head">
              <h2>The statement</h2>
              <span className="fill" />
              <Copy text={statement} />
            </div>
            <pre className="code" tabIndex={0}>{statement}</pre>
            <p className="quiet">Created here it runs at once; written into a file of the project it also survives the next <code>mainstem apply</code>.</p>
            <button className="main" disabled={readOnly || create.busy}>{create.busy ? "Checking …" : "Create"}</button>
          </div>
        </form>
      )}
      <Told problem={create.problem} />
      {create.done?.kind === "message" && (
        <div className="note" role="status">
          {create.done.message} <Link href={`/connectors/${encodeURIComponent(name)}`}>Look at it</Link>
        </div>
      )}
    </>
  );
}

function OptionField({ option, value, onChange }: { option: Option; value: string; onChange: (value: string) => void }) {
  const id = `option-${option.name}`;
  const choices = option.kind === "true or false" ? ["true", "false"] : option.choices;
  const placeholder = option.default ?? option.example;
  return (
    <>
      <label htmlFor={id}>
        {option.name}
        {option.required && <span aria-label="required"> *</span>}
      </label>
      {choices.length > 0 ? (
        <select id={id} required={option.required} value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">{option.default ?? "choose"}</option>
          {choices.map((choice) => <option key={choice}>{choice}</option>)}
        </select>
      ) : (
        <input id={id} required={option.required} value={value} placeholder={placeholder} onChange={(event) => onChange(event.target.value)} />
      )}
      <span className="quiet">
        {option.doc}
        {option.secret && <> A reference only, such as <code>{"${env:PASSWORD}"}</code>.</>}
      </span>
    </>
  );
}

function written(kind: Kind, name: string, from: string, values: Record<string, string>): string {
  const head = kind.role === "source" ? `CREATE SOURCE ${quoted(name || "…")}` : `CREATE SINK ${quoted(name || "…")} FROM ${quoted(from || "…")}`;
  const given = kind.options.filter((option) => values[option.name]).map((option) => [option.name, values[option.name] as string] as const);
  const lines = [["connector", kind.name] as const, ...given].map(([key, value]) => `  ${/^\w+$/.test(key) ? key : `"${key}"`} = '${value.replaceAll("'", "''")}'`);
  return `${head} WITH (\n${lines.join(",\n")}\n)`;
}
