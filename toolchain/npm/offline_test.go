package npm

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/toolchain"
)

// another is a client of another process with the same folders and settings.
func another(t *testing.T, c *Client, user *userSettings) *Client {
	t.Helper()
	next, err := New(Options{CacheDir: c.o.CacheDir, KeyDir: c.o.KeyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Close() })
	next.user, next.keys = user, c.keys
	return next
}

// aAndB has a package that depends on another one.
func aAndB(t *testing.T) *hostileRegistry {
	t.Helper()
	r := newRegistry(t)
	r.publish(t, "a", "1.0.0", version{files: []tar.Header{file("package/index.js", "module.exports = 'a';")}, fields: map[string]any{"dependencies": map[string]string{"b": "^1.0.0"}}})
	r.publish(t, "b", "1.0.0", version{files: []tar.Header{file("package/index.js", "module.exports = 'b';")}})
	return r
}

func contents(t *testing.T, res *Resolution, name string) string {
	t.Helper()
	text, err := fs.ReadFile(res.FS, "node_modules/"+name+"/index.js")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What was fetched once is there without the registry: by a lock, by a version, and by a range, of which the result says so.
func TestAgainWithoutNetwork(t *testing.T) {
	t.Parallel()
	r := aAndB(t)
	c := r.client(t, Options{})
	first, err := resolve(t, c, map[string]string{"a": "^1.0.0"})
	if err != nil || first.Unasked != "" {
		t.Fatal(first, err)
	}
	r.mu.Lock()
	r.asked = nil
	r.mu.Unlock()
	if res, err := another(t, c, c.user).Resolve(t.Context(), Request{Dependencies: map[string]string{"b": "1.x"}, Offline: true}); err != nil || res.Unasked != "that was asked for" || contents(t, res, "b") != "module.exports = 'b';" {
		t.Errorf("%+v, %v", res, err)
	}
	r.mu.Lock()
	if len(r.asked) > 0 {
		t.Errorf("offline, the registry was asked for %v", r.asked)
	}
	r.mu.Unlock()
	r.Close()
	for name, request := range map[string]Request{
		"lock":    {Dependencies: map[string]string{"a": "^1.0.0"}, Lock: first.Lock},
		"version": {Dependencies: map[string]string{"a": "1.0.0"}},
		"range":   {Dependencies: map[string]string{"b": "*"}},
		"import":  {Imports: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			next := another(t, c, c.user)
			if name == "lock" {
				next.o.NPM = "no-such-npm"
			}
			res, err := next.Resolve(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if got := contents(t, res, "b"); got != "module.exports = 'b';" {
				t.Errorf("got %q", got)
			}
			direct := res.Packages[0]
			says := strings.Join(direct.Warnings, " ")
			if asked := name == "lock"; asked != (res.Unasked == "") || strings.Contains(says, "the registry was not reached") == asked {
				t.Errorf("unasked %q, warnings %q", res.Unasked, says)
			}
		})
	}
	for name, request := range map[string]Request{
		"never fetched":      {Dependencies: map[string]string{"c": "*"}},
		"never fetched, too": {Dependencies: map[string]string{"c": "*"}, Offline: true},
		"no such version":    {Dependencies: map[string]string{"b": "2.0.0"}},
	} {
		_, err := another(t, c, c.user).Resolve(t.Context(), request)
		setup, isSetup := errors.AsType[*toolchain.SetupError](err)
		_, isBuild := errors.AsType[*toolchain.BuildError](err)
		if !isSetup && !isBuild || isSetup && setup.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without a way to the registry, npm is ended at its first attempt, or after some silence, and the cache answers. Where the registry answers, npm
// tries again by itself, and where the cache cannot answer, a silent registry gets more time.
func TestNobodyWaitsForTheNetwork(t *testing.T) {
	t.Parallel()
	real, err := exec.LookPath("npm")
	if err != nil {
		t.Fatal(err)
	}
	const failed = "echo 'npm http fetch GET https://registry.example/b attempt 1 failed with %s' >&2; "
	for name, test := range map[string]struct {
		said    string // by npm, before it waits
		silent  bool
		ends    bool // it stays silent
		dep     string
		runs    int // of npm that ask the registry
		unasked string
		fails   string
	}{
		"no way":                   {said: fmt.Sprintf(failed, "EAI_AGAIN"), dep: "b", runs: 1, unasked: "the registry was not reached (EAI_AGAIN)"},
		"refused":                  {said: fmt.Sprintf(failed, "ECONNREFUSED"), dep: "b", runs: 1, unasked: "the registry was not reached (ECONNREFUSED)"},
		"no way, nothing there":    {said: fmt.Sprintf(failed, "ENOTFOUND"), dep: "c", runs: 1, fails: "request to https://registry.example/b failed"},
		"silent":                   {silent: true, dep: "b", runs: 1, unasked: "the registry was not reached (ETIMEDOUT)"},
		"silent, nothing there":    {silent: true, dep: "c", runs: 2},
		"silent to the end":        {silent: true, ends: true, dep: "c", runs: 2, fails: "no answer came in 500ms"},
		"an answer, then no way":   {said: "echo 'npm http fetch GET 200 https://registry.example/a 9ms (cache miss)' >&2; " + fmt.Sprintf(failed, "EAI_AGAIN"), dep: "b", runs: 1},
		"an answer of npm's cache": {said: "echo 'npm http cache https://registry.example/a 9ms (cache hit)' >&2; " + fmt.Sprintf(failed, "EAI_AGAIN"), dep: "b", runs: 1, unasked: "the registry was not reached (EAI_AGAIN)"},
		"it broke off":             {said: fmt.Sprintf(failed, "ECONNRESET"), dep: "b", runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := aAndB(t)
			c := r.client(t, Options{Timeout: time.Minute})
			if _, err := resolve(t, c, map[string]string{"a": "*"}); err != nil {
				t.Fatal(err)
			}
			r.publish(t, "c", "1.0.0", version{files: []tar.Header{file("package/index.js", "module.exports = 'c';")}})
			next := another(t, c, c.user)
			next.o.Timeout = time.Minute
			folder := t.TempDir()
			runs := filepath.Join(folder, "runs")
			waits := test.unasked != "" || test.fails != ""
			then := fmt.Sprintf("exec %s \"$@\"", real)
			switch {
			case test.silent:
				next.patience, next.longest = 300*time.Millisecond, time.Minute
				then = fmt.Sprintf("[ $(wc -l < %s) = 1 ] && exec sleep 600; %s", runs, then)
				if test.ends {
					next.longest, then = 500*time.Millisecond, "exec sleep 600"
				}
			case waits:
				then = "exec sleep 600"
			}
			next.o.NPM = filepath.Join(folder, "npm")
			script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in install*--offline*) exec %s \"$@\";; install*) ;; *) exec %s \"$@\";; esac\necho run >> %s\n%s\n%s\n", real, real, runs, test.said, then)
			if err := os.WriteFile(next.o.NPM, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			res, err := next.Resolve(t.Context(), Request{Dependencies: map[string]string{test.dep: "*"}})
			switch {
			case test.fails != "":
				if err == nil || !strings.Contains(err.Error(), test.fails) || !errors.As(err, new(*toolchain.SetupError)) {
					t.Errorf("got %v, want %q", err, test.fails)
				}
			case err != nil:
				t.Error(err)
			case res.Unasked != test.unasked:
				t.Errorf("unasked is %q, want %q", res.Unasked, test.unasked)
			}
			if text, err := os.ReadFile(runs); err != nil || bytes.Count(text, []byte("\n")) != test.runs {
				t.Errorf("npm asked %q, %v, want %d times", text, err, test.runs)
			}
		})
	}
}

// A registry that refuses this machine has answered, and one that is broken has not.
func TestRefusalsAreAnswers(t *testing.T) {
	t.Parallel()
	r := aAndB(t)
	var status atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if s := status.Load(); s != 0 {
			w.WriteHeader(int(s))
			return
		}
		r.ServeHTTP(w, q)
	}))
	t.Cleanup(front.Close)
	c := r.client(t, Options{})
	c.user = userOf(front.URL, "fetch-retries=0\n")
	if _, err := resolve(t, c, map[string]string{"a": "*"}); err != nil {
		t.Fatal(err)
	}
	for code, served := range map[int64]bool{401: false, 403: false, 404: false, 500: true, 503: true} {
		status.Store(code)
		// The answers are fresh for npm only as long as their headers say, which is not at all.
		res, err := another(t, c, c.user).Resolve(t.Context(), Request{Dependencies: map[string]string{"b": "^1"}})
		if (err == nil) != served || served && res.Unasked == "" {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// What a login got is for that login only: in npm's own cache, among facts, and in archives of locks. Another registry's is another's.
func TestLoginsAreApart(t *testing.T) {
	t.Parallel()
	r := aAndB(t)
	var refused atomic.Int64
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer of-the-team" {
			refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.ServeHTTP(w, q)
	}))
	t.Cleanup(private.Close)
	login := func(token string) *userSettings {
		return userOf(private.URL, "fetch-retries=0\n"+strings.TrimPrefix(private.URL, "http:")+"/:_authToken="+token+"\n")
	}
	c := r.client(t, Options{})
	c.user = login("of-the-team")
	first, err := resolve(t, c, map[string]string{"a": "*"})
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]Request{
		"lock": {Dependencies: map[string]string{"a": "*"}, Lock: first.Lock}, "range": {Dependencies: map[string]string{"b": "*"}}, "offline": {Dependencies: map[string]string{"a": "*"}, Lock: first.Lock, Offline: true},
		"offline range": {Dependencies: map[string]string{"a": "*"}, Offline: true}, "recalled": {Imports: []string{"a"}, Recall: true},
	}
	if _, err := c.Resolve(t.Context(), requests["recalled"]); err != nil {
		t.Fatal(err)
	}
	others := map[string]*userSettings{
		"no login": userOf(private.URL, "fetch-retries=0\n"), "another login": login("of-another-team"),
		"another registry":            userOf("http://127.0.0.1:9", "fetch-retries=0\n"),
		"another registry of a scope": {c.user.npmrc, map[string]string{"": c.user.registries[""], "@s": "http://127.0.0.1:9/"}},
	}
	try := func(who, what string) {
		t.Helper()
		if res, err := another(t, c, others[who]).Resolve(t.Context(), requests[what]); err == nil {
			t.Errorf("%s: got by %s: %v", what, who, res.Packages)
		}
	}
	for _, who := range []string{"no login", "another login"} {
		try(who, "lock")
		try(who, "range")
	}
	if refused.Load() == 0 {
		t.Error("nobody was refused")
	}
	private.Close()
	for what := range requests {
		try("no login", what)
		try("another registry of a scope", what)
	}
	try("another registry", "range")
	if res, err := another(t, c, login("of-the-team")).Resolve(t.Context(), requests["range"]); err != nil || res.Unasked == "" {
		t.Errorf("the team itself: %v", err)
	}
	// Names in the cache do not say what a login is.
	_ = filepath.WalkDir(c.o.CacheDir, func(name string, entry fs.DirEntry, err error) error {
		if strings.Contains(name, "of-the-team") {
			t.Errorf("%s names the login", name)
		}
		if err == nil && entry.Type().IsRegular() {
			if text, err := os.ReadFile(name); err != nil || bytes.Contains(text, []byte("of-the-team")) {
				t.Errorf("%s has the login, %v", name, err)
			}
		}
		return nil
	})
}

