#!/usr/bin/env bash
# Climbs all five rungs of the ladder on one task, and says how long each rung takes. Needs stile, Node.js, npm, chromium-headless-shell and
# crun, runc, podman or docker, as stile doctor says, and root for the sandbox.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
STILE_HOME=$(mktemp -d) # another one keeps its policy
export STILE_HOME
printf '{ "packages": ["zod"] }\n' > "$STILE_HOME/policy.json" && chmod 600 "$STILE_HOME/policy.json"

# A page on loopback says what the answer is.
site=$(mktemp -d)
printf '<title>Wanted</title><h1>The answer</h1><p>42</p>\n' > "$site/index.html"
exec 3< <(cd "$site" && exec node -e 'const server = require("http").createServer((_, r) => { r.setHeader("Content-Type", "text/html"); r.end(require("fs").readFileSync("index.html")); }).listen(0, "127.0.0.1", () => console.log(server.address().port))')
server=$!
trap 'kill "$server"; rm -rf "$site" "$STILE_HOME"' EXIT
read -r port <&3
url=http://127.0.0.1:$port/

climb() { # what it shows, arguments of stile ladder
  local what=$1 began=$EPOCHREALTIME
  shift
  stile ladder --bind workspace=workspace:climb,rw --bind "browser=browser:$url" --bind sandbox=sandbox:host "$@"
  printf '%-28s %d ms\n' "$what" $(((${EPOCHREALTIME/./} - ${began/./}) / 1000)) >&2
}
climb 'rung 0, workspace' workspace_write --input '{"path": "notes.md", "text": "Climbing.\n"}'
climb 'rung 1, isolate' -e 'return (await env.workspace.read("notes.md")).length'
climb 'rung 2, npm' --rung npm -e 'import { z } from "zod"; return z.number().parse(42)'
climb 'rung 3, browser' --rung browser browser_open --input "{\"url\": \"$url\"}"
climb 'rung 4, sandbox' --rung sandbox sandbox_run --input '{"command": "wc -w notes.md"}'
climb 'all of them, one task' --rung sandbox "$here/climb.ts" --input "{\"url\": \"$url\"}"
