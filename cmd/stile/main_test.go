package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/guesttest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"stile": main, "asked": asked})
}

// asked ANSWER COMMAND [ARGUMENT]... runs a command at a terminal, and types y before its question, and the answer after it, or the end of the
// input if that is empty. What the terminal shows is in the file tty.
func asked() {
	code, err := runAsked(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 125
	}
	os.Exit(code)
}

func runAsked(answer string, command []string) (code int, err error) {
	person, terminal, err := pty.Open()
	if err != nil {
		return 0, err
	}
	c := exec.CommandContext(context.Background(), command[0], command[1:]...)
	c.Stdin, c.Stdout, c.Stderr = terminal, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if _, err := io.WriteString(person, "y\n"); err != nil {
		return 0, err
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	shown := make(chan []byte, 1)
	go func() {
		var text []byte
		for b := make([]byte, 4096); ; {
			n, err := person.Read(b)
			text = append(text, b[:n]...)
			if question := []byte("[y/N] "); bytes.HasSuffix(text, question) {
				_, _ = io.WriteString(person, cmp.Or(answer, "\x04")+"\n") // if nobody reads it, the command has ended
			}
			if err != nil {
				shown <- text
				return
			}
		}
	}()
	err = c.Wait()
	_ = terminal.Close()
	if _, ended := errors.AsType[*exec.ExitError](err); !ended && err != nil {
		return 0, err
	}
	return c.ProcessState.ExitCode(), os.WriteFile("tty", <-shown, 0o600)
}

// TestScripts runs testdata/script. All scripts share one cache, so that the engine is obtained and compiled once.
func TestScripts(t *testing.T) {
	dir, keyDir := cachetest.Dirs(t)
	prepareCache(t, dir, keyDir)
	key, err := os.ReadFile(filepath.Join(keyDir, "cache.key"))
	if err != nil {
		t.Fatal(err)
	}
	stile, err := exec.LookPath("stile")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := exec.CommandContext(t.Context(), "npm", "config", "get", "cache", "userconfig").Output()
	if err != nil {
		t.Fatalf("the tests need npm: %v", err)
	}
	npm := map[string]string{}
	for line := range strings.Lines(string(answer)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		npm[key] = value
	}
	// The site returns the request that it received, and what it knows of it.
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s, and it is %t that this is right", r.Header.Get("Authorization"), r.Header.Get("Authorization") == "Bearer canary-of-the-script")
	}))
	t.Cleanup(site.Close)
	secure := httptest.NewTLSServer(site.Config.Handler)
	t.Cleanup(secure.Close)
	model := httptest.NewServer(http.HandlerFunc(answerAsModel))
	t.Cleanup(model.Close)
	images := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	publishImage(t, strings.TrimPrefix(images.URL, "http://"))
	programs := buildSigstore(t)
	authority := startSigstore(t, filepath.Join(programs, "cosign"))
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("STILE_HOME", home)
			e.Setenv("STILE_CACHE", dir)
			e.Setenv("SHARED_CACHE", dir)
			e.Setenv("STILE_USER", "tom")
			e.Setenv("ESC", "\x1b")
			e.Setenv("STILE_KEYRING", "off")           // otherwise it would be the keyring of the person who runs the tests
			e.Setenv("STILE_BIN", filepath.Dir(stile)) // a PATH without anything else
			e.Setenv("PATH", programs+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("SITE", site.URL)
			e.Setenv("SECURE_SITE", secure.URL) // whose certificate is in secure.pem
			if err := os.WriteFile(filepath.Join(e.WorkDir, "secure.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
				return err
			}
			e.Setenv("SITE_PORT", site.URL[strings.LastIndexByte(site.URL, ':')+1:])
			e.Setenv("MODEL", model.URL)
			e.Setenv("REGISTRY", strings.TrimPrefix(images.URL, "http://"))
			e.Setenv("npm_config_cache", npm["cache"])
			// Scripts have no home folder from which these could come.
			e.Setenv("npm_config_userconfig", npm["userconfig"])
			e.Setenv("NODE_EXTRA_CA_CERTS", os.Getenv("NODE_EXTRA_CA_CERTS"))
			// Entries are authenticated with the key of their home, so all homes have the one of the shared cache.
			if err := os.Mkdir(home, 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(home, "cache.key"), key, 0o600); err != nil {
				return err
			}
			return copyExamples(e.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exit": exit, "error": lastError, "json": validJSON, "unhex": unhex, "seed": seed, "forge": forge, "absent": absent,
			"component": component(componentsOf(t)), "value": value, "sql": sqlCommand, "cosign": cosign(authority), "repeat": repeat, "post": postSignal,
		},
	})
}

