package secret

import (
	"errors"
	"io"

	"github.com/stilehost/stile/internal/automaton"
	"github.com/stilehost/stile/internal/spelling"
)

// Mark replaces each value.
const Mark = "[redacted]"

// A Redactor removes values from text: unchanged, in hex, in base64 (also as a part of a longer text, as in Basic authorization),
// escaped for a URL, for JSON and for HTML, each also wrapped into lines of 16 characters or more. It removes every byte that is part
// of a value, even where values overlap, and replaces each run of such bytes by one Mark. Time and memory do not depend on the
// content of the text.
//
// It catches accidents. It does not recognise a value that was cut, compressed, hashed or escaped twice, and hostile code can still
// leak a value. If a value has only a few bytes, much innocent text is removed too.
//
// A value of more than some 8 KiB of punctuation has too many spellings for a Redactor to know all of them; [Store.Set] refuses it.
//
// A Redactor is immutable, and goroutines may share it. A nil Redactor knows no values.
type Redactor struct {
	spellings *automaton.Automaton
}

// NewRedactor makes a redactor of values. It ignores empty ones.
func NewRedactor(values ...string) *Redactor {
	var spellings []string
	for _, value := range values {
		spellings = append(spellings, spelling.Of(value)...)
	}
	return &Redactor{automaton.New(spellings)}
}

// Redact returns text without the values.
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	s := r.scan()
	s.feed([]byte(text))
	s.end()
	return string(s.out)
}

// Reader returns a reader of from without the values. If from fails before its end, bytes that may begin a value are dropped. Only
// one goroutine may use it.
func (r *Redactor) Reader(from io.Reader) io.Reader {
	if r == nil {
		return from
	}
	return &reader{scan: r.scan(), from: from, chunk: make([]byte, 32<<10)}
}

// Writer returns a writer that removes the values before it writes to to. It holds back bytes that may begin a value until more
// arrive. Close writes the bytes that were held back, and does not close to. Only one goroutine may use it.
func (r *Redactor) Writer(to io.Writer) io.WriteCloser {
	if r == nil {
		r = NewRedactor()
	}
	return &writer{scan: r.scan(), to: to}
}

// scan is one pass over a text.
type scan struct {
	pass *automaton.Pass
	gone int // how many bytes of the text came before held
	// held is the text that is still undecided: held[from:]. The positions below are positions in held.
	held []byte
	from int
	runs []run // runs of values in held, in order and disjoint
	// covered is set if the last byte before from was part of a value.
	covered bool
	out     []byte
}

type run struct{ start, end int }

func (r *Redactor) scan() scan { return scan{pass: r.spellings.Start()} }

func (s *scan) feed(text []byte) {
	if s.from > len(s.held)/2 { // rarely enough that small chunks cost no more than large ones
		s.held = append(s.held[:0], s.held[s.from:]...)
		for i := range s.runs {
			s.runs[i].start -= s.from
			s.runs[i].end -= s.from
		}
		s.gone += s.from
		s.from = 0
	}
	i := len(s.held)
	s.held = append(s.held, text...)
	for ; i < len(s.held); i++ {
		if start, found := s.pass.Next(s.held[i]); found {
			s.cover(run{start - s.gone, i + 1})
		}
	}
	s.settle(s.pass.Open() - s.gone)
}

// cover adds a run that ends after all others, and merges it with those it touches.
func (s *scan) cover(added run) {
	for len(s.runs) > 0 {
		last := s.runs[len(s.runs)-1]
		if last.end < added.start {
			break
		}
		added.start = min(added.start, last.start)
		s.runs = s.runs[:len(s.runs)-1]
	}
	s.runs = append(s.runs, added)
}

// settle emits all text before a position, where no later value can begin.
func (s *scan) settle(to int) {
	done := 0
	for _, r := range s.runs {
		if r.start >= to {
			break
		}
		s.plain(max(r.start, s.from))
		if !s.covered {
			s.out = append(s.out, Mark...)
		}
		s.covered = true
		s.from = min(r.end, to)
		if r.end <= to {
			done++
		}
	}
	s.runs = append(s.runs[:0], s.runs[done:]...)
	s.plain(to)
}

// plain emits text that is part of no value.
func (s *scan) plain(to int) {
	if to > s.from {
		s.out = append(s.out, s.held[s.from:to]...)
		s.from = to
		s.covered = false
	}
}

func (s *scan) end() {
	s.settle(len(s.held))
}

type reader struct {
	scan
	from  io.Reader
	chunk []byte
	err   error
}

func (r *reader) Read(p []byte) (int, error) {
	for len(p) > 0 && len(r.out) == 0 && r.err == nil {
		n, err := r.from.Read(r.chunk)
		r.out = r.out[:0]
		r.feed(r.chunk[:n])
		if errors.Is(err, io.EOF) {
			r.end()
		}
		r.err = err
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	if len(r.out) == 0 && n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}

type writer struct {
	scan
	to     io.Writer
	closed bool
}

func (w *writer) Write(p []byte) (int, error) {
	if w.closed {
		return 0, errors.New("write after close")
	}
	w.feed(p)
	return len(p), w.flush()
}

func (w *writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	w.end()
	return w.flush()
}

func (w *writer) flush() error {
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.to.Write(w.out)
	w.out = w.out[:0]
	return err
}
