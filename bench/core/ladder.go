package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/ladder"
	"github.com/stilehost/stile/toolchain"
)

// The versions of what the rungs are measured beside.
const filesystemServer = "@modelcontextprotocol/server-filesystem@2026.8.31"

// client is a client of an MCP server in a process of its own.
type client struct {
	*sdk.ClientSession
	process *exec.Cmd
}

// connect starts a server and speaks MCP with it over pipes.
func connect(ctx context.Context, env []string, name string, args ...string) (client, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	s, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)
	return client{s, cmd}, err
}

// call calls a tool, whose answer must have a text.
func (c client) call(ctx context.Context, tool string, arguments map[string]any, want string) error {
	r, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err
	}
	var said strings.Builder
	for _, part := range r.Content {
		if text, ok := part.(*sdk.TextContent); ok {
			said.WriteString(text.Text)
		}
	}
	if r.IsError || !strings.Contains(said.String(), want) {
		return fmt.Errorf("%s answered %.500s", tool, said.String())
	}
	return nil
}

// measureLadder measures the rungs of the ladder over MCP, each beside what a user would take instead, in turns.
func measureLadder(ctx context.Context, b *bench, s *subject) (err error) {
	program := filepath.Join(b.dir, "stile")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/stile")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build stile: %w\n%s", err, out)
	}
	cache, home, peers := filepath.Join(b.dir, "ladder-cache"), filepath.Join(b.dir, "ladder-home"), filepath.Join(filepath.Dir(b.packages), "ladder")
	if err := errors.Join(os.MkdirAll(home, 0o700), os.MkdirAll(peers, 0o755)); err != nil {
		return err
	}
	site := serveSite()
	defer site.Close()
	rules := fmt.Sprintf(`{"packages": ["zod"], "ladder": [{"rung": "sandbox", "permissions": {"workspace": "read-write"}, "bindings": {
		"browser": {"browser": {"pages": 10000, "rules": [{"scheme": "http", "host": "127.0.0.1", "port": %s}]}}, "sandbox": {"sandbox": {"image": "host"}}
	}}]}`, site.port())
	if err := os.WriteFile(filepath.Join(home, "policy.json"), []byte(rules), 0o600); err != nil {
		return err
	}
	// Each agent has a workspace, a page and a container of its own.
	agent := func(name string) (client, error) {
		return connect(ctx, []string{"STILE_HOME=" + home, "STILE_CACHE=" + cache, "STILE_KEYRING=off", "STILE_RECORD=off"}, program, "mcp", "--agent", name)
	}
	ours, err := agent("bench")
	if err != nil {
		return fmt.Errorf("start stile mcp: %w", err)
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	return errors.Join(
		b.rungWorkspace(ctx, ours, peers), b.rungCode(ctx, s, ours, peers),
		b.rungBrowser(ctx, ours, peers, site), b.rungSandbox(ctx, agent),
	)
}

// spent adds how long something takes, in milliseconds.
func spent(into *[]float64, do func() error) error {
	start := time.Now()
	err := do()
	*into = append(*into, milliseconds(time.Since(start)))
	return err
}

// npm has npm install packages into a folder.
func npm(ctx context.Context, dir string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "npm", append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir}, packages...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// rungWorkspace reads a file, edits it and searches 300 files. The other server searches names, because it cannot search content.
func (b *bench) rungWorkspace(ctx context.Context, ours client, peers string) (err error) {
	if err := npm(ctx, peers, filesystemServer); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.dir, "files-")
	if err != nil {
		return err
	}
	theirs, err := connect(ctx, nil, "node", filepath.Join(peers, "node_modules", "@modelcontextprotocol", "server-filesystem", "dist", "index.js"), dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.Close()) }()
	for i := range 300 {
		name, text := fmt.Sprintf("src/d%02d/f%03d.ts", i%20, i), strings.Repeat(fmt.Sprintf("const line%d = %d;\n", i, i), 40)
		if i == 7 {
			text += "export const version = 0;\n"
		}
		if err := ours.call(ctx, "workspace_write", map[string]any{"path": name, "text": text}, "wrote"); err != nil {
			return err
		}
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			return err
		}
	}
	const file = "src/d07/f007.ts"
	var took, peer measure.Series
	const each = 5
	version := 0
	for n := range b.rounds(40) + 1 {
		var a, z []float64
		for range each {
			old, now := fmt.Sprintf("version = %d;", version), fmt.Sprintf("version = %d;", version+1)
			start := time.Now()
			err := errors.Join(
				ours.call(ctx, "workspace_read", map[string]any{"path": file}, old),
				ours.call(ctx, "workspace_edit", map[string]any{"path": file, "edits": []map[string]any{{"old": old, "new": now}}}, "1 replacement"),
				ours.call(ctx, "workspace_grep", map[string]any{"pattern": "export const version"}, file),
			)
			a = append(a, milliseconds(time.Since(start)))
			if err != nil {
				return err
			}
			at := filepath.Join(dir, file)
			start = time.Now()
			err = errors.Join(
				theirs.call(ctx, "read_text_file", map[string]any{"path": at}, old),
				theirs.call(ctx, "edit_file", map[string]any{"path": at, "edits": []map[string]any{{"oldText": old, "newText": now}}}, now),
				theirs.call(ctx, "search_files", map[string]any{"path": dir, "pattern": "**/f007.ts"}, "f007.ts"),
			)
			z = append(z, milliseconds(time.Since(start)))
			if err != nil {
				return err
			}
			version++
		}
		if n > 0 {
			took, peer = append(took, a), append(peer, z)
		}
	}
	b.add(row{Key: "rung0_ms", What: "rung 0 over MCP: read, edit and grep in 300 files", Unit: "ms", AtMost: 5}.of(took))
	b.add(row{Key: "rung0_peer_ms", What: "... the filesystem server from npm: read, edit and search of names", Unit: "ms"}.of(peer))
	b.add(row{Key: "rung0_ratio", What: "... rung 0 / the filesystem server"}.ratio(took, peer))
	return nil
}

