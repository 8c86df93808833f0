package bundle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/internal/child"
	"github.com/stilehost/stile/internal/errkind"
)

const someKey = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// programs are programs that may be found in place of the expected one.
var programs = map[string]func(){
	"as-it-is": func() { serveOr(func(bundle, artifact []byte) (*Signer, error) { return holds(bundle, artifact) }) },
	"confined": func() {
		serveOr(func([]byte, []byte) (*Signer, error) {
			if f, err := os.Open("/dev/null"); err == nil {
				return nil, fail(ErrRefused, "it opened "+f.Name())
			}
			if c, err := net.Dial("udp", "127.0.0.1:9"); err == nil {
				return nil, fail(ErrRefused, "it reached "+c.RemoteAddr().String())
			}
			return &Signer{Key: someKey}, nil
		})
	},
	"works":    func() { serveOr(func([]byte, []byte) (*Signer, error) { return nil, spin() }) },
	"hoards":   func() { serveOr(func([]byte, []byte) (*Signer, error) { return nil, hoard() }) },
	"hangs":    func() { select {} },
	"lingers":  func() { _ = os.Stdout.Close(); time.Sleep(time.Hour) },
	"dies":     func() { panic("of a fault \x1b[2J") },
	"ends":     func() {},
	"fails":    func() { say(`{"Protocol":1}`); os.Exit(3) },
	"garbage":  func() { say("\x00\xff{") },
	"a list":   func() { say(`[1]`) },
	"a number": func() { say(`1`) },
	"two":      func() { say(`{"Protocol":1}` + "\n" + `{"Protocol":1}`) },
	"another":  func() { say(`{"version":"1.2.3"}`) },
	"endless": func() {
		for {
			say(strings.Repeat(" ", 1<<16))
		}
	},
	"shouts":   func() { _, _ = os.Stderr.WriteString(strings.Repeat("a\x1b", 1<<20)); os.Exit(1) },
	"newer":    func() { say(`{"Protocol":2,"Verdict":{"ok":true}}`) },
	"negative": func() { say(`{"Protocol":-1}`) },
	"more":     func() { say(`{"Protocol":1,"Trusted":true,"Signer":{"Key":"` + someKey + `"}}`) },
	"silent":   func() { say(`{"Protocol":1}`) },
	"nobody":   func() { say(`{"Protocol":1,"Signer":{}}`) },
	"somebody": func() { say(`{"Protocol":1,"Signer":{"Key":"tom"}}`) },
	"both": func() {
		say(`{"Protocol":1,"Policy":{"Kind":"trust","Text":"none"},"Signer":{"Key":"` + someKey + `"}}`)
	},
	"too many": func() { say(`{"Protocol":1,"Problems":[{"Kind":"refused"},{"Kind":"refused"},{"Kind":"refused"}]}`) },
	"too few":  func() { say(`{"Protocol":1,"Problems":[{"Kind":"refused"}]}`) },
	"late": func() {
		say(`{"Protocol":1,"Problems":[{"Kind":"refused"},{"Kind":"refused"}],"Signer":{"Key":"` + someKey + `"}}`)
	},
	"unknown": func() { say(`{"Protocol":1,"Problems":[{"Kind":"refused"},{"Kind":"fine"}]}`) },
	"null":    func() { say(`{"Protocol":1,"Problems":[null,{"Kind":"refused"}]}`) },
	"policy":  func() { say(`{"Protocol":1,"Policy":{"Kind":"refused","Text":"none"}}`) },
	"hides": func() {
		say(`{"Protocol":1,"Problems":[{"Kind":"refused","Text":"refused: \u001b[2J"},{"Kind":"format","Text":"` + strings.Repeat("long ", 1<<10) + `"}]}`)
	},
}

func TestMain(m *testing.M) {
	limits = child.Limits{Time: time.Second, Memory: 512 << 20} // for programs that run or allocate without end
	if len(os.Args) == 3 && os.Args[1] == "program" {
		programs[os.Args[2]]()
		return
	}
	os.Exit(m.Run())
}

func say(text string) {
	if _, err := os.Stdout.WriteString(text); err != nil {
		os.Exit(1)
	}
}

func serveOr(verify func(bundle, artifact []byte) (*Signer, error)) {
	err := Serve(os.Stdin, os.Stdout, func(p Policy) (func(bundle, artifact []byte) (*Signer, error), error) {
		if bytes.HasPrefix(p.Key, []byte("bad")) {
			return nil, fmt.Errorf("sigstore: %w: %s", ErrTrust, p.Key)
		}
		return verify, nil
	})
	if err != nil {
		panic(err)
	}
}

