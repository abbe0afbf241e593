import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const client = fileURLToPath(new URL("src/index.ts", import.meta.url));

export default defineConfig({
  resolve: { alias: { "@notifyproject/client": client } },
  test: { environment: "node", pool: "threads", maxWorkers: 1, minWorkers: 1 },
});