// rungCode runs code of about 1 KB that was never seen before, in this process and over MCP, and code that imports a package which is in the
// cache. Beside it, Node.js starts for each.
func (b *bench) rungCode(ctx context.Context, s *subject, ours client, peers string) (err error) {
	kit := ladder.NewKit(ladder.KitOptions{Host: s.host, Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return s.tools, nil }})
	defer func() { err = errors.Join(err, kit.Close()) }()
	here := kit.Open(ladder.Options{Rung: ladder.Isolate})
	runs := func(code, want string) error {
		r, err := here.Run(ctx, ladder.Code{Text: code})
		if err == nil && string(r.Output) != want {
			err = fmt.Errorf("the code returned %s", r.Output)
		}
		return err
	}
	if err := npm(ctx, peers, "zod@4.1.12"); err != nil {
		return err
	}
	code := func(id int) string {
		return fmt.Sprintf("const id = %d;\n", id) + strings.Repeat("// a comment of a model, which says what the code below does\n", 12) +
			"const rows: { i: number; square: number }[] = Array.from({ length: 50 }, (_, i: number) => ({ i, square: i * i }));\n" +
			"return [id, rows.filter((r) => r.i % 2).reduce((sum, r) => sum + r.square, 0)].join();"
	}
	untyped := strings.NewReplacer(": { i: number; square: number }[]", "", ": number", "")
	imports := func(id int) string {
		return fmt.Sprintf("import { z } from \"zod\";\nreturn [%d, z.email().safeParse(\"ada@example.com\").success].join();", id)
	}
	var direct, compiled, run, runNode, imported, importedNode measure.Series
	for n := range b.rounds(20) + 1 {
		var d, c, r, rn, i, in []float64
		for k := range 3 {
			id := n*10 + k
			node := func(script, want string) error {
				cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-e", script)
				cmd.Dir = peers
				out, err := cmd.CombinedOutput()
				if err == nil && !strings.Contains(string(out), want) {
					err = fmt.Errorf("node printed %s", out)
				}
				return err
			}
			printed := func(code string) string {
				head, body := "", code
				if strings.HasPrefix(code, "import") {
					head, body, _ = strings.Cut(code, "\n")
				}
				return head + "\nconsole.log((() => {" + untyped.Replace(body) + "\n})());"
			}
			err := errors.Join(
				spent(&d, func() error { return runs(code(id), fmt.Sprintf(`"%d,20825"`, id)) }),
				spent(&c, func() error { return runs("class A {}\n"+code(id), fmt.Sprintf(`"%d,20825"`, id)) }),
				spent(&r, func() error {
					return ours.call(ctx, "code_run", map[string]any{"code": code(id)}, fmt.Sprintf("%d,20825", id))
				}),
				spent(&rn, func() error { return node(printed(code(id)), fmt.Sprintf("%d,20825", id)) }),
				spent(&i, func() error {
					return ours.call(ctx, "code_run", map[string]any{"code": imports(id)}, fmt.Sprintf("%d,true", id))
				}),
				spent(&in, func() error { return node(printed(imports(id)), fmt.Sprintf("%d,true", id)) }),
			)
			if err != nil {
				return err
			}
		}
		if n > 0 {
			direct, compiled, run, runNode, imported, importedNode = append(direct, d), append(compiled, c), append(run, r), append(runNode, rn), append(imported, i), append(importedNode, in)
		}
	}
	b.add(row{Key: "rung1_text_ms", What: "rung 1: 1 KB of new code to its result", Unit: "ms", AtMost: 1}.of(direct))
	b.add(row{Key: "rung1_compiled_ms", What: "... that esbuild has to compile, because it has a class", Unit: "ms"}.of(compiled))
	b.add(row{Key: "rung1_ms", What: "rung 1 over MCP: 1 KB of new code to its result", Unit: "ms"}.of(run))
	b.add(row{Key: "rung1_ratio", What: "... / a new Node.js process"}.ratio(run, runNode))
	b.add(row{Key: "rung2_ms", What: "rung 2 over MCP: new code that imports zod, which is in the cache", Unit: "ms", AtMost: 100}.of(imported))
	b.add(row{Key: "rung2_ratio", What: "... / a new Node.js process with zod installed"}.ratio(imported, importedNode))
	return nil
}
