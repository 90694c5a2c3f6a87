package rpc

import (
	"context"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/exocomp/exocomp/orchestrator"
)

// PeerFrom returns who made the call that ctx belongs to, from the socket's
// peer credentials. Through `ssh -L` it is sshd's user. It is zero outside a
// call.
func PeerFrom(ctx context.Context) orchestrator.Peer {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return orchestrator.Peer{}
	}
	info, _ := p.AuthInfo.(peerInfo)
	return info.peer
}

// peerInfo carries a connection's peer. It implements [credentials.AuthInfo].
type peerInfo struct {
	credentials.CommonAuthInfo
	peer orchestrator.Peer
}

func (peerInfo) AuthType() string { return "peercred" }

type roleKey struct{}

// roleFrom returns the role of the call's token, or empty.
func roleFrom(ctx context.Context) Role {
	r, _ := ctx.Value(roleKey{}).(Role)
	return r
}
