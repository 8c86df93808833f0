//go:build long

package thirdparty

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/suite"
	"github.com/stilehost/stile/toolchain/guesttest"
)

// exports is what a command gets, so that it is a tool: a call starts the command.
const exports = `
	(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
		(i32.mul (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 1))) (i32.const 65536)))
	(func (export "stile:extension/tools@0.1.0#describe") (result i32) unreachable)
	(func (export "stile:extension/tools@0.1.0#call") (param i32 i32 i32 i32 i32) (result i32) (local $at i32)
		(call %s)
		(local.set $at (i32.mul (memory.grow (i32.const 1)) (i32.const 65536)))
		(i32.store (local.get $at) (i32.const 0))
		(i32.store offset=4 (local.get $at) (i32.add (local.get $at) (i32.const 16)))
		(i32.store offset=8 (local.get $at) (i32.const 1))
		(i32.store8 offset=16 (local.get $at) (i32.const 48))
		(local.get $at))
)`

var start = regexp.MustCompile(`(?m)^  \(export "_start" \(func (\S+)\)\)$`)

// TestLongWASI runs the commands of wasi-testsuite, with the toolchain's adapter of WASI preview 1 and no binding but clock, random and console.
func TestLongWASI(t *testing.T) {
	record, folder := suite.Open(t, "wasi-testsuite.json")
	tools := suite.WasmTools(t)
	h, err := host.New(t.Context(), host.Options{Limits: host.Limits{Wall: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	var outcomes []suite.Outcome
	for _, below := range record.Paths {
		err := fs.WalkDir(os.DirFS(folder), below, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(name) == ".wasm" {
				outcomes = append(outcomes, suite.Outcome{Name: name, Failed: command(t, h, tools, filepath.Join(folder, name))})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	record.Judge(t, outcomes)
}

// command runs a command, and says what is wrong with how it ends.
func command(t *testing.T, h *host.Host, tools, file string) string {
	printed, err := exec.CommandContext(t.Context(), tools, "print", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(strings.TrimSpace(string(printed)), ")")
	found := start.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%s exports no _start", file)
	}
	text = start.ReplaceAllLiteralString(text, "") + fmt.Sprintf(exports, found[1])
	c, err := h.Load(t.Context(), guesttest.Componentize(t, guesttest.WAT(t, text)))
	if err != nil {
		return first(err)
	}
	defer func() { _ = c.Close() }()
	var want struct {
		Stdout   string
		ExitCode int `json:"exit_code"`
	}
	if text, err := os.ReadFile(strings.TrimSuffix(file, ".wasm") + ".json"); err == nil {
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	env := host.Env{"clock": clock.System(), "random": random.System(), "console": console.To(func(_ console.Level, line string) { out.WriteString(line) })}
	_, err = c.Do(t.Context(), host.Request{Tool: "run", Env: env, Approved: []abi.Definition{{Name: "run", InputSchema: "{}"}}})
	// wasi:cli/exit knows success and failure, and no numbers.
	exit, exits := errors.AsType[*host.GuestError](err)
	exits = exits && exit.Failure.Name == "Exit"
	switch fails := exits && strings.Contains(exit.Failure.Message, "with an error"); {
	case err != nil && !exits, fails && want.ExitCode == 0:
		return first(err)
	case !fails && want.ExitCode != 0:
		return fmt.Sprintf("it does not fail, want the exit status %d", want.ExitCode)
	}
	if want.Stdout != "" && out.String() != want.Stdout {
		return fmt.Sprintf("it writes %q, want %q", out.String(), want.Stdout)
	}
	return ""
}
