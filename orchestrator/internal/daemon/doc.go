// Package daemon is `exocomp serve`: it reads the settings, wires the packages
// below it into one process, answers the contract, and ends in order.
package daemon