// files returns the files of npm's own cache with what npm fetched.
func fetchedFiles(t *testing.T, c *Client) (all []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(c.o.CacheDir, npmCacheName), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.Contains(name, "content-v2") {
			all = append(all, name)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatal("nothing is cached", err)
	}
	return all
}

// A changed, cut or missing file of npm's cache is fetched again. Without the registry it is an error; nobody gets other bytes.
func TestChangedCache(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(file string, text []byte) error{
		"a byte":  func(file string, text []byte) error { text[len(text)/2] ^= 1; return os.WriteFile(file, text, 0o600) },
		"cut":     func(file string, text []byte) error { return os.WriteFile(file, text[:len(text)/2], 0o600) },
		"empty":   func(file string, _ []byte) error { return os.WriteFile(file, nil, 0o600) },
		"missing": func(file string, _ []byte) error { return os.Remove(file) },
		"a link": func(file string, _ []byte) error {
			return errors.Join(os.Remove(file), os.Symlink("/etc/hostname", file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := aAndB(t)
			c := r.client(t, Options{})
			hurt := func() {
				t.Helper()
				for _, file := range fetchedFiles(t, c) {
					text, err := os.ReadFile(file)
					if err == nil {
						err = errors.Join(os.Chmod(file, 0o600), damage(file, text))
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := resolve(t, c, map[string]string{"a": "*"}); err != nil {
				t.Fatal(err)
			}
			hurt()
			res, err := another(t, c, c.user).Resolve(t.Context(), Request{Dependencies: map[string]string{"b": "*"}})
			if err != nil || contents(t, res, "b") != "module.exports = 'b';" {
				t.Fatalf("it is not fetched again: %v", err)
			}
			hurt()
			r.Close()
			res, err = another(t, c, c.user).Resolve(t.Context(), Request{Dependencies: map[string]string{"b": "1.0.0"}})
			switch {
			case err == nil && contents(t, res, "b") != "module.exports = 'b';":
				t.Error("other bytes are served")
			case err != nil && !errors.As(err, new(*toolchain.SetupError)) && !errors.As(err, new(*toolchain.BuildError)):
				t.Errorf("got %v", err)
			}
		})
	}
}

// An npm that is killed while it writes leaves nothing that is taken for an answer.
func TestKilledWhileFetching(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	r.publish(t, "big", "1.0.0", version{files: []tar.Header{file("package/index.js", "module.exports = '"+strings.Repeat("big", 100_000)+"';")}})
	began := make(chan struct{}, 100)
	var slow atomic.Bool
	slow.Store(true)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasSuffix(q.URL.Path, ".tgz") || !slow.Load() {
			r.ServeHTTP(w, q)
			return
		}
		answer := httptest.NewRecorder()
		r.ServeHTTP(answer, q)
		w.Header().Set("Content-Length", answer.Header().Get("Content-Length"))
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		began <- struct{}{}
		<-q.Context().Done()
	}))
	t.Cleanup(front.Close)
	c := r.client(t, Options{})
	c.user = userOf(front.URL, "fetch-retries=0\n")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := c.Resolve(ctx, Request{Dependencies: map[string]string{"big": "*"}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	slow.Store(false)
	res, err := another(t, c, c.user).Resolve(t.Context(), Request{Dependencies: map[string]string{"big": "*"}})
	if err != nil || len(contents(t, res, "big")) < 300_000 {
		t.Fatalf("got %v", err)
	}
}

// Clients of several processes fetch the same and other packages at once.
func TestCacheOfProcesses(t *testing.T) {
	t.Parallel()
	r := aAndB(t)
	c := r.client(t, Options{})
	var wait sync.WaitGroup
	for i := range 4 {
		next := another(t, c, c.user)
		wait.Go(func() {
			name := string("ab"[i%2])
			if res, err := next.Resolve(t.Context(), Request{Dependencies: map[string]string{name: "*"}}); err != nil || contents(t, res, name) != "module.exports = '"+name+"';" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wait.Wait()
}

// The older half of npm's cache goes first. What is missing is fetched again.
func TestMakeRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name string, size int, hours int) string {
		t.Helper()
		name = filepath.Join(dir, name)
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, make([]byte, size), 0o600), os.Chtimes(name, at, at)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	old, middle, young := put("x/y/old", 1<<20, 100), put("x/z/middle", 1<<20, 50), put("w/young", 1<<20, 1)
	there := func(names ...string) (all []bool) {
		for _, name := range names {
			_, err := os.Stat(name)
			all = append(all, err == nil)
		}
		return all
	}
	for _, step := range []struct {
		bytes int64
		want  [3]bool
	}{{1, [3]bool{false, true, true}}, {1 << 20, [3]bool{false, false, true}}, {5 << 20, [3]bool{}}} {
		if err := makeRoom(dir, step.bytes); err != nil {
			t.Fatal(err)
		}
		if got := [3]bool(there(old, middle, young)); got != step.want {
			t.Errorf("%d bytes: %v", step.bytes, got)
		}
	}
	if there(filepath.Join(dir, "x"))[0] {
		t.Error("empty folders are left")
	}
}

// Progress names packages, counts them and their bytes, and comes at most ten times a second, whatever a registry says of sizes.
func TestProgress(t *testing.T) {
	t.Parallel()
	for claim, want := range map[string]bool{"1000": true, "-1": false, "1e300": false, `"x"`: false, "{}": false} {
		r := newRegistry(t)
		var dependencies []string
		for _, name := range []string{"p0", "p1", "p2"} {
			r.publish(t, name, "1.0.0", version{files: []tar.Header{file("package/index.js", "1")}})
			dependencies = append(dependencies, name)
		}
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			answer := httptest.NewRecorder()
			r.ServeHTTP(answer, q)
			text := answer.Body.Bytes()
			if !strings.HasSuffix(q.URL.Path, ".tgz") {
				text = bytes.ReplaceAll(text, []byte(`"dist":{`), []byte(`"dist":{"unpackedSize":`+claim+`,`))
				w.Header().Set("Content-Type", "application/json")
			}
			w.WriteHeader(answer.Code)
			_, _ = w.Write(text)
		}))
		t.Cleanup(front.Close)
		c := r.client(t, Options{})
		c.user = userOf(front.URL, "fetch-retries=0\n")
		var mu sync.Mutex
		var seen []Progress
		var times []time.Time
		over := false
		wanted := map[string]string{}
		for _, name := range dependencies {
			wanted[name] = "*"
		}
		_, err := c.Resolve(t.Context(), Request{Dependencies: wanted, Progress: func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			if over {
				t.Error("it comes after the end")
			}
			seen, times = append(seen, p), append(times, time.Now())
		}})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		over = true
		asked := false
		for i, p := range seen {
			asked = asked || p.Of == 0 && strings.HasPrefix(p.Package, "p")
			if i > 10 && times[i].Sub(times[i-11]) < time.Second*9/10 {
				t.Errorf("%d in %s", 12, times[i].Sub(times[i-11]))
			}
		}
		last := seen[len(seen)-1]
		if !asked || last.Done != 3 || last.Of != 3 || last.Bytes == 0 || (last.Total > 0) != want || want && last.Total != 3000 || !strings.HasSuffix(strings.Split(last.String(), ",")[0], "@1.0.0") {
			t.Errorf("%s: got %+v, %s", claim, seen, last)
		}
		mu.Unlock()
	}
}

