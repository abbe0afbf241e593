// Builds the package of the testing helpers in testing/dist, from where it is packed.
import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = new URL("dist/", import.meta.url);

rmSync(dist, { recursive: true, force: true });
execFileSync("npx", ["tsc", "--project", "tsconfig.json"], { cwd: here, stdio: "inherit" });
for (const name of readdirSync(dist)) if (/^(api|document)\.d\.ts$/.test(name)) rmSync(new URL(name, dist));
await build({
  absWorkingDir: here,
  entryPoints: ["src/index.ts"],
  outfile: "dist/index.js",
  bundle: true,
  external: ["@notifyproject/client"],
  format: "esm",
  target: "es2022",
  charset: "utf8",
});
copyFileSync(new URL("README.md", import.meta.url), new URL("README.md", dist));
const { private: _, ...published } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
writeFileSync(new URL("package.json", dist), JSON.stringify(published, null, 2));
