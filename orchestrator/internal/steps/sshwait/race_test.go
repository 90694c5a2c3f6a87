//go:build race

package sshwait

// The race detector makes everything several times as dear.
const raceEnabled = true
