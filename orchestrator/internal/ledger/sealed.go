package ledger

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
)

// PutSealed stores a ciphertext under a kind and a name, in place of the one
// that stood there.
func (l *Ledger) PutSealed(ctx context.Context, kind, name string, ciphertext []byte) error {
	return l.write(ctx, "store sealed value", func(t *tx) error { return t.putSealed(ctx, kind, name, ciphertext) })
}

// putSealed is [Ledger.PutSealed]; nothing to store removes what stood there.
func (t *tx) putSealed(ctx context.Context, kind, name string, ciphertext []byte) error {
	if len(ciphertext) == 0 {
		return t.exec(ctx, `DELETE FROM sealed WHERE kind = ? AND name = ?`, kind, name)
	}
	return t.exec(ctx, `
		INSERT INTO sealed (
			kind,
			name,
			ciphertext,
			updated_at
		) VALUES (?, ?, ?, ?)
		ON CONFLICT (kind, name) DO UPDATE SET
			ciphertext = excluded.ciphertext,
			updated_at = excluded.updated_at`,
		kind, name, ciphertext, nanos(t.now))
}

// Sealed returns the ciphertext that is stored under a kind and a name.
func (l *Ledger) Sealed(ctx context.Context, kind, name string) (ciphertext []byte, err error) {
	err = l.read(ctx, "read sealed value", func(q querier) error {
		b, found, err := one(ctx, q, scanBytes, `SELECT ciphertext FROM sealed WHERE kind = ? AND name = ?`, kind, name)
		if err == nil && !found {
			err = orchestrator.Errorf(orchestrator.CodeNotFound, "no %s %q is sealed in the ledger", kind, name)
		}
		ciphertext = b
		return err
	})
	return ciphertext, err
}

func scanBytes(row scanner) (b []byte, err error) {
	err = row.Scan(&b)
	return b, err
}
