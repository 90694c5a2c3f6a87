//go:build race

package ledger

import "flag"

// The race detector makes everything several times as dear, and what the random
// histories look for is not a race: a quarter of them is walked under it, unless
// -rapid.checks says otherwise.
func init() {
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
}