// npm is not asked again where its settings are, until a variable or a file says otherwise.
func TestKnownSettings(t *testing.T) {
	rc := filepath.Join(t.TempDir(), "npmrc")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("registry=https://one.example.com/\n//one.example.com/:_authToken=${TEST_NPM_TOKEN}\nhttps-proxy=http://p.example.com\n")
	t.Setenv("NPM_CONFIG_USERCONFIG", rc)
	t.Setenv("TEST_NPM_TOKEN", "one")
	dir, keys := t.TempDir(), t.TempDir()
	client := func() *Client {
		c, err := New(Options{CacheDir: dir, KeyDir: keys})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	if client().known() != nil {
		t.Error("they are known before npm was asked")
	}
	first, err := client().holder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		t.Helper()
		c := client()
		c.o.NPM = "no-such-npm"
		user := c.known()
		if user == nil {
			c.o.NPM = "npm"
			user = c.known()
		}
		if user == nil {
			return ""
		}
		return c.tag(user)
	}
	if got := holder(); got != first {
		t.Errorf("got %q, want %q", got, first)
	}
	t.Setenv("HTTPS_PROXY", "http://q.example.com")
	if got := holder(); got != first {
		t.Error("another proxy is another holder")
	}
	t.Setenv("TEST_NPM_TOKEN", "two")
	if got := holder(); got == first || got == "" {
		t.Errorf("another token: got %q", got)
	}
	t.Setenv("npm_config_registry", "https://two.example.com/")
	if got := holder(); got != "" {
		t.Errorf("npm has other variables: got %q", got)
	}
	if err := os.Unsetenv("npm_config_registry"); err != nil {
		t.Fatal(err)
	}
	write("registry=https://three.example.com/\n")
	if got := holder(); got != "" {
		t.Errorf("the file has changed: got %q", got)
	}
}

