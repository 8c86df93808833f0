package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Bounds of the regular expressions in schemas. A compiled expression has about 200 bytes per instruction, and parsing takes up to
// 10 microseconds per byte.
const (
	maxPatternText  = 32 << 10 // bytes, in all of a component's schemas
	maxInstructions = 5_000    // of one expression
	maxPatterns     = 50_000   // instructions, in all of a component's schemas
)

// pattern is a regular expression that is compiled on first use.
type pattern struct {
	text         string
	instructions int
	compiled     func() *regexp.Regexp
}

func (p *pattern) String() string            { return p.text }
func (p *pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// pattern refuses an expression that would be large when compiled, such as nested repetitions.
func (c *Compiler) pattern(text string) (jsonschema.Regexp, error) {
	if p := c.patterns[text]; p != nil {
		return p, nil
	}
	if c.patternText += len(text); c.patternText > maxPatternText {
		return nil, errors.New("the patterns of all tools have more than " + printable.Size(maxPatternText))
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	n := lazyregexp.Instructions(tree)
	if c.instructions += n; n > maxInstructions || c.instructions > maxPatterns {
		return nil, fmt.Errorf("it makes %d instructions, more than %d, or more than %d with all others", n, maxInstructions, maxPatterns)
	}
	p := &pattern{text, n, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
	c.patterns[text] = p
	return p, nil
}
