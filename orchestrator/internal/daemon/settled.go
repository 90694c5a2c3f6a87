package daemon

import "context"

// settled returns what was read of the ledger once the files that belong to it
// are published: who then looks finds them there.
func settled[T any](ctx context.Context, d *Daemon, read T, err error) (T, error) {
	if err == nil {
		err = d.engine.Settled(ctx)
	}
	return read, err
}
