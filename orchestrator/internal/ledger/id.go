package ledger

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/exocomp/exocomp/orchestrator"
)

// tokenBytes makes an attempt's token too long to guess.
const tokenBytes = 32

// ids makes ids that sort in the order in which they were made.
type ids struct{ entropy io.Reader }

func newIDs() *ids { return &ids{entropy: ulid.Monotonic(rand.Reader, 0)} }

func (g *ids) next(now time.Time) (string, error) {
	u, err := ulid.New(ulid.Timestamp(now), g.entropy)
	if err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	return u.String(), nil
}

func (t *tx) newRunID() (orchestrator.RunID, error) {
	u, err := t.ids.next(t.now)
	return orchestrator.RunID("run_" + u), err
}

func (t *tx) newJobID() (orchestrator.JobID, error) {
	u, err := t.ids.next(t.now)
	return orchestrator.JobID("job_" + u), err
}

// newAttempt returns the identity of an attempt that starts now. Forty random
// bits are short enough for a path and repeat after a million attempts, so the
// ledger is asked.
func (t *tx) newAttempt(ctx context.Context) (orchestrator.AttemptID, orchestrator.Secret, error) {
	for {
		var name [5]byte
		_, _ = rand.Read(name[:]) // never fails, see crypto/rand
		id := strings.ToLower(base32.StdEncoding.EncodeToString(name[:]))
		var taken bool
		err := t.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM job WHERE attempt_id = ?)`, id).Scan(&taken)
		if err != nil {
			return "", orchestrator.Secret{}, err
		}
		if taken {
			continue
		}
		var token [tokenBytes]byte
		_, _ = rand.Read(token[:])
		return orchestrator.AttemptID(id), orchestrator.NewSecret(hex.EncodeToString(token[:])), nil
	}
}
