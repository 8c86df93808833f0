package workspace

import "context"

// occurrence is how often a text occurs in another, counting overlaps, and where the last occurrence ends.
type occurrence struct{ count, end int }

// prefix is a state of the search: the longest beginning of a sought text with which the input ends so far. This is the algorithm of
// Aho and Corasick.
type prefix struct {
	child, next int32 // the first state that is one byte longer, and the next one of the same length; 0 for none
	fail        int32 // the longest other state that is a suffix of this one
	count, end  int32 // how often the search was here, and after how many bytes last
	wide        int16 // the number of a table of children, if there are many
	byte        byte
}

// narrow is how many children a state may have without a table.
const narrow = 8

type automaton struct {
	all    []prefix // the first is the empty beginning
	tables [][256]int32
}

// child returns the state one byte longer, 0 if there is none.
func (s *automaton) child(of int32, b byte) int32 {
	if wide := s.all[of].wide; wide > 0 {
		return s.tables[wide-1][b]
	}
	c := s.all[of].child
	for c != 0 && s.all[c].byte != b {
		c = s.all[c].next
	}
	return c
}

// add makes the states of a text and returns the last.
func (s *automaton) add(text string) int32 {
	at := int32(0)
	for i := range len(text) {
		c := s.child(at, text[i])
		if c == 0 {
			c = int32(len(s.all))
			s.all = append(s.all, prefix{byte: text[i], next: s.all[at].child})
			s.all[at].child = c
			s.widen(at, c)
		}
		at = c
	}
	return at
}

// widen gives a state with many children a table of them, or adds the newest child to its table.
func (s *automaton) widen(at, newest int32) {
	if wide := s.all[at].wide; wide > 0 {
		s.tables[wide-1][s.all[newest].byte] = newest
		return
	}
	children := 0
	for c := newest; c != 0; c = s.all[c].next {
		children++
	}
	if children <= narrow {
		return
	}
	var table [256]int32
	for c := newest; c != 0; c = s.all[c].next {
		table[s.all[c].byte] = c
	}
	s.tables = append(s.tables, table)
	s.all[at].wide = int16(len(s.tables))
}

// after returns the state after one more byte.
func (s *automaton) after(at int32, b byte) int32 {
	for {
		if c := s.child(at, b); c != 0 || at == 0 {
			return c
		}
		at = s.all[at].fail
	}
}

// occurrences looks for all of sought at once, in time proportional to the bytes of the text and of sought. No sought text may be
// empty, and there are fewer than 32,768.
func occurrences(ctx context.Context, text string, sought []string) ([]occurrence, error) {
	size := 1
	for _, part := range sought {
		size += len(part)
	}
	s := automaton{all: make([]prefix, 1, size)}
	last := make([]int32, len(sought))
	for i, part := range sought {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		last[i] = s.add(part)
	}
	// By length, so that the state after a failure is complete first.
	order := make([]int32, 1, len(s.all))
	for i := 0; i < len(order); i++ {
		at := order[i]
		for c := s.all[at].child; c != 0; c = s.all[c].next {
			if at != 0 {
				s.all[c].fail = s.after(s.all[at].fail, s.all[c].byte)
			}
			order = append(order, c)
		}
	}
	at := int32(0)
	for i := range len(text) {
		if i%chunkSize == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		at = s.after(at, text[i])
		s.all[at].count++
		s.all[at].end = int32(i + 1)
	}
	// Each visit of a state is also a visit of its failure state.
	for i := len(order) - 1; i > 0; i-- {
		longer := s.all[order[i]]
		shorter := &s.all[longer.fail]
		shorter.count += longer.count
		shorter.end = max(shorter.end, longer.end)
	}
	found := make([]occurrence, len(sought))
	for i, at := range last {
		found[i] = occurrence{int(s.all[at].count), int(s.all[at].end)}
	}
	return found, nil
}
