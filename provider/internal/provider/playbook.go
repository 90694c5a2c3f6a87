package provider

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator/playbook"
)

// treeDigest returns the digest of the snapshot that an apply would take now of
// the playbook at path; empty for no path. Errors are those of [playbook.Root]
// and [playbook.Take].
func treeDigest(ctx context.Context, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	root, entry, err := playbook.Root(path)
	if err != nil {
		return "", err
	}
	snapshot, err := playbook.Take(ctx, root, entry)
	if err != nil {
		return "", err
	}
	return snapshot.Digest, nil
}
