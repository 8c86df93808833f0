package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/printable"
)

// toolProgress tells a person at a terminal how far a tool says it is, once a second and at the end. It is nil without a terminal.
func (s *streams) toolProgress() func(capability.Progress) {
	if !s.interactive() {
		return nil
	}
	var mu sync.Mutex
	var last time.Time
	return func(p capability.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= time.Second || p.Total > 0 && p.Done >= p.Total {
			last = now
			s.say("%s", progressText(p))
		}
	}
}

func progressText(p capability.Progress) string {
	number := func(n float64) string {
		if n >= 1e15 { // it would have up to 309 digits
			return fmt.Sprintf("%.3g", n)
		}
		return humanize.Ftoa(n)
	}
	text := number(p.Done)
	if p.Total > 0 {
		text = fmt.Sprintf("%s of %s", text, number(p.Total))
	}
	if p.Message != "" {
		text += "  " + printable.OneLine(p.Message)
	}
	return text
}
