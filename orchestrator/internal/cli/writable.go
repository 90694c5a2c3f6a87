package cli

import "golang.org/x/sys/unix"

// writable asks the kernel whether this process may make files in dir.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
