// Package toolsearch finds tools by what they do. An [Index] holds the words of some tools, such as those of one extension, and never
// changes; [Search] ranks the tools of several. It needs no model: it compares stems, knows some words that mean the same in names of
// tools, and weighs rare words more (BM25).
package toolsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Tool is what a tool is found by.
type Tool struct {
	// Name is its full name, and Description what it does. Words are tags and the like, which say what it is about.
	Name, Description string
	Words             []string
	// Schema is the JSON Schema of its input. Its properties are words too.
	Schema string
}

// Index holds the words of tools. It is immutable, and takes a few KiB for each tool.
type Index struct {
	named map[string]bool // stems of the name that all the tools have
	tools int
	terms map[string][]posting
	keys  []string // of terms, sorted once a search needs them in order
}

// posting is a tool that has a word, and how much the word says of the tool.
type posting struct {
	tool   uint32
	weight float32
}

// The fields of a tool: what a word in one weighs, how many words it usually has, how much a longer one takes from that, and how many are
// read. The usual lengths are constants, so that an index does not depend on others.
type field struct {
	weight, usual, longer float64
	most                  int
}

var (
	nameField   = field{weight: 3, usual: 5, longer: 0.5, most: 40}
	leadField   = field{weight: 2, usual: 9, longer: 0.4, most: 40}
	textField   = field{weight: 0.8, usual: 12, longer: 0.6, most: 160}
	wordField   = field{weight: 1.5, usual: 6, longer: 0.3, most: 60}
	inputField  = field{weight: 0.5, usual: 10, longer: 0.6, most: 80}
	saturation  = 1.2
	leadingText = 90 // bytes of a description that its lead has
)

// New makes an index of the tools of an extension, whose name may be empty. A search that names it prefers them to the tools of others.
func New(name string, tools []Tool) *Index {
	x := &Index{named: map[string]bool{}, tools: len(tools), terms: map[string][]posting{}}
	for _, w := range split(name, 10) {
		x.named[Stem(w)] = true
	}
	weights := map[string]float64{}
	for i, t := range tools {
		clear(weights)
		lead, rest := leadOf(t.Description)
		add(weights, nameField, split(t.Name, nameField.most))
		add(weights, leadField, split(lead, leadField.most))
		add(weights, textField, split(rest, textField.most))
		add(weights, wordField, split(strings.Join(t.Words, " "), wordField.most))
		add(weights, inputField, split(strings.Join(properties(t.Schema), " "), inputField.most))
		for term, w := range weights {
			x.terms[term] = append(x.terms[term], posting{uint32(i), float32(w)})
		}
	}
	for term, list := range x.terms {
		x.terms[term] = slices.Clip(list)
		x.keys = append(x.keys, term)
	}
	slices.Sort(x.keys)
	return x
}

// Len returns how many tools the index has.
func (x *Index) Len() int { return x.tools }

func leadOf(description string) (lead, rest string) {
	end := strings.IndexAny(description, ".\n")
	if end < 0 || end > leadingText {
		end = min(len(description), leadingText)
	}
	return description[:end], description[end:]
}

// add adds the words of a field.
func add(weights map[string]float64, f field, words []string) {
	norm := f.weight / (1 - f.longer + f.longer*max(1, float64(len(words)))/f.usual)
	seen := map[string]int{}
	for _, w := range words {
		seen[Stem(w)]++
	}
	for stem, n := range seen {
		weights[stem] += norm * (0.85 + 0.15*float64(min(n, 3))) // names and paths repeat what they are about, which says little more
	}
}

// Found is a tool that a search found.
type Found struct {
	// Index is the place of the tool's index among those that were searched, and Tool its place there.
	Index, Tool int
	// Rank is how well it fits: higher is better.
	Rank float64
	// Words is how many different words of the query it has, by their stems. Words that mean the same do not count.
	Words int
}

// MaxWords is how many words of a query count.
const MaxWords = 64

// Search finds the tools that fit a query, the best first, at most limit. It leaves out those for which hidden, if not nil, is true.
func Search(indexes []*Index, query string, limit int, hidden func(index, tool int) bool) []Found {
	terms := terms(query)
	all := 0
	for _, x := range indexes {
		all += x.tools
	}
	if len(terms) == 0 || limit <= 0 || all == 0 {
		return nil
	}
	for i := range terms {
		terms[i].resolve(indexes, all)
	}
	var possible float64
	for _, t := range terms {
		possible += t.rarity
	}
	named := slices.ContainsFunc(indexes, func(x *Index) bool { return x.isNamed(terms) })
	var found []Found
	for i, x := range indexes {
		for _, f := range x.search(i, terms, possible, hidden) {
			if named && !x.isNamed(terms) {
				f.Rank *= 0.3
			}
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Tool, b.Tool))
	})
	return slices.Clip(found[:min(limit, len(found))])
}

// isNamed reports whether a query has all of the name.
func (x *Index) isNamed(terms []term) bool {
	if len(x.named) == 0 {
		return false
	}
	for stem := range x.named {
		if !slices.ContainsFunc(terms, func(t term) bool { return t.stem == stem }) {
			return false
		}
	}
	return true
}

