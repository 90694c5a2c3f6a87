package hostkeys

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// KnownHosts renders the matched pins as a known_hosts file (sshd(8),
// "SSH_KNOWN_HOSTS FILE FORMAT"), sorted by address, port and key type. Retired
// pins are left out.
func KnownHosts(pins []orchestrator.Pin) []byte {
	live := slices.DeleteFunc(slices.Clone(pins), func(p orchestrator.Pin) bool { return !p.RetiredAt.IsZero() })
	slices.SortFunc(live, func(a, b orchestrator.Pin) int {
		return cmp.Or(
			strings.Compare(strings.ToLower(a.Host), strings.ToLower(b.Host)),
			cmp.Compare(a.Port, b.Port),
			strings.Compare(a.KeyType, b.KeyType),
			strings.Compare(a.Key, b.Key),
		)
	})
	var b bytes.Buffer
	for _, p := range live {
		b.WriteString(strings.ToLower(p.HostPort()) + " " + p.KeyType + " " + p.Key + "\n")
	}
	return b.Bytes()
}
