package npm

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stilehost/stile/toolchain"
)

const someDigest = "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="

// lockText is a lockfile with the package p, and more entries.
func lockText(p, more string) string {
	if p == "" {
		p = `{"version": "1.0.0", "integrity": "` + someDigest + `"}`
	}
	return `{"name": "extension", "lockfileVersion": 3, "packages": {"": {"dependencies": {"p": "^1.0.0"}}, "node_modules/p": ` + p + more + `}}`
}

// Each lockfile was written by somebody who wants npm to do something else than fetch packages of the registry.
func TestHostileLocks(t *testing.T) {
	entry := func(fields string) string {
		return `{"version": "1.0.0", "integrity": "` + someDigest + `", ` + fields + `}`
	}
	for name, text := range map[string]string{
		"no JSON":              `{`,
		"a list":               `[]`,
		"an old version":       `{"lockfileVersion": 1, "dependencies": {}}`,
		"nothing wanted":       `{"lockfileVersion": 3, "packages": {"": {}}}`,
		"an empty list wanted": `{"lockfileVersion": 3, "packages": {"": {"dependencies": {}}}}`,
		"large":                lockText("", "") + strings.Repeat(" ", maxLock),
		"link":                 lockText(`{"resolved": "../../secrets", "link": true}`, ""),
		"a file":               lockText(entry(`"resolved": "file:../p.tgz"`), ""),
		"a URL":                lockText(entry(`"resolved": "https://example.com/p.tgz"`), ""),
		"a repository":         lockText(entry(`"resolved": "git+ssh://git@example.com/p.git#abc"`), ""),
		"in another":           lockText(entry(`"inBundle": true`), ""),
		"shrinkwrap":           lockText(entry(`"hasShrinkwrap": true`), ""),
		"no digest":            lockText(`{"version": "1.0.0"}`, ""),
		"SHA-1":                lockText(`{"version": "1.0.0", "integrity": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="}`, ""),
		"two digests":          lockText(`{"version": "1.0.0", "integrity": "`+someDigest+` sha512-AAAA"}`, ""),
		"short digest":         lockText(`{"version": "1.0.0", "integrity": "sha512-AAAA"}`, ""),
		"no version":           lockText(`{"integrity": "`+someDigest+`"}`, ""),
		"a version that runs":  lockText(`{"version": "1.0.0||=2.0.0 --x", "integrity": "`+someDigest+`"}`, ""),
		"another name":         lockText(entry(`"name": "q"`), ""),
		"a spec that is none":  strings.Replace(lockText("", ""), "^1.0.0", "file:..", 1),
		"asked and missing":    strings.Replace(lockText("", ""), `"node_modules/p"`, `"node_modules/q"`, 1),
		"a path out":           lockText("", `, "node_modules/../../etc": `+entry(`"peer": true`)),
		"a path aside":         lockText("", `, "packages/p": `+entry(`"peer": true`)),
		"absolute":             lockText("", `, "/etc": `+entry(`"peer": true`)),
		"a folder above":       lockText("", `, "node_modules/..": `+entry(`"name": "q"`)),
		"a folder by itself":   lockText("", `, "node_modules/.": `+entry(`"name": "q"`)),
		"below no package":     lockText("", `, "node_modules/../node_modules/q": `+entry(`"peer": true`)),
		"wanted and optional":  lockText(entry(`"optional": true`), ""),
		"a bad name":           lockText("", `, "node_modules/.bin": `+entry(`"peer": true`)),
		"control characters":   lockText("", `, "node_modules/p\u001b[31m": `+entry(`"peer": true`)),
		"asks for a file":      lockText(entry(`"dependencies": {"q": "file:../q"}`), ""),
		"asks for git":         lockText(entry(`"dependencies": {"q": "git+ssh://example.com/q"}`), ""),
		"asks for a user's":    lockText(entry(`"dependencies": {"q": "user/q"}`), ""),
		"a peer URL":           lockText(entry(`"peerDependencies": {"q": "http://127.0.0.1/"}`), ""),
		"alias to a URL":       lockText(entry(`"dependencies": {"q": "npm:q@http://127.0.0.1/"}`), ""),
		"alias to nothing":     lockText(entry(`"dependencies": {"q": "npm:../q@1"}`), ""),
		"too many":             lockText("", manyEntries(20)),
	} {
		_, err := parseLock([]byte(text), 10)
		_, wrong := errors.AsType[*LockError](err)
		_, problem := errors.AsType[*toolchain.BuildError](err)
		if !wrong && !problem {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %q", name, err)
		}
	}
}

