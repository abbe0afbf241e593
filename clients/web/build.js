// Builds the elements as one file, which the service serves: node build.js [folder]
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = new URL(".", import.meta.url);
const { version } = JSON.parse(readFileSync(new URL("inbox/package.json", here), "utf8"));
const folder = process.argv[2] ?? fileURLToPath(new URL("../../static/inbox", here));
await build({
  absWorkingDir: fileURLToPath(here),
  entryPoints: ["inbox/src/index.ts"],
  outfile: `${folder}/${version}.js`,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "inline",
  charset: "utf8",
});
