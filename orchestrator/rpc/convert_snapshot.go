package rpc

import exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"

func snapshotHeaderToWire(h SnapshotHeader) *exocompv1.SnapshotHeader {
	return &exocompv1.SnapshotHeader{Digest: h.Digest, Size: h.Size}
}

func snapshotHeaderFromWire(h *exocompv1.SnapshotHeader) SnapshotHeader {
	return SnapshotHeader{Digest: h.GetDigest(), Size: h.GetSize()}
}