// postSignal posts a body to the address of a mailbox that a file has, at the server whose address another file has, with a header or none, and checks the status.
func postSignal(s *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 && len(args) != 5 {
		s.Fatalf("usage: post SERVER-FILE ADDRESS-FILE STATUS BODY [NAME:VALUE]")
	}
	path := regexp.MustCompile(signalsPath + "[A-Za-z0-9_-]{43}").FindString(s.ReadFile(args[1]))
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+strings.TrimSpace(s.ReadFile(args[0]))+path, strings.NewReader(args[3]))
	s.Check(err)
	if len(args) == 5 {
		name, value, _ := strings.Cut(args[4], ":")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	s.Check(err)
	s.Check(answer.Body.Close())
	if got := strconv.Itoa(answer.StatusCode); got != args[2] {
		s.Fatalf("got %s", answer.Status)
	}
}

// prepareCache obtains and compiles the engine before many scripts request it at once.
func prepareCache(t *testing.T, dir, keyDir string) {
	t.Helper()
	h, err := host.New(t.Context(), host.Options{CacheDir: dir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: dir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tools.Close(), h.Close()); err != nil {
		t.Fatal(err)
	}
}

// copyExamples copies the examples and the SDK that they refer to, without the packages that npm installed.
func copyExamples(to string) error {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.*"))
	if err != nil {
		return err
	}
	sdk, err := filepath.Glob(filepath.Join("..", "..", "guest-sdk", "typescript", "*.*"))
	if err != nil {
		return err
	}
	for _, file := range append(files, sdk...) {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(file, filepath.Join("..", "..")))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// componentsOf makes the components and modules that scripts use, by what they are.
func componentsOf(t *testing.T) map[string][]byte {
	kv := guesttest.Guest{Imports: `(import "stile:capability/kv@0.1.0" "get" (func $get (param i32 i32 i32 i32)))`}
	return map[string][]byte{
		"pure":   guesttest.Guest{Result: `"from a component"`, Description: "Gets\x1b[2J a value"}.Component(t),
		"kv":     guesttest.WithProducers(kv.Component(t), map[string]map[string]string{"language": {"Rust\x1b[2J": "1.90"}}),
		"core":   guesttest.WAT(t, kv.Core()),
		"denied": guesttest.WAT(t, `(component (import "acme:crm/contacts@1.0.0" (instance (export "f" (func)))))`),
		"large":  make([]byte, 100<<20),
	}
}

// component KIND FILE: writes one of these files.
func component(components map[string][]byte) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 2 || components[args[0]] == nil {
			ts.Fatalf("usage: component %s FILE", strings.Join(slices.Sorted(maps.Keys(components)), "|"))
		}
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), components[args[0]], 0o600))
	}
}

// exit CODE COMMAND...: runs a command that must exit with this code.
func exit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE COMMAND [ARGUMENT]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var status *exec.ExitError
	switch {
	case errors.As(err, &status):
		got = status.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}

// error KIND [PATH=TEXT]...: the last line of stderr is the error object of this kind, and has these texts at these paths.
func lastError(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: error KIND [PATH=TEXT]...")
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stderr"), "\n"), "\n")
	var object any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &object); err != nil {
		ts.Fatalf("the last line of stderr is not JSON: %v", err)
	}
	for i, arg := range args {
		path, want, _ := strings.Cut(arg, "=")
		if i == 0 {
			path, want = "kind", arg
		}
		if got := at(object, "error."+path); !strings.Contains(got, want) || i == 0 && got != want {
			ts.Fatalf("error.%s is %q, not %q", path, got, want)
		}
	}
}

// json FILE [PATH=TEXT]...: the file (or stdout) is one JSON value with exactly these texts at these paths.
func validJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: json FILE [PATH=TEXT]...")
	}
	var value any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &value); err != nil {
		ts.Fatalf("%s is not JSON: %v", args[0], err)
	}
	for _, arg := range args[1:] {
		path, want, _ := strings.Cut(arg, "=")
		if got := at(value, path); got != want {
			ts.Fatalf("%s is %q, not %q", path, got, want)
		}
	}
}

// value VARIABLE FILE PATH: sets a variable to the text at a path of the JSON value in a file (or stdout).
func value(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: value VARIABLE FILE PATH")
	}
	var object any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &object))
	text := at(object, args[2])
	if text == "" {
		ts.Fatalf("%s has nothing at %s", args[1], args[2])
	}
	ts.Setenv(args[0], text)
}

// sql FILE STATEMENT: changes a database like an attacker who can write the file.
func sqlCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql FILE STATEMENT")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), args[1])
	ts.Check(errors.Join(err, db.Close()))
}

