// Generates types from the OpenAPI document with the generator's default options, and compiles the
// documented requests with them, as an app in TypeScript would: node api/check.js
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const root = new URL("../../../", import.meta.url);
const output = new URL("../node_modules/.api/", import.meta.url);
const pages = ["README.md", "docs/guides/quickstart.md", "docs/guides/send.md"];
const body = /(?:POST |curl \S+)\/api\/v1\/(notifications|broadcasts)\s(?:[^`]*?-d '(\{[^']*\})'|[^`{]*\n\n(\{[^`]*\})\n```)/g;

const requests = pages.flatMap((page) =>
  [...readFileSync(new URL(page, root), "utf8").matchAll(body)].map(([, path, curl, http]) => {
    const value = JSON.stringify(JSON.parse(curl ?? http));
    return `export const request${"$"}: Body<"/api/v1/${path}"> = ${value}; // ${page}\n`;
  }),
);
if (!requests.some((one) => one.endsWith("README.md\n"))) throw new Error("README.md has no request");

mkdirSync(output, { recursive: true });
const schema = await openapiTS(new URL("clients/python/openapi.yaml", root));
writeFileSync(new URL("schema.ts", output), astToString(schema));
writeFileSync(
  new URL("requests.ts", output),
  `import type { paths } from "./schema.js";
type Body<P extends keyof paths> = paths[P] extends { post: { requestBody: { content: { "application/json": infer B } } } } ? B : never;
type Answer = paths["/api/v1/notifications"]["post"]["responses"][202]["content"]["application/json"];
export const code = (answer: Answer): string | undefined => answer.warnings[0]?.code;
export const count = (answer: Answer): number => answer.retry_count;
${requests.map((one, index) => one.replace("$", String(index))).join("")}`,
);
execFileSync(
  "npx",
  ["tsc", "--noEmit", "--strict", "--module", "nodenext", "--moduleResolution", "nodenext",
    fileURLToPath(new URL("requests.ts", output))],
  { stdio: "inherit" },
);
console.log(`${requests.length} documented requests have the types of the OpenAPI document`);
