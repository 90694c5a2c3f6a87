// Package sshwait is step 2 of a chain: it waits, bounded and without
// credentials, until the SSH port of every host answers.
package sshwait
