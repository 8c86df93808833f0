package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/child"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// esbuild cannot be stopped, and some of its passes take the square or cube of their input. So only small sources are bundled in
// this process: the worst known takes 4 s at maxInside bytes. The rest goes to a process that can be killed.
const (
	maxInside     = 32 << 10 // bytes of all files
	maxInsideWork = 2 * time.Second
	// maxAnswer is how many bytes a bundler's process may write.
	maxAnswer = 256 << 20
	// maxBundlerMemory is what a bundler's process may have.
	maxBundlerMemory = 2 << 30
)

// Upper bounds of esbuild's time for flat code, for an embedder who names no program. In each file, it may search from the start for
// each place that it reports, and it follows a re-exported name through everything that it is exported as.
const (
	workOfByte = 1.6 // ns, times bytes of the file
	workOfName = 0.3 // ns, times names squared
	// fewNames are so few that their kind does not matter.
	fewNames = 1000
)

var bundlerLimits = child.Limits{Time: maxBundleWork, Memory: maxBundlerMemory}

// BundlerError reports a source that was not bundled because the process that Options.Bundler names failed.
type BundlerError struct{ Reason string }

func (e *BundlerError) Error() string {
	return "the bundler, the program of Options.Bundler, failed: " + e.Reason
}

// flatWork bounds what files take that do not nest.
type flatWork struct {
	work  float64 // ns, within files
	names float64 // that are imported and exported
}

// add takes in a file and returns what all take.
func (w *flatWork) add(text string) time.Duration {
	w.work += workOfByte * float64(len(text)) * float64(len(text))
	if names := w.names + float64(strings.Count(text, ",")+strings.Count(text, "port")); names <= fewNames {
		w.names = names
	} else {
		for _, clause := range clauses.FindAllString(text, -1) {
			w.names += float64(1 + strings.Count(clause, ","))
		}
	}
	return time.Duration(min(w.work+workOfName*w.names*w.names*w.names, maxWork))
}

// clauses match the names in import {...} and export {...}, and more.
var clauses = lazyregexp.New(`\b(?:import|export)\b(?:` + between + `|[^(){};=])*\{(?:` + between + `|[^}])*`)

// errInside is why a source is not bundled in this process.
var errInside = errors.New("it is too large to bundle in this process")

// tooFlat refuses what may take more than the limit where no program is named.
func tooFlat(most time.Duration) string {
	return fmt.Sprintf("with this file, bundling the source can take longer than the limit of %v; make it smaller, or set the option "+
		"Bundler of the program that embeds Stile", most)
}

// order is the work for a bundler's process: bundle a source whose files it asks for, or transform a program.
type order struct {
	Entry     string
	Imports   bool // are looked for
	Node      bool // the files of nodeModules are there
	Absent    bool // as in Source
	Program   *Program
	SourceMap api.SourceMap
}

// message is what a bundler's process writes: a request for a file, or the answer, after which it ends.
type message struct {
	Name   string
	Read   bool
	Node   bool // it is one of nodeModules
	Answer *answer
}

// reply is the content and kind of a file.
type reply struct {
	Mode    fs.FileMode
	Content []byte
	Failure *fileFailure
}

// answer is what became of an order.
type answer struct {
	Outputs   []api.OutputFile
	Code, Map []byte // of a program
	Files     map[string][sha256.Size]byte
	Imported  map[string]bool
	Partial   bool
	Problems  []Problem
	Fault     string
}

func (a *answer) err() error {
	switch {
	case len(a.Problems) > 0:
		return &BuildError{a.Problems}
	case a.Fault != "":
		return &BundlerError{printable.Short(a.Fault, child.MaxWords)}
	}
	return nil
}

// Bundle is the whole work of a program that Options.Bundler names, with its standard input and output. It limits the
// process, reads what to bundle or transform, asks for files, and writes the result. It can neither open nor write files by
// itself.
func Bundle(in io.Reader, out io.Writer) error {
	if err := child.Confine(bundlerLimits); err != nil {
		return fmt.Errorf("limit the bundler: %w", err)
	}
	return carryOut(in, out)
}

// carryOut carries out an order that comes from in.
func carryOut(in io.Reader, out io.Writer) error {
	r := &remote{wire: &wire{in: gob.NewDecoder(in), out: gob.NewEncoder(out)}}
	var o order
	if err := r.in.Decode(&o); err != nil {
		return fmt.Errorf("read what to bundle: %w", err)
	}
	var a answer
	var err error
	if o.Program != nil {
		var r api.TransformResult
		r, err = o.Program.transformInside(o.SourceMap)
		a.Code, a.Map = r.Code, r.Map
	} else {
		source := Source{FS: r, Entry: o.Entry, Large: true, Absent: o.Absent}
		if o.Node {
			source.node = func() (fs.FS, error) { return &remote{wire: r.wire, node: true}, nil }
		}
		b := newBundler(source, nil)
		if o.Imports {
			b.findImports()
		}
		a.Outputs, err = b.bundle(context.Background())
		a.Files, a.Imported, a.Partial = b.files, b.imported, b.partial
	}
	if bad, ok := errors.AsType[*BuildError](err); ok {
		a.Problems = bad.Problems
	} else if err != nil {
		a.Fault = err.Error()
	}
	if err := r.out.Encode(message{Answer: &a}); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return nil
}

