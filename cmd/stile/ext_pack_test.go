package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestImportFromPipe cancels the import of a pack that never arrives, and refuses a pipe that no process may ever write to.
func TestImportFromPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&extImport{File: pipe}).read(t.Context(), nil, nil, true); err == nil || err.Error() != pipe+" is not a file" {
		t.Errorf("got %v", err)
	}

	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := (&extImport{File: fmt.Sprintf("/dev/fd/%d", from.Fd())}).read(ctx, nil, nil, true)
		done <- err
	}()
	w := tar.NewWriter(to)
	if err := w.WriteHeader(&tar.Header{Name: "index.json", Size: 1 << 20, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds, so that some of it has been read.
	if _, err := w.Write(make([]byte, 128<<10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
