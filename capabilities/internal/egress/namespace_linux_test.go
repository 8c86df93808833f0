package egress

import (
	"errors"
	"io/fs"
	"net"
	nethttp "net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
)

func namespace(t *testing.T) *Namespace {
	t.Helper()
	n, err := NewNamespace()
	if err != nil {
		t.Fatalf("%v; run this test as root", err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// TestNamespace runs a program in an empty namespace: it reaches what the rules allow through the proxy, and nothing else.
func TestNamespace(t *testing.T) {
	rule := web(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = w.Write([]byte("out of the box")) })
	h := start(t, []http.Rule{rule})
	n := namespace(t)
	l, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- h.proxy.Serve(l) }()
	var out strings.Builder
	script := `exec 3<>/dev/tcp/` + strings.Replace(l.Addr().String(), ":", "/", 1) + `
printf 'GET http://` + at(rule) + `/ HTTP/1.1\r\nHost: ` + at(rule) + `\r\nConnection: close\r\n\r\n' >&3
cat <&3
(exec 4<>/dev/tcp/127.0.0.1/` + strings.TrimPrefix(at(rule), "good.example:") + `) 2>/dev/null || echo no server here
tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '
`
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Stdout, command.Stderr = &out, &out
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.Start(command); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("%v: %s", err, &out)
	}
	if !strings.HasSuffix(out.String(), "out of the boxno server here\nlo\n") {
		t.Errorf("in the namespace: %s", &out)
	}
	_ = h.proxy.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestNamespacesAreApart checks that namespaces are empty, and that all threads of this process are back where they were.
func TestNamespacesAreApart(t *testing.T) {
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var visits sync.WaitGroup
	for range 20 {
		visits.Go(func() {
			n := namespace(t)
			var inside []net.Interface
			if err := n.Do(func() (err error) { inside, err = net.Interfaces(); return err }); err != nil {
				t.Error(err)
			}
			if len(inside) != 1 || inside[0].Name != "lo" || inside[0].Flags&net.FlagUp == 0 {
				t.Errorf("inside: %v", inside)
			}
			if l, err := n.Listen(); err != nil || l.Close() != nil {
				t.Errorf("listen: %v", err)
			}
		})
	}
	visits.Wait()
	threads, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil || len(threads) == 0 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		if at, err := os.Readlink(thread); at != home && !errors.Is(err, fs.ErrNotExist) { // a thread may end
			t.Errorf("%s is in %s, not %s; %v", thread, at, home, err)
		}
	}
}

// TestOpenNamespace opens namespaces by name, as of a container that another program made.
func TestOpenNamespace(t *testing.T) {
	n := namespace(t)
	again, err := OpenNamespace(n.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	l, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := again.Do(func() error {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		return errors.Join(err, conn.Close())
	}); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/proc/self/ns/mnt", "/proc/self/status", "/", "/nowhere", ""} {
		if n, err := OpenNamespace(path); !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("%s: %v, %v", path, n, err)
		}
	}
}

// TestClosedNamespace uses a namespace after Close.
func TestClosedNamespace(t *testing.T) {
	n := namespace(t)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen(); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("listen: %v", err)
	}
	command := exec.CommandContext(t.Context(), "true")
	if err := n.Start(command); !errors.Is(err, abi.ErrUnavailable) || command.Process != nil {
		t.Errorf("start: %v", err)
	}
}

// BenchmarkNamespace makes a namespace and listens in it.
func BenchmarkNamespace(b *testing.B) {
	for b.Loop() {
		n, err := NewNamespace()
		if err != nil {
			b.Fatal(err)
		}
		l, err := n.Listen()
		if err != nil {
			b.Fatal(err)
		}
		_, _ = l.Close(), n.Close()
	}
}
