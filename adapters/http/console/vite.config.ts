import { svelte } from "@sveltejs/vite-plugin-svelte";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/**
 * Writes a compressed copy beside each file that gets smaller by it. The server sends it to browsers that take it. This
 * comes last: other plugins still change the files while the bundle is made.
 */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    async writeBundle({ dir = "dist" }, bundle) {
      for (const name of Object.keys(bundle)) {
        const path = join(dir, name);
        const source = await readFile(path);
        const packed = gzipSync(source, { level: 9 });
        if (packed.length < source.length) await writeFile(`${path}.gz`, packed);
      }
    },
  };
}

const server = process.env.AZERA ?? "http://127.0.0.1:3000";

export default defineConfig({
  plugins: [svelte({ configFile: false }), compressed()],
  build: {
    target: "es2022",
    // The content policy of the server allows no inline script and no `data:` but pictures.
    assetsInlineLimit: 0,
    // A slow machine is no warning.
    rolldownOptions: { checks: { bundlerTimings: false } },
    modulePreload: { polyfill: false },
    // The licences of the libraries ask for their notices.
    license: { fileName: "assets/licenses.md" },
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/health", "/ready", "/metrics"].map((path) => [path, { target: server, headers: { origin: server } }]),
    ),
  },
});
