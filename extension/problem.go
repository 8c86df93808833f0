package extension

import (
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/printable"
)

// Problem is one thing wrong with an extension, worded so that its author, often a model, can fix it and try again.
type Problem struct {
	// File is a path in the source tree, or "manifest.json". It is empty if the problem is not in one file.
	File string `json:"file,omitempty"`
	// Line and Column count from 1, columns in characters. 0 means the whole file.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path is a JSON Pointer (RFC 6901) to the place in an input. Then there is no file.
	Path string `json:"path,omitempty"`
	// Text says what is wrong, and Fix what to write instead, if known.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// Snippet is the line of the source, with a second line that points at the column.
	Snippet string `json:"snippet,omitempty"`
}

// String returns the problem as text for people, on several lines if it has a snippet. File and path are printable and
// on one line.
func (p Problem) String() string {
	text := p.Text
	if p.Path != "" {
		text = printable.Line(p.Path) + ": " + text
	}
	return printable.Problem(p.File, p.Line, p.Column, text, p.Fix, p.Snippet)
}

// Stage is a step from a source to a callable tool.
type Stage string

// The stages, as [Stages] orders them.
const (
	StageValidate Stage = "validate" // manifest, names, sizes
	StageResolve  Stage = "resolve"  // npm packages
	StageBundle   Stage = "bundle"   // TypeScript to one module
	StageTypes    Stage = "types"    // the types of the source, unless the author does without
	StageImage    Stage = "image"    // top-level code, and its description of its tools
	StageReport   Stage = "report"   // the report on what the code appears to do
	StageTest     Stage = "test"     // the tests that come with it
	StagePolicy   Stage = "policy"   // the operator's ceiling
)

// Stages returns all stages in their order. Without types, it leaves out [StageTypes].
func Stages(types bool) []Stage {
	all := []Stage{StageValidate, StageResolve, StageBundle, StageTypes, StageImage, StageReport, StageTest, StagePolicy}
	if !types {
		all = slices.DeleteFunc(all, func(s Stage) bool { return s == StageTypes })
	}
	return all
}

// ProblemsError reports an extension that did not pass a stage. The active version stays.
type ProblemsError struct {
	Stage    Stage
	Problems []Problem // at least one
	// Cause is the error that the problems describe, if it has a type of its own, or nil.
	Cause error
}

// And returns an error with the problems of both, of the stage of e. Either may be nil, and then it is the other.
func (e *ProblemsError) And(other *ProblemsError) *ProblemsError {
	switch {
	case e == nil:
		return other
	case other == nil:
		return e
	}
	return &ProblemsError{Stage: e.Stage, Problems: slices.Concat(e.Problems, other.Problems), Cause: e.Cause}
}

// Unwrap returns the cause.
func (e *ProblemsError) Unwrap() error { return e.Cause }

// Error implements error.
func (e *ProblemsError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return string(e.Stage) + ": " + strings.Join(texts, "\n")
}
