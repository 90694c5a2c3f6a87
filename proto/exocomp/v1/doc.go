// Package exocompv1 is the generated code of version 1 of the contract between
// the daemon and its clients. Only orchestrator/rpc imports it; what the calls
// promise stands in the .proto files beside it.
package exocompv1
