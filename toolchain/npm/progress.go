package npm

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Progress says how far npm is.
type Progress struct {
	// Package is what came last, printable: its name while versions are chosen, and name@version while packages are fetched.
	Package string
	// Done counts what came. Of is how many packages there are, 0 while versions are chosen.
	Done, Of int
	// Bytes are those of the files that are there, and Total those that there will be, as far as the registry says. Both are 0 while versions are chosen.
	Bytes, Total int64
}

// String returns a line for a person.
func (p Progress) String() string {
	plural := func(n int) string {
		if n == 1 {
			return "1 package"
		}
		return fmt.Sprintf("%d packages", n)
	}
	if p.Of == 0 {
		return fmt.Sprintf("asked the registry about %s, the last one %s", plural(p.Done), p.Package)
	}
	text := fmt.Sprintf("%d of %s", p.Done, plural(p.Of))
	if p.Package != "" {
		text = p.Package + ", " + text
	}
	switch {
	case p.Total > 0:
		return fmt.Sprintf("%s, %s of %s", text, megabytes(p.Bytes), megabytes(p.Total))
	case p.Bytes > 0:
		return text + ", " + megabytes(p.Bytes)
	}
	return text
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// sparse passes progress on at most ten times a second, on a goroutine of its own: whoever takes it may be slow, and what npm does is watched
// meanwhile.
type sparse struct {
	to      func(Progress)
	passing sync.WaitGroup

	mu   sync.Mutex
	next *Progress // the newest, while an older one is passed on
	last time.Time
	busy bool
	over bool
}

// report takes progress, which must be passed on if it is the last of a step.
func (s *sparse) report(p Progress, last bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || time.Since(s.last) < watchEvery && !last {
		return
	}
	s.last, s.next = time.Now(), &p
	if !s.busy {
		s.busy = true
		s.passing.Go(s.pass)
	}
}

func (s *sparse) pass() {
	for {
		s.mu.Lock()
		p := s.next
		s.next = nil
		s.busy = p != nil
		s.mu.Unlock()
		if p == nil {
			return
		}
		s.to(*p)
	}
}

// end waits until the last progress is passed on, and lets nothing more through.
func (s *sparse) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.passing.Wait()
}

// arrivals are the packages that npm is unpacking.
type arrivals struct {
	names map[string]string // of the packages, by the package.json in the workplace, until it is there
	p     Progress
}

func arriving(packages []located) *arrivals {
	a := &arrivals{names: make(map[string]string, len(packages)), p: Progress{Of: len(packages)}}
	known := true
	for _, p := range packages {
		a.names[projectDir+"/"+p.at+"/package.json"] = printable.OneLine(p.Name + "@" + p.Version)
		known = known && p.unpacked > 0
		a.p.Total += p.unpacked
	}
	if !known {
		a.p.Total = 0
	}
	return a
}

// see takes a file of the workplace.
func (a *arrivals) see(name string, size int64) {
	if a == nil || !strings.HasPrefix(name, projectDir+"/"+modules+"/") {
		return
	}
	a.p.Bytes += size
	if of, ok := a.names[name]; ok {
		a.p.Package = of
		a.p.Done++
		delete(a.names, name)
	}
}

// answered matches what npm says about an answer of a registry, or about one that it has.
var answered = lazyregexp.New(`\b(?:(fetch GET 200)|http cache) (\S+)`)

// askedFor returns the name of the package whose versions a URL has. It is empty for another URL.
func askedFor(text string) string {
	u, err := url.Parse(text)
	if err != nil || strings.HasSuffix(u.Path, ".tgz") {
		return ""
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	name := parts[len(parts)-1]
	if n := len(parts); n > 1 && strings.HasPrefix(parts[n-2], "@") {
		name = parts[n-2] + "/" + name
	}
	if nameProblem(name) != "" {
		return ""
	}
	return name
}
