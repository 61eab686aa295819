// An editor of SQL that knows the catalog.

import { autocompletion } from "@codemirror/autocomplete";
import { history, historyKeymap, defaultKeymap, indentWithTab } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { sql, SQLDialect } from "@codemirror/lang-sql";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, lineNumbers, drawSelection } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import type { Problem, Thing } from "../api/model";

const DIALECT = SQLDialect.define({
  keywords:
    "select from where group by having order limit as on join left right full outer inner cross union all distinct with case when then else end and or not in is null like between " +
    "exists create stream table source sink index insert into values drop cascade pause resume show describe explain emit changes final window over partition rows apply late expect " +
    "violation check primary key topics connector transform of timestamp offsets row backfill true false interval cast",
  types: "string bigint int double float decimal boolean timestamp date binary array map struct tinyint smallint",
  backslashEscapes: true,
  identifierQuotes: "`",
});

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: tags.string, color: "var(--good)" },
  { tag: tags.number, color: "var(--warn)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.typeName, color: "var(--source)" },
]);

const LOOK = EditorView.theme({
  "&": { background: "var(--paper)", color: "var(--text)", fontSize: "13px", border: "1px solid var(--line-strong)", borderRadius: "8px" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", minHeight: "140px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { background: "var(--raised)", color: "var(--quiet)", border: "none", borderRadius: "8px 0 0 8px" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { background: "var(--accent-ground) !important" },
  ".cm-tooltip": { background: "var(--paper)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent-ground)", color: "var(--accent)" },
});

export interface EditorHandle {
  /** What is selected, or all. */
  chosen: () => { text: string; from: number };
}

export function Editor(props: {
  text: string;
  objects: readonly Thing[];
  problem: { told: Problem; from: number } | null;
  onChange: (text: string) => void;
  onRun: () => void;
  handle: React.RefObject<EditorHandle | null>;
}) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const language = useRef(new Compartment());
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    // inside a shadow root its styles are objects, which the page's policy allows; else they are text
    const element = place.current as HTMLElement;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const made = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: latest.current.text,
        extensions: [
          Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (latest.current.onRun(), true) }])),
          lineNumbers(), history(), drawSelection(), bracketMatching(), lintGutter(), autocompletion(),
          keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
          language.current.of(languageOf(latest.current.objects)),
          syntaxHighlighting(COLOURS), LOOK, EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "SQL" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    props.handle.current = {
      chosen: () => {
        const { main } = made.state.selection;
        return main.empty ? { text: made.state.doc.toString(), from: 0 } : { text: made.state.sliceDoc(main.from, main.to), from: main.from };
      },
    };
    return () => made.destroy();
  }, [props.handle]);
  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== props.text) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.text } });
    }
  }, [props.text]);
  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(languageOf(props.objects)) });
  }, [props.objects]);
  useEffect(() => {
    const editor = view.current;
    if (editor === null) return;
    editor.dispatch(setDiagnostics(editor.state, props.problem ? [mark(editor.state, props.problem)] : []));
  }, [props.problem]);
  return <div ref={place} />;
}

function languageOf(objects: readonly Thing[]) {
  const schema = Object.fromEntries(
    objects.map((thing) => [thing.name, thing.columns.map((column) => ({ label: column.name, detail: column.type, type: "property" }))]),
  );
  return sql({ dialect: DIALECT, schema, upperCaseKeywords: true });
}

function mark(state: EditorState, { told, from }: { told: Problem; from: number }) {
  const place = told.location;
  let position = from;
  if (place) {
    const first = state.doc.lineAt(Math.min(from, state.doc.length)).number;
    const line = state.doc.line(Math.min(state.doc.lines, first + place.line - 1));
    const column = place.line === 1 ? from - line.from + place.column - 1 : place.column - 1;
    position = Math.min(line.to, line.from + Math.max(0, column));
  }
  const word = state.wordAt(position);
  return { from: position, to: word?.to ?? Math.min(state.doc.length, position + 1), severity: "error" as const, message: `${told.title}: ${told.detail}` };
}
