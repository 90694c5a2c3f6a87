// Package hostkeys learns and holds to the keys of hosts: it scans what a host
// offers, decides against the recorded pins what that means, records the
// decision, and renders the pins as a known_hosts file.
package hostkeys
