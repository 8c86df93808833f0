package chromium

import (
	"context"
	"errors"
	"fmt"
)

// Report is what a machine has to run a browser.
type Report struct {
	// Version is that of Chromium, such as "HeadlessChrome/156.0.8078.108". It is empty if it does not start.
	Version string
	// Lacks says in words what is missing, and how to get it.
	Lacks []string
}

// Probe starts a browser with options, and reports what is missing.
func Probe(ctx context.Context, o Options) Report {
	b, err := Start(ctx, o)
	if err != nil {
		lack := (*LackError)(nil)
		switch {
		case errors.Is(err, ErrMissing):
			return Report{Lacks: []string{ErrMissing.Error()}}
		case errors.As(err, &lack):
			return Report{Lacks: []string{lack.Error()}}
		default:
			return Report{Lacks: []string{fmt.Sprintf("Chromium does not start: %v", err)}}
		}
	}
	defer func() { _ = b.Close() }() // it returns no error
	var version struct{ Product string }
	if err := b.Call(ctx, "", "Browser.getVersion", nil, &version); err != nil {
		return Report{Lacks: []string{fmt.Sprintf("Chromium does not answer: %v", err)}}
	}
	r := Report{Version: version.Product}
	var made struct{ TargetID, SessionID string }
	err = b.Call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	if err == nil {
		err = b.Call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	}
	if err == nil {
		err = b.Call(ctx, made.SessionID, "Runtime.evaluate", map[string]any{"expression": "0"}, nil)
	}
	if err != nil {
		r.Lacks = append(r.Lacks, fmt.Sprintf("Chromium opens no page: %v", err))
	} else if err := sandboxed(b.Pid()); err != nil {
		r.Lacks = append(r.Lacks, fmt.Sprintf("Chromium's own sandbox does not hold: %v", err))
	}
	return r
}
