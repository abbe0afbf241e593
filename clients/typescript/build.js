// Builds the package in dist: one module, and its types.
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = new URL("dist/", import.meta.url);

rmSync(dist, { recursive: true, force: true });
execFileSync("npx", ["tsc", "--emitDeclarationOnly"], { cwd: here, stdio: "inherit" });
// Nobody reads the generated types, so their layout is only weight: one line for each type is left.
const types = new URL("api.d.ts", dist);
writeFileSync(types, readFileSync(types, "utf8").replaceAll(/\n *(?=[^e/\s])|\n +| (?=\|)|(?<=[:|]) /g, ""));
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
