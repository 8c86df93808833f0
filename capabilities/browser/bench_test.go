package browser

import (
	"slices"
	"testing"
	"time"
)

// median is the one in the middle.
func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkPage opens a loopback page in a new session of a warm browser, and reads it as Markdown.
func BenchmarkPage(b *testing.B) {
	url, rule := serve(b, site())
	first := newSession(b, rule)
	open(b, first, url)
	var fresh, same []time.Duration
	for b.Loop() {
		s := &Session{grant: first.grant, budget: first.budget, held: newHeld(first.ctx), ctx: first.ctx, end: func(error) {}}
		since := time.Now()
		open(b, s, url)
		p, err := s.Markdown(b.Context())
		text(b, p, err)
		fresh = append(fresh, time.Since(since))
		since = time.Now()
		open(b, s, url)
		p, err = s.Markdown(b.Context())
		text(b, p, err)
		same = append(same, time.Since(since))
		s.held.tab.close(b.Context(), errSession)
	}
	b.ReportMetric(float64(median(fresh).Microseconds())/1000, "ms/new-session")
	b.ReportMetric(float64(median(same).Microseconds())/1000, "ms/same-session")
}

// BenchmarkMemory opens a page in each of eight sessions of one browser, and reports what each takes beyond the first.
func BenchmarkMemory(b *testing.B) {
	url, rule := serve(b, site())
	first := newSession(b, rule)
	open(b, first, url)
	browser := first.held.tab.browser
	var each []float64
	for b.Loop() {
		before := browser.Memory()
		var all []*Session
		for range maxTabs - 1 {
			s := &Session{grant: first.grant, budget: Budget{}.start(), held: newHeld(first.ctx), ctx: first.ctx, end: func(error) {}}
			open(b, s, url)
			p, err := s.Markdown(b.Context())
			text(b, p, err)
			all = append(all, s)
		}
		each = append(each, float64(browser.Memory()-before)/float64(len(all))/(1<<20))
		for _, s := range all {
			s.held.tab.close(b.Context(), errSession)
		}
	}
	slices.Sort(each)
	b.ReportMetric(each[len(each)/2], "MiB/session")
	b.ReportMetric(float64(browser.Memory())/(1<<20), "MiB/browser")
}