// remote is a source tree that asks for each file, or the files of nodeModules. It implements [fs.StatFS].
type remote struct {
	*wire
	node bool
}

// wire is the connection of a bundler's process.
type wire struct {
	mu  sync.Mutex
	in  *gob.Decoder
	out *gob.Encoder
}

func (r *remote) ask(m message) (*reply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.Node = r.node
	var found reply
	if err := r.out.Encode(m); err != nil {
		return nil, err
	}
	if err := r.in.Decode(&found); err != nil {
		return nil, err
	}
	if found.Failure != nil {
		return nil, found.Failure.err()
	}
	return &found, nil
}

// Stat implements [fs.StatFS].
func (r *remote) Stat(name string) (fs.FileInfo, error) {
	found, err := r.ask(message{Name: name})
	if err != nil {
		return nil, err
	}
	return remoteInfo{mode: found.Mode}, nil
}

// Open implements [fs.FS]. The file can be read and closed only.
func (r *remote) Open(name string) (fs.File, error) {
	found, err := r.ask(message{Name: name, Read: true})
	if err != nil {
		return nil, err
	}
	return remoteFile{content: bytes.NewReader(found.Content)}, nil
}

type remoteInfo struct {
	fs.FileInfo
	mode fs.FileMode
}

func (i remoteInfo) IsDir() bool       { return i.mode.IsDir() }
func (i remoteInfo) Mode() fs.FileMode { return i.mode }

type remoteFile struct {
	fs.File
	content *bytes.Reader
}

func (f remoteFile) Read(p []byte) (int, error) { return f.content.Read(p) }
func (f remoteFile) Close() error               { return nil }

// fileFailure is an error of a file: all that a bundler wants to know of one.
type fileFailure struct {
	Text                        string
	Missing, Refused, NotInTree bool
}

func failureOf(err error) *fileFailure {
	f := &fileFailure{Text: reason(err).Error(), Missing: missing(err)}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		f.Refused, f.NotInTree = true, refused.notInTree
	}
	return f
}

func (f *fileFailure) err() error {
	switch {
	case f.Refused:
		return &refusedError{f.Text, f.NotInTree}
	case f.Missing:
		return &missingError{f.Text}
	}
	return errors.New(f.Text)
}

// missingError is a file that does not exist, in the words of the source tree.
type missingError struct{ text string }

func (e *missingError) Error() string        { return e.text }
func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }

// look answers a question for a file.
func look(s Source, m message) (r reply) {
	files, err := s.FS, error(nil)
	if m.Node && s.node != nil {
		if files, err = s.node(); err != nil {
			return reply{Failure: failureOf(err)}
		}
	}
	if m.Read {
		r.Content, err = readAtMost(files, m.Name, MaxSource)
	} else {
		var info fs.FileInfo
		if info, err = fs.Stat(files, m.Name); err == nil {
			r.Mode = info.Mode()
		}
	}
	if err != nil {
		return reply{Failure: failureOf(err)}
	}
	return r
}

// outside makes a process carry out an order. It returns when the process is gone.
func outside(ctx context.Context, program []string, o order, s Source) (a *answer, err error) {
	o.Node = s.node != nil
	env := []string{fmt.Sprintf("GOMEMLIMIT=%d", maxBundlerMemory/4*3)}
	err = child.Run(ctx, program, env, bundlerLimits, func(to io.WriteCloser, from io.Reader) (err error) {
		a, err = give(o, s, to, from)
		return err
	})
	failure, failed := errors.AsType[*child.Error](err)
	switch {
	case failed && failure.Limit == child.LimitTime:
		return nil, tooLong("the bundler works", bundlerLimits.Time)
	case failed && failure.Limit == child.LimitMemory:
		return nil, &resourceError{fmt.Sprintf("the bundler takes more than %d MiB of memory, which is the limit; make it smaller", bundlerLimits.Memory>>20)}
	case failed:
		return nil, &BundlerError{printable.Short(failure.Reason, child.MaxWords)}
	case err != nil:
		return nil, err
	}
	return a, nil
}

// resourceError is a source or program that took more than it may.
type resourceError struct{ text string }

func (e *resourceError) Error() string { return e.text }

func tooLong(what string, most time.Duration) error {
	return &resourceError{fmt.Sprintf("%s longer than the limit of %v; make it smaller", what, most)}
}

// give sends an order, and answers questions until the answer arrives.
func give(o order, s Source, to io.Writer, from io.Reader) (*answer, error) {
	in, out := gob.NewDecoder(io.LimitReader(from, maxAnswer)), gob.NewEncoder(to)
	if err := out.Encode(o); err != nil {
		return nil, err
	}
	for {
		var m message
		if err := in.Decode(&m); err != nil {
			return nil, fmt.Errorf("it did not write an answer; name a program that calls toolchain.Bundle: %w", err)
		}
		if m.Answer != nil {
			return m.Answer, nil
		}
		if err := out.Encode(look(s, m)); err != nil {
			return nil, err
		}
	}
}
