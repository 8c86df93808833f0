package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
)

// measureBodies takes the processor time of this process for a body of 50 MB that code iterates over, and for one that passes by on the host,
// into a file. Both include the server and receiving. It also compresses 1 MB, on the host.
func measureBodies(ctx context.Context, b *bench, s *subject) (err error) {
	const mebibytes = 50
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 7)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range mebibytes {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	rule, err := httpcap.ParseRule(server.URL + "/**,max-response=100000000")
	if err != nil {
		return err
	}
	files, err := workspace.Open(ctx, filepath.Join(b.dir, "bodies.sqlite"), workspace.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	src, err := source("bodies.ts", "")
	if err != nil {
		return err
	}
	src.Bindings = map[string]string{"network": httpcap.Interface, "files": workspace.Interface}
	component, err := s.tools.Build(ctx, src)
	if err != nil {
		return err
	}
	env := host.Env{"network": httpcap.Allow(rule), "files": files.Workspace("bodies")}
	took := func(tool string) (float64, error) {
		start, err := processTime()
		if err != nil {
			return 0, err
		}
		_, err = component.Do(ctx, host.Request{Tool: tool, Input: fmt.Appendf(nil, `{"url":%q}`, server.URL), Env: env, Limits: host.Limits{CPU: time.Minute}})
		end, timeErr := processTime()
		return milliseconds(end - start), errors.Join(err, timeErr)
	}
	tools := []string{"passes", "iterates", "compresses"}
	series := make([]measure.Series, len(tools))
	for range b.rounds(20) {
		for k, tool := range tools {
			ms, err := took(tool)
			if err != nil {
				return fmt.Errorf("%s: %w", tool, err)
			}
			series[k] = append(series[k], []float64{ms})
		}
	}
	b.add(row{Key: "body_passes_ms", What: "processor time of a body of 50 MB into a file, on the host", Unit: "ms"}.of(series[0]))
	b.add(row{Key: "body_iterates_ms", What: "processor time of a body of 50 MB that code iterates over", Unit: "ms"}.of(series[1]))
	b.add(row{Key: "body_iterates_over_passes", What: "iterating over a body / passing it by"}.ratio(series[1], series[0]))
	b.add(row{Key: "compress_ms", What: "processor time to compress 1 MB of text and decompress it", Unit: "ms"}.of(series[2]))
	b.add(row{Key: "compress_over_iterates", What: "compressing 1 MB / iterating over a body of 50 MB"}.ratio(series[2], series[1]))
	return nil
}

// processTime is the processor time of this process.
func processTime() (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}