// What was known of the settings counts only until npm is asked: nothing is kept for a holder that is not the one.
func TestSettingsChangeUnseen(t *testing.T) {
	r := aAndB(t)
	rc := filepath.Join(t.TempDir(), "npmrc")
	if err := os.WriteFile(rc, []byte("registry="+r.URL+"/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NPM_CONFIG_USERCONFIG", rc)
	c := r.client(t, Options{})
	c.user = nil
	files, err := askSettings(t.Context(), "npm")
	if err != nil {
		t.Fatal(err)
	}
	files.Registries = map[string]string{"": "http://127.0.0.1:9/"}
	if err := c.cache.Put(settingsKind, c.settingsKey(), encode(files)); err != nil {
		t.Fatal(err)
	}
	wrong := c.tag(c.known())
	res, err := resolve(t, c, map[string]string{"a": "*"})
	if err != nil || contents(t, res, "b") != "module.exports = 'b';" {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.o.CacheDir, npmCacheName, wrong[:16])); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is kept for another holder: %v", err)
	}
	if now, err := c.holder(t.Context()); err != nil || now == wrong {
		t.Errorf("the holder is still the wrong one: %v", err)
	}
}

// Whoever takes progress can be slow, and npm is watched and goes on meanwhile.
func TestProgressDoesNotWait(t *testing.T) {
	var got []Progress
	began, hang := make(chan struct{}), make(chan struct{})
	s := &sparse{to: func(p Progress) {
		if got = append(got, p); len(got) == 1 {
			close(began)
			<-hang
		}
	}}
	s.report(Progress{Done: 1}, false)
	<-began
	for i := 2; i <= 100; i++ {
		s.report(Progress{Done: i}, true)
	}
	close(hang)
	s.end()
	s.report(Progress{Done: 101}, true)
	if len(got) != 2 || got[1].Done != 100 {
		t.Errorf("got %v", got)
	}
}