func fail(what error, why string) error {
	return &pack.PartError{Part: "bundle", Err: fmt.Errorf("%w: %s", what, why)}
}

// holds accepts a bundle that equals the artifact.
func holds(bundle, artifact []byte) (*Signer, error) {
	if !bytes.Equal(bundle, artifact) {
		return nil, fail(ErrRefused, fmt.Sprintf("%d bytes are not %d", len(bundle), len(artifact)))
	}
	return &Signer{Key: someKey, When: time.Unix(1, 0).UTC()}, nil
}

func spin() error {
	for start := time.Now(); time.Since(start) < time.Hour; {
	}
	return nil
}

// hoard allocates memory without garbage collection: a collector that gets no memory also ends the process, with another message.
func hoard() error {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(math.MaxInt64)
	return fmt.Errorf("it has %d bytes", len(make([]byte, 2*limits.Memory)))
}

func of(name string) Verifier {
	return Verifier{program: os.Args[0], args: []string{"program", name}, patience: time.Minute, policy: Policy{Key: []byte("key")}}
}

func TestProgram(t *testing.T) {
	v, err := open(t.Context(), of("as-it-is"))
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("x"), 4<<20)
	for _, c := range []struct {
		name     string
		bundles  []string
		artifact []byte
		want     string // the error's text; empty for none
	}{
		{"the only one", []string{"a"}, []byte("a"), ""},
		{"the first", []string{"a", "bb"}, []byte("a"), ""},
		{"the last", []string{"b", "bb", "a"}, []byte("a"), ""},
		{"of nothing", []string{""}, nil, ""},
		{"of lines", []string{"a\n\x00{}\n"}, []byte("a\n\x00{}\n"), ""},
		{"of much", []string{string(large)}, large, ""},
		{"none that holds", []string{"b", "bb"}, []byte("aaa"), "extension pack: bundle: refused: 1 bytes are not 3\nextension pack: bundle: refused: 2 bytes are not 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var bundles [][]byte
			for _, b := range c.bundles {
				bundles = append(bundles, []byte(b))
			}
			signer, err := v.Verify(t.Context(), bundles, c.artifact)
			if c.want == "" && (err != nil || *signer != Signer{Key: someKey, When: time.Unix(1, 0).UTC()}) {
				t.Errorf("got %v, %v", signer, err)
			}
			if part := (*pack.PartError)(nil); c.want != "" && (signer != nil || !errors.Is(err, ErrRefused) || !errors.As(err, &part) || err.Error() != c.want) {
				t.Errorf("got %v, %v", signer, err)
			}
		})
	}
	if _, err := v.Verify(t.Context(), nil, nil); !errors.Is(err, pack.ErrUnsigned) {
		t.Errorf("without bundles: got %v", err)
	}
	bad := of("as-it-is")
	bad.policy.Key = []byte("bad \x1b[2J")
	if _, err := open(t.Context(), bad); !errors.Is(err, ErrTrust) || err.Error() != `sigstore: the trusted root or key cannot be used: bad \x1b[2J` {
		t.Errorf("a bad key: got %v", err)
	}
	if _, err := New(t.Context(), "/nowhere", Policy{Key: []byte("key"), Issuer: "https://example.com"}); !errors.Is(err, ErrPolicy) {
		t.Errorf("a bad policy: got %v", err)
	}
}