// term is a word of a query with the words that stand for it.
type term struct {
	stem     string
	variants []variant
	rarity   float64 // of the variant that counts most
	implied  bool    // no word of the query, but what a question asks for
}

type variant struct {
	stem   string
	factor float64 // from 0 to 1: how much it stands for the word
	rarity float64
}

// resolve looks up how rare the words are, and finds others that begin alike if there is none.
func (t *term) resolve(indexes []*Index, all int) {
	any := false
	for i := range t.variants {
		v := &t.variants[i]
		v.rarity = rarity(indexes, v.stem, all)
		if own := t.variants[0].rarity; v.factor < 1 && own > 0 {
			v.rarity = min(v.rarity, own) // what stands for a word says no more than the word
		}
		any = any || v.rarity > 0
	}
	if !any {
		for _, stem := range alike(indexes, t.stem) {
			t.variants = append(t.variants, variant{stem, 0.6, rarity(indexes, stem, all)})
		}
	}
	for i := range t.variants {
		v := &t.variants[i]
		if t.implied {
			v.rarity *= 0.4
		}
		t.rarity = max(t.rarity, v.factor*v.rarity)
	}
}

// rarity is the weight of a word by the share of the tools that have it. It is 0 if none has.
func rarity(indexes []*Index, stem string, all int) float64 {
	with := 0
	for _, x := range indexes {
		with += len(x.terms[stem])
	}
	if with == 0 {
		return 0
	}
	return math.Log(1 + (float64(all)-float64(with)+0.5)/(float64(with)+0.5))
}

// alike returns words that begin with a word, at most a few, or with which it begins.
func alike(indexes []*Index, stem string) (all []string) {
	const least, most = 4, 8
	if len(stem) < least {
		return nil
	}
	for _, x := range indexes {
		at, _ := slices.BinarySearch(x.keys, stem)
		for ; at < len(x.keys) && strings.HasPrefix(x.keys[at], stem) && len(all) < most; at++ {
			all = append(all, x.keys[at])
		}
		for end := len(stem) - 1; end >= least && len(all) < most; end-- {
			if _, ok := x.terms[stem[:end]]; ok {
				all = append(all, stem[:end])
				break
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (x *Index) search(at int, terms []term, possible float64, hidden func(index, tool int) bool) (found []Found) {
	type score struct {
		rank, matched float64
		words         int
	}
	scores := map[uint32]*score{}
	best := map[uint32]float64{}   // of the variants of a word
	covers := map[uint32]float64{} // likewise, without how much the word says of the tool
	for _, t := range terms {
		clear(best)
		clear(covers)
		for _, v := range t.variants {
			for _, p := range x.terms[v.stem] {
				w := float64(p.weight)
				best[p.tool] = max(best[p.tool], v.factor*v.rarity*w*(saturation+1)/(w+saturation))
				covers[p.tool] = max(covers[p.tool], v.factor)
			}
		}
		for tool, rank := range best {
			s := scores[tool]
			if s == nil {
				s = &score{}
				scores[tool] = s
			}
			s.rank += rank
			s.matched += covers[tool] * t.rarity
		}
		if !t.implied {
			for _, p := range x.terms[t.stem] {
				scores[p.tool].words++
			}
		}
	}
	for tool, s := range scores {
		if hidden == nil || !hidden(at, int(tool)) {
			// A tool with all words fits better than one that has a few of them often.
			share := s.matched / possible
			found = append(found, Found{at, int(tool), s.rank * (0.3 + 0.7*share), s.words})
		}
	}
	return found
}

// terms are the words of a query that say something, with those that stand for them.
func terms(query string) (all []term) {
	words := split(query, 4*MaxWords)
	skip := silent()
	said := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return skip[w] })
	if len(said) == 0 {
		said = words
	}
	seen := map[string]bool{}
	if len(said) < len(words) && asks[words[0]] { // "which branches are there" is for a list
		list := Stem("list")
		seen[list] = true
		t := term{stem: list, variants: []variant{{stem: list, factor: 1}}, implied: true}
		for other, factor := range meaning(list) {
			t.variants = append(t.variants, variant{stem: other, factor: factor})
		}
		all = append(all, t)
	}
	for i, w := range said {
		stem := Stem(w)
		if seen[stem] || len(all) == MaxWords {
			continue
		}
		seen[stem] = true
		t := term{stem: stem, variants: []variant{{stem: stem, factor: 1}}}
		for other, factor := range meaning(stem) {
			t.variants = append(t.variants, variant{stem: other, factor: factor})
		}
		if i+1 < len(said) { // "web hook" is "webhook" too
			t.variants = append(t.variants, variant{stem: Stem(w + said[i+1]), factor: 1})
		}
		if i > 0 {
			t.variants = append(t.variants, variant{stem: Stem(said[i-1] + w), factor: 1})
		}
		all = append(all, t)
	}
	return all
}
