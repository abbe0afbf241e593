// Builds the package in dist: one module, and its types.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = new URL("dist/", import.meta.url);

rmSync(dist, { recursive: true, force: true });
execFileSync("npx", ["tsc", "--emitDeclarationOnly"], { cwd: here, stdio: "inherit" });
// The layout of types is only weight: one line for each generated one is left, and no indentation.
for (const name of readdirSync(dist)) {
  const types = readFileSync(new URL(name, dist), "utf8");
  const packed = name === "api.d.ts" ? types.replaceAll(/\n *(?=[^e/\s])|\n +| (?=\|)|(?<=[:|]) /g, "") : types.replaceAll(/^ +/gm, "");
  writeFileSync(new URL(name, dist), packed);
}
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
