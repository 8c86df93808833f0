package http

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/automaton"
	"github.com/stilehost/stile/internal/spelling"
)

// secrets are values that were sent and that a response must not return to the guest. Each
// occurrence of a form in which servers are known to echo them is replaced by as many asterisks
// as it has bytes, so that lengths and offsets stay correct. The zero value has none.
type secrets struct{ *forms }

// forms are immutable.
type forms struct {
	values        []string
	size          int // bytes of all forms
	search, lower *automaton.Automaton
}

// newForms makes forms of texts. In names of headers they are looked for in lower case.
func newForms(texts ...string) *forms {
	f := &forms{search: automaton.New(texts)}
	var names []string
	for _, text := range texts {
		f.size += len(text)
		if name := strings.ToLower(text); httpguts.ValidHeaderFieldName(name) {
			names = append(names, name)
		}
	}
	f.lower = automaton.New(names)
	return f
}

// kept caches the forms of values that were sent, because making them takes up to 0.2 s and 80 MB.
var kept = struct {
	sync.Mutex
	forms map[string]*forms // by their values
	size  int
}{forms: map[string]*forms{}}

// maxKept bounds the bytes of all forms that are kept.
const maxKept = 4 << 20

// with adds the spellings of a value that are too long to occur in responses by chance. A maskReader finds them in lines too.
func (s secrets) with(value string) secrets {
	var values []string
	if s.forms != nil {
		if slices.Contains(s.values, value) {
			return s
		}
		values = s.values
	}
	values = append(slices.Clone(values), value)
	key := strings.Join(values, "\x00")
	kept.Lock()
	defer kept.Unlock()
	if known := kept.forms[key]; known != nil {
		return secrets{known}
	}
	var texts []string
	for _, value := range values {
		for _, form := range spelling.Of(value) {
			if len(form) >= MinSecret {
				texts = append(texts, form)
			}
		}
	}
	made := newForms(texts...)
	made.values = values
	if kept.size += made.size; kept.size > maxKept {
		clear(kept.forms)
		kept.size = made.size
	}
	kept.forms[key] = made
	return secrets{made}
}

// cover returns text with asterisks in place of the matches of search.
func cover(search *automaton.Automaton, text string) string {
	var shown []byte
	var covered run
	at := int32(0)
	for i := range len(text) {
		at = search.Next(at, text[i])
		n := search.Match(at)
		if n == 0 {
			continue
		}
		if shown == nil {
			shown = []byte(text)
		}
		covered.extend(shown, run{i + 1 - n, i + 1})
	}
	if shown == nil {
		return text
	}
	return string(shown)
}

// run is a stretch of bytes.
type run struct{ start, end int }

// extend covers another run of data. r is the last covered stretch, and next ends after it.
func (r *run) extend(data []byte, next run) {
	from := next.start
	if next.start >= r.start && next.start <= r.end { // only the new part
		from, next.start = r.end, r.start
	}
	asterisks(data[from:next.end])
	*r = next
}

func asterisks(p []byte) {
	for i := range p {
		p[i] = '*'
	}
}

// mask returns text without the secrets.
func (s secrets) mask(text string) string {
	if s.forms == nil {
		return text
	}
	return cover(s.search, text)
}

// hush removes secrets from an error for the guest, because net/http quotes the server's bytes.
func (s secrets) hush(err *abi.Error) error {
	told := *err
	told.Detail = s.mask(err.Detail)
	return &told
}

// clean removes from a redirect's target the secrets that its encoding would have hidden from mask.
func (s secrets) clean(t *target) (*target, error) {
	if s.forms == nil {
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

// maskWork is the processor time to look for secrets in a byte.
const maskWork = 20 * time.Nanosecond

// maskReader reads from r and covers the secrets. It holds back only bytes that could begin a secret, and always looks at each byte
// once.
type maskReader struct {
	r       io.Reader
	secrets secrets
	search  *automaton.Pass // nil until the first byte is read
	gone    int             // how many bytes were returned
	data    []byte          // read and not returned yet, with known parts of secrets covered
	covered run             // the last covered stretch of data
	ready   int             // how many bytes of data can be returned
	err     error
}

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
		m.search = m.secrets.search.Start()
	}
	const chunk = 32 << 10
	start := len(m.data)
	if cap(m.data)-start < chunk/2 { // the bytes held back are few
		m.data = append(make([]byte, 0, start+chunk), m.data...)
	}
	n, err := m.r.Read(m.data[start:cap(m.data)])
	m.data, m.err = m.data[:start+n], err
	for i := start; i < len(m.data); i++ {
		if start, found := m.search.Next(m.data[i]); found {
			m.covered.extend(m.data, run{start - m.gone, i + 1})
		}
	}
	m.ready = len(m.data)
	// If a response is cut off, a possible beginning of a secret at its end is dropped. If it ends normally, that was not a secret.
	if !errors.Is(err, io.EOF) {
		m.ready = m.search.Open() - m.gone
	}
}
