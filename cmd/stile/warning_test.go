package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"syscall"
	"testing"

	"github.com/stilehost/stile/toolchain"
)

// TestWarnings logs what a cache that cannot be written to leads to, and one other thing.
func TestWarnings(t *testing.T) {
	var stderr bytes.Buffer
	log := slog.New(&warnings{streams: &streams{err: &stderr}, cache: "/cache"})
	for _, kind := range []string{"engine", "module"} {
		log.Warn("cache entry is built without a lock", "kind", kind, "error", &fs.PathError{Op: "mkdirat", Path: "locks", Err: syscall.EROFS})
	}
	log.Warn("cache entry was not kept", "kind", "module", "error", fmt.Errorf("keep: %w", fs.ErrPermission))
	log.Warn("cache entry does not verify and is deleted", "kind", "module", "reason", "the MAC does not match")
	log.Info("nothing of note")
	log.Warn("calling notifications/tools/list_changed: rejected by transport: undelivered message: stream is closed")
	log.Warn("calling tools/call: rejected by transport")
	want := "stile: the cache /cache cannot be used, so builds are not kept: mkdirat locks: read-only file system; run stile doctor\n" +
		"stile: cache entry does not verify and is deleted: kind module, reason the MAC does not match\n" +
		"stile: calling tools/call: rejected by transport\n"
	if got := stderr.String(); got != want {
		t.Errorf("got %s", got)
	}
}

// TestBusy explains builds that leave no room for another.
func TestBusy(t *testing.T) {
	f := explain(fmt.Errorf("build: %w", &toolchain.BusyError{Builds: 2, Cause: context.DeadlineExceeded}))
	if f.Kind != kindLimit || f.Limit != "builds" || f.Value != "2 builds" || exitCodes[f.Kind] != 4 {
		t.Errorf("got %+v", f)
	}
	if f := explain(errors.New("something else")); f.Kind != kindHost {
		t.Errorf("got %+v", f)
	}
}

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 calls", 1: "1 call", 2: "2 calls"} {
		if got := counted(n, "call"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
