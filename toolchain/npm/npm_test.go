package npm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stilehost/stile/toolchain"
)

// Without anything to resolve, npm is not run: there is none.
func TestNothingToResolve(t *testing.T) {
	c, err := New(Options{NPM: "no-such-npm"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Request{{}, {Imports: []string{"fs", "node:net"}}, {Lock: []byte(lockText("", ""))}} {
		res, err := c.Resolve(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if entries, err := fs.ReadDir(res.FS, "."); err != nil || len(entries) > 0 || res.Lock != nil || res.Packages != nil {
			t.Errorf("%v %v %+v", entries, err, res)
		}
	}
	var flood []string
	for i := range 301 {
		flood = append(flood, fmt.Sprintf("p%d/sub", i))
	}
	_, err = c.Resolve(t.Context(), Request{Imports: flood})
	if got := problems(t, err); !strings.Contains(got, "301 packages are asked for; 300 are allowed") {
		t.Errorf("got %s", got)
	}
	_, err = c.Resolve(t.Context(), Request{Imports: []string{"zod"}})
	if bad, ok := errors.AsType[*toolchain.SetupError](err); !ok || !strings.Contains(err.Error(), "npm is not installed") || bad.Remedy == "" {
		t.Errorf("got %v", err)
	}
}

// npm is given the user's registry, login and proxy, and nothing else of theirs.
func TestSettings(t *testing.T) {
	home := t.TempDir()
	rc := filepath.Join(home, ".npmrc")
	if err := os.WriteFile(rc, []byte(`; a comment
registry = https://registry.example.com/
@scope:registry=https://scope.example.com/
//registry.example.com/:_authToken = ${TEST_NPM_TOKEN}
//scope.example.com/:_password=${TEST_NPM_NONE?}x
https-proxy=http://proxy.example.com:8080
ca=${TEST_NPM_SIGNS}
cert="${TEST_NPM_SIGNS}"
cafile=/etc/ca.pem
ignore-scripts=false
script-shell=/tmp/evil
node-options=--require=/tmp/evil.js
prefix=/tmp/evil
git=/tmp/evil
before=2001-01-01
tag=evil
allow-git=all
registry-evil=1
init-module=/tmp/evil
[section]
proxy=http://evil.example.com
`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NPM_CONFIG_USERCONFIG", rc)
	t.Setenv("TEST_NPM_TOKEN", "a token\nscript-shell=/tmp/evil")
	t.Setenv("TEST_NPM_SIGNS", `a;b#c\d`)
	t.Setenv("npm_config_@other:registry", "https://other.example.com/")
	user, err := readSettings(t.Context(), "npm")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"p": "https://registry.example.com/", "@scope/p": "https://scope.example.com/", "@other/p": "https://other.example.com/", "@third/p": "https://registry.example.com/",
	} {
		if got := user.registry(name); got != want {
			t.Errorf("%s is of %s", name, got)
		}
	}
	got := user.npmrc
	for _, want := range []string{
		"registry = https://registry.example.com/\n", "@scope:registry=https://scope.example.com/\n", "_authToken = a tokenscript-shell=/tmp/evil\n",
		":_password=x\n", "https-proxy=http://proxy.example.com:8080\n", "cafile=/etc/ca.pem\n",
		`ca=a\;b\#c\\d` + "\n", `cert="a;b#c\\d"` + "\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q", want)
		}
	}
	for line := range strings.Lines(got) {
		if strings.Contains(line, "evil") && !strings.Contains(line, "_authToken") || strings.Contains(line, "ignore-scripts") || strings.Contains(line, "before") {
			t.Errorf("has %q", line)
		}
	}
	env := strings.Join(environment([]string{
		"PATH=/bin", "HOME=/root", "NODE_OPTIONS=--require=/tmp/evil.js", "npm_config_script_shell=/tmp/evil", "NPM_CONFIG_REGISTRY=https://example.com", "npm_config_prefix=/tmp/evil",
		"npm_config_ignore_scripts=false", "HTTPS_PROXY=http://proxy", "no_proxy=localhost", "AWS_SECRET_ACCESS_KEY=evil", "GIT_SSH_COMMAND=evil", "npm_config_//example.com/:_authToken=t",
		"npm_config_registry_evil=1", "LD_PRELOAD=evil", "NODE_EXTRA_CA_CERTS=/ca", "npm_config_userconfig=/tmp/evil",
	}), " ")
	if want := "PATH=/bin NPM_CONFIG_REGISTRY=https://example.com HTTPS_PROXY=http://proxy no_proxy=localhost npm_config_//example.com/:_authToken=t NODE_EXTRA_CA_CERTS=/ca"; env != want {
		t.Errorf("the environment is %s", env)
	}
}

// TestLargeSettings has npm name files of settings that are too large, or have no end.
func TestLargeSettings(t *testing.T) {
	dir := t.TempDir()
	npm, rc := filepath.Join(dir, "npm"), filepath.Join(dir, "npmrc")
	for _, c := range []struct {
		file  string
		size  int64
		wrong string
	}{
		{rc, maxSettings, ""},
		{rc, maxSettings + 1, "it has more than 1 MiB"},
		{rc, 1 << 40, "it has more than 1 MiB"}, // without content, so it takes no room
		{"/dev/zero", 0, "it has more than 1 MiB"},
		{"/dev/null", 0, ""},
		{dir, 0, "is a directory"},
		{filepath.Join(dir, "none"), 0, ""},
	} {
		said := fmt.Sprintf(`{"userconfig": %q, "registry": "https://registry.example.com/"}`, c.file)
		if err := errors.Join(os.WriteFile(npm, []byte("#!/bin/sh\necho '"+said+"'\n"), 0o700), os.WriteFile(rc, nil, 0o600), os.Truncate(rc, c.size)); err != nil {
			t.Fatal(err)
		}
		_, err := readSettings(t.Context(), npm)
		named := err != nil && strings.Contains(err.Error(), c.file+" cannot be read") && strings.Contains(err.Error(), c.wrong)
		if ok := err == nil && c.wrong == "" || named && c.wrong != ""; !ok {
			t.Errorf("%s of %d bytes: %v", c.file, c.size, err)
		}
	}
}

// Errors are told apart in the output of every version of npm.
func TestExplain(t *testing.T) {
	failed := errors.New("exit status 1")
	for name, test := range map[string]struct{ out, said, want string }{
		"offline":          {"", "npm error code EAI_AGAIN\nnpm error ...", "did not reach its registry (EAI_AGAIN)"},
		"refused":          {`{"error": {"code": "E401", "summary": "no"}}`, "", "refused this machine"},
		"not there":        {`{"error": {"code": "E404", "summary": "Not Found", "detail": "'nopkg@*' is not in this registry."}}`, "", `"nopkg" is not in the registry`},
		"nearly there":     {`{"error": {"code": "E404", "detail": "The requested resource '@x/lodahs@^1' could not be found or"}}`, "", `"@x/lodahs" is not in the registry`},
		"a slip":           {`{"error": {"code": "E404", "detail": "The requested resource 'lodahs@*' could not be found or"}}`, "", `write "lodash"`},
		"not there, silly": {`{"error": {"code": "E404", "summary": "Not Found"}}`, "", `a package is not in the registry`},
		"no version":       {`{"error": {"code": "ETARGET", "summary": "No matching version found for p@^9."}}`, "", "p@^9.; write a range"},
		"too young":        {`{"error": {"code": "ETARGET", "summary": "No matching version found for p@^9 with a date before 1/1/2026."}}`, "", "only a person can allow fresh ones"},
		"peers":            {`{"error": {"code": "ERESOLVE", "summary": "unable to resolve"}}`, "", "incompatible versions"},
		"broken":           {`{"error": {"code": "E503", "summary": "503 Service Unavailable"}}`, "", "does not answer like a registry (E503)"},
		"busy":             {`{"error": {"code": "E429", "summary": "429 Too Many Requests"}}`, "", "does not answer like a registry (E429)"},
		"no registry":      {`{"error": {"code": "FETCH_ERROR", "summary": "invalid json response body"}}`, "", "does not answer like a registry (FETCH_ERROR)"},
		"no certificate":   {`{"error": {"code": "DEPTH_ZERO_SELF_SIGNED_CERT", "summary": "self-signed certificate"}}`, "", "not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)"},
		"disk full":        {"", "npm error code ENOSPC\nnpm error nospc", "cannot write (ENOSPC)"},
		"other":            {"", "npm error weird \x1b[31m", `exit status 1: npm error weird \x1b[31m`},
		"silent":           {"", "", "npm failed"},
	} {
		if err := explain([]byte(test.out), test.said, failed); !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %q, want %q", name, err, test.want)
		}
	}
}

func TestCloseName(t *testing.T) {
	for name, want := range map[string]string{
		"lodahs": "lodash", "loadsh": "lodash", "lodashs": "lodash", "lodas": "lodash", "l0dash": "lodash", "lodash-js": "lodash", "lodashjs": "lodash", "lodash.js": "lodash", "node-lodash": "lodash",
		"lo-dash": "lodash", "@evil/lodash": "lodash", "zodd": "zod", "zood": "zod", "axois": "axios", "cross-env.js": "cross-env", "crossenv": "cross-env", "babel-code-frame": "@babel/code-frame",
		"@types/react": "", "@types/lodash": "", "@types/debug": "", "@babel/lodash": "", "react-dom": "", "debug": "", "retry": "",
		"lodash": "", "zod": "", "axios": "", "date-fns": "", "yaml": "", "my-own-package": "", "stile-helpers": "", "@acme/billing-client": "",
	} {
		if got := closeName(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("registry=https://a\n//a/:_auth=${X}\n[x]\nproxy=1", "v\nprefix=/x")
	f.Add("//0${=}", "")
	f.Fuzz(func(t *testing.T, text, value string) {
		for line := range strings.Lines(filterSettings(text, func(string) (string, bool) { return value, true })) {
			if !takenOver.MatchString(line) {
				t.Fatalf("%q", line)
			}
		}
	})
}

// hanging is a client whose npm starts a program that does not end, and tells its number through a pipe.
func hanging(t *testing.T) (c *Client, pid string) {
	t.Helper()
	dir := t.TempDir()
	npm := filepath.Join(dir, "npm")
	pid = filepath.Join(dir, "pid")
	if err := errors.Join(syscall.Mkfifo(pid, 0o600), os.WriteFile(npm, []byte("#!/bin/sh\nsleep 1000 &\necho $! >"+pid+"\nwait\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{NPM: npm})
	if err != nil {
		t.Fatal(err)
	}
	return c, pid
}

// Ending npm ends the programs that it started, because the npm on PATH may be a program that starts another.
func TestCancelEndsAll(t *testing.T) {
	c, pid := hanging(t)
	c.user = &userSettings{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := c.Resolve(ctx, Request{Dependencies: map[string]string{"p": "1"}})
		ended <- err
	}()
	child := started(t, pid)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ends(t, child)
}

// started waits for what hanging starts, and returns the number of its process.
func started(t *testing.T, pid string) int {
	t.Helper()
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	process, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return process
}

// ends fails if a process goes on. A zombie counts as ended.
func ends(t *testing.T, process int) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for tick := time.Tick(5 * time.Millisecond); ; {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
		if errors.Is(err, fs.ErrNotExist) || strings.Contains(string(status), ") Z ") {
			return
		}
		select {
		case <-tick:
		case <-late:
			t.Errorf("what npm started goes on: %s, %v", status, err)
			_ = syscall.Kill(process, syscall.SIGKILL)
			return
		}
	}
}

// A caller that waits while another asks npm for its settings can be cancelled. No process of npm is left.
func TestSettingsAreWaitedFor(t *testing.T) {
	c, pid := hanging(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := c.settings(ctx)
		first <- err
	}()
	child := started(t, pid)
	second := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.settings(ctx)
		second <- err
	}()
	select {
	case err := <-second:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the second one waits for the first")
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ends(t, child)
}

// The client watches the files that npm unpacks, so that an archive of a few bytes does not fill the disk before it is checked.
func TestUnpackingIsWatched(t *testing.T) {
	for name, forever := range map[string]string{
		"bytes": "while :; do head -c 1000000 /dev/zero >>bomb; done",
		"files": "i=0; while :; do i=$((i+1)); : >$i; done",
		"cache": `for a; do case "$a" in --cache=*) cache="${a#--cache=}"; esac; done; mkdir -p "$cache"; while :; do head -c 1000000 /dev/zero >>"$cache/bomb"; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			npm := filepath.Join(t.TempDir(), "npm")
			if err := os.WriteFile(npm, []byte("#!/bin/sh\n"+forever+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			c, err := New(Options{CacheDir: filepath.Join(dir, "cache"), KeyDir: filepath.Join(dir, "home"), NPM: npm, MaxFiles: 100, MaxBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			c.user, c.maxCache = &userSettings{}, 1<<20
			w, err := c.workplace(t.Context(), c.tag(c.user))
			if err != nil {
				t.Fatal(err)
			}
			err = w.run(t.Context(), nil, "ci")
			if got := problems(t, err); !strings.Contains(got, "with types and documents") && !strings.Contains(got, "fills its cache") {
				t.Errorf("got %s", got)
			}
			if err := w.remove(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(w.name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder is still there: %v", err)
			}
		})
	}
}
