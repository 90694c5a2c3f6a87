// Package secrets keeps what must not be seen: it seals values at rest with the
// daemon's age identity, makes and opens the fleet key, serves private keys to
// one job through an ssh-agent, and takes secret values out of a job's output.
package secrets
