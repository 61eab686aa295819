import react from "@vitejs/plugin-react";
import { defineConfig, loadEnv } from "vite";

// the gateway serves what is built from inside the Python package; `npm run dev` asks a running one
const ASKED = ["/v1", "/registry", "/healthz", "/docs", "/page", "/openapi.json"];

export default defineConfig(({ mode }) => {
  const { MAINSTEM_GATEWAY = "http://127.0.0.1:20080" } = loadEnv(mode, ".", "MAINSTEM_");
  return {
    plugins: [react()],
    build: {
      outDir: "../src/mainstem/gateway/page/app",
      emptyOutDir: true,
      target: "es2023",
      chunkSizeWarningLimit: 900,
    },
    server: { proxy: Object.fromEntries(ASKED.map((path) => [path, MAINSTEM_GATEWAY])) },
  };
});
