package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/playbook"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// MaxSnapshot bounds the upload of one playbook snapshot, in bytes: 64 MiB of
// files, and room for what an archive adds to tens of thousands of small ones.
// The service bounds the files themselves.
const MaxSnapshot = 256 << 20

// snapshotChunk is how much of a snapshot travels in one message.
const snapshotChunk = 256 << 10

// Snapshots takes playbook snapshots, addressed by their digest.
type Snapshots interface {
	HasSnapshot(ctx context.Context, digest string) (bool, error)
	// UploadSnapshot stores what r yields under header.Digest. The server's r
	// yields exactly header.Size bytes or an error; the service checks the
	// digest and keeps nothing of an upload that fails.
	UploadSnapshot(ctx context.Context, header SnapshotHeader, r io.Reader) error
}

// SnapshotHeader announces an upload.
type SnapshotHeader struct {
	Digest string // sha256:<hex>
	Size   int64  // bytes, at most [MaxSnapshot]
}

func (h SnapshotHeader) validate() error {
	if h.Size < 0 || h.Size > MaxSnapshot {
		return orchestrator.Errorf(orchestrator.CodeInvalid,
			"the playbook snapshot has %d MiB; at most %d are taken", h.Size>>20, MaxSnapshot>>20).
			WithHint("keep large files out of the playbook's directory")
	}
	return nil
}

type snapshotServer struct {
	exocompv1.UnimplementedSnapshotServiceServer
	svc Snapshots
}

func (s snapshotServer) HasSnapshot(ctx context.Context, req *exocompv1.HasSnapshotRequest) (*exocompv1.HasSnapshotResponse, error) {
	present, err := s.svc.HasSnapshot(ctx, req.GetDigest())
	if err != nil {
		return nil, err
	}
	return &exocompv1.HasSnapshotResponse{Present: present}, nil
}

func (s snapshotServer) UploadSnapshot(stream grpc.ClientStreamingServer[exocompv1.UploadSnapshotRequest, exocompv1.UploadSnapshotResponse]) error {
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	h := snapshotHeaderFromWire(first.GetHeader())
	if first.GetHeader() == nil {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "the upload does not begin with its header")
	}
	if err := h.validate(); err != nil {
		return err
	}
	if err := s.svc.UploadSnapshot(stream.Context(), h, &uploadReader{stream: stream, size: h.Size}); err != nil {
		return err
	}
	return stream.SendAndClose(&exocompv1.UploadSnapshotResponse{})
}

// uploadReader yields the chunks of an upload: exactly size bytes, or an error.
type uploadReader struct {
	stream grpc.ClientStreamingServer[exocompv1.UploadSnapshotRequest, exocompv1.UploadSnapshotResponse]
	size   int64
	got    int64
	chunk  []byte // what of the last message is not read yet
}

func (r *uploadReader) Read(p []byte) (int, error) {
	for len(r.chunk) == 0 {
		m, err := r.stream.Recv()
		if errors.Is(err, io.EOF) && r.got == r.size {
			return 0, io.EOF
		}
		if errors.Is(err, io.EOF) {
			return 0, orchestrator.Errorf(orchestrator.CodeInvalid, "the upload ended after %d of %d bytes", r.got, r.size)
		}
		if err != nil {
			return 0, err
		}
		r.chunk = m.GetChunk()
		r.got += int64(len(r.chunk))
		if r.got > r.size {
			return 0, orchestrator.Errorf(orchestrator.CodeInvalid, "the upload is longer than its %d bytes", r.size)
		}
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

// HasSnapshot implements [Snapshots].
func (c *Client) HasSnapshot(ctx context.Context, digest string) (bool, error) {
	resp, err := c.stubs.snapshots.HasSnapshot(ctx, &exocompv1.HasSnapshotRequest{Digest: digest})
	return resp.GetPresent(), err
}

// UploadSnapshot implements [Snapshots]. It reads r to its end; the daemon
// refuses what is not header.Size bytes long.
func (c *Client) UploadSnapshot(ctx context.Context, header SnapshotHeader, r io.Reader) error {
	if err := header.validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // breaks the upload off when r fails
	stream, err := c.stubs.snapshots.UploadSnapshot(ctx)
	if err != nil {
		return domainError(ctx, err)
	}
	send := func(m *exocompv1.UploadSnapshotRequest) error { return stream.Send(m) }
	err = send(&exocompv1.UploadSnapshotRequest{Part: &exocompv1.UploadSnapshotRequest_Header{
		Header: snapshotHeaderToWire(header),
	}})
	buf := make([]byte, snapshotChunk)
	for err == nil {
		n, rerr := io.ReadFull(r, buf)
		if n > 0 {
			err = send(&exocompv1.UploadSnapshotRequest{Part: &exocompv1.UploadSnapshotRequest_Chunk{Chunk: buf[:n]}})
		}
		if errors.Is(rerr, io.EOF) || errors.Is(rerr, io.ErrUnexpectedEOF) {
			break
		}
		if rerr != nil {
			return fmt.Errorf("read the playbook snapshot: %w", rerr)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return domainError(ctx, err)
	}
	// An io.EOF from Send means that the daemon has answered already.
	_, err = stream.CloseAndRecv()
	return domainError(ctx, err)
}

// UploadPlaybook makes the snapshot of the playbook at path, relative to the
// working directory, and gives it to the daemon unless it has one of the same
// digest. Errors besides those of the calls: not-found where there is no such
// file, invalid where no snapshot can be made of its directory.
func (c *Client) UploadPlaybook(ctx context.Context, path string) (orchestrator.PlaybookRef, error) {
	root, entry, err := playbook.Root(path)
	if err != nil {
		return orchestrator.PlaybookRef{}, err
	}
	snapshot, err := playbook.Take(ctx, root, entry)
	if err != nil {
		return orchestrator.PlaybookRef{}, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return orchestrator.PlaybookRef{}, orchestrator.Errorf(orchestrator.CodeInvalid, "make %q absolute: %w", path, err)
	}
	ref := orchestrator.PlaybookRef{Path: abs, Entry: entry, Digest: snapshot.Digest}
	has, err := c.HasSnapshot(ctx, snapshot.Digest)
	if err != nil || has {
		return ref, err
	}
	header := SnapshotHeader{Digest: snapshot.Digest, Size: snapshot.ArchiveSize()}
	return ref, c.UploadSnapshot(ctx, header, snapshot.NewReader())
}
