package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestImportFromPipe cancels the import of a pack that never arrives.
func TestImportFromPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := (&extImport{File: pipe}).read(ctx, nil, nil)
		done <- err
	}()
	to, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once a process reads
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := to.Close(); err != nil {
		t.Error(err)
	}
}
