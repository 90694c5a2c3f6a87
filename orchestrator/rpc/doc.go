// Package rpc is the contract between the daemon and its clients: gRPC over a
// unix socket with a stable path, hashicorp/go-plugin on both ends.
//
// It speaks the types of package orchestrator; the generated ones never leave
// it. The daemon gives [NewServer] a [Service] and a listener from [Listen];
// the command line, the provider and the inventory executable call [Dial],
// whose [Client] is a [Service] again, with helpers that wait.
//
// # What go-plugin does and what it does not
//
// The daemon is nobody's child, so of go-plugin we use the server, its plugin
// sets and its health service, and the client's reattachment. A client cannot
// stop the daemon: Shutdown is ignored and Kill reaches nothing. Its broker,
// its stdio forwarding and gRPC reflection are refused. As reattaching skips
// go-plugin's handshake, [Dial] makes one of our own, which compares
// [ContractVersion].
//
// # Who may call
//
// Every call but go-plugin's health check carries a bearer token from a file
// beside the socket. A table says for each method which [Role] may call it.
// Peer credentials say who did, see [PeerFrom].
//
// # Errors
//
// Every error is an [orchestrator.Error]; one table maps its code to a gRPC
// status and back. Waiting helpers outlive a restart of the daemon.
package rpc
