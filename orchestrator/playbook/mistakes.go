package playbook

import "github.com/exocomp/exocomp/orchestrator"

// maxMistakes bounds how many mistakes one error spells out: a tree that links
// out of itself often does so by the hundred.
const maxMistakes = 20

// mistakes collects what is wrong with a tree.
type mistakes struct {
	list  orchestrator.Mistakes
	count int
}

func (m *mistakes) addf(format string, args ...any) {
	if m.count++; m.count <= maxMistakes {
		m.list.Addf(format, args...)
	}
}

// err returns nil, or one [orchestrator.CodeInvalid] error with a line a mistake.
func (m *mistakes) err() error {
	if more := m.count - maxMistakes; more > 0 {
		m.list.Addf("and %d more", more)
		m.count = 0
	}
	return m.list.Err()
}
