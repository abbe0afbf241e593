// Builds the elements, the push button, and the service worker as one file each, which the service serves: node build.js [folder]
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = new URL(".", import.meta.url);
const folder = process.argv[2] ?? fileURLToPath(new URL("../../static", here));
const files = [
  { name: "inbox", of: "inbox", entry: "inbox/src/index.ts", format: "esm" },
  { name: "push-button", of: "push", entry: "push/src/button.ts", format: "esm" },
  // The page's own worker loads it by importScripts, which takes no module.
  { name: "push", of: "push", entry: "push/src/worker.ts", format: "iife" },
];
for (const { name, of, entry, format } of files) {
  const { version } = JSON.parse(readFileSync(new URL(`${of}/package.json`, here), "utf8"));
  await build({
    absWorkingDir: fileURLToPath(here),
    entryPoints: [entry],
    outfile: `${folder}/${name}/${version}.js`,
    bundle: true,
    minify: true,
    format,
    target: "es2022",
    legalComments: "inline",
    charset: "utf8",
  });
}
