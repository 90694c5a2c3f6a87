package orchestrator

import (
	"errors"
	"strings"
)

// Mistakes collects a user's mistakes so that all are reported together. The
// zero value is ready to use.
type Mistakes struct{ list []string }

// Add records err; nil is nothing.
func (m *Mistakes) Add(err error) {
	if err == nil {
		return
	}
	var e *Error
	if errors.As(err, &e) && e.Hint != "" {
		m.list = append(m.list, e.Message+" ("+e.Hint+")")
		return
	}
	m.list = append(m.list, err.Error())
}

// Addf records a formatted mistake.
func (m *Mistakes) Addf(format string, args ...any) {
	m.list = append(m.list, Errorf(CodeInvalid, format, args...).Message)
}

// Err returns nil, or one [CodeInvalid] error that names every mistake.
func (m *Mistakes) Err() error {
	if len(m.list) == 0 {
		return nil
	}
	return &Error{Code: CodeInvalid, Message: strings.Join(m.list, "\n")}
}
