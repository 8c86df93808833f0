package http

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/automaton"
	"github.com/stilehost/stile/internal/spelling"
)

// searchFor makes a search for the forms.
func searchFor(forms secrets) *automaton.Automaton {
	return automaton.New(func(yield func(string) bool) {
		for _, form := range forms {
			if !yield(string(form)) {
				return
			}
		}
	})
}

// secrets are the forms in which servers are known to echo what was sent to them. Each occurrence is replaced by as many asterisks
// as it has bytes, so that lengths and offsets stay correct.
type secrets [][]byte

// with adds the spellings of a value that are long enough not to stand in responses by chance. A maskReader finds them in lines too.
func (s secrets) with(value string) secrets {
	made := slices.Clone(s)
	known := make(map[string]bool, len(s))
	for _, form := range s {
		known[string(form)] = true
	}
	for _, form := range spelling.Of(value) {
		if len(form) >= minSecret && !known[form] {
			made = append(made, []byte(form))
		}
	}
	return made
}

// cover overwrites in shown, a copy of the start of data, every form that starts there. It returns where the last one ends
// in data.
func (s secrets) cover(shown, data []byte) (end int) {
	for _, form := range s {
		// Occurrences may overlap, so the search continues one byte further.
		for from := 0; ; from++ {
			i := bytes.Index(data[from:], form)
			if i < 0 || from+i >= len(shown) {
				break
			}
			from += i
			asterisks(shown[from:min(from+len(form), len(shown))])
			end = max(end, from+len(form))
		}
	}
	return end
}

func asterisks(p []byte) {
	for i := range p {
		p[i] = '*'
	}
}

// mask returns text without the secrets.
func (s secrets) mask(text string) string {
	if len(s) == 0 {
		return text
	}
	shown := []byte(text)
	s.cover(shown, []byte(text))
	return string(shown)
}

// hush removes secrets from an error for the guest, because net/http quotes what servers send.
func (s secrets) hush(err *abi.Error) error {
	told := *err
	told.Detail = s.mask(err.Detail)
	return &told
}

// clean removes from a redirect's target the secrets that its encoding would have hidden from mask.
func (s secrets) clean(t *target) (*target, error) {
	if len(s) == 0 {
		return t, nil
	}
	kept := slices.DeleteFunc(strings.Split(t.query, "&"), func(part string) bool {
		decoded := unescape(strings.ReplaceAll(part, "+", " "))
		return s.mask(decoded) != decoded
	})
	made := *t
	made.query = strings.Join(kept, "&")
	return parseTarget(s.mask(made.String()))
}

// maskReader reads from r without the secrets. It holds back only what could be the beginning of one, and looks at each byte once,
// whatever the bytes are.
type maskReader struct {
	r       io.Reader
	secrets secrets
	search  *automaton.Pass // nil until the first byte is read
	gone    int             // how much was returned
	data    []byte          // read and not returned yet, with known parts of secrets covered
	covered run             // the last covered stretch of data
	ready   int             // how much of data can be returned
	err     error
}

type run struct{ start, end int }

func (m *maskReader) Read(p []byte) (int, error) {
	for m.ready == 0 && m.err == nil {
		m.fill()
	}
	n := copy(p, m.data[:m.ready])
	m.data, m.ready, m.gone = m.data[n:], m.ready-n, m.gone+n
	m.covered = run{m.covered.start - n, m.covered.end - n}
	if n == 0 && len(p) > 0 {
		return 0, m.err
	}
	return n, nil
}

func (m *maskReader) fill() {
	if m.search == nil {
		m.search = searchFor(m.secrets).Start()
	}
	const chunk = 32 << 10
	start := len(m.data)
	if cap(m.data)-start < chunk/2 { // what is held back is short
		m.data = append(make([]byte, 0, start+chunk), m.data...)
	}
	n, err := m.r.Read(m.data[start:cap(m.data)])
	m.data, m.err = m.data[:start+n], err
	for i := start; i < len(m.data); i++ {
		if start, found := m.search.Next(m.data[i]); found {
			m.cover(run{start - m.gone, i + 1})
		}
	}
	m.ready = len(m.data)
	// If a response is cut off, the beginning of a secret stays hidden. If it ends, that was no secret.
	if !errors.Is(err, io.EOF) {
		m.ready = m.search.Open() - m.gone
	}
}

// cover covers a run that ends after all others. search has read its bytes.
func (m *maskReader) cover(r run) {
	if r.start >= m.covered.start && r.start <= m.covered.end { // only the new part
		asterisks(m.data[m.covered.end:r.end])
		m.covered.end = r.end
		return
	}
	asterisks(m.data[r.start:r.end])
	m.covered = r
}
