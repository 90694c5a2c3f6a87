// Package seeds holds the files that exocomp gives to ansible-playbook: the
// playbooks of its own steps and the callback plugin that reports what a run
// does. People may read and run the playbooks by hand.
package seeds

import (
	"embed"
)

// Names of the files in [Files].
const (
	// WaitSSH waits for SSH banners, as the step ssh-wait does natively.
	WaitSSH = "wait-ssh.yml"
	// Onboard makes the automation user of a machine.
	Onboard = "onboard.yml"
	// Verify logs in as the automation user and becomes root.
	Verify = "verify.yml"
	// VerifyLogin logs in as the inventory's user.
	VerifyLogin = "verify-login.yml"
	// Events is the callback plugin; its documentation describes the lines
	// that it writes.
	Events = "exocomp_events.py"
)

// EventsFD names the environment variable by which the callback plugin learns
// its descriptor: a regular file, opened with O_APPEND.
const EventsFD = "EXOCOMP_EVENTS_FD"

//go:embed *.yml *.py
var files embed.FS

// Read returns the content of a seed. It panics where name is none of the
// constants of this package.
func Read(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic("no seed " + name)
	}
	return data
}
