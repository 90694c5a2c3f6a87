package secrets

// automaton finds every occurrence of many patterns in one pass over a stream
// (Aho and Corasick, CACM 18(6), 1975). State 0 is the start. Each state stands
// for a prefix of a pattern: the longest one that the stream ends with. Children
// are linked lists because all but a few states have only one.
type automaton struct {
	nodes []node
	root  [256]int32 // the start's transitions
}

type node struct {
	pending int32 // length of the longest suffix that can still grow into a pattern
	match   int32 // length of the longest pattern that ends here, or 0
	fail    int32 // the state of the longest proper suffix
	child   int32 // first child, or 0
	sibling int32 // next child of the same parent, or 0
	char    byte  // the last byte of the prefix
}

// newAutomaton returns an automaton for patterns; empty ones are nothing.
func newAutomaton(patterns []string) *automaton {
	a := &automaton{nodes: make([]node, 1)}
	for _, p := range patterns {
		if p != "" {
			a.add(p)
		}
	}
	a.link()
	return a
}

func (a *automaton) add(pattern string) {
	var state int32
	for i := range len(pattern) {
		next := a.edge(state, pattern[i])
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{
				pending: int32(i + 1), char: pattern[i], sibling: a.nodes[state].child,
			})
			a.nodes[state].child = next
			if state == 0 {
				a.root[pattern[i]] = next
			}
		}
		state = next
	}
	a.nodes[state].match = int32(len(pattern))
}

// link sets the fail links and what follows from them, breadth first: a state's
// fail link leads to a shorter one.
func (a *automaton) link() {
	var queue []int32
	for c := a.nodes[0].child; c != 0; c = a.nodes[c].sibling {
		queue = append(queue, c)
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		fail := a.nodes[state].fail
		a.nodes[state].match = max(a.nodes[state].match, a.nodes[fail].match)
		if a.nodes[state].child == 0 { // a whole pattern that is part of no longer one
			a.nodes[state].pending = a.nodes[fail].pending
		}
		for c := a.nodes[state].child; c != 0; c = a.nodes[c].sibling {
			a.nodes[c].fail = a.next(fail, a.nodes[c].char)
			queue = append(queue, c)
		}
	}
}

// edge returns the child of state by c, or 0.
func (a *automaton) edge(state int32, c byte) int32 {
	if state == 0 {
		return a.root[c]
	}
	for n := a.nodes[state].child; n != 0; n = a.nodes[n].sibling {
		if a.nodes[n].char == c {
			return n
		}
	}
	return 0
}

// next returns the state after c.
func (a *automaton) next(state int32, c byte) int32 {
	for {
		if n := a.edge(state, c); n != 0 || state == 0 {
			return n
		}
		state = a.nodes[state].fail
	}
}

// pending returns how many bytes at the stream's end may begin a match to come.
func (a *automaton) pending(state int32) int { return int(a.nodes[state].pending) }

// longest returns the length of the longest pattern that ends here, or 0.
func (a *automaton) longest(state int32) int { return int(a.nodes[state].match) }
