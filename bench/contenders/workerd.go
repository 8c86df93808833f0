package contenders

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/stilehost/stile/bench"
)

// workerdServer loads code from a request. A trial's time includes HTTP over a Unix socket. The collector ends isolates at an
// unknown time.
type workerdServer struct {
	start  func(ctx context.Context) (*workerdServer, error) // another one
	cmd    *exec.Cmd
	client *http.Client
}

var workerd = &bench.Contender{
	Name: "workerd", Title: "workerd, loaded worker", Boundary: "V8 isolate", Limits: "none", Level: bench.NewCode, Tasks: inputOnly,
	Prepare: func(ctx context.Context, w *bench.Workbench, _ bench.Task) (bench.Runner, error) {
		modules, err := w.InstallNPM(ctx, false, "workerd@1.20261117.1")
		if err != nil {
			return nil, err
		}
		name := "workerd-" + runtime.GOOS + "-" + strings.TrimPrefix(runtime.GOARCH, "amd")
		return startWorkerd(ctx, w, filepath.Join(modules, "node_modules", "@cloudflare", name, "bin", "workerd"))
	},
}

func startWorkerd(ctx context.Context, w *bench.Workbench, program string) (*workerdServer, error) {
	dir, err := unpack(w, drivers, "drivers")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "socket")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	s := &workerdServer{client: &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 100}}}
	s.start = func(ctx context.Context) (*workerdServer, error) { return startWorkerd(ctx, w, program) }
	s.cmd = w.Command(context.WithoutCancel(ctx), dir, program, "serve", "--experimental", "--socket-addr=http=unix:"+socket, "workerd.capnp")
	s.cmd.Stdout, s.cmd.Stderr = w.Log, w.Log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if err := listens(ctx, socket); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *workerdServer) ask(ctx context.Context, t bench.Trial, id string) (a bench.Answer, err error) {
	body, _ := json.Marshal(map[string]string{"source": t.Source, "input": string(t.Input), "id": id}) // strings can be marshalled
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://loader/", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return a, err
	}
	output, err := io.ReadAll(response.Body)
	return bench.Answer{Output: output}, errors.Join(err, response.Body.Close())
}

func (s *workerdServer) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	return s.ask(ctx, t, "")
}

func (s *workerdServer) Hold(ctx context.Context, n int) (bench.Held, error) {
	other, err := s.start(ctx)
	if err != nil {
		return bench.Held{}, err
	}
	t := bench.Trial{Source: bench.Source(bench.Compute, bench.StoredID), Input: bench.HoldInput()}
	for i := range n {
		if _, err := other.ask(ctx, t, strconv.Itoa(i)); err != nil {
			return bench.Held{}, errors.Join(err, other.Close())
		}
	}
	return bench.Held{Processes: []int{other.cmd.Process.Pid}, Release: other.Close}, nil
}

func (s *workerdServer) Close() error {
	s.client.CloseIdleConnections()
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // reports that it was killed
	return err
}
