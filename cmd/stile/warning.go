package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"syscall"

	"github.com/stilehost/stile/internal/printable"
)

// warnings shows a person what the packages log, one line each. Every warning is about the cache. A cache that cannot be used is
// reported for each thing that is built, but shown once.
type warnings struct {
	streams  *streams
	cache    string
	unusable sync.Once
}

// Enabled implements [slog.Handler].
func (*warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements [slog.Handler].
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "calling notifications/") && strings.Contains(r.Message, "rejected by transport") {
		return nil // a client without an open stream asks for what it missed
	}
	var details []string
	var failed error
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			failed = err
		}
		details = append(details, a.Key+" "+a.Value.String())
		return true
	})
	if errors.Is(failed, fs.ErrPermission) || errors.Is(failed, syscall.EROFS) {
		w.unusable.Do(func() {
			w.streams.say("stile: the cache %s cannot be used, so builds are not kept: %v; run stile doctor", w.cache, failed)
		})
		return nil
	}
	text := r.Message
	if len(details) > 0 {
		text += ": " + strings.Join(details, ", ")
	}
	w.streams.say("stile: %s", printable.Text(text))
	return nil
}

// WithAttrs implements [slog.Handler]. Nothing calls it.
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements [slog.Handler]. Nothing calls it.
func (w *warnings) WithGroup(string) slog.Handler { return w }