// TestProgramFails checks that verification fails if the program does not answer the request.
func TestProgramFails(t *testing.T) {
	const other = "its output is not an answer; check that it is stile-sigstore"
	for _, c := range []struct{ program, want string }{
		{"works", "limit of processor time"},
		{"hoards", "limit of memory"},
		{"dies", `of a fault \x1b[2J`},
		{"ends", other},
		{"fails", "exit status 3"},
		{"garbage", other},
		{"a list", other},
		{"a number", other},
		{"two", other},
		{"another", other},
		{"endless", "it writes more than 1048576 bytes"},
		{"shouts", `a\x1ba\x1b`},
		{"newer", "of another version: it speaks version 2 of the protocol, and this program speaks version 1; build both from the same source, with make build"},
		{"negative", other},
		{"more", other},
		{"silent", other},
		{"nobody", other},
		{"somebody", other},
		{"both", other},
		{"too many", other},
		{"too few", other},
		{"late", other},
		{"unknown", other},
		{"null", other},
		{"policy", other},
	} {
		t.Run(c.program, func(t *testing.T) {
			v := of(c.program)
			// More than a pipe holds. Not all programs read it.
			signer, err := v.Verify(t.Context(), [][]byte{[]byte("a"), []byte("b")}, make([]byte, 1<<20))
			failure, ok := errors.AsType[*ProgramError](err)
			if signer != nil || !ok || failure.Program != os.Args[0] || !strings.Contains(failure.Reason, c.want) || len(err.Error()) > 20<<10 {
				t.Errorf("got %v, %v; want %s", signer, err, c.want)
			}
		})
	}
	for _, name := range []string{"hangs", "lingers"} {
		v := of(name)
		v.patience = 100 * time.Millisecond
		if _, err := v.Verify(t.Context(), [][]byte{nil}, make([]byte, 1<<20)); !errkind.Is[*ProgramError](err) || !strings.Contains(err.Error(), "did not answer within 100ms") {
			t.Errorf("%s: got %v", name, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		v.patience = time.Minute
		if _, err := v.Verify(ctx, [][]byte{nil}, make([]byte, 1<<20)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, given up: got %v", name, err)
		}
	}
	if _, err := New(t.Context(), "/nowhere", Policy{Key: []byte("key")}); !errkind.Is[*ProgramError](err) || !strings.Contains(err.Error(), "/nowhere, the program that verifies Sigstore bundles, failed: ") {
		t.Errorf("no program: got %v", err)
	}
	v := of("hides")
	_, err := v.Verify(t.Context(), [][]byte{nil, nil}, nil)
	if !errors.Is(err, ErrRefused) || !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `refused: \x1b[2J`) || len(err.Error()) > 2*maxReason {
		t.Errorf("what a program says of bundles: got %v", err)
	}
}

// TestProgramIsConfined checks that a program cannot reach files or the network once it reads untrusted data.
func TestProgramIsConfined(t *testing.T) {
	v := of("confined")
	if _, err := v.Verify(t.Context(), [][]byte{nil}, nil); err != nil {
		t.Error(err)
	}
}

// TestTooMuch checks that data too large for a request is refused before a process is started.
func TestTooMuch(t *testing.T) {
	v := of("dies")
	for name, bundles := range map[string][][]byte{"a bundle": {make([]byte, maxRequest)}, "bundles": {make([]byte, maxRequest/2), make([]byte, maxRequest/2)}} {
		if _, err := v.Verify(t.Context(), bundles, nil); !errors.Is(err, pack.ErrTooLarge) || !errkind.Is[*pack.PartError](err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := v.Verify(t.Context(), [][]byte{nil}, make([]byte, maxArtifact+1)); !errors.Is(err, pack.ErrTooLarge) {
		t.Errorf("an artifact: got %v", err)
	}
	v.policy.TrustedRoot = make([]byte, MaxTrustedRoot+1)
	if _, err := open(t.Context(), v); !errors.Is(err, ErrTrust) {
		t.Errorf("a root: got %v", err)
	}
}

// TestServe checks the program's answers to invalid requests.
func TestServe(t *testing.T) {
	verify := func(Policy) (func(bundle, artifact []byte) (*Signer, error), error) { return holds, nil }
	for _, c := range []struct{ name, asked, want string }{
		{"another version", `{"Protocol":7,"What":["is this"]}`, "version"},
		{"no version", `{}`, "version"},
		{"no JSON", "\x00", "error"},
		{"more than is known", `{"Protocol":1,"Skip":true}`, "error"},
		{"less than was promised", `{"Protocol":1,"Artifact":7}` + "\nseven", "error"},
		{"a negative length", `{"Protocol":1,"Artifact":-1}`, "error"},
		{"too much", `{"Protocol":1,"Artifact":9223372036854775807}`, "error"},
	} {
		r := bufio.NewReader(strings.NewReader(c.asked + "\n"))
		line, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		a, err := serve(line, r, verify)
		if got := err == nil && a.Protocol == protocol; got != (c.want == "version") || err == nil && (a.Signer != nil || a.Policy != nil) {
			t.Errorf("%s: got %+v, %v", c.name, a, err)
		}
	}
}

func TestSignWithoutKey(t *testing.T) {
	if _, err := Sign(nil, nil); err == nil {
		t.Error("signed without a key")
	}
	if _, err := Sign(make(ed25519.PrivateKey, 3), nil); err == nil {
		t.Error("signed with a part of a key")
	}
}
