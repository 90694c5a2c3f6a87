package orchestrator

import (
	"regexp"
	"strings"
)

// RunID names a run: `run_` and a ULID in Crockford base 32, so that ids sort
// by time.
type RunID string

// JobID names a job: `job_` and a ULID.
type JobID string

// AttemptID is the short public id of an attempt, eight lower-case letters and
// digits: it names directories, and a unix socket below them must stay under
// the 108 bytes that sun_path holds (unix(7)).
type AttemptID string

var ulidForm = regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`)

// ParseRunID returns s as a run id. The error is [CodeInvalid].
func ParseRunID(s string) (RunID, error) {
	if u, ok := strings.CutPrefix(s, "run_"); ok && ulidForm.MatchString(u) {
		return RunID(s), nil
	}
	return "", Errorf(CodeInvalid, "%q is not a run id", s).WithHint("list them: exocomp provision list")
}

// ParseJobID returns s as a job id. The error is [CodeInvalid].
func ParseJobID(s string) (JobID, error) {
	if u, ok := strings.CutPrefix(s, "job_"); ok && ulidForm.MatchString(u) {
		return JobID(s), nil
	}
	return "", Errorf(CodeInvalid, "%q is not a job id", s).WithHint("list them: exocomp jobs list")
}