func manyEntries(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`, "node_modules/q` + strings.Repeat("x", i) + `": {"version": "1.0.0", "integrity": "` + someDigest + `"}`)
	}
	return b.String()
}

// TestLocksTakeLittle reads lockfiles that take much more memory than their text.
func TestLocksTakeLittle(t *testing.T) {
	most := func(item string) string {
		var b strings.Builder
		for i := 0; b.Len() < maxLock-100; i++ {
			fmt.Fprintf(&b, item, i)
		}
		return b.String()[1:]
	}
	for name, text := range map[string]string{
		"packages": `{"packages": {` + most(`,"%x":{}`) + `}}`, "optional packages": `{"packages": {` + most(`,"%x":{"optional":true}`) + `}}`,
		"dependencies": `{"packages": {"": {"dependencies": {` + most(`,"%x":""`) + `}}}}`, "a field again": `{"packages": {"": {` + most(`,"dependencies":{"%x":""}`) + `}}}`,
		"a list": `{"packages": {"": {"os": [` + most(`,%x`) + `]}}}`, "quotes": `{"packages": {""": {}, ` + most(`,""%x":{}`) + `}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parseLock([]byte(text), 10)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 32<<20 {
			t.Errorf("%s: %d bytes took %d: %v", name, len(text), took, err)
		}
	}
	var b strings.Builder
	for i := range maxValues - 2 {
		fmt.Fprintf(&b, `,"%x":{}`, i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := parseLock([]byte(`{"packages":{`+b.String()[1:]+`}}`), 10)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > maxValues*700 {
		t.Errorf("as many as there may be took %d: %v", took, err)
	}
}

// npm gets no text that Go and npm read differently.
func TestLockIsWrittenAnew(t *testing.T) {
	text := lockText(`{"version": "1.0.0", "integrity": "`+someDigest+`", "link": true, "Link": false, "funding": {"url": "https://example.com"}, "dependencies": {"q": "npm:@s/q@^1"}}`, "")
	l, err := parseLock([]byte(text), 10)
	if err != nil {
		t.Fatal(err)
	}
	again := string(l.encode())
	for _, gone := range []string{"link", "Link", "example.com"} {
		if strings.Contains(again, gone) {
			t.Errorf("%s is in %s", gone, again)
		}
	}
	if second, err := parseLock([]byte(again), 10); err != nil || string(second.encode()) != again {
		t.Errorf("%v", err)
	}
}

func FuzzLock(f *testing.F) {
	f.Add(lockText("", ""))
	f.Add(lockText(`{"version": "1.0.0-rc.1+b", "integrity": "`+someDigest+`", "optional": true, "os": ["linux"], "engines": {"node": ">=1"}}`, manyEntries(2)))
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseLock([]byte(text), 10)
		if err != nil || len(l.Packages) == 0 {
			return
		}
		for _, at := range l.installed() {
			if strings.Contains(at, "..") && strings.Contains(at, "/../") || strings.HasPrefix(at, "/") {
				t.Fatalf("%q", at)
			}
		}
		again, err := parseLock(l.encode(), 10)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(l.Packages)
		b, _ := json.Marshal(again.Packages)
		if string(a) != string(b) {
			t.Fatalf("%s\n%s", a, b)
		}
	})
}
