// The API description as a readable page, made from /openapi.json.
"use strict";

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function route(path, method, operation, schemas) {
  const block = element("div", undefined, "route");
  const title = element("h3");
  title.append(element("span", method.toUpperCase(), "method"), element("span", path));
  block.append(title, element("p", operation.description || operation.summary || ""));
  for (const parameter of operation.parameters || []) {
    const line = element("p", undefined, "quiet");
    line.append(element("code", parameter.name));
    line.append(` (${parameter.in}${parameter.required ? ", required" : ""}) ${parameter.description || ""}`);
    block.append(line);
  }
  const content = operation.requestBody && operation.requestBody.content["application/json"];
  if (content) {
    const reference = content.schema.$ref;
    const schema = reference ? schemas[reference.split("/").pop()] : content.schema;
    block.append(element("pre", JSON.stringify(schema, null, 2), "schema"));
  }
  return block;
}

async function show() {
  const main = document.getElementById("routes");
  try {
    const description = await (await fetch("/openapi.json")).json();
    const groups = new Map();
    for (const [path, methods] of Object.entries(description.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const tag = (operation.tags || ["other"])[0];
        if (!groups.has(tag)) groups.set(tag, []);
        groups.get(tag).push(route(path, method, operation, (description.components || {}).schemas || {}));
      }
    }
    main.replaceChildren(...[...groups].map(([tag, routes]) => {
      const section = element("section");
      section.append(element("h2", tag), ...routes);
      return section;
    }));
  } catch {
    main.replaceChildren(element("p", "The gateway does not answer.", "empty"));
  }
}

show();
