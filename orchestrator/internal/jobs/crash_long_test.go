//go:build long

package jobs

import "testing"

func TestLongLockedBeforeFork(t *testing.T) { lockedBeforeFork(t, 300) }
