// What an object was defined as.

import { Link } from "wouter";
import type { Thing } from "../api/model";
import { Copy, Facts } from "./parts";
import { number } from "./text";

export function Definition({ of }: { of: Thing }) {
  return (
    <>
      <div className="card">
        <div className="head">
          <h2>Definition</h2>
          <span className="quiet">
            {of.file}:{of.line}
          </span>
          <span className="fill" />
          <Copy text={of.sql} />
        </div>
        <pre className="code" tabIndex={0}>{of.sql}</pre>
        {of.comment && <p>{of.comment}</p>}
      </div>
      <div className="card">
        <Facts
          of={[
            ["topic", <Link href={`/topics/${encodeURIComponent(of.topic)}`}>{of.topic}</Link>],
            ["format", of.format],
            ["key", of.key.join(", ")],
            ["event time", of.event_time],
            ["watermark", of.watermark],
            ["reads", of.inputs.length > 0 && of.inputs.join(", ")],
            ["source", of.source],
            ["generation", number(of.generation)],
            ["made by", of.function],
          ]}
        />
      </div>
      <div className="card wide">
        <h2>Columns</h2>
        <table>
          <thead>
            <tr>
              <th>name</th>
              <th>type</th>
              <th>personal data</th>
            </tr>
          </thead>
          <tbody>
            {of.columns.map((column) => (
              <tr key={column.name}>
                <td className="mono">{column.name}</td>
                <td className="mono">{column.type}</td>
                <td>{column.pii}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {of.rules.length > 0 && (
        <div className="card wide">
          <h2>Rules</h2>
          <table>
            <thead>
              <tr>
                <th>rule</th>
                <th>condition</th>
                <th>on violation</th>
                <th className="number">broken</th>
              </tr>
            </thead>
            <tbody>
              {of.rules.map((rule) => (
                <tr key={rule.name}>
                  <td className="mono">{rule.name}</td>
                  <td className="mono">{rule.condition}</td>
                  <td>{rule.on_violation}</td>
                  <td className="number">{number(rule.records)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
