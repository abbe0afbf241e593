// Generates src/api.ts from the OpenAPI document: the types of every operation, and where it is.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapiTS from "openapi-typescript";
import ts from "typescript";
import { parse } from "yaml";

const PREFIX = "/api/v1";
const SENT_DATE = "sent-date";
const NOTES = ["title", "description", "default", "example", "examples", "pattern"];

const source = new URL("../python/openapi.yaml", import.meta.url);
const output = fileURLToPath(new URL("src/api.ts", import.meta.url));
const document = parse(readFileSync(source, "utf8"));

/** Return what a reference names, or the part itself. */
function resolved(part) {
  if (!part.$ref) return part;
  const [, , section, name] = part.$ref.split("/");
  return resolved(document.components[section][name]);
}

/** Remove what makes only comments, which would be most of the package's size. A field with a default is always there. */
function withoutNotes(schema, sent) {
  const { properties = {}, required = [] } = schema;
  const always = Object.keys(properties).filter((name) => "default" in properties[name] && !required.includes(name));
  if (always.length) schema.required = [...required, ...always];
  for (const [key, value] of Object.entries(schema)) {
    if (key === "properties") for (const one of Object.values(value)) withoutNotes(one, sent);
    else if (NOTES.includes(key)) delete schema[key];
    else if (key === "format") schema.format = sent && value === "date-time" ? SENT_DATE : undefined;
    else if (value && typeof value === "object") withoutNotes(value, sent);
  }
  if (schema.format === undefined) delete schema.format;
  return schema;
}

const enums = Object.entries(document.components.schemas).filter(([, schema]) => schema.enum);

/** Return a list of values by the name that it has elsewhere, with the one that it has besides. */
function named(values) {
  for (const [name, schema] of enums) {
    const others = values.filter((value) => !schema.enum.includes(value));
    if (values.length - others.length !== schema.enum.length || others.length > 1) continue;
    const reference = { $ref: `#/components/schemas/${name}` };
    return others.length ? { anyOf: [reference, { enum: others }] } : reference;
  }
  return undefined;
}

/** Name each list of values that has a name elsewhere. */
function withNames(schema) {
  for (const [key, value] of Object.entries(schema)) {
    if (!value || typeof value !== "object") continue;
    schema[key] = (Array.isArray(value.enum) && named(value.enum)) || withNames(value);
  }
  return schema;
}

/** Return an operation's arguments as one object: its parameters by name, and `body`. */
function argumentsOf(operation) {
  const properties = {};
  const required = [];
  for (const parameter of (operation.parameters ?? []).map(resolved)) {
    if (parameter.in === "header") continue;
    properties[parameter.name] = withoutNotes(structuredClone(parameter.schema), true);
    if (parameter.required) required.push(parameter.name);
  }
  if (operation.requestBody) {
    properties.body = operation.requestBody.content["application/json"].schema;
    if (operation.requestBody.required) required.push("body");
  }
  return { type: "object", additionalProperties: false, properties, required };
}

/** Return the schema of what an operation returns; undefined for nothing. */
function resultOf(operation) {
  const schemas = Object.entries(operation.responses)
    .filter(([status]) => status < "300")
    .flatMap(([, response]) => Object.values(resolved(response).content ?? {}))
    .map(({ schema }) => schema);
  const different = [...new Map(schemas.map((one) => [JSON.stringify(one), one])).values()];
  return different.length > 1 ? { anyOf: different } : different[0];
}

const types = { type: "object", properties: {}, required: [] };
const places = [];
for (const [path, item] of Object.entries(document.paths)) {
  const words = [path.slice(PREFIX.length)];
  for (const [method, operation] of Object.entries(item)) {
    const name = operation.operationId;
    words.push(method, name);
    const isStream = Object.values(operation.responses).some((one) => resolved(one).content?.["text/event-stream"]);
    const result = isStream ? { type: "string", format: "stream" } : resultOf(operation);
    types.properties[name] = {
      description: operation.summary,
      type: "object",
      properties: { arguments: argumentsOf(operation), ...(result && { result }) },
      required: ["arguments", "result"],
    };
    types.required.push(name);
  }
  places.push(words.join(" "));
}
const schemas = Object.fromEntries(
  Object.entries(document.components.schemas).map(([name, schema]) => [name, withoutNotes(schema, name.endsWith("Request"))]),
);

const described = { ...schemas, Operations: types };
Object.values(described).forEach(withNames);

const reference = (name) => ts.factory.createTypeReferenceNode(name);
const nodes = await openapiTS(
  { openapi: "3.1.0", info: { title: "", version: "" }, components: { schemas: described } },
  {
    defaultNonNullable: false,
    transform(schema) {
      if (schema.format === SENT_DATE) return ts.factory.createUnionTypeNode([reference("string"), reference("Date")]);
      if (schema.format === "stream") return reference("Response");
      return undefined;
    },
  },
);
const components = nodes.find((node) => node.name?.text === "components");
const all = components.members.find((member) => member.name.text === "schemas").type.members;

const file = ts.createSourceFile(output, "", ts.ScriptTarget.Latest);
const printer = ts.createPrinter({ removeComments: true });
const printed = (node) =>
  printer
    .printNode(ts.EmitHint.Unspecified, node, file)
    .replaceAll(/components\["schemas"\]\["(\w+)"\]/g, "$1")
    .replaceAll(/^ +/gm, (spaces) => "\t".repeat(spaces.length / 4));
const declared = ({ name, type }) =>
  ts.isTypeLiteralNode(type) ? `export interface ${name.text} ${printed(type)}` : `export type ${name.text} = ${printed(type)};`;
const operations = all.find((member) => member.name.text === "Operations");
const signature = ({ name, type }) => {
  const [taken, returned] = type.members.map((member) => printed(member.type));
  return `\t${name.text}(args: ${taken}): ${returned ?? "void"};`;
};

writeFileSync(
  output,
  `// Generated by generate.js from the OpenAPI document.

${all.filter((member) => member !== operations).map(declared).join("\n")}
/** What each operation takes and returns. */
export interface Operations {
${operations.type.members.map(signature).join("\n")}
}

/** A path in each line, and the method and name of each of its operations. */
export const PATHS = \`${places.join("\n")}\`;
`,
);
