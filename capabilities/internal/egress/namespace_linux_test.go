package egress

import (
	"net"
	nethttp "net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

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

// TestNamespacesAreApart checks that this process stays where it is.
func TestNamespacesAreApart(t *testing.T) {
	n := namespace(t)
	before, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var inside []net.Interface
	if err := n.Do(func() (err error) { inside, err = net.Interfaces(); return err }); err != nil {
		t.Fatal(err)
	}
	if len(inside) != 1 || inside[0].Name != "lo" || inside[0].Flags&net.FlagUp == 0 {
		t.Errorf("inside: %v", inside)
	}
	for range 50 {
		after, err := net.Interfaces()
		if err != nil || len(after) != len(before) {
			t.Fatalf("outside: %v, %v", after, err)
		}
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
