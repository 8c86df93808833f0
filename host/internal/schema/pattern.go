package schema

import (
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Bounds of the regular expressions in schemas. A compiled expression has about 200 bytes per instruction, and parsing takes
// up to lazyregexp.MaxWork.
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
	if c.patternWork += lazyregexp.Work(text); c.patternWork > lazyregexp.MaxWork {
		return nil, fmt.Errorf("with all others, it takes long to parse: at most %d classes such as \\pL, and %d ranges of characters where it ignores case", lazyregexp.MaxWork, lazyregexp.MaxWork/50)
	}
	_, n, err := lazyregexp.Parse(text, maxInstructions)
	if err != nil {
		return nil, err
	}
	if c.instructions += n; c.instructions > maxPatterns {
		return nil, fmt.Errorf("it makes %d instructions, more than %d with all others", n, maxPatterns)
	}
	p := &pattern{text, n, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
	c.patterns[text] = p
	return p, nil
}
