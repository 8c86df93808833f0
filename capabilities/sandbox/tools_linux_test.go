package sandbox_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/sandbox/images"
)

// TestRealTools clones a repository, runs a package's tests, and builds with Go and Rust, all without a network.
func TestRealTools(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		// Rust is not below /usr everywhere.
		out, err := exec.CommandContext(t.Context(), "rustc", "--print", "sysroot").Output()
		if err != nil {
			t.Fatalf("this test needs cargo and rustc: %v", err)
		}
		image := "host"
		if sysroot := strings.TrimSpace(string(out)); !strings.HasPrefix(sysroot+"/", "/usr/") {
			image = "rust"
			if _, err := images.FromHost(filepath.Join(o.Dir, "images"), image, []string{sysroot}, nil); err != nil {
				t.Fatal(err)
			}
		}
		s, d := open(t, o, sandbox.Rights{Image: image, Limits: sandbox.Limits{Memory: 2 << 30, CPU: 2}}), store(t)
		for path, text := range map[string]string{
			"js/package.json":   `{"name": "a", "version": "1.0.0", "scripts": {"test": "node --test"}}`,
			"js/a.test.js":      `require("node:test").test("adds", () => { require("node:assert").equal(1 + 1, 2); });`,
			"go/go.mod":         "module example.com/a\n\ngo 1.21\n",
			"go/main.go":        "package main\n\nfunc main() { println(\"hello from go\") }\n",
			"rust/Cargo.toml":   "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			"rust/src/main.rs":  "fn main() { println!(\"hello from rust\"); }\n",
			"origin/README.md":  "a repository\n",
			"origin/src/x/y.md": "y\n",
		} {
			write(t, d, path, text)
		}
		push(t, s, d, "")
		const identity = "git config --global user.email a@example.com && git config --global user.name a && "
		must(t, s, identity+"cd origin && git init -q -b main && git add -A && git commit -qm first && chmod +x README.md && ln -s README.md link && git add -A && git commit -qm second")
		must(t, s, "git clone -q origin clone && cd clone && git log --oneline | wc -l && echo change >> README.md && git commit -qam third && git push -q origin HEAD:other")
		commands := map[string]string{"cd js && npm test": "pass 1", "cd rust && cargo build --offline 2>&1 && ./target/debug/a": "hello from rust"}
		if o.Runtime == "crun" || o.Runtime == "docker" { // it takes the longest, and half of a minute
			commands["cd go && GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o ../hello . && ../hello 2>&1"] = "hello from go"
		}
		for command, want := range commands {
			if got := run(t, s, "export PATH=$PATH:/usr/local/go/bin; "+command); got.Code != 0 || !strings.Contains(got.stdout, want) {
				t.Errorf("%s: exit code %d\n%s%s", command, got.Code, got.stdout, got.stderr)
			}
		}
		must(t, s, "rm -rf rust/target")
		if c := pull(t, s, d, ""); len(c.Conflicts) > 0 || len(c.Skipped) > 0 {
			t.Errorf("%+v %+v", c.Conflicts, c.Skipped)
		}

		// After a round trip, git sees nothing changed.
		fresh := open(t, o, sandbox.Rights{Image: image})
		push(t, fresh, d, "again")
		for _, repository := range []string{"origin", "clone"} {
			if got := must(t, fresh, "cd again/"+repository+" && git status --porcelain && git fsck --strict 2>&1 | grep -v -i -e notice -e checking; true"); got != "" {
				t.Errorf("%s after a round trip: %s", repository, got)
			}
		}
	})
}
