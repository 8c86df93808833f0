package inspect

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/absent"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// Alternative says what to write instead of a global that does not exist. ok is false if nothing is known of the name.
func Alternative(name string) (text string, ok bool) { return absent.Alternative(name) }

// Foreign returns the names that [Alternative] knows, in byte order. Which of them exist is the engine's matter.
func Foreign() []string { return absent.Names() }

// reached are words by which code gets to something that may not exist without its name, or on objects that do exist.
var reached = []string{"toLocale", "localeCompare", "subtle", "globalThis", "self", "Intl"}

// MayLack reports whether code may use, in a way that [Faults] does not see, what does not exist.
func MayLack(files map[string][]byte) bool {
	for _, text := range files {
		if slices.ContainsFunc(reached, func(word string) bool { return bytes.Contains(text, []byte(word)) }) {
			return true
		}
	}
	return false
}

var (
	readOfInput = lazyregexp.New(`\b(?:input|args|params)\??\.([A-Za-z_]\w{0,40})\b`)
	takenApart  = lazyregexp.New(`\brun(?:\s*:\s*(?:async\s*)?)?\(\s*\{([^{}]{0,1000})\}`)
	oneTaken    = lazyregexp.New(`(?:^|,)\s*([A-Za-z_]\w{0,40})`)
)

// InputNames returns names that the code seems to read of the inputs of tools, at most 30, in byte order. It is a guess, for tools without a
// schema.
func InputNames(files map[string][]byte) []string {
	found := map[string]bool{}
	note := func(name []byte) {
		if len(found) < 30 {
			found[string(name)] = true
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, ".json") {
			continue
		}
		for _, m := range readOfInput.FindAllSubmatch(files[file], 100) {
			note(m[1])
		}
		for _, m := range takenApart.FindAllSubmatch(files[file], 100) {
			for _, one := range oneTaken.FindAllSubmatch(m[1], 100) {
				note(one[1])
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
