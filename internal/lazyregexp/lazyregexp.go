// Package lazyregexp compiles regular expressions on first use. Otherwise, a program with a hundred of them at package level would
// compile all of them at every start.
package lazyregexp

import (
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
)

// Regexp is a regular expression that is compiled on first use. It is safe for concurrent use.
type Regexp struct {
	compiled func() *regexp.Regexp
}

// New returns the regular expression text. In a test, it compiles
// immediately, so that any test of the package finds an invalid one.
func New(text string) *Regexp {
	r := &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
	if inTest {
		r.compiled()
	}
	return r
}

var inTest = len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test")

func (r *Regexp) Match(b []byte) bool            { return r.compiled().Match(b) }
func (r *Regexp) MatchString(s string) bool      { return r.compiled().MatchString(s) }
func (r *Regexp) FindString(s string) string     { return r.compiled().FindString(s) }
func (r *Regexp) FindStringIndex(s string) []int { return r.compiled().FindStringIndex(s) }
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compiled().FindSubmatch(b) }

func (r *Regexp) FindReaderSubmatchIndex(from io.RuneReader) []int {
	return r.compiled().FindReaderSubmatchIndex(from)
}

func (r *Regexp) FindStringSubmatch(s string) []string {
	return r.compiled().FindStringSubmatch(s)
}

func (r *Regexp) FindAll(b []byte, n int) [][]byte { return r.compiled().FindAll(b, n) }

func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }

func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte {
	return r.compiled().FindAllSubmatch(b, n)
}

func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringIndex(s, n)
}

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiled().ReplaceAllString(s, with)
}

func (r *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, with)
}

func (r *Regexp) Split(s string, n int) []string { return r.compiled().Split(s, n) }