// at is the text of the value at a path like a.0.b, or "" when there is none.
func at(value any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return ""
			}
			value = v[i]
		default:
			return ""
		}
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// unhex FROM TO: decodes a file of hexadecimal digits to bytes.
func unhex(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unhex FROM TO")
	}
	var digits strings.Builder
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		line, _, _ = strings.Cut(line, ";")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	data, err := hex.DecodeString(digits.String())
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o600))
}

// entries are the records of a kind in a cache, with the objects that they name.
func entries(ts *testscript.TestScript, cache, kind string) map[string]string {
	records, err := filepath.Glob(filepath.Join(cache, kind, "*"))
	ts.Check(err)
	if len(records) == 0 {
		ts.Fatalf("the cache has no entry of kind %s", kind)
	}
	found := map[string]string{}
	for _, record := range records {
		data, err := os.ReadFile(record)
		ts.Check(err)
		if len(data) >= 40 { // a length of 8 bytes, a digest of 32
			found[record] = filepath.Join(cache, "objects", hex.EncodeToString(data[8:40]))
		}
	}
	return found
}

// seed CACHE KIND...: makes a cache with the shared cache's entries of these kinds, and no others.
func seed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: seed CACHE KIND...")
	}
	from, to := ts.Getenv("SHARED_CACHE"), ts.MkAbs(args[0])
	copyTo := func(file string) {
		data, err := os.ReadFile(file)
		ts.Check(err)
		name := filepath.Join(to, strings.TrimPrefix(file, from))
		ts.Check(os.MkdirAll(filepath.Dir(name), 0o700))
		ts.Check(os.WriteFile(name, data, 0o600))
	}
	for _, kind := range args[1:] {
		for record, object := range entries(ts, from, kind) {
			copyTo(record)
			copyTo(object)
		}
	}
}

// repeat FILE N: repeats the content of a file N times.
func repeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: repeat FILE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(ts.ReadFile(args[0]), n)), 0o600))
}

// forge CACHE KIND: changes one byte in the content of every entry of a kind.
func forge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: forge CACHE KIND")
	}
	for _, object := range entries(ts, ts.MkAbs(args[0]), args[1]) {
		data, err := os.ReadFile(object)
		ts.Check(err)
		data[len(data)/2] ^= 1
		ts.Check(os.WriteFile(object, data, 0o600))
	}
}

// absent TEXT DIR...: no file below these folders contains the text.
func absent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: absent TEXT DIR...")
	}
	for _, dir := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(name string, entry os.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(name)
			if err == nil && strings.Contains(string(data), args[0]) {
				return fmt.Errorf("%s holds %q", name, args[0])
			}
			return err
		}))
	}
}

// TestInterrupt interrupts a waiting call. It ends at once, with a separate exit code.
func TestInterrupt(t *testing.T) {
	dir, keyDir := cachetest.Dirs(t)
	file := filepath.Join(t.TempDir(), "wait.ts")
	source := `import { extension } from "stile";
		export default extension({ tools: { wait: { description: "Wait", run: async () => {
			console.log("started");
			await new Promise((done) => setTimeout(done, 600_000));
		} } } });`
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		stile := exec.CommandContext(t.Context(), "stile", "run", file, "wait", "--limit", "wall=10m")
		stile.Env = append(os.Environ(), "STILE_HOME="+keyDir, "STILE_CACHE="+dir)
		stderr, err := stile.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := stile.Start(); err != nil {
			t.Fatal(err)
		}
		var last string
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			last = lines.Text()
			if last == "[info] started" {
				if err := stile.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
		}
		wantInterrupted(t, stile.Wait(), last)
	}
}

// TestInterruptInput interrupts a command whose input does not end.
func TestInterruptInput(t *testing.T) {
	for _, argument := range []string{"-", "@/dev/stdin"} {
		stile := exec.CommandContext(t.Context(), "stile", "run", "none.ts", "none", "--input", argument)
		var stderr strings.Builder
		stile.Stderr = &stderr
		stdin, err := stile.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := stile.Start(); err != nil {
			t.Fatal(err)
		}
		// More than a pipe holds: once all of it is written, the command is reading.
		if _, err := stdin.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if err := stile.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		err = stile.Wait()
		lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
		wantInterrupted(t, err, lines[len(lines)-1])
	}
}

// wantInterrupted checks how an interrupted command ended, and the last line of its stderr.
func wantInterrupted(t *testing.T, err error, last string) {
	t.Helper()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != 130 {
		t.Errorf("got %v, want exit code 130", err)
	}
	if want := `{"error":{"kind":"interrupted","message":"interrupted"}}`; last != want {
		t.Errorf("the last line is %q, want %q", last, want)
	}
}
