package supervised

import (
	"context"
	"fmt"
	"io"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/playbook"
)

// Snapshots gives playbook trees by digest. The caller closes what it gets.
type Snapshots interface {
	Open(digest string) (io.ReadCloser, error)
}

// Unpack lays a snapshot out in dir, replacing what an interrupted try left.
func Unpack(ctx context.Context, from Snapshots, digest, dir string) error {
	r, err := from.Open(digest)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if err := durable.RemoveTree(dir); err != nil {
		return fmt.Errorf("unpack playbook: %w", err)
	}
	_, err = playbook.Unpack(ctx, r, dir, digest)
	return err
}
