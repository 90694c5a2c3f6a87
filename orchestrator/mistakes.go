package orchestrator

import "strings"

// Mistakes collects a user's mistakes so that all are reported together. The
// zero value is ready to use.
type Mistakes struct{ list []mistake }

type mistake struct{ message, hint string }

// Add records err; nil is nothing.
func (m *Mistakes) Add(err error) {
	if err == nil {
		return
	}
	f := FailureOf(err)
	m.list = append(m.list, mistake{f.Message, f.Hint})
}

// Addf records a formatted mistake.
func (m *Mistakes) Addf(format string, args ...any) {
	m.list = append(m.list, mistake{message: Errorf(CodeInvalid, format, args...).Message})
}

// Err returns nil, or one [CodeInvalid] error that names every mistake. The hint
// of a single one stays a hint; of several, each stands behind its mistake.
func (m *Mistakes) Err() error {
	switch len(m.list) {
	case 0:
		return nil
	case 1:
		return &Error{Code: CodeInvalid, Message: m.list[0].message, Hint: m.list[0].hint}
	}
	lines := make([]string, 0, len(m.list))
	for _, k := range m.list {
		line := k.message
		if k.hint != "" {
			line += " (" + k.hint + ")"
		}
		lines = append(lines, line)
	}
	return &Error{Code: CodeInvalid, Message: strings.Join(lines, "\n")}
}
