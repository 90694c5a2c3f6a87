// Package sandbox confines a job's tool. A [Policy] is a pure value that the
// drivers compute; the shim, `exocomp sandbox-exec`, applies it to itself and
// then becomes the tool, so that the supervisor stays outside.
package sandbox

import "github.com/exocomp/exocomp/orchestrator"

// Tier says how much of a policy the kernel must be able to enforce.
type Tier string

// Off applies nothing: the tool may do what the daemon's user may. It is the
// zero Tier too.
const Off Tier = "off"

// Policy is what a tool may reach. The zero Policy is off.
type Policy struct {
	Tier Tier
}

// Validate refuses a tier that the shim could not apply. The error is
// [orchestrator.CodeInvalid]: a policy that is not understood must never be
// taken for none.
func (p Policy) Validate() error {
	switch p.Tier {
	case "", Off:
		return nil
	default:
		return orchestrator.Errorf(orchestrator.CodeInvalid, "sandbox tier %q is unknown: use off", p.Tier)
	}
}
