package rpc

import (
	"fmt"
	"net"
	"os/user"
	"strconv"
	"syscall"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/exocomp/exocomp/orchestrator"
)

// peerCredentials are the server's transport credentials: plain, as the socket
// does not leave the host, and asking the kernel who connected (unix(7),
// SO_PEERCRED).
type peerCredentials struct {
	credentials.TransportCredentials
}

func newPeerCredentials() credentials.TransportCredentials {
	return peerCredentials{insecure.NewCredentials()}
}

// ServerHandshake refuses what is not a unix socket: there would be no peer.
func (peerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, fmt.Errorf("read peer credentials: %T is no unix socket", conn)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, nil, fmt.Errorf("read peer credentials: %w", err)
	}
	var cred *syscall.Ucred
	var cerr error
	err = raw.Control(func(fd uintptr) {
		cred, cerr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err == nil {
		err = cerr
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read peer credentials: %w", err)
	}
	p := orchestrator.Peer{UID: int(cred.Uid), GID: int(cred.Gid), PID: int(cred.Pid)}
	if u, err := user.LookupId(strconv.Itoa(p.UID)); err == nil {
		p.Name = u.Username
	}
	return conn, peerInfo{
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity},
		peer:           p,
	}, nil
}

func (c peerCredentials) Clone() credentials.TransportCredentials { return c }
