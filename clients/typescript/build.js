// Builds the package in dist: one module, and its types.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = new URL("dist/", import.meta.url);

rmSync(dist, { recursive: true, force: true });
execFileSync("npx", ["tsc", "--emitDeclarationOnly"], { cwd: here, stdio: "inherit" });
// The types become one file, and their layout is only weight: one line for each generated one is left.
const PARTS = ["retry", "errors", "callbacks", "notifier", "api"];
const exported = readFileSync(new URL("index.d.ts", dist), "utf8").matchAll(/^export (?:type )?{([^}]*)}/gm);
const types = PARTS.map((name) => {
  // The constants of a module are no types, and index.js doesn't export them.
  const part = readFileSync(new URL(`${name}.d.ts`, dist), "utf8")
    .replaceAll(/^(import .*|export {};|(\/\*\*.*\*\/\n)?export declare const .*)\n/gm, "");
  return name === "api"
    ? byLikeness(part.replaceAll(/\n *(?=[^e/\s])|\n +| (?=\|)|(?<=[:|]) /g, "").replaceAll(";}", "}").replaceAll(" {", "{").replaceAll(" = ", "=").replaceAll("{[key:string]:unknown}", "Record<string,unknown>"))
    : part.replaceAll(/^ +/gm, "").replaceAll(/^export /gm, "");
});

/** Return declarations, each after the one that it repeats most of, as compression wants it. */
function byLikeness(text) {
  const left = text.split(/\n(?=export )/).map((line) => Buffer.from(line.trim()));
  const size = (line, dictionary) => deflateRawSync(line, { level: 9, dictionary }).length;
  const alone = new Map(left.map((line) => [line, size(line)]));
  const [longest] = left.toSorted((a, b) => b.length - a.length);
  const ordered = [];
  for (let next = longest; next; ) {
    const last = next;
    ordered.push(left.splice(left.indexOf(last), 1)[0]);
    const costs = left.map((line) => size(line, last) - alone.get(line));
    next = left[costs.indexOf(Math.min(...costs))];
  }
  return ordered.join("\n") + "\n";
}
const names = [...exported].map(([, list]) => list.trim()).join(", ");
for (const name of readdirSync(dist)) rmSync(new URL(name, dist));
writeFileSync(new URL("index.d.ts", dist), `${types.join("")}export { ${names} };\n`);
await build({
  absWorkingDir: here,
  entryPoints: ["src/index.ts"],
  outfile: "dist/index.js",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
});
