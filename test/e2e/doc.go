// Package e2e holds the gates: the real binaries, real OpenTofu, real
// ansible-playbook and real sshd, on throwaway hosts in network namespaces.
// They need root. Effects are counted outside exocomp, on the hosts.
package e2e
