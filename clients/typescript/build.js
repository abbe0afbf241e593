// Builds the package in dist, from where it is packed: one module, its types, and what npm reads.
import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = new URL("dist/", import.meta.url);

rmSync(dist, { recursive: true, force: true });
execFileSync("npx", ["tsc", "--emitDeclarationOnly"], { cwd: here, stdio: "inherit" });
// The types become one file, and their layout is only weight.
const PARTS = ["retry", "errors", "callbacks", "notifier", "api"];
const types = PARTS.map((name) => {
  // The constants of a module are no types, and index.js doesn't export them.
  const part = readFileSync(new URL(`${name}.d.ts`, dist), "utf8")
    .replaceAll(/^(import .*|export {};|(\/\*\*.*\*\/\n)?export declare const .*)\n/gm, "");
  return name === "api" ? byLikeness(compact(part)) : compact(part);
});

/** Return declarations without the layout of what isn't a comment. */
function compact(text) {
  const parts = text.split(/( *\/\*\*[^]*?\*\/\n *)/);
  return parts.map((part, at) => (at % 2 ? part.replaceAll(/^ +/gm, "") : packed(part))).join("");
}

/** Return code with a line for each declaration, and no other white space that isn't needed. */
function packed(code) {
  return code
    .replaceAll(/(?<=[{;])\n *(?!export |declare |[\s/])|\n +| ?([:;,|&{}=<>()?]) ?/g, "$1")
    .replaceAll(";}", "}")
    .replaceAll(/{\[key:string\]:([^{}]*)}/g, "Record<string,$1>");
}

/** Return declarations, each after the one that it repeats most of, as compression wants it. */
function byLikeness(text) {
  const left = text.split(/(?<!\*\/)\n(?=\/\*\*|export )/).map((line) => Buffer.from(line.trim()));
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
for (const name of readdirSync(dist)) rmSync(new URL(name, dist));
// Without the last line, what a module keeps for itself would be exported too.
writeFileSync(new URL("index.d.ts", dist), `${types.join("")}export {};\n`);
const { outputFiles: [bundle] } = await build({
  absWorkingDir: here,
  entryPoints: ["src/index.ts"],
  write: false,
  bundle: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
});
const { code } = await minify(bundle.text, { module: true, ecma: 2022, compress: { passes: 2 } });
writeFileSync(new URL("index.js", dist), code);
copyFileSync(new URL("README.md", import.meta.url), new URL("README.md", dist));
// What builds the package is nothing to those who install it.
const { private: _, scripts, devDependencies, overrides, ...published } = JSON.parse(
  readFileSync(new URL("package.json", import.meta.url), "utf8"),
);
writeFileSync(new URL("package.json", dist), JSON.stringify(published, null, 2));
