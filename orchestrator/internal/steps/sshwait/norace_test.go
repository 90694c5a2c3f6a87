//go:build !race

package sshwait

const raceEnabled = false
