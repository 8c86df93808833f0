// Package double helps capabilities to make their test doubles, which give only the answers that an extension's test lists.
package double

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

const (
	// MaxAnswers is the most answers, files or values for one binding.
	MaxAnswers = 100
	// MaxKept is the most bytes that a test can keep in one store.
	MaxKept = 16 << 20

	maxValue = 200 // bytes of a value that are shown
)

// Doubler is a grant that an extension's test can answer for.
type Doubler interface {
	// Double makes the capability for a test. answers come from the test, as JSON. They are nil only for harmless kinds. An error
	// is a *[MistakeError] for the test's author, or a fault of the host. The capability is used only while the test runs.
	Double(ctx context.Context, t *Test, answers json.RawMessage) (abi.Capability, error)
}

// MistakeError reports what is wrong, and what to write instead.
type MistakeError struct{ Text, Fix string }

// Error implements error.
func (m *MistakeError) Error() string { return m.Text }

// Test is a test that is about to run, with one of its bindings.
type Test struct {
	// Path leads to the answers of the binding, e.g. `tests[0].env.github`.
	Path string
	// Binding is its name.
	Binding string
	// Clock is shared by the whole test.
	Clock *Clock
	// Log keeps what the tool logs, a printable line at a time.
	Log func(line string)
	// Missing records a request of the tool that has no answer. line is the text to add to the binding's answers. It is safe for
	// concurrent use.
	Missing func(binding, what, line string)
	// Stores are shared by the whole test.
	Stores *Stores
}

// Wrong reports a mistake in the answers. text continues their path.
func (t *Test) Wrong(text, fix string) error { return &MistakeError{t.Path + text, fix} }

// None refuses answers for a kind that always gives the same ones.
func (t *Test) None(answers json.RawMessage) error {
	if answers == nil {
		return nil
	}
	return t.Wrong(": a test cannot give answers for this binding", "nothing")
}

// Unanswered records a request without an answer, and returns the error that the tool gets.
func (t *Test) Unanswered(what, line string) error {
	t.Missing(t.Binding, what, line)
	return abi.Errorf(abi.CodeUnavailable, "this test gives no answer for %s: add to env.%s of the test: %s", what, t.Binding, line)
}

// Kept returns the error for an answer that could not be put into a store: the test's mistake or a fault of the host.
func (t *Test) Kept(name string, err error) error {
	if known, ok := errors.AsType[*abi.Error](err); ok && known.Code != abi.CodeUnavailable {
		return t.Wrong(fmt.Sprintf("[%s]: %s", Quoted(name), printable.Short(known.Error(), maxValue)), "another name")
	}
	return err
}

// Until waits for done, so that nothing runs concurrently with the guest and the order of events is always the same.
func Until(ctx context.Context, done *abi.Pollable) {
	_ = done.Wait(ctx) // the guest sees that ctx has ended
}

// Members reads an object of answers, each of type T, strictly.
func Members[T any](t *Test, answers json.RawMessage, example string) (map[string]T, error) {
	var given map[string]*T
	err := Strict(answers, &given)
	if err == nil && given == nil {
		err = errors.New("null where an object belongs")
	}
	if misfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s: a %s does not belong there", cmp.Or(misfit.Field, "the answers"), misfit.Value)
	}
	if err != nil {
		return nil, t.Wrong(": "+printable.Short(strings.TrimPrefix(err.Error(), "json: "), maxValue), "an object like "+example)
	}
	if len(given) > MaxAnswers {
		return nil, t.Wrong(fmt.Sprintf(": there are %d entries", len(given)), fmt.Sprintf("at most %d", MaxAnswers))
	}
	all := make(map[string]T, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] == nil { // encoding/json would take it for an empty answer
			return nil, t.Wrong(fmt.Sprintf("[%s]: null, which is not an answer", Quoted(name)), "an object like "+example)
		}
		all[name] = *given[name]
	}
	return all, nil
}

// Strict decodes JSON and refuses fields that v does not have.
func Strict(raw []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(v)
}

// Quoted shows a name from outside, shortened and on one line.
func Quoted(name string) string { return jsonform.Quote(name) }

// Stores are the stores of one test, in a temporary folder that is made on first use.
type Stores struct {
	// Folder makes the folder, and Remove deletes it.
	Folder func() (string, error)
	Remove func(dir string) error

	dir  string
	open map[string]Stored
}

// Stored is a store of a test.
type Stored interface {
	io.Closer
	// Fault is the first fault of this machine, e.g. a full disk, while the store was used. It is nil if there was none.
	Fault() error
}

// Store returns the store in a file, opened on first use.
func Store[T Stored](s *Stores, file string, open func(path string) (T, error)) (T, error) {
	if store, ok := s.open[file].(T); ok {
		return store, nil
	}
	var none T
	if s.dir == "" {
		var err error
		if s.dir, err = s.Folder(); err != nil {
			return none, err
		}
		s.open = map[string]Stored{}
	}
	store, err := open(filepath.Join(s.dir, file))
	if err == nil {
		s.open[file] = store
	}
	return store, err
}

// Fault is the first fault of this machine while the stores were used. It is nil if there was none.
func (s *Stores) Fault() error {
	var errs []error
	for _, store := range s.open {
		errs = append(errs, store.Fault())
	}
	return errors.Join(errs...)
}

// Close closes them and removes the folder.
func (s *Stores) Close() error {
	if s.dir == "" {
		return nil
	}
	var errs []error
	for _, store := range s.open {
		errs = append(errs, store.Close())
	}
	return errors.Join(append(errs, s.Remove(s.dir))...)
}
