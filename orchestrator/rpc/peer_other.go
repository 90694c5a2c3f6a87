//go:build !linux

package rpc

import (
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// peerCredentials refuses every connection: the daemon runs on Linux, and only
// clients are built for other systems.
type peerCredentials struct {
	credentials.TransportCredentials
}

func newPeerCredentials() credentials.TransportCredentials {
	return peerCredentials{insecure.NewCredentials()}
}

func (peerCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("read peer credentials: the daemon runs on Linux")
}

func (c peerCredentials) Clone() credentials.TransportCredentials { return c }
