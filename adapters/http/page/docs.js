// Shows the description of the interface.
"use strict";

const add = (to, tag, text) => {
  const made = document.createElement(tag);
  made.textContent = text;
  to.append(made);
  return made;
};

(async () => {
  const docs = document.getElementById("docs");
  const all = await (await fetch("/api/openapi.json")).json();
  const named = (schema) => schema && schema.$ref && all.components.schemas[schema.$ref.split("/").pop()];
  const fields = (schema) => {
    const whole = named(schema) || schema || {};
    const required = new Set(whole.required || []);
    return Object.entries(whole.properties || {})
      .map(([name, field]) => `${name}${required.has(name) ? "" : "?"}: ${field.description || (named(field) || {}).description || ""}`)
      .join("\n");
  };
  for (const [path, methods] of Object.entries(all.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const section = document.createElement("section");
      add(section, "h2", `${method.toUpperCase()} ${path}`);
      add(section, "p", operation.summary);
      const query = (operation.parameters || []).filter((one) => one.in === "query");
      for (const one of query) add(section, "p", `?${one.name}: ${one.description}`);
      const taken = operation.requestBody && fields(operation.requestBody.content["application/json"]?.schema);
      if (taken) add(add(section, "details", ""), "pre", taken).before(add(document.createDocumentFragment(), "summary", "Body"));
      const given = fields(operation.responses["200"].content["application/json"]?.schema);
      if (given) add(add(section, "details", ""), "pre", given).before(add(document.createDocumentFragment(), "summary", "Answer"));
      docs.append(section);
    }
  }
})();
