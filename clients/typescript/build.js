// Builds the package in dist: one module, and its types.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
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
    ? byFields(part.replaceAll(/\n *(?=[^e/\s])|\n +| (?=\|)|(?<=[:|]) /g, "").replaceAll(";}", "}").replaceAll(" {", "{").replaceAll(" = ", "=").replaceAll("{[key:string]:unknown}", "Record<string,unknown>"))
    : part.replaceAll(/^ +/gm, "").replaceAll(/^export /gm, "");
});

/** Return declarations with those side by side that have the same fields, as compression wants it. */
function byFields(text) {
  const fields = (line) => [...line.matchAll(/(\w+)\??:/g)].map(([, name]) => name).sort().join();
  return text.split(/\n(?=export )/).map((line) => line.trim()).sort((a, b) => (fields(a) < fields(b) ? -1 : 1)).join("\n") + "\n";
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
