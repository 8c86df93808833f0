// Package automaton finds any of many texts in one pass, with the automaton of Aho and Corasick.
package automaton

// Automaton is immutable, and goroutines may share it. A pass begins in state 0.
type Automaton struct {
	nodes []node
	root  [256]int32 // the states after the root
}

// node is a state: the longest suffix of the input that begins one of the texts.
type node struct {
	child, sibling int32 // 0 for none
	fail           int32 // the next shorter suffix of this kind
	depth          int32 // its length
	match          int32 // length of the longest text that ends here; 0 for none
	label          byte
}

// New makes an automaton of texts.
func New(texts []string) *Automaton {
	most := 1
	for _, text := range texts {
		most += len(text)
	}
	a := &Automaton{nodes: make([]node, 1, most)}
	for _, text := range texts {
		at := int32(0)
		for i := range len(text) {
			n := a.child(at, text[i])
			if n == 0 {
				n = int32(len(a.nodes))
				a.nodes = append(a.nodes, node{sibling: a.nodes[at].child, depth: int32(i + 1), label: text[i]})
				a.nodes[at].child = n
			}
			at = n
		}
		a.nodes[at].match = a.nodes[at].depth
	}
	for n := a.nodes[0].child; n != 0; n = a.nodes[n].sibling {
		a.root[a.nodes[n].label] = n
	}
	for queue := append(make([]int32, 0, len(a.nodes)), 0); len(queue) > 0; queue = queue[1:] {
		parent := queue[0]
		for n := a.nodes[parent].child; n != 0; n = a.nodes[n].sibling {
			at := &a.nodes[n]
			if parent != 0 {
				at.fail = a.Next(a.nodes[parent].fail, at.label)
			}
			if at.match == 0 {
				at.match = a.nodes[at.fail].match
			}
			queue = append(queue, n)
		}
	}
	return a
}

func (a *Automaton) child(at int32, b byte) int32 {
	n := a.nodes[at].child
	for n != 0 && a.nodes[n].label != b {
		n = a.nodes[n].sibling
	}
	return n
}

// Next returns the state after one more byte.
func (a *Automaton) Next(at int32, b byte) int32 {
	for ; at != 0; at = a.nodes[at].fail {
		if n := a.child(at, b); n != 0 {
			return n
		}
	}
	return a.root[b]
}

// Match is the length of the longest text that ends in a state. 0 means none.
func (a *Automaton) Match(at int32) int { return int(a.nodes[at].match) }

// Depth is the length of the longest suffix of the input that begins one of the texts.
func (a *Automaton) Depth(at int32) int { return int(a.nodes[at].depth) }
